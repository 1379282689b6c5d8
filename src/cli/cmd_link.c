/* intarsia link: a kernel and its regions to one PTX file. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/assembling.h"

typedef struct link_args {
    cli_link_args link;
    const char *output, *report, *assemble;
    bool strict;
} link_args;

static const cli_option options[] = {
    {'o', "output", "FILE", CLI_TEXT, offsetof(link_args, output), "where to write the PTX (default: standard output)"},
    {0, "report", "FORM", CLI_TEXT, offsetof(link_args, report),
     "tell what was done, as text or json: on standard output,\nor on standard error if the PTX goes there"},
    {0, "assemble", "FILE", CLI_TEXT, offsetof(link_args, assemble),
     "also assemble the result into FILE, and tell registers,\nspills, stack, shared memory and what the assembler warns\nof, against the kernel without the calls"},
    {0, "strict", NULL, CLI_FLAG, offsetof(link_args, strict),
     "with --assemble: fail if wgmma is serialised or\nsetmaxnreg ignored because of a call, and name it"},
    CLI_LINK_OPTIONS,
    CLI_COMPILE_OPTIONS,
};

static const char text[] =
    "MAIN.ptx is the kernel, each REGION a file with device functions that it calls. A REGION that doesn't end in\n"
    ".ptx is compiled first, for the GPU that MAIN.ptx is for; the options of 'intarsia cc' apply. A kernel names\n"
    "the units that its calls go to by 16 hex digits: with more than one REGION, give those that are PTX already as\n"
    "UNIT=FILE.ptx.\n"
    "\n"
    "Calls are inlined; functions nobody calls any more are removed; an extern that nobody provides is an error.\n"
    "With --assemble, NVSHMEM's functions come from the NVSHMEM that is on this machine.\n"
    "\n"
    "examples:\n"
    "  intarsia link kernel.ptx shift-device.cu -o linked.ptx --report text\n"
    "  intarsia link kernel.ptx 5f0c2a9b71d3e846=a.ptx 09c1bd7740aa12ef=b.ptx --defer nvshmem -o linked.ptx\n"
    "  intarsia link caller.ptx --library math.ptx --no-inline | ptxas -arch sm_80 -o out.cubin -\n";

static bool to_standard_output(const link_args *args) {
    return !args->output || strcmp(args->output, "-") == 0;
}

/* The report, and behind it what the assembler made, `code`, if that is known already. */
static int print_report(cli_app *app, const link_args *args, its_linked *linked, const cli_assembled *code) {
    bool json = args->report && strcmp(args->report, "json") == 0;
    const its_report *report = its_linked_report(linked);
    FILE *out = to_standard_output(args) ? stderr : stdout;
    if (args->report) {
        char *printed = json ? its_report_json(app->ctx, report) : its_report_text(app->ctx, report);
        if (!printed) return cli_status(ITS_ERR_NOMEM);
        size_t size = strlen(printed);
        if (json && code->after) size = cli_assembled_join(app, &printed, code);
        fputs(size ? printed : "", out);
        if (size && printed[size - 1] != '\n') fputc('\n', out);
        its_free(app->ctx, printed);
        if (!size) return cli_status(ITS_ERR_NOMEM);
    }
    if (json || !code->after) return CLI_OK;
    char *told = its_asm_text(app->ctx, code->before, code->after);
    fputs(told ? told : "", out);
    its_free(app->ctx, told);
    return told ? CLI_OK : cli_status(ITS_ERR_NOMEM);
}

static int write_linked(cli_app *app, const link_args *args, its_linked *linked) {
    char *ptx;
    size_t size;
    its_status status = its_ptx_print(its_linked_module(linked), &ptx, &size);
    if (status != ITS_OK) return cli_status(status);
    int code = cli_write(app, args->output, ptx, size);
    its_free(app->ctx, ptx);
    return code;
}

static int write_all(cli_linking *linking, const link_args *args) {
    cli_app *app = linking->app;
    cli_assembled code = {0};
    int exit_code = write_linked(app, args, linking->linked);
    int assembled = exit_code || !args->assemble ? CLI_OK : cli_status(cli_assembled_open(&code, linking));
    if (!exit_code) exit_code = print_report(app, args, linking->linked, &code);
    if (!exit_code) exit_code = assembled;
    if (!exit_code && args->strict) exit_code = cli_assembled_check(&code, linking);
    if (!exit_code && code.after) exit_code = cli_write(app, args->assemble, code.after->cubin, code.after->cubin_size);
    cli_assembled_close(&code);
    return exit_code;
}

/* Compilers write their own PTX version whatever they use: the linked module gets what the assembler takes. */
static its_status cap_version(cli_app *app, link_args *args) {
    if (!args->assemble) return ITS_OK;
    return its_asm_ptx_version(app->ctx, NULL, &args->link.ptx_major, &args->link.ptx_minor);
}

/* What machine code needs of NVSHMEM: the functions from its headers; what these leave open is nvJitLink's business. */
static its_status add_nvshmem(cli_linking *l, void *user) {
    link_args *args = user;
    cli_list names = args->assemble ? cli_linking_wanted(l, "nvshmem") : (cli_list){0};
    if (!names.count) return ITS_OK;
    its_module **modules;
    uint32_t n;
    its_status status =
        its_asm_nvshmem(l->app->ctx, l->arch, ITS_TRANSPORT_ALL, names.items, (uint32_t)names.count, &modules, &n);
    for (uint32_t i = 0; i < n; i++) cli_linking_add_library(l, modules[i]);
    its_free(l->app->ctx, modules);
    args->link.keep_externs = true; /* assembling refuses those that nobody has, by name */
    return status;
}

static int run(cli_app *app, const void *user, const cli_list *operands) {
    link_args own = *(const link_args *)user, *args = &own;
    if (operands->count == 0)
        return cli_usage(app, "for example: intarsia link kernel.ptx device.cu -o linked.ptx", "no PTX file given");
    if (args->report && strcmp(args->report, "text") != 0 && strcmp(args->report, "json") != 0)
        return cli_usage(app, NULL, "--report takes text or json, not '%s'", args->report);
    if (args->strict && !args->assemble)
        return cli_usage(app, "add --assemble FILE", "--strict is about what the assembler says");
    cli_linking linking;
    its_status status = cap_version(app, args);
    if (status != ITS_OK) return cli_status(status);
    status = cli_linking_open(&linking, app, &args->link, operands->items[0], operands->items + 1, operands->count - 1,
                              add_nvshmem, args);
    if (status != ITS_OK) return cli_status(status);
    int code = write_all(&linking, args);
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
