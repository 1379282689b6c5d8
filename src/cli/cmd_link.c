/* intarsia link: a kernel and its regions to one PTX file. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/linking.h"
#include "intarsia/asm.h"

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
     "also assemble the result into FILE, and tell registers,\nspills, shared memory and what the assembler warns of"},
    {0, "strict", NULL, CLI_FLAG, offsetof(link_args, strict),
     "with --assemble: fail if wgmma is serialised or\nsetmaxnreg ignored"},
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

/* An advice is about a function; the calls that are left in it are what most often stands in the way. */
static void tell_advice(cli_app *app, const its_asm_advice *advice, const its_report *report) {
    its_diag_begin(app->ctx, ITS_ERROR, ITS_NOWHERE, "%s: %s", advice->code, advice->text);
    for (uint32_t i = 0; i < report->n_kept; i++) {
        const its_report_call *call = &report->kept[i];
        if (*advice->function && strcmp(call->caller, advice->function) != 0) continue;
        const char *label =
            its_arena_printf(&app->arena, "a call of %s is left here: %s", *call->callee ? call->callee : "an address",
                             its_kept_reason_text(call->reason));
        its_diag_also_line(app->ctx, call->file, call->line, call->column, NULL, label);
    }
}

static int check_strict(cli_app *app, const its_asm_result *code, const its_report *report) {
    int exit_code = CLI_OK;
    for (uint32_t i = 0; i < code->n_advice; i++) {
        if (!code->advice[i].serialised && !code->advice[i].no_setmaxnreg) continue;
        tell_advice(app, &code->advice[i], report);
        exit_code = CLI_FAILED;
    }
    return exit_code;
}

static int assemble(cli_app *app, const link_args *args, its_linked *linked) {
    if (!args->assemble) return CLI_OK;
    its_asm_options wanted = {.line_info = true};
    its_asm_result *code;
    its_status status = its_assemble(app->ctx, its_linked_module(linked), &wanted, &code);
    if (status != ITS_OK) return cli_status(status);
    char *told = its_asm_text(app->ctx, code);
    if (told) fputs(told, to_standard_output(args) ? stderr : stdout);
    int exit_code = args->strict ? check_strict(app, code, its_linked_report(linked)) : CLI_OK;
    if (!exit_code) exit_code = cli_write(app, args->assemble, code->cubin, code->cubin_size);
    its_free(app->ctx, told);
    its_asm_free(code);
    return exit_code;
}

/* Compilers write their own PTX version whatever they use: the linked module gets what the assembler takes. */
static its_status cap_version(cli_app *app, link_args *args) {
    if (!args->assemble) return ITS_OK;
    return its_asm_ptx_version(app->ctx, NULL, &args->link.ptx_major, &args->link.ptx_minor);
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
                              NULL, NULL);
    if (status != ITS_OK) return cli_status(status);
    int code = write_linked(app, args, linking.linked);
    if (!code) code = assemble(app, args, linking.linked);
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
