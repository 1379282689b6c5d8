/* intarsia fmt: PTX as this library prints it. */
#include "cli/cli.h"
#include "intarsia/ptx.h"

typedef struct fmt_args {
    const char *output;
} fmt_args;

static const cli_option options[] = {
    {'o', "output", "FILE", CLI_TEXT, offsetof(fmt_args, output), "where to write it (default: standard output)"},
};

static const char text[] =
    "Reads PTX and writes it again, evenly laid out. ptxas makes the same machine code of both.\n"
    "FILE may be - for standard input.\n"
    "\n"
    "examples:\n"
    "  intarsia fmt kernel.ptx | less\n"
    "  intarsia fmt kernel.ptx -o kernel.ptx\n";

static int run(cli_app *app, const void *user, const cli_list *operands) {
    const fmt_args *args = user;
    const char *path = cli_only_operand(app, &cli_fmt, operands, "PTX file");
    if (!path) return CLI_USAGE;
    its_module *module;
    its_status status = its_ptx_parse_file(app->ctx, path, &module);
    if (status != ITS_OK) return cli_status(status);
    char *printed;
    size_t size;
    status = its_ptx_print(module, &printed, &size);
    int code = status == ITS_OK ? cli_write(app, args->output, printed, size) : cli_status(status);
    if (status == ITS_OK) its_free(app->ctx, printed);
    its_module_free(module);
    return code;
}

const cli_command cli_fmt = {
    .name = "fmt",
    .usage = "[OPTIONS] FILE.ptx",
    .summary = "print PTX evenly laid out",
    .text = text,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_size = sizeof(fmt_args),
    .run = run,
};
