/*
 * The linker: a list of passes, and the public functions around it. linker.h says what each pass is for.
 *
 * In debug builds the verifier looks at the module after each pass that leaves a whole one. What it finds after the
 * first is the fault of the input; what it finds later is ours.
 */
#include <string.h>

#include "base/intern.h"
#include "link/linker.h"

typedef struct link_pass {
    const char *name;
    bool (*run)(its_linker *linker);
    bool whole; /* leaves a module that can be verified */
} link_pass;

static const link_pass passes[] = {
    {"target", its_link_target, false},
    {"resolve", its_link_resolve, false},
    {"merge", its_link_merge, false},
    {"regions", its_link_regions, true},
    /* abstract operations became calls there too: lower.c */
    {"plan", its_link_plan, false},
    {"partitions", its_link_partitions, false},
    {"inline", its_link_inline, true},
    {"strip", its_link_strip, true},
    {"limit", its_link_limit, true},
    {"report", its_link_report, false},
};

/* For a test of the renaming: every local name is changed, and nothing else. */
static const link_pass renaming[] = {
    {"target", its_link_target, false}, {"resolve", its_link_resolve, false}, {"merge", its_link_merge, false},
    {"plan", its_link_plan, false},     {"rename", its_link_rename, true},    {"strip", its_link_strip, true},
    {"report", its_link_report, false},
};

struct its_linked {
    its_module *module; /* in whose arena this lies */
    its_report report;
};

/* -- checks between passes ----------------------------------------------------------------------------------------- */

#ifndef NDEBUG
static bool verify(its_linker *linker, const link_pass *pass) {
    size_t before = its_diag_errors(linker->ctx);
    if (its_ptx_verify(linker->out) == ITS_OK) return true;
    if (its_diag_errors(linker->ctx) == before) return true;
    if (pass->run == its_link_regions) return false;
    its_diag_begin(linker->ctx, ITS_ERROR, ITS_NOWHERE, "the linker's pass '%s' made PTX that is not valid",
                   pass->name);
    its_diag_hint(linker->ctx, "this is a fault of the linker: please report it with the modules that were linked");
    return false;
}
#else
static bool verify(its_linker *linker, const link_pass *pass) {
    (void)linker;
    (void)pass;
    return true;
}
#endif

static bool run_passes(its_linker *linker, const link_pass *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!list[i].run(linker)) return false;
        if (list[i].whole && !verify(linker, &list[i])) return false;
    }
    return true;
}

/* -- linking ------------------------------------------------------------------------------------------------------- */

typedef struct link_job {
    its_linker linker;
    const link_pass *passes;
    size_t n_passes;
    its_linked *linked;
} link_job;

static its_link_source *add_source(its_linker *linker, its_module *module, const its_link_region *region) {
    its_link_source *source = &linker->sources[linker->n_sources++];
    source->module = module;
    source->region = region;
    source->repeats = its_map_get(&linker->modules, module);
    if (!source->repeats) its_map_put(&linker->modules, &linker->scratch, module, source);
    return source;
}

/* One and the same module may be given more than once, also for one unit: it is linked once. */
static void add_region(its_linker *linker, const its_link_region *region) {
    its_name unit = its_intern_text(linker->ctx, region->unit);
    its_link_source *first = its_map_get(&linker->units, unit), *last = first;
    for (its_link_source *at = first; at; last = at, at = at->next)
        if (at->module == region->module) return;
    its_link_source *source = add_source(linker, region->module, region);
    if (first)
        last->next = source;
    else
        its_map_put(&linker->units, &linker->scratch, unit, source);
}

static void gather_sources(its_linker *linker) {
    const its_link_input *input = linker->input;
    size_t most = 1 + (size_t)input->n_regions + input->n_libraries;
    linker->sources = ITS_NEW_ARRAY(&linker->scratch, its_link_source, most);
    add_source(linker, input->main, NULL);
    for (uint32_t i = 0; i < input->n_regions; i++) add_region(linker, &input->regions[i]);
    for (uint32_t i = 0; i < input->n_libraries; i++)
        if (!its_map_get(&linker->modules, input->libraries[i])) add_source(linker, input->libraries[i], NULL);
}

static its_status link_body(void *user) {
    link_job *job = user;
    its_linker *linker = &job->linker;
    linker->out = its_module_new(linker->ctx, linker->input->main->source->name, "", 0);
    job->linked = ITS_NEW(its_module_arena(linker->out), its_linked);
    job->linked->module = linker->out;
    linker->report = &job->linked->report;
    gather_sources(linker);
    return run_passes(linker, job->passes, job->n_passes) ? ITS_OK : ITS_ERR_INPUT;
}

/* A module may be given twice, but not as two things; all of them share a context. */
static its_status check_input(its_context *ctx, const its_link_input *input) {
    if (!input->main) return its_fail(ctx, ITS_ERR_USAGE, NULL, "there is no main module to link");
    bool same = input->main->ctx == ctx;
    for (uint32_t i = 0; i < input->n_regions; i++) {
        const its_link_region *region = &input->regions[i];
        if (!region->module || !region->unit)
            return its_fail(ctx, ITS_ERR_USAGE, NULL, "a region lacks its unit or module");
        if (region->module == input->main)
            return its_fail(ctx, ITS_ERR_USAGE, NULL, "the main module can't be a region of itself");
        same &= region->module->ctx == ctx;
    }
    for (uint32_t i = 0; i < input->n_libraries; i++) {
        if (!input->libraries[i]) return its_fail(ctx, ITS_ERR_USAGE, NULL, "a library lacks its module");
        same &= input->libraries[i]->ctx == ctx;
    }
    if (same) return ITS_OK;
    return its_fail(ctx, ITS_ERR_USAGE, "parse all of them with the context that links them",
                    "the modules to link belong to different contexts");
}

static its_status run(its_context *ctx, const its_link_input *input, const link_pass *list, size_t count,
                      its_linked **linked) {
    *linked = NULL;
    its_status status = check_input(ctx, input);
    if (status != ITS_OK) return status;
    link_job job = {.linker = {.ctx = ctx, .input = input}, .passes = list, .n_passes = count};
    its_arena_init(&job.linker.scratch, ctx);
    status = its_protect(ctx, link_body, &job);
    its_arena_free(&job.linker.scratch);
    if (status == ITS_OK)
        *linked = job.linked;
    else
        its_module_free(job.linker.out);
    return status;
}

its_status its_link(its_context *ctx, const its_link_input *input, its_linked **linked) {
    return run(ctx, input, passes, sizeof passes / sizeof *passes, linked);
}

its_status its_link_renamed(its_context *ctx, its_module *module, its_linked **linked) {
    its_link_input input = {.main = module, .options = {.no_inline = true, .keep_externs = true}};
    return run(ctx, &input, renaming, sizeof renaming / sizeof *renaming, linked);
}

its_module *its_linked_module(its_linked *linked) {
    return linked->module;
}

const its_report *its_linked_report(const its_linked *linked) {
    return &linked->report;
}

void its_linked_free(its_linked *linked) {
    if (linked) its_module_free(linked->module);
}

/* -- units --------------------------------------------------------------------------------------------------------- */

typedef struct units_job {
    its_module *module;
    its_arena scratch;
    its_map seen;
    ITS_VEC(const char *) units;
} units_job;

static void note_unit(its_operand *operand, void *user) {
    units_job *job = user;
    if (operand->kind != ITS_OPND_REGION || !operand->unit || its_map_get(&job->seen, operand->unit)) return;
    its_map_put(&job->seen, &job->scratch, operand->unit, job);
    ITS_PUSH(its_module_arena(job->module), &job->units, operand->unit->text);
}

static its_status units_body(void *user) {
    units_job *job = user;
    for (its_func *func = NULL; (func = its_module_next_func(job->module, func));)
        for (its_node *node = func->first; node; node = node->next) its_node_visit(node, note_unit, job);
    return ITS_OK;
}

its_status its_link_units(its_module *module, const char *const **units, uint32_t *count) {
    units_job job = {.module = module};
    its_arena_init(&job.scratch, module->ctx);
    its_status status = its_protect(module->ctx, units_body, &job);
    its_arena_free(&job.scratch);
    *units = status == ITS_OK ? job.units.items : NULL;
    *count = status == ITS_OK ? (uint32_t)job.units.count : 0;
    return status;
}
