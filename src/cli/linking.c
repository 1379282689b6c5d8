#include "cli/linking.h"

#include <string.h>

#include "ptx/module.h"

/* -- opening files ------------------------------------------------------------------------------------------------- */

static bool is_ptx(const cli_linking *l, const char *path) {
    const char *dialect = l->args->compile.dialect;
    return strcmp(path, "-") == 0 || (cli_has_suffix(path, ".ptx") && !dialect);
}

/* Opens a file; `id` (room for 17 bytes) is the unit it was compiled to, "" for one that was PTX already. */
static its_status open_module(cli_linking *l, const char *path, its_module **module, char *id) {
    its_context *ctx = l->app->ctx;
    id[0] = 0;
    if (is_ptx(l, path)) return its_ptx_parse_file(ctx, path, module);
    cli_compile_args compile = l->args->compile;
    if (!compile.arch) compile.arch = l->arch;
    its_unit *unit;
    its_status status = cli_compile(l->app, &compile, path, &unit);
    if (status != ITS_OK) return status;
    memcpy(id, unit->id, sizeof unit->id);
    status = its_ptx_parse(ctx, its_arena_printf(&l->app->arena, "%s.ptx", path), unit->ptx, unit->ptx_size, module);
    its_unit_free(unit);
    return status;
}

static its_status open_other(cli_linking *l, const char *path, its_module **module, char *id) {
    its_status status = open_module(l, path, module, id);
    if (status == ITS_OK) ITS_PUSH(&l->app->arena, &l->modules, *module);
    return status;
}

static its_status open_main(cli_linking *l, const char *path) {
    char id[17];
    l->arch = CLI_DEFAULT_ARCH;
    its_status status = open_module(l, path, &l->main, id);
    if (status == ITS_OK && l->main->n_targets) l->arch = l->main->targets[0]->text;
    return status;
}

/* -- regions ------------------------------------------------------------------------------------------------------- */

static void add_region(cli_linking *l, const char *unit, its_module *module) {
    its_link_region region = {.unit = unit, .module = module, .barrier_map = l->args->barrier_map};
    ITS_PUSH(&l->app->arena, &l->regions, region);
}

/* UNIT=FILE: sets `*unit` and moves `*file` behind it. */
static bool split_unit(cli_linking *l, const char **file, const char **unit) {
    const char *equals = strchr(*file, '=');
    if (!equals || equals - *file != 16) return false;
    for (const char *p = *file; p < equals; p++)
        if (!strchr("0123456789abcdef", *p)) return false;
    *unit = its_arena_text(&l->app->arena, *file, 16);
    *file = equals + 1;
    return true;
}

static its_status which_unit(cli_linking *l, const char *file, const char *const *units, uint32_t n_units) {
    its_buffer names;
    its_buffer_init(&names, l->app->ctx);
    for (uint32_t i = 0; i < n_units; i++) its_buffer_printf(&names, "%s %s", i ? "," : "", units[i]);
    char *list = its_buffer_take(&names, NULL);
    const char *hint =
        its_arena_printf(&l->app->arena, "give it as UNIT=%s; the kernel calls these units:%s", file, list);
    its_free(l->app->ctx, list);
    return its_fail(l->app->ctx, ITS_ERR_USAGE, hint, "it is not clear which unit '%s' is", file);
}

static bool is_named(const char *id, const char *const *units, uint32_t n_units) {
    for (uint32_t i = 0; i < n_units; i++)
        if (strcmp(id, units[i]) == 0) return true;
    return false;
}

/* Among the first `count` regions. */
static bool is_given(const cli_linking *l, size_t count, const char *unit) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(l->regions.items[i].unit, unit) == 0) return true;
    return false;
}

static its_status open_region(cli_linking *l, const char *file, bool lone, const char *const *units, uint32_t n_units) {
    const char *unit = NULL;
    its_module *module;
    char id[17];
    size_t before = l->regions.count;
    bool given = split_unit(l, &file, &unit);
    its_status status = open_other(l, file, &module, id);
    if (status != ITS_OK) return status;
    if (given)
        add_region(l, unit, module);
    else if (n_units == 0)
        ITS_PUSH(&l->app->arena, &l->libraries, module);
    else if (is_named(id, units, n_units))
        add_region(l, its_arena_text(&l->app->arena, id, 16), module);
    else if (!lone)
        return which_unit(l, file, units, n_units);
    else
        for (uint32_t i = 0; i < n_units; i++)
            if (!is_given(l, before, units[i])) add_region(l, units[i], module);
    return ITS_OK;
}

/* -- the barriers that are built in -------------------------------------------------------------------------------- */

static void note_own_barrier(its_operand *operand, void *user) {
    cli_linking *l = user;
    if (operand->kind != ITS_OPND_REGION || !operand->unit || strcmp(operand->name->text, "intarsia") != 0) return;
    for (size_t i = 0; i < l->own_barriers.count; i++)
        if (strcmp(l->own_barriers.items[i], operand->unit->text) == 0) return;
    ITS_PUSH(&l->app->arena, &l->own_barriers, operand->unit->text);
}

/* The units whose built-in provider abstract barriers of the main module name: as a rule one. */
static void find_own_barriers(cli_linking *l) {
    for (its_func *f = NULL; (f = its_module_next_func(l->main, f));)
        for (its_node *node = f->first; node; node = node->next) its_node_visit(node, note_own_barrier, l);
}

/* Compiles device/intarsia/barrier.cu, if it is what the unit is. */
static its_status open_own_barriers(cli_linking *l, const char *unit) {
    static const char name[] = "intarsia/barrier.cu";
    its_cc_input input = {.path = name, .source = its_cc_builtin(name), .arch = l->arch};
    its_unit *compiled;
    its_module *module;
    char id[17];
    its_status status = its_cc_id(l->app->ctx, &input, id);
    if (status != ITS_OK || strcmp(id, unit) != 0) return status;
    status = its_cc(l->app->ctx, &input, &compiled);
    if (status != ITS_OK) return status;
    status = its_ptx_parse(l->app->ctx, "intarsia/barrier.ptx", compiled->ptx, compiled->ptx_size, &module);
    its_unit_free(compiled);
    if (status != ITS_OK) return status;
    ITS_PUSH(&l->app->arena, &l->modules, module);
    add_region(l, unit, module);
    return ITS_OK;
}

static its_status open_regions(cli_linking *l, const char *const *files, size_t n_files) {
    const char *const *units;
    uint32_t n_units;
    its_status status = its_link_units(l->main, &units, &n_units);
    if (status == ITS_OK) find_own_barriers(l);
    for (size_t i = 0; i < l->own_barriers.count && status == ITS_OK; i++)
        status = open_own_barriers(l, l->own_barriers.items[i]);
    for (size_t i = 0; i < n_files && status == ITS_OK; i++)
        status = open_region(l, files[i], n_files == 1, units, n_units);
    return status;
}

/* -- libraries ----------------------------------------------------------------------------------------------------- */

void cli_linking_add_library(cli_linking *l, its_module *library) {
    ITS_PUSH(&l->app->arena, &l->modules, library);
    ITS_PUSH(&l->app->arena, &l->libraries, library);
}

static its_status open_libraries(cli_linking *l) {
    its_status status = ITS_OK;
    const cli_list *files = &l->args->libraries;
    for (size_t i = 0; i < files->count && status == ITS_OK; i++) {
        its_module *module;
        char id[17];
        status = open_other(l, files->items[i], &module, id);
        if (status == ITS_OK) ITS_PUSH(&l->app->arena, &l->libraries, module);
    }
    return status;
}

static void list_wanted(const cli_linking *l, const its_module *module, const char *prefix, cli_list *names) {
    for (its_func *f = its_module_next_func(module, NULL); f; f = its_module_next_func(module, f))
        if (!f->has_body && strncmp(f->symbol->name->text, prefix, strlen(prefix)) == 0)
            ITS_PUSH(&l->app->arena, names, f->symbol->name->text);
}

cli_list cli_linking_wanted(const cli_linking *l, const char *prefix) {
    cli_list names = {0};
    list_wanted(l, l->main, prefix, &names);
    for (size_t i = 0; i < l->modules.count; i++) list_wanted(l, l->modules.items[i], prefix, &names);
    return names;
}

/* -- linking ------------------------------------------------------------------------------------------------------- */

static its_status link_all(cli_linking *l, uint32_t leave_out, its_linked **linked) {
    const cli_link_args *args = l->args;
    its_link_input input = {
        .main = l->main,
        .regions = l->regions.items,
        .n_regions = (uint32_t)l->regions.count,
        .libraries = l->libraries.items,
        .n_libraries = (uint32_t)l->libraries.count,
        .options = {.keep_externs = args->keep_externs,
                    .no_inline = args->no_inline,
                    .strip_prints = args->strip_prints,
                    .trap_asserts = args->trap_asserts,
                    .limit_waits = args->limit_waits,
                    .own_window = args->own_window,
                    .budget = (uint32_t)args->budget.value,
                    .version_major = args->ptx_major,
                    .version_minor = args->ptx_minor,
                    .leave_out = leave_out,
                    .deferred = args->deferred.items,
                    .n_deferred = (uint32_t)args->deferred.count},
    };
    return its_link(l->app->ctx, &input, linked);
}

its_status cli_linking_without(cli_linking *l, uint32_t leave_out, its_linked **linked) {
    size_t said = its_diag_count(l->app->ctx);
    its_status status = link_all(l, leave_out, linked);
    if (status == ITS_OK) its_diag_keep(l->app->ctx, said);
    return status;
}

its_status cli_linking_open(cli_linking *l, cli_app *app, const cli_link_args *args, const char *main,
                            const char *const *files, size_t n_files, its_status (*add)(cli_linking *l, void *user),
                            void *user) {
    *l = (cli_linking){.app = app, .args = args};
    its_status status = open_main(l, main);
    if (status == ITS_OK) status = open_regions(l, files, n_files);
    if (status == ITS_OK) status = open_libraries(l);
    if (status == ITS_OK && add) status = add(l, user);
    if (status == ITS_OK) status = link_all(l, 0, &l->linked);
    if (status != ITS_OK) cli_linking_close(l);
    return status;
}

void cli_linking_close(cli_linking *l) {
    its_linked_free(l->linked);
    for (size_t i = 0; i < l->modules.count; i++) its_module_free(l->modules.items[i]);
    its_module_free(l->main);
}
