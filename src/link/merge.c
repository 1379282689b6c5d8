/*
 * The output begins as one module that holds everything reached, its calls still calls:
 *
 *     prototypes of functions from elsewhere       so that main may call them
 *     externs and variables from elsewhere         those that others' initialisers name first
 *     .file lines from elsewhere
 *     the main module's items, in their order      without externs that are now defined
 *     functions from elsewhere
 *     the main module's sections
 *
 * Symbols from elsewhere lose their linkage if they are functions: the output is linked. Names without linkage that
 * occur twice are made different.
 */
#include <string.h>

#include "base/intern.h"
#include "link/clone.h"
#include "link/lines.h"

typedef struct slot_list {
    its_symbol **items;
    size_t capacity;
} slot_list;

typedef struct merge {
    its_linker *linker;
    its_module *out;
    its_cloner cloner;
    its_node_list head, body, tail;
    /* of the function being copied */
    its_link_func *func;
    slot_list regs, labels; /* by the original's id */
    uint32_t n_renamed;
    its_map ranges; /* its_regs -> its copy */
} merge;

static bool is_main(const merge *merger, const its_symbol *symbol) {
    return symbol->origin->module == its_link_main(merger->linker);
}

static its_link_source *source_of(merge *merger, const its_symbol *symbol) {
    return its_map_get(&merger->linker->modules, symbol->origin->module);
}

/* -- symbols of the module level ----------------------------------------------------------------------------------- */

static its_name free_name(merge *merger, its_name name) {
    if (!its_module_find_name(merger->out, name)) return name;
    return its_names_new(merger->linker, name->text, "m", ++merger->n_renamed);
}

static void keep_window(merge *merger, its_symbol *copy) {
    if (copy->align < merger->linker->window_align) copy->align = merger->linker->window_align;
}

static void add_symbol(merge *merger, its_symbol *symbol) {
    its_symbol *copy = its_clone_symbol(merger->out, symbol, free_name(merger, symbol->name), symbol->origin);
    if (copy->flags & ITS_SYM_DEFINED) copy->flags &= (uint16_t)~ITS_SYM_EXTERN;
    if (copy->kind == ITS_SYM_FUNC && !is_main(merger, symbol) && (copy->flags & ITS_SYM_DEFINED))
        copy->flags &= (uint16_t) ~(ITS_SYM_VISIBLE | ITS_SYM_WEAK | ITS_SYM_COMMON);
    if (symbol == merger->linker->window) keep_window(merger, copy);
    symbol->pass = copy;
    its_module_add_symbol(merger->out, copy);
}

static bool has_linkage(const its_symbol *symbol) {
    uint16_t shown = ITS_SYM_EXTERN | ITS_SYM_VISIBLE | ITS_SYM_WEAK | ITS_SYM_COMMON | ITS_SYM_ENTRY;
    return symbol->flags & shown;
}

static bool is_reached(const its_symbol *symbol) {
    return symbol->pass && !(symbol->link && !its_is_alias(symbol));
}

static void add_main_symbols(merge *merger, bool linkage) {
    const struct its_module_private *priv = its_link_main(merger->linker)->priv;
    for (size_t i = 0; i < priv->symbols.count; i++) {
        its_symbol *symbol = priv->symbols.items[i];
        if (is_reached(symbol) && has_linkage(symbol) == linkage) add_symbol(merger, symbol);
    }
}

static void add_other_symbols(merge *merger, bool linkage) {
    its_linker *linker = merger->linker;
    for (size_t i = 0; i < linker->reached.count; i++)
        if (has_linkage(linker->reached.items[i]) == linkage) add_symbol(merger, linker->reached.items[i]);
    for (size_t i = 0; i < linker->open.count && linkage; i++)
        if (!is_main(merger, linker->open.items[i].symbol)) add_symbol(merger, linker->open.items[i].symbol);
}

static void add_symbols(merge *merger) {
    add_main_symbols(merger, true);
    add_other_symbols(merger, true);
    add_main_symbols(merger, false);
    add_other_symbols(merger, false);
}

/* -- symbols of a function ----------------------------------------------------------------------------------------- */

static its_symbol *local_copy(merge *merger, its_symbol *symbol, uint32_t *count) {
    its_symbol *copy = its_clone_symbol(merger->out, symbol, symbol->name, symbol->origin);
    copy->id = (*count)++;
    return copy;
}

static its_symbol *copy_reg(merge *merger, its_symbol *symbol) {
    its_symbol **slot = &merger->regs.items[symbol->id];
    if (!*slot) {
        *slot = local_copy(merger, symbol, &merger->func->n_regs);
        if (symbol->range) (*slot)->range = its_map_get(&merger->ranges, symbol->range);
    }
    return *slot;
}

static its_symbol *copy_label(merge *merger, its_symbol *symbol) {
    its_symbol **slot = &merger->labels.items[symbol->id];
    if (!*slot) *slot = local_copy(merger, symbol, &merger->func->n_labels);
    return *slot;
}

/* Variables, prototypes, target lists and formal parameters keep their copy in `pass`. */
static its_symbol *copy_other(merge *merger, its_symbol *symbol) {
    if (!symbol->pass) symbol->pass = local_copy(merger, symbol, &merger->func->n_vars);
    return symbol->pass;
}

static its_symbol *copy_symbol(void *user, its_symbol *symbol) {
    merge *merger = user;
    if (symbol->kind == ITS_SYM_REG) return copy_reg(merger, symbol);
    if (symbol->kind == ITS_SYM_LABEL) return copy_label(merger, symbol);
    if (symbol->flags & ITS_SYM_IN_FUNC) return copy_other(merger, symbol);
    return its_symbol_final(symbol)->pass;
}

static its_node *copy_regs(merge *merger, const its_regs *regs) {
    its_regs *copy = its_node_new(merger->out, ITS_NODE_REGS, sizeof *copy, regs->node.origin, regs->node.pos);
    copy->name = regs->name;
    copy->n = regs->n;
    copy->type = regs->type;
    copy->vec = regs->vec;
    copy->type_name = regs->type_name;
    its_map_put(&merger->ranges, &merger->linker->scratch, regs, copy);
    if (regs->symbol) copy->symbol = copy_reg(merger, regs->symbol);
    return &copy->node;
}

/* -- functions ----------------------------------------------------------------------------------------------------- */

/* Room for `count` empty slots. */
static void clear_slots(its_arena *arena, slot_list *slots, uint32_t count) {
    if (slots->capacity < count) {
        slots->capacity = count + slots->capacity;
        slots->items = its_arena_array(arena, slots->capacity, sizeof *slots->items);
    }
    if (count) memset(slots->items, 0, count * sizeof *slots->items);
}

static void forget_param(const its_params *params) {
    for (uint32_t i = 0; i < params->n; i++) params->items[i]->pass = NULL;
}

/* What the parser or an earlier link left in `pass`. */
static void forget_locals(const its_func *func) {
    forget_param(&func->params);
    forget_param(&func->results);
    for (const its_node *node = func->first; node; node = node->next) {
        if (node->kind == ITS_NODE_VAR) {
            its_symbol *symbol = ((const its_var *)node)->symbol;
            if (symbol->flags & ITS_SYM_IN_FUNC) symbol->pass = NULL;
        }
        if (node->kind == ITS_NODE_PROTO) ((const its_proto *)node)->symbol->pass = NULL;
        if (node->kind == ITS_NODE_TARGETS) ((const its_targets *)node)->symbol->pass = NULL;
    }
}

static its_params copy_formals(merge *merger, const its_params *params) {
    its_params copy = {.n = params->n};
    copy.items = ITS_NEW_ARRAY(its_module_arena(merger->out), its_symbol *, params->n);
    for (uint32_t i = 0; i < params->n; i++) copy.items[i] = copy_symbol(merger, params->items[i]);
    return copy;
}

static its_node *copy_node(merge *merger, const its_node *node) {
    if (node->kind == ITS_NODE_REGS) return copy_regs(merger, (const its_regs *)node);
    if (node->kind == ITS_NODE_FILE && merger->func->source->module != its_link_main(merger->linker)) return NULL;
    its_node *copy = its_clone(&merger->cloner, node, node->origin);
    if (copy->kind == ITS_NODE_LOC && !its_lines_adopt(merger->linker, merger->func->source, (its_loc *)copy))
        return NULL;
    return copy;
}

static void copy_body(merge *merger, its_func *copy, const its_func *func) {
    for (const its_node *node = func->first; node; node = node->next) {
        its_node *copied = copy_node(merger, node);
        if (copied) its_func_append(copy, copied);
    }
}

static its_link_func *new_func(merge *merger, its_func *copy) {
    its_link_func *record = ITS_NEW(&merger->linker->scratch, its_link_func);
    record->func = copy;
    record->symbol = copy->symbol;
    ITS_PUSH(&merger->linker->scratch, &merger->linker->funcs, record);
    return record;
}

static its_func *copy_head(merge *merger, const its_func *func, its_symbol *symbol) {
    its_func *copy = its_node_new(merger->out, ITS_NODE_FUNC, sizeof *copy, func->node.origin, func->node.pos);
    copy->symbol = symbol;
    copy->has_params = func->has_params;
    copy->end_pos = func->end_pos;
    return copy;
}

static void copy_func(merge *merger, const its_func *func, its_node_list *list) {
    its_func *copy = copy_head(merger, func, func->symbol->pass);
    merger->func = new_func(merger, copy);
    merger->func->source = source_of(merger, func->symbol);
    clear_slots(&merger->linker->scratch, &merger->regs, func->n_regs);
    clear_slots(&merger->linker->scratch, &merger->labels, func->n_labels);
    its_map_clear(&merger->ranges);
    forget_locals(func);
    copy->results = copy_formals(merger, &func->results);
    copy->params = copy_formals(merger, &func->params);
    copy->directives = its_clone_directives(&merger->cloner, func->directives, true);
    copy->has_body = true;
    copy->symbol->func = copy;
    copy_body(merger, copy, func);
    copy->n_regs = merger->func->n_regs;
    copy->n_labels = merger->func->n_labels;
    its_list_append(list, &copy->node);
}

/* `.func f (...);` for a function that is defined, or open. */
static void copy_declaration(merge *merger, const its_func *func, its_symbol *symbol, its_node_list *list) {
    its_func *copy = copy_head(merger, func, symbol);
    copy->results = its_clone_params(merger->out, &func->results);
    copy->params = its_clone_params(merger->out, &func->params);
    copy->directives = its_clone_directives(&merger->cloner, func->directives, false);
    if (!symbol->func) symbol->func = copy;
    its_list_append(list, &copy->node);
}

/* -- variables ----------------------------------------------------------------------------------------------------- */

static void copy_var(merge *merger, its_symbol *symbol, its_node_list *list) {
    its_node *copy = its_clone(&merger->cloner, symbol->node, symbol->node->origin);
    its_list_append(list, copy);
}

typedef struct pending_var {
    const its_var *var;
    uint32_t next; /* initialiser element to look at */
} pending_var;

/* The next variable that this one's initialiser names and that has no node yet. */
static its_symbol *first_needed(pending_var *pending) {
    while (pending->next < pending->var->n_init) {
        const its_init *init = &pending->var->init[pending->next++];
        if (init->kind != ITS_OPND_SYM) continue;
        its_symbol *symbol = its_symbol_final(init->symbol);
        if (symbol->kind == ITS_SYM_VAR && symbol->node && !((its_symbol *)symbol->pass)->node) return symbol;
    }
    return NULL;
}

/*
 * Copies a variable after those that its initialiser names: ptxas wants them declared. Where initialisers go round in a
 * circle, the text that they came from declared one of them earlier; so does this one.
 */
static void copy_var_after_needed(merge *merger, its_symbol *symbol) {
    its_arena *scratch = &merger->linker->scratch;
    ITS_VEC(pending_var) stack = {0};
    if (((its_symbol *)symbol->pass)->node) return;
    for (;;) {
        if (symbol) {
            pending_var entry = {(const its_var *)symbol->node, 0};
            ((its_symbol *)symbol->pass)->node = symbol->node; /* is being copied */
            ITS_PUSH(scratch, &stack, entry);
        }
        symbol = first_needed(&stack.items[stack.count - 1]);
        if (symbol) continue;
        copy_var(merger, stack.items[--stack.count].var->symbol, &merger->head);
        if (!stack.count) return;
    }
}

/* -- the whole ----------------------------------------------------------------------------------------------------- */

static void declare_if_function(merge *merger, const its_init *init) {
    if (init->kind != ITS_OPND_SYM) return;
    its_symbol *symbol = its_symbol_final(init->symbol);
    its_symbol *copy = symbol->pass;
    if (symbol->kind == ITS_SYM_FUNC && !copy->func) copy_declaration(merger, symbol->func, copy, &merger->head);
}

/* What the initialiser names stands in front of everything. */
static void declare_needed(merge *merger, const its_var *var) {
    for (uint32_t i = 0; i < var->n_init; i++) {
        declare_if_function(merger, &var->init[i]);
        if (var->init[i].kind != ITS_OPND_SYM || var->init[i].symbol->kind != ITS_SYM_VAR) continue;
        its_symbol *symbol = its_symbol_final(var->init[i].symbol);
        if (!(symbol->flags & ITS_SYM_IN_FUNC)) copy_var_after_needed(merger, symbol);
    }
}

/* Variables declared in functions that are inlined move in front of the first body, and so must what they name. */
static void declare_for_statics(merge *merger) {
    for (its_func *func = NULL; (func = its_module_next_func(its_link_main(merger->linker), func));) {
        if (!func->has_body || !is_reached(func->symbol) || func->symbol->flags & ITS_SYM_ENTRY) continue;
        for (const its_node *node = func->first; node; node = node->next)
            if (node->kind == ITS_NODE_VAR) declare_needed(merger, (const its_var *)node);
    }
}

/* What calls of an alias lead to may be defined only later: the alias's own declaration came first. */
static void declare_aliasees(merge *merger) {
    const struct its_module_private *priv = its_link_main(merger->linker)->priv;
    for (size_t i = 0; i < priv->symbols.count; i++) {
        its_symbol *symbol = priv->symbols.items[i], *target = its_symbol_final(symbol);
        its_symbol *copy = target->pass;
        if (!its_is_alias(symbol) || !is_reached(symbol) || !is_main(merger, target)) continue;
        if (!copy->func) copy_declaration(merger, target->func, copy, &merger->head);
    }
}

static void copy_other_heads(merge *merger) {
    its_linker *linker = merger->linker;
    for (size_t i = 0; i < linker->open.count; i++) {
        its_symbol *symbol = linker->open.items[i].symbol;
        if (is_main(merger, symbol)) continue;
        if (symbol->kind == ITS_SYM_FUNC)
            copy_declaration(merger, symbol->func, symbol->pass, &merger->head);
        else
            copy_var(merger, symbol, &merger->head);
    }
    for (size_t i = 0; i < linker->reached.count; i++) {
        its_symbol *symbol = linker->reached.items[i];
        if (symbol->kind == ITS_SYM_FUNC) copy_declaration(merger, symbol->func, symbol->pass, &merger->head);
    }
    for (size_t i = 0; i < linker->reached.count; i++) {
        const its_var *var = (const its_var *)linker->reached.items[i]->node;
        for (uint32_t j = 0; linker->reached.items[i]->kind == ITS_SYM_VAR && j < var->n_init; j++)
            declare_if_function(merger, &var->init[j]);
    }
    for (size_t i = 0; i < linker->reached.count; i++)
        if (linker->reached.items[i]->kind == ITS_SYM_VAR) copy_var_after_needed(merger, linker->reached.items[i]);
}

static void copy_main_func(merge *merger, const its_func *func) {
    its_symbol *symbol = func->symbol;
    if (!is_reached(symbol) && func->has_body) merger->linker->n_stripped++;
    if (!is_reached(symbol) || its_is_alias(symbol)) {
        if (is_reached(symbol) && !func->has_body) copy_declaration(merger, func, symbol->pass, &merger->body);
    } else if (func->has_body) {
        copy_func(merger, func, &merger->body);
    } else {
        copy_declaration(merger, func, symbol->pass, &merger->body);
    }
}

static void copy_main_var(merge *merger, const its_var *var) {
    its_symbol *symbol = var->symbol;
    if (symbol->node != &var->node) return; /* an `.extern` beside the definition */
    if (!is_reached(symbol))
        merger->linker->n_stripped += (symbol->flags & ITS_SYM_DEFINED) != 0;
    else if (!((its_symbol *)symbol->pass)->node)
        copy_var(merger, symbol, &merger->body);
}

static void copy_main_alias(merge *merger, const its_alias *alias) {
    its_symbol *symbol = alias->symbol;
    if (!is_reached(symbol)) return;
    its_alias *copy = its_node_new(merger->out, ITS_NODE_ALIAS, sizeof *copy, alias->node.origin, alias->node.pos);
    copy->symbol = symbol->pass;
    copy->symbol->node = &copy->node;
    copy->symbol->link = its_symbol_final(symbol)->pass;
    its_list_append(&merger->body, &copy->node);
}

static void copy_main(merge *merger) {
    for (const its_node *node = its_link_main(merger->linker)->first; node; node = node->next) {
        switch ((its_node_kind)node->kind) {
        case ITS_NODE_FUNC:
            copy_main_func(merger, (const its_func *)node);
            break;
        case ITS_NODE_VAR:
            copy_main_var(merger, (const its_var *)node);
            break;
        case ITS_NODE_ALIAS:
            copy_main_alias(merger, (const its_alias *)node);
            break;
        case ITS_NODE_SECTION:
            its_list_append(&merger->tail, its_clone(&merger->cloner, node, node->origin));
            break;
        default:
            its_list_append(merger->tail.first ? &merger->tail : &merger->body,
                            its_clone(&merger->cloner, node, node->origin));
        }
    }
}

static void copy_others(merge *merger) {
    its_linker *linker = merger->linker;
    for (size_t i = 0; i < linker->reached.count; i++) {
        its_symbol *symbol = linker->reached.items[i];
        if (symbol->kind == ITS_SYM_FUNC) copy_func(merger, symbol->func, &merger->body);
    }
}

static void append_list(its_module *out, its_node *first) {
    for (its_node *node = first, *next; node; node = next) {
        next = node->next;
        node->next = NULL;
        its_module_append(out, node);
    }
}

/*
 * Requires: its_link_resolve.
 * Ensures: `out` holds all that is reached, with symbols of its own; `funcs` its functions with bodies; the module is
 * valid PTX but for region calls. `pass` of reached input symbols is their symbol in `out`.
 */
bool its_link_merge(its_linker *linker) {
    merge merger = {.linker = linker, .out = linker->out};
    its_names_mark(linker);
    merger.cloner = (its_cloner){linker->out, copy_symbol, &merger};
    its_lines_start(linker);
    add_symbols(&merger);
    declare_aliasees(&merger);
    copy_other_heads(&merger);
    declare_for_statics(&merger);
    copy_main(&merger);
    copy_others(&merger);
    append_list(linker->out, merger.head.first);
    append_list(linker->out, its_lines_files(linker));
    append_list(linker->out, merger.body.first);
    append_list(linker->out, merger.tail.first);
    return true;
}
