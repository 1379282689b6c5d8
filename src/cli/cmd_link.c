/* intarsia link: a kernel and its regions to one PTX file. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/linking.h"

typedef struct link_args {
    cli_link_args link;
    const char *output, *report;
} link_args;

static const cli_option options[] = {
    {'o', "output", "FILE", CLI_TEXT, offsetof(link_args, output), "where to write the PTX (default: standard output)"},
    {0, "report", "FORM", CLI_TEXT, offsetof(link_args, report),
     "tell what was done, as text or json: on standard output,\nor on standard error if the PTX goes there"},
    CLI_LINK_OPTIONS,
    CLI_COMPILE_OPTIONS,
};

static const char text[] =
    "MAIN.ptx is the kernel, each REGION a file with device functions that it calls. A REGION that doesn't end in .ptx "
    "is\n"
    "compiled first, for the GPU that MAIN.ptx is for; the options of 'intarsia cc' apply. A kernel names the units "
    "that\n"
    "its calls go to by 16 hex digits: with more than one REGION, give those that are PTX already as UNIT=FILE.ptx.\n"
    "\n"
    "Calls are inlined; functions nobody calls any more are removed; an extern that nobody provides is an error.\n"
    "\n"
    "examples:\n"
    "  intarsia link kernel.ptx shift-device.cu -o linked.ptx --report text\n"
    "  intarsia link kernel.ptx 5f0c2a9b71d3e846=a.ptx 09c1bd7740aa12ef=b.ptx --defer nvshmem -o linked.ptx\n"
    "  intarsia link caller.ptx --library math.ptx --no-inline | ptxas -arch sm_80 -o out.cubin -\n";

static bool to_standard_output(const link_args *args) {
    return !args->output || strcmp(args->output, "-") == 0;
}

static int print_report(cli_app *app, const link_args *args, its_linked *linked) {
    if (!args->report) return CLI_OK;
    const its_report *report = its_linked_report(linked);
    bool json = strcmp(args->report, "json") == 0;
    char *printed = json ? its_report_json(app->ctx, report) : its_report_text(app->ctx, report);
    if (!printed) return cli_status(ITS_ERR_NOMEM);
    size_t size = strlen(printed);
    FILE *out = to_standard_output(args) ? stderr : stdout;
    fputs(printed, out);
    if (size && printed[size - 1] != '\n') fputc('\n', out);
    its_free(app->ctx, printed);
    return CLI_OK;
}

static int write_linked(cli_app *app, const link_args *args, its_linked *linked) {
    char *ptx;
    size_t size;
    its_status status = its_ptx_print(its_linked_module(linked), &ptx, &size);
    if (status != ITS_OK) return cli_status(status);
    int code = cli_write(app, args->output, ptx, size);
    its_free(app->ctx, ptx);
    return code ? code : print_report(app, args, linked);
}

static int run(cli_app *app, const void *user, const cli_list *operands) {
    const link_args *args = user;
    if (operands->count == 0)
        return cli_usage(app, "for example: intarsia link kernel.ptx device.cu -o linked.ptx", "no PTX file given");
    if (args->report && strcmp(args->report, "text") != 0 && strcmp(args->report, "json") != 0)
        return cli_usage(app, NULL, "--report takes text or json, not '%s'", args->report);
    cli_linking linking;
    its_status status = cli_linking_open(&linking, app, &args->link, operands->items[0], operands->items + 1,
                                         operands->count - 1, NULL, NULL);
    if (status != ITS_OK) return cli_status(status);
    int code = write_linked(app, args, linking.linked);
    cli_linking_close(&linking);
    return code;
}

const cli_command cli_link = {
    .name = "link",
    .usage = "[OPTIONS] MAIN.ptx [REGION ...]",
    .summary = "inline device functions into a kernel's PTX",
    .text = text,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_size = sizeof(link_args),
    .run = run,
};
