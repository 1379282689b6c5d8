/* intarsia sim: one kernel of a PTX file on the simulator, with arguments from the command line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/linking.h"
#include "intarsia/sim.h"

typedef struct sim_args {
    cli_link_args link;
    const char *entry, *check;
    cli_dim3 grid, block;
    cli_number shared, heap_size;
    cli_list arguments, regions;
    bool symmetric;
} sim_args;

static const cli_option options[] = {
    {0, "entry", "NAME", CLI_TEXT, offsetof(sim_args, entry), "the kernel; may be left away if the file has only one"},
    {0, "grid", "X,Y,Z", CLI_DIM3, offsetof(sim_args, grid), "CTAs (default 1,1,1)"},
    {0, "block", "X,Y,Z", CLI_DIM3, offsetof(sim_args, block), "threads of each CTA (default 1,1,1)"},
    {0, "shared", "BYTES", CLI_SIZE, offsetof(sim_args, shared), "dynamic shared memory"},
    {'a', "arg", "ARGUMENT", CLI_LIST, offsetof(sim_args, arguments), "the next argument of the kernel, see below"},
    {0, "region", "FILE", CLI_LIST, offsetof(sim_args, regions), "a file of device functions, as in 'intarsia link'"},
    {0, "symmetric", NULL, CLI_FLAG, offsetof(sim_args, symmetric),
     "put the memory of arguments on the symmetric heap"},
    {0, "heap-size", "BYTES", CLI_SIZE, offsetof(sim_args, heap_size), "symmetric heap (default 1G)"},
    {0, "check", "races", CLI_TEXT, offsetof(sim_args, check),
     "also look for races; under 'intarsia run' it is given there"},
    CLI_LINK_OPTIONS,
    CLI_COMPILE_OPTIONS,
};

static const char text[] =
    "Links FILE like 'intarsia link', runs one kernel of it, and reports what it does wrong: so that a bug report\n"
    "can be one file. FILE may also be a CUDA source. NVSHMEM's device functions are there.\n"
    "\n"
    "ARGUMENT is one of\n"
    "  i32:-5  u64:0x10  b8:255     whole numbers of 8 to 64 bits\n"
    "  f32:1.5  f64:1e-3  f16:0.5  bf16:2\n"
    "  raw:FILE                     the bytes of FILE, for a struct by value\n"
    "  buf:FILE                     memory that holds FILE's bytes; the kernel gets its address\n"
    "  inout:FILE                   the same, and written back to FILE when the kernel has ended\n"
    "  out:BYTES:FILE               zeroed memory, written to FILE\n"
    "  zero:BYTES                   zeroed memory\n"
    "\n"
    "Under 'intarsia run --sim -n 2' it runs on several PEs; memory is then exchanged with --symmetric.\n"
    "\n"
    "examples:\n"
    "  intarsia sim add.ptx --entry add --grid 4 --block 128 --arg buf:x.bin --arg out:2K:y.bin --arg i32:500\n"
    "  intarsia sim bug.cu --arg zero:4K\n";

/* -- the kernel ---------------------------------------------------------------------------------------------------- */

/* The simulator's NVSHMEM, if something is called that it has. */
static its_status add_nvshmem(cli_linking *l, void *user) {
    (void)user;
    if (!cli_linking_wanted(l, "nvshmem").count) return ITS_OK;
    its_module *library;
    its_status status = its_sim_nvshmem_library(l->app->ctx, l->arch, &library);
    if (status == ITS_OK) cli_linking_add_library(l, library);
    return status;
}

enum { MOST_LISTED = 40 };

/* Adds to a list of names for people, which ends with "..." when it is long enough. */
static const char *add_to_list(cli_app *app, const char *list, uint32_t index, const char *item) {
    if (index > MOST_LISTED) return list;
    return its_arena_printf(&app->arena, "%s%s%s", list, index ? ", " : "", index == MOST_LISTED ? "..." : item);
}

static const char *list_entries(cli_app *app, const its_module *module, uint32_t *count, const char **only) {
    const char *list = "";
    *count = 0;
    for (its_func *f = its_module_next_func(module, NULL); f; f = its_module_next_func(module, f)) {
        if (!(f->symbol->flags & ITS_SYM_ENTRY)) continue;
        *only = f->symbol->name->text;
        list = add_to_list(app, list, (*count)++, *only);
    }
    return list;
}

/* The kernel's name, or NULL after a diagnostic. */
static const char *choose_entry(cli_app *app, const char *asked, const its_module *module) {
    uint32_t count;
    const char *only = NULL;
    const char *list = list_entries(app, module, &count, &only);
    if (!asked && count == 1) return only;
    const its_symbol *symbol = asked ? its_module_find(module, asked) : NULL;
    if (symbol && (symbol->flags & ITS_SYM_ENTRY)) return asked;
    const char *hint = count ? its_arena_printf(&app->arena, "the kernels are: %s", list) : "it has no kernel at all";
    if (asked)
        cli_usage(app, hint, "there is no kernel '%s'", asked);
    else
        cli_usage(app, hint, "which kernel to run is not clear: give --entry NAME");
    return NULL;
}

/* -- arguments ----------------------------------------------------------------------------------------------------- */

static const char *list_params(cli_app *app, const its_func *func) {
    const char *list = "";
    for (uint32_t i = 0; i < func->params.n && i <= MOST_LISTED; i++) {
        const its_symbol *p = func->params.items[i];
        const char *item = its_arena_printf(&app->arena, "%s of %" PRIu64 " bytes", p->name->text, p->size);
        list = add_to_list(app, list, i, item);
    }
    return *list ? list : "none";
}

static int check_count(cli_app *app, const its_func *func, size_t given) {
    if (given == func->params.n) return CLI_OK;
    const char *hint = its_arena_printf(&app->arena, "they are: %s", list_params(app, func));
    return cli_usage(app, hint, "'%s' takes %u argument%s, %zu given", func->symbol->name->text, func->params.n,
                     func->params.n == 1 ? "" : "s", given);
}

static int check_size(cli_app *app, const its_func *func, uint32_t i, const cli_argument *a) {
    const its_symbol *p = func->params.items[i];
    if (a->value_size == p->size) return CLI_OK;
    const char *what = a->memory ? "is an address of" : "has";
    return cli_usage(app, NULL, "--arg %s %s %u bytes, but parameter %u of '%s', %s %s, takes %" PRIu64, a->text, what,
                     a->value_size, i, func->symbol->name->text, its_type_text((its_type)p->type), p->name->text,
                     p->size);
}

static int parse_arguments(cli_app *app, const sim_args *args, const its_func *func, cli_argument *arguments) {
    int code = check_count(app, func, args->arguments.count);
    for (uint32_t i = 0; code == CLI_OK && i < func->params.n; i++) {
        if (!cli_argument_parse(app, args->arguments.items[i], &arguments[i])) return CLI_USAGE;
        code = check_size(app, func, i, &arguments[i]);
    }
    return code;
}

/* -- running ------------------------------------------------------------------------------------------------------- */

typedef struct sim {
    cli_app *app;
    const sim_args *args;
    its_backend *backend;
    cli_argument *arguments;
    uint32_t n;
} sim;

static its_status place_memory(sim *s, cli_argument *a) {
    const its_backend_ops *ops = s->backend->ops;
    its_memory kind = s->args->symmetric ? ITS_MEMORY_SYMMETRIC : ITS_MEMORY_DEVICE;
    its_status status = ops->alloc(s->backend, kind, a->size, 0, &a->scalar);
    if (status != ITS_OK || a->size == 0) return status;
    if (!a->data) return ops->fill(s->backend, a->scalar, 0, a->size, 0);
    return ops->copy(s->backend, ITS_COPY_TO_DEVICE, a->scalar, (uint64_t)(uintptr_t)a->data, a->size, 0);
}

static its_status place_arguments(sim *s) {
    its_status status = ITS_OK;
    for (uint32_t i = 0; status == ITS_OK && i < s->n; i++)
        if (s->arguments[i].memory) status = place_memory(s, &s->arguments[i]);
    return status == ITS_OK ? s->backend->ops->barrier(s->backend) : status;
}

static its_status launch(sim *s, its_function *function) {
    const sim_args *args = s->args;
    const void **params = ITS_NEW_ARRAY(&s->app->arena, const void *, (size_t)s->n + 1);
    for (uint32_t i = 0; i < s->n; i++) params[i] = s->arguments[i].value;
    its_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .params = params, .n_params = s->n};
    if (args->grid.given) memcpy(l.grid, args->grid.at, sizeof l.grid);
    if (args->block.given) memcpy(l.block, args->block.at, sizeof l.block);
    l.shared = (uint32_t)args->shared.value;
    its_status status = s->backend->ops->launch(s->backend, function, &l);
    if (status == ITS_OK) status = s->backend->ops->wait(s->backend);
    return status == ITS_OK ? s->backend->ops->barrier(s->backend) : status;
}

static int write_back(sim *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        cli_argument *a = &s->arguments[i];
        if (!a->output) continue;
        char *bytes = its_arena_alloc(&s->app->arena, a->size);
        its_status status = a->size ? s->backend->ops->copy(s->backend, ITS_COPY_FROM_DEVICE, a->scalar,
                                                            (uint64_t)(uintptr_t)bytes, a->size, 0)
                                    : ITS_OK;
        if (status == ITS_OK) status = s->backend->ops->stream_wait(s->backend, 0);
        if (status != ITS_OK) return cli_status(status);
        int code = cli_write(s->app, a->output, bytes, a->size);
        if (code) return code;
    }
    return CLI_OK;
}

static int run_kernel(sim *s, its_module *module, const char *entry) {
    its_loaded *loaded;
    its_function *function;
    its_status status = s->backend->ops->load(s->backend, module, &loaded);
    if (status != ITS_OK) return cli_status(status);
    status = s->backend->ops->function(s->backend, loaded, entry, &function);
    if (status == ITS_OK) status = place_arguments(s);
    if (status == ITS_OK) status = launch(s, function);
    int code = status == ITS_OK ? write_back(s) : cli_status(status);
    s->backend->ops->unload(s->backend, loaded);
    return code;
}

/* The PE that `intarsia run` has made this process, or one alone. */
static its_status open_backend(cli_app *app, const sim_args *args, its_backend **backend) {
    if (getenv("INTARSIA_SIM_FD")) return its_sim_open_env(app->ctx, backend);
    its_sim_options world = {.n_pes = 1, .heap_size = args->heap_size.value, .find_races = args->check != NULL};
    return its_sim_open(app->ctx, -1, 0, &world, backend);
}

static int run_linked(cli_app *app, const sim_args *args, its_module *module) {
    const char *entry = choose_entry(app, args->entry, module);
    if (!entry) return CLI_USAGE;
    const its_func *func = its_module_find(module, entry)->func;
    sim s = {.app = app, .args = args, .n = func->params.n};
    s.arguments = ITS_NEW_ARRAY(&app->arena, cli_argument, (size_t)s.n + 1);
    int code = parse_arguments(app, args, func, s.arguments);
    if (code) return code;
    its_status status = open_backend(app, args, &s.backend);
    if (status != ITS_OK) return cli_status(status);
    code = run_kernel(&s, module, entry);
    s.backend->ops->close(s.backend);
    return code;
}

static int run(cli_app *app, const void *user, const cli_list *operands) {
    const sim_args *args = user;
    const char *path = cli_only_operand(app, &cli_sim, operands, "PTX file");
    if (!path) return CLI_USAGE;
    if (args->check && strcmp(args->check, "races") != 0)
        return cli_usage(app, NULL, "--check takes 'races', not '%s'", args->check);
    if (args->shared.value > UINT32_MAX) return cli_usage(app, NULL, "--shared takes less than 4G");
    cli_linking linking;
    its_status status =
        cli_linking_open(&linking, app, &args->link, path, args->regions.items, args->regions.count, add_nvshmem, NULL);
    if (status != ITS_OK) return cli_status(status);
    int code = run_linked(app, args, its_linked_module(linking.linked));
    cli_linking_close(&linking);
    return code;
}

const cli_command cli_sim = {
    .name = "sim",
    .usage = "[OPTIONS] FILE.ptx",
    .summary = "run one kernel of a PTX file on the simulator",
    .text = text,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .args_size = sizeof(sim_args),
    .run = run,
};
