/*
 * What nobody reaches goes: functions that were inlined everywhere, variables and externs that only those used. Roots
 * are what the main module shows to others, and aliases. Debug sections are kept whole, or, if they speak of something
 * that is gone, dropped whole: they are tables of offsets.
 */
#include <string.h>

#include "base/intern.h"
#include "link/clone.h"
#include "link/lines.h"

typedef struct stripping {
    its_linker *linker;
    ITS_VEC(its_symbol *) todo;
    its_map words; /* names that occur in debug sections */
} stripping;

/* -- marking ------------------------------------------------------------------------------------------------------- */

static void mark(stripping *stripper, its_symbol *symbol) {
    if (symbol->flags & ITS_SYM_IN_FUNC || (symbol->kind != ITS_SYM_FUNC && symbol->kind != ITS_SYM_VAR)) return;
    if (symbol->pass) return;
    symbol->pass = stripper;
    ITS_PUSH(&stripper->linker->scratch, &stripper->todo, symbol);
}

static void visit(its_operand *operand, void *user) {
    if (operand->kind == ITS_OPND_SYM) mark(user, operand->symbol);
}

static void mark_contents(stripping *stripper, const its_symbol *symbol) {
    if (symbol->link) mark(stripper, symbol->link);
    if (symbol->kind == ITS_SYM_VAR && symbol->node) its_visit_deep(symbol->node, visit, stripper);
    if (symbol->kind != ITS_SYM_FUNC || !symbol->func) return;
    its_visit_deep(&symbol->func->node, visit, stripper);
    for (its_node *node = symbol->func->first; node; node = node->next) its_visit_deep(node, visit, stripper);
}

static void mark_directives(stripping *stripper) {
    for (its_node *node = stripper->linker->out->first; node; node = node->next)
        if (node->kind == ITS_NODE_DIRECTIVE || node->kind == ITS_NODE_PRAGMA) its_visit_deep(node, visit, stripper);
}

static void mark_all(stripping *stripper) {
    its_linker *linker = stripper->linker;
    const struct its_module_private *priv = linker->out->priv;
    uint16_t shown = ITS_SYM_VISIBLE | ITS_SYM_WEAK | ITS_SYM_COMMON | ITS_SYM_ENTRY;
    for (size_t i = 0; i < priv->symbols.count; i++) priv->symbols.items[i]->pass = NULL;
    mark_directives(stripper);
    for (size_t i = 0; i < priv->symbols.count; i++) {
        its_symbol *symbol = priv->symbols.items[i];
        bool root = (symbol->flags & shown) && (symbol->flags & ITS_SYM_DEFINED);
        if (root && symbol->origin->module == its_link_main(linker)) mark(stripper, symbol);
        while (stripper->todo.count) mark_contents(stripper, stripper->todo.items[--stripper->todo.count]);
    }
}

/* -- debug sections ------------------------------------------------------------------------------------------------ */

static void note_words(stripping *stripper, const its_section *section) {
    const char *at = section->body, *end = at + section->body_size;
    while (at < end) {
        if (*at == '/') {
            at = its_line_end(at, end);
        } else if (!its_is_word(*at)) {
            at++;
        } else {
            const char *stop = its_word_end(at, end);
            bool number = *at >= '0' && *at <= '9';
            its_name name = number ? NULL : its_intern_find(stripper->linker->ctx, at, (size_t)(stop - at));
            if (name) its_map_put(&stripper->words, &stripper->linker->scratch, name, stripper);
            at = stop;
        }
    }
}

static bool is_debug(const its_node *node) {
    if (node->kind != ITS_NODE_SECTION) return false;
    its_name name = ((const its_section *)node)->name;
    return strncmp(name->text, ".debug_", 7) == 0 && strcmp(name->text, ".debug_str") != 0;
}

static bool names_label(const stripping *stripper, const its_func *func) {
    for (const its_node *node = func->first; node; node = node->next)
        if (node->kind == ITS_NODE_LABEL && its_map_get(&stripper->words, ((const its_decl *)node)->symbol->name))
            return true;
    return false;
}

/* Does the output still have a label of that name in this function? */
static bool keeps_labels(stripping *stripper, const its_func *before, const its_func *after) {
    its_map have = {0};
    its_arena *scratch = &stripper->linker->scratch;
    for (const its_node *node = after->first; node; node = node->next)
        if (node->kind == ITS_NODE_LABEL) its_map_put(&have, scratch, ((const its_decl *)node)->symbol->name, stripper);
    for (const its_node *node = before->first; node; node = node->next) {
        if (node->kind != ITS_NODE_LABEL) continue;
        its_name name = ((const its_decl *)node)->symbol->name;
        if (its_map_get(&stripper->words, name) && !its_map_get(&have, name)) return false;
    }
    return true;
}

static bool is_intact(stripping *stripper, const its_symbol *before) {
    const its_symbol *after = its_module_find_name(stripper->linker->out, before->name);
    bool gone = !after || !after->pass || after->origin->module != before->origin->module;
    if (gone && its_map_get(&stripper->words, before->name)) return false;
    if (before->kind != ITS_SYM_FUNC || !before->func || !before->func->has_body) return true;
    if (gone || !after->func) return !names_label(stripper, before->func);
    return keeps_labels(stripper, before->func, after->func);
}

static bool sections_are_intact(stripping *stripper) {
    const its_module *module = its_link_main(stripper->linker);
    bool any = false;
    for (const its_node *node = module->first; node; node = node->next) {
        if (!is_debug(node)) continue;
        note_words(stripper, (const its_section *)node);
        any = true;
    }
    for (size_t i = 0; any && i < module->priv->symbols.count; i++)
        if (!is_intact(stripper, module->priv->symbols.items[i])) return false;
    return true;
}

/* `.target sm_80, debug` wants debug sections. */
static void drop_debug_target(its_linker *linker) {
    its_module *out = linker->out;
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->n_targets; i++)
        if (strcmp(out->targets[i]->text, "debug") != 0) out->targets[n++] = out->targets[i];
    out->n_targets = n;
}

/* -- removing ------------------------------------------------------------------------------------------------------ */

static const its_symbol *symbol_of(const its_node *node) {
    switch ((its_node_kind)node->kind) {
    case ITS_NODE_FUNC:
        return ((const its_func *)node)->symbol;
    case ITS_NODE_VAR:
        return ((const its_var *)node)->symbol;
    case ITS_NODE_ALIAS:
        return ((const its_alias *)node)->symbol;
    default:
        return NULL;
    }
}

static bool is_definition(const its_node *node) {
    if (node->kind == ITS_NODE_FUNC) return ((const its_func *)node)->has_body;
    return node->kind == ITS_NODE_VAR && (((const its_var *)node)->symbol->flags & ITS_SYM_DEFINED);
}

static void remove_nodes(stripping *stripper, bool drop_sections) {
    its_module *out = stripper->linker->out;
    out->last = NULL;
    for (its_node **at = &out->first; *at;) {
        its_node *node = *at;
        const its_symbol *symbol = symbol_of(node);
        if ((symbol && !symbol->pass) || (drop_sections && is_debug(node))) {
            stripper->linker->n_stripped += is_definition(node);
            *at = node->next;
        } else {
            out->last = node;
            at = &node->next;
        }
    }
}

static void rebuild_symbols(its_linker *linker) {
    struct its_module_private *priv = linker->out->priv;
    its_symbol **old = priv->symbols.items;
    size_t count = priv->symbols.count;
    memset(&priv->symbols, 0, sizeof priv->symbols);
    priv->by_name = NULL;
    priv->by_name_capacity = 0;
    for (size_t i = 0; i < count; i++)
        if (old[i]->pass) its_module_add_symbol(linker->out, old[i]);
}

/*
 * Requires: its_link_inline.
 * Ensures: everything in the module is reached from what the main module shows; its table of symbols holds no others.
 */
bool its_link_strip(its_linker *linker) {
    stripping stripper = {.linker = linker};
    mark_all(&stripper);
    bool intact = sections_are_intact(&stripper);
    if (!intact) drop_debug_target(linker);
    remove_nodes(&stripper, !intact);
    rebuild_symbols(linker);
    its_lines_finish(linker);
    return true;
}
