/* intarsia cc: a device file to PTX. */
#include <stdio.h>
#include <string.h>

#include "cli/compile.h"

typedef struct cc_args {
    cli_compile_args compile;
    const char *output;
    bool list, depends, unit;
} cc_args;

static const cli_option options[] = {
    {'o', "output", "FILE", CLI_TEXT, offsetof(cc_args, output), "where to write the PTX (default: standard output)"},
    CLI_COMPILE_OPTIONS,
    {0, "list", NULL, CLI_FLAG, offsetof(cc_args, list), "print the functions it defines instead of the PTX"},
    {0, "depends", NULL, CLI_FLAG, offsetof(cc_args, depends), "print the files that were read instead of the PTX"},
    {0, "unit", NULL, CLI_FLAG, offsetof(cc_args, unit), "print the unit's id instead of the PTX"},
};

static const char text[] =
    "Compiles the device functions of a CUDA C++ file with NVRTC. What the file declares but doesn't define, such\n"
    "as NVSHMEM's functions, stays open until the kernel is linked. A result is kept by content: compiling again\n"
    "what has not changed takes no time (see 'intarsia help cache'). SOURCE may be - for standard input.\n"
    "\n"
    "examples:\n"
    "  intarsia cc shift-device.cu -o shift.ptx\n"
    "  intarsia cc ops.cu --arch sm_90a -I include -D TILE=64 --instance 'scale<float>' --list\n";

static void print_functions(const its_unit *unit) {
    for (uint32_t i = 0; i < unit->n_funcs; i++) {
        const its_unit_func *func = &unit->funcs[i];
        if (strcmp(func->name, func->spelling) == 0)
            printf("%s\n", func->name);
        else
            printf("%s  %s\n", func->name, func->spelling);
    }
}

static int run(cli_app *app, const void *user, const cli_list *operands) {
    const cc_args *args = user;
    const char *path = cli_only_operand(app, &cli_cc, operands, "source file");
    if (!path) return CLI_USAGE;
    its_unit *unit;
    its_status status = cli_compile(app, &args->compile, path, &unit);
    if (status != ITS_OK) return cli_status(status);
    int code = CLI_OK;
    if (args->unit) puts(unit->id);
    if (args->list) print_functions(unit);
    for (uint32_t i = 0; args->depends && i < unit->n_depends; i++) puts(unit->depends[i]);
    if (args->output || !(args->unit || args->list || args->depends))
        code = cli_write(app, args->output, unit->ptx, unit->ptx_size);
    its_unit_free(unit);
    return code;
}

const cli_command cli_cc = {
    .name = "cc",
    .usage = "[OPTIONS] SOURCE",
    .summary = "compile a device file to PTX",
    .text = text,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_size = sizeof(cc_args),
    .run = run,
};
