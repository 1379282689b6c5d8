/* What the link did, as data: everything a person needs to know to see whether the kernel is what they meant. */
#include <stdlib.h>

#include "link/lines.h"

typedef struct reporting {
    its_linker *linker;
    its_arena *arena; /* the output's: the report lives as long */
    its_report *report;
    uintptr_t round; /* counts walks, so that marks need no clearing */
    its_map files;   /* number -> its_file of the output */
    ITS_VEC(its_symbol *) todo;
} reporting;

const char *its_kept_reason_text(its_kept_reason reason) {
    switch (reason) {
    case ITS_KEPT_EXTERN:
        return "not defined here";
    case ITS_KEPT_RECURSIVE:
        return "recursive";
    case ITS_KEPT_INDIRECT:
        return "indirect";
    case ITS_KEPT_NORETURN:
        return "does not return";
    case ITS_KEPT_BUDGET:
        return "larger than the budget";
    case ITS_KEPT_OPTION:
        return "inlining is off";
    case ITS_KEPT_UNSUPPORTED:
        return "can't be inlined";
    case ITS_KEPT_CALLER:
        return "the caller is large enough";
    }
    return "unknown";
}

/* -- calls that are left ------------------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b) {
    const its_link_kept *x = a, *y = b;
    const its_node *m = &x->call->insn->node, *n = &y->call->insn->node;
    if (m->origin->source != n->origin->source) return m->origin->source < n->origin->source ? -1 : 1;
    if (m->pos != n->pos) return m->pos < n->pos ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int by_order(const void *a, const void *b) {
    const its_link_kept *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void put_source(const reporting *reporter, const its_loc *loc, its_report_site *site) {
    const its_file *file = loc ? its_file_numbered(&reporter->files, loc->file) : NULL;
    if (!file) return;
    site->source = file->path->text;
    site->source_line = loc->line;
    site->source_column = loc->column;
}

static void report_sites(reporting *reporter) {
    const its_linker *linker = reporter->linker;
    size_t n = linker->sites.count;
    its_report_site *sites = ITS_NEW_ARRAY(reporter->arena, its_report_site, n);
    its_position at = {0};
    if (n) its_files_note(reporter->linker, linker->out, &reporter->files);
    for (size_t i = 0; i < n; i++) { /* the main module's own order: lines go on */
        const its_link_kept *site = &linker->sites.items[i];
        const its_node *node = &site->call->insn->node;
        its_position_move(&at, its_node_place(node));
        sites[i] = (its_report_site){.caller = site->caller->symbol->name->text,
                                     .callee = site->call->callee->symbol->name->text,
                                     .file = node->origin->source->name,
                                     .line = at.line,
                                     .column = at.column};
        put_source(reporter, site->call->loc, &sites[i]);
    }
    reporter->report->sites = sites;
    reporter->report->n_sites = (uint32_t)n;
}

static void report_kept(reporting *reporter) {
    its_linker *linker = reporter->linker;
    size_t n = linker->kept.count;
    its_report_call *calls = ITS_NEW_ARRAY(reporter->arena, its_report_call, n);
    its_position at = {0};
    if (n) qsort(linker->kept.items, n, sizeof *linker->kept.items, by_place);
    for (size_t i = 0; i < n; i++) {
        const its_link_kept *kept = &linker->kept.items[i];
        const its_node *node = &kept->call->insn->node;
        its_position_move(&at, its_node_place(node));
        calls[kept->order] = (its_report_call){.caller = kept->caller->symbol->name->text,
                                               .callee = kept->call->target ? kept->call->target->name->text : "",
                                               .reason = kept->reason,
                                               .detail = kept->detail,
                                               .file = node->origin->source->name,
                                               .line = at.line,
                                               .column = at.column};
    }
    if (n) qsort(linker->kept.items, n, sizeof *linker->kept.items, by_order);
    reporter->report->kept = calls;
    reporter->report->n_kept = (uint32_t)n;
}

/* -- externs ------------------------------------------------------------------------------------------------------- */

static void note_user(its_operand *operand, void *user) {
    if (operand->kind != ITS_OPND_SYM || operand->symbol->flags & ITS_SYM_IN_FUNC) return;
    if (!operand->symbol->pass) operand->symbol->pass = user;
}

/* `pass` of each symbol becomes the first function that names it. */
static void find_users(its_linker *linker) {
    const struct its_module_private *priv = linker->out->priv;
    for (size_t i = 0; i < priv->symbols.count; i++) priv->symbols.items[i]->pass = NULL;
    for (its_func *func = NULL; (func = its_module_next_func(linker->out, func));)
        for (its_node *node = func->first; node; node = node->next) its_node_visit(node, note_user, func->symbol);
}

static void report_externs(reporting *reporter) {
    its_linker *linker = reporter->linker;
    const struct its_module_private *priv = linker->out->priv;
    ITS_VEC(its_report_extern) externs = {0};
    find_users(linker);
    for (size_t i = 0; i < priv->symbols.count; i++) {
        const its_symbol *symbol = priv->symbols.items[i];
        bool window = symbol->space == ITS_SPACE_SHARED && (symbol->flags & ITS_SYM_UNSIZED);
        if (symbol->flags & ITS_SYM_DEFINED || window || its_link_is_builtin(symbol->name)) continue;
        const its_symbol *user = symbol->pass;
        its_report_extern entry = {symbol->name->text, symbol->kind == ITS_SYM_FUNC, user ? user->name->text : "",
                                   its_link_library_of(symbol->name)};
        ITS_PUSH(reporter->arena, &externs, entry);
    }
    reporter->report->externs = externs.items;
    reporter->report->n_externs = (uint32_t)externs.count;
}

/* -- functions ----------------------------------------------------------------------------------------------------- */

static void reach(its_operand *operand, void *user) {
    reporting *reporter = user;
    its_symbol *symbol = operand->symbol;
    if (operand->kind != ITS_OPND_SYM || symbol->flags & ITS_SYM_IN_FUNC) return;
    if (symbol->pass == (void *)reporter->round) return;
    symbol->pass = (void *)reporter->round;
    ITS_PUSH(&reporter->linker->scratch, &reporter->todo, symbol);
}

static uint64_t local_shared(const its_func *func) {
    uint64_t bytes = 0;
    for (const its_node *node = func->first; node; node = node->next)
        if (node->kind == ITS_NODE_VAR && ((const its_var *)node)->symbol->space == ITS_SPACE_SHARED)
            bytes += ((const its_var *)node)->symbol->size;
    return bytes;
}

/* Static shared memory that the function names; for entries (`deep`) also what those it calls name. */
static uint64_t shared_of(reporting *reporter, its_func *func, bool deep) {
    uint64_t bytes = local_shared(func);
    reporter->round++;
    func->symbol->pass = (void *)reporter->round;
    for (its_node *node = func->first; node; node = node->next) its_node_visit(node, reach, reporter);
    while (reporter->todo.count) {
        const its_symbol *symbol = reporter->todo.items[--reporter->todo.count];
        if (symbol->kind == ITS_SYM_VAR && symbol->space == ITS_SPACE_SHARED) bytes += symbol->size;
        if (symbol->kind != ITS_SYM_FUNC || !symbol->func || !deep) continue;
        bytes += local_shared(symbol->func);
        for (its_node *node = symbol->func->first; node; node = node->next) its_node_visit(node, reach, reporter);
    }
    return bytes;
}

static void count_body(const its_func *func, its_report_func *entry) {
    for (const its_node *node = func->first; node; node = node->next) {
        entry->instructions += node->kind == ITS_NODE_INSN;
        if (node->kind == ITS_NODE_VAR && ((const its_var *)node)->symbol->space == ITS_SPACE_LOCAL)
            entry->local_bytes += ((const its_var *)node)->symbol->size;
    }
}

static void report_funcs(reporting *reporter) {
    ITS_VEC(its_report_func) funcs = {0};
    const struct its_module_private *priv = reporter->linker->out->priv;
    for (size_t i = 0; i < priv->symbols.count; i++) priv->symbols.items[i]->pass = NULL;
    for (its_func *func = NULL; (func = its_module_next_func(reporter->linker->out, func));) {
        bool is_entry = func->symbol->flags & ITS_SYM_ENTRY;
        its_report_func entry = {.name = func->symbol->name->text, .entry = is_entry};
        if (!func->has_body) continue;
        count_body(func, &entry);
        entry.shared_bytes = shared_of(reporter, func, is_entry);
        reporter->report->shared_bytes += local_shared(func);
        ITS_PUSH(reporter->arena, &funcs, entry);
    }
    reporter->report->funcs = funcs.items;
    reporter->report->n_funcs = (uint32_t)funcs.count;
}

static void count_shared(reporting *reporter) {
    for (const its_node *node = reporter->linker->out->first; node; node = node->next)
        if (node->kind == ITS_NODE_VAR && ((const its_var *)node)->symbol->space == ITS_SPACE_SHARED)
            reporter->report->shared_bytes += ((const its_var *)node)->symbol->size;
}

static void forget_marks(its_linker *linker) {
    const struct its_module_private *priv = linker->out->priv;
    for (size_t i = 0; i < priv->symbols.count; i++) priv->symbols.items[i]->pass = NULL;
}

/*
 * Requires: its_link_strip.
 * Ensures: the report is filled; the module is not changed.
 */
bool its_link_report(its_linker *linker) {
    reporting reporter = {.linker = linker, .arena = its_module_arena(linker->out), .report = linker->report};
    linker->report->regions_inlined = linker->regions_inlined;
    linker->report->calls_inlined = linker->calls_inlined;
    linker->report->n_stripped = linker->n_stripped;
    report_kept(&reporter);
    report_sites(&reporter);
    report_externs(&reporter);
    report_funcs(&reporter);
    count_shared(&reporter);
    forget_marks(linker);
    return true;
}
