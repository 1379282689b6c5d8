/* intarsia check: everything that is wrong with PTX files. */
#include <stdio.h>

#include "cli/cli.h"
#include "intarsia/ptx.h"

typedef struct check_args {
    bool quiet;
} check_args;

static const cli_option options[] = {
    {'q', "quiet", NULL, CLI_FLAG, offsetof(check_args, quiet), "say nothing about files that are good"},
};

static const char text[] =
    "Parses each file, and checks what the syntax leaves open: that operands fit their instruction in number, shape\n"
    "and type, that calls fit their functions, that version and target allow what is used. Instructions that\n"
    "Intarsia doesn't know are passed over. All faults are listed; the exit code is 1 if there is any. FILE may be\n"
    "- for standard input.\n"
    "\n"
    "examples:\n"
    "  intarsia check kernel.ptx\n"
    "  intarsia cc device.cu | intarsia check -\n";

static its_status check(cli_app *app, const char *path) {
    its_module *module;
    its_status status = its_ptx_parse_file(app->ctx, path, &module);
    if (status != ITS_OK) return status;
    status = its_ptx_verify(module);
    its_module_free(module);
    return status;
}

static int run(cli_app *app, const void *user, const cli_list *operands) {
    const check_args *args = user;
    int code = CLI_OK;
    if (operands->count == 0) return cli_usage(app, "usage: intarsia check FILE.ptx...", "no PTX file given");
    for (size_t i = 0; i < operands->count; i++) {
        its_status status = check(app, operands->items[i]);
        if (status != ITS_OK)
            code = cli_status(status);
        else if (!args->quiet)
            printf("%s: no fault found\n", operands->items[i]);
    }
    return code;
}

const cli_command cli_check = {
    .name = "check",
    .usage = "[OPTIONS] FILE.ptx...",
    .summary = "list everything that is wrong with PTX files",
    .text = text,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_size = sizeof(check_args),
    .run = run,
};
