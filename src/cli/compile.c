#include "cli/compile.h"

#include <stdio.h>
#include <string.h>

static void gather_options(cli_app *app, const cli_compile_args *args, cli_list *options) {
    for (size_t i = 0; i < args->includes.count; i++) {
        ITS_PUSH(&app->arena, options, "-I");
        ITS_PUSH(&app->arena, options, args->includes.items[i]);
    }
    for (size_t i = 0; i < args->defines.count; i++)
        ITS_PUSH(&app->arena, options, its_arena_printf(&app->arena, "-D%s", args->defines.items[i]));
    for (size_t i = 0; i < args->passed.count; i++) ITS_PUSH(&app->arena, options, args->passed.items[i]);
}

its_status cli_compile(cli_app *app, const cli_compile_args *args, const char *path, its_unit **unit) {
    cli_list options = {0};
    gather_options(app, args, &options);
    its_cc_input input = {
        .dialect = args->dialect,
        .path = path,
        .arch = args->arch ? args->arch : CLI_DEFAULT_ARCH,
        .options = options.items,
        .n_options = (uint32_t)options.count,
        .instances = args->instances.items,
        .n_instances = (uint32_t)args->instances.count,
        .no_cache = args->no_cache,
    };
    if (strcmp(path, "-") == 0) {
        size_t size;
        input.source = cli_read(app, path, &size);
        if (!input.source) return ITS_ERR_IO;
        input.path = "<stdin>";
    }
    its_status status = its_cc(app->ctx, &input, unit);
    if (status == ITS_OK) fputs((*unit)->log, stderr);
    return status;
}
