/*
 * Inlining: each function that the output keeps is written anew with the calls expanded that the plan says. Work starts
 * at what is visible and goes on with what calls that stay lead to; a function that nobody calls any more is never
 * looked at again. Bodies are always copied from the original, so the work is as much as the result is long.
 */

#include "link/expand.h"

typedef struct inlining {
    its_linker *linker;
    ITS_VEC(its_link_func *) queue;
    uint32_t n_statics;
} inlining;

void its_link_keep(its_linker *linker, const its_link_func *caller, const its_link_call *call, its_kept_reason reason,
                   const char *detail) {
    its_link_kept kept = {caller, call, reason, detail, linker->kept.count};
    ITS_PUSH(&linker->scratch, &linker->kept, kept);
}

/* -- variables declared in functions ------------------------------------------------------------------------------- */

static bool is_static(const its_node *node) {
    if (node->kind != ITS_NODE_VAR) return false;
    const its_symbol *symbol = ((const its_var *)node)->symbol;
    return (symbol->flags & ITS_SYM_IN_FUNC) && symbol->space != ITS_SPACE_PARAM && symbol->space != ITS_SPACE_LOCAL;
}

static void hoist(inlining *inliner, its_node *node, its_node_list *list) {
    its_linker *linker = inliner->linker;
    its_symbol *symbol = ((its_var *)node)->symbol;
    symbol->name = its_names_new(linker, symbol->name->text, "$", inliner->n_statics++);
    symbol->flags &= (uint16_t)~ITS_SYM_IN_FUNC;
    its_module_add_symbol(linker->out, symbol);
    node->next = NULL;
    its_list_append(list, node);
}

/* .shared, .global and .const variables of a function are one object each, however often the function is expanded. */
static void hoist_statics(inlining *inliner) {
    its_linker *linker = inliner->linker;
    its_node_list list = {0};
    for (size_t i = 0; i < linker->funcs.count; i++) {
        its_func *func = linker->funcs.items[i]->func;
        if (!linker->funcs.items[i]->is_inlined) continue;
        func->last = NULL;
        for (its_node **at = &func->first; *at;) {
            its_node *node = *at;
            if (is_static(node)) {
                *at = node->next;
                hoist(inliner, node, &list);
            } else {
                func->last = node;
                at = &node->next;
            }
        }
    }
    if (!list.first) return;
    its_node **at = &linker->out->first; /* in front of the first body */
    while (*at && !((*at)->kind == ITS_NODE_FUNC && ((its_func *)*at)->has_body)) at = &(*at)->next;
    list.last->next = *at;
    *at = list.first;
}

/* -- the queue ----------------------------------------------------------------------------------------------------- */

static void enqueue(inlining *inliner, its_link_func *func) {
    if (func->queued) return;
    func->queued = true;
    ITS_PUSH(&inliner->linker->scratch, &inliner->queue, func);
}

static bool needs_expanding(const its_link_func *func) {
    const its_link_region *region = func->source->region;
    if (region && region->barrier_map && func->barriers.count) return true;
    for (size_t i = 0; i < func->calls.count; i++)
        if (func->calls.items[i].fate != ITS_CALL_KEPT) return true;
    return false;
}

/* The module has grown enough: what was to be inlined into this function stays a call. */
static void keep_calls(its_link_func *func) {
    for (size_t i = 0; i < func->calls.count; i++) {
        its_link_call *call = &func->calls.items[i];
        if (call->fate != ITS_CALL_INLINED) continue;
        call->fate = ITS_CALL_KEPT;
        call->reason = ITS_KEPT_BUDGET;
        call->detail = "the module has grown too large";
    }
}

/* The function stays as it is, for all its calls do. */
static void note_kept(its_linker *linker, const its_link_func *func) {
    for (size_t i = 0; i < func->calls.count; i++) {
        its_link_call *call = &func->calls.items[i];
        its_link_keep(linker, func, call, (its_kept_reason)call->reason, call->detail);
    }
}

static void work_on(inlining *inliner, size_t index) {
    its_linker *linker = inliner->linker;
    its_link_func *func = inliner->queue.items[index];
    uint64_t added = func->size - func->n_insns, weight = func->weight - func->own_weight;
    size_t before = linker->kept.count;
    if (linker->growth + added <= ITS_INLINE_GROWTH && linker->weight + weight <= ITS_INLINE_WEIGHT) {
        linker->growth += added;
        linker->weight += weight;
    } else {
        keep_calls(func);
    }
    if (needs_expanding(func)) {
        func->body = its_expand(linker, func, false);
        func->is_new = true;
    } else {
        note_kept(linker, func);
    }
    for (size_t i = before; i < linker->kept.count; i++)
        if (linker->kept.items[i].call->callee) enqueue(inliner, linker->kept.items[i].call->callee);
}

static void enqueue_roots(inlining *inliner) {
    its_linker *linker = inliner->linker;
    for (int entries = 1; entries >= 0; entries--)
        for (size_t i = 0; i < linker->funcs.count; i++) {
            its_link_func *func = linker->funcs.items[i];
            bool entry = func->symbol->flags & ITS_SYM_ENTRY;
            if (func->root && entry == (entries == 1)) enqueue(inliner, func);
        }
}

static void replace_bodies(its_linker *linker) {
    for (size_t i = 0; i < linker->funcs.count; i++) {
        its_link_func *func = linker->funcs.items[i];
        if (!func->is_new) continue;
        func->func->first = func->body.first;
        func->func->last = func->body.last;
    }
}

/*
 * Requires: its_link_plan.
 * Ensures: functions that are `queued` have no call left that the plan inlines; the others are not needed any more.
 * Every name of a rewritten function is unique in it. `kept` lists all calls that are left.
 */
bool its_link_inline(its_linker *linker) {
    inlining inliner = {.linker = linker};
    hoist_statics(&inliner);
    its_names_take(linker);
    enqueue_roots(&inliner);
    for (size_t i = 0; i < inliner.queue.count; i++) work_on(&inliner, i);
    replace_bodies(linker);
    return true;
}

/*
 * Requires: its_link_plan, with no call to be inlined.
 * Ensures: every local name is another. The machine code must not change by this: a check of the renaming itself.
 */
bool its_link_rename(its_linker *linker) {
    its_names_take(linker);
    for (const its_node *node = linker->out->first; node; node = node->next)
        linker->has_debug |= node->kind == ITS_NODE_SECTION;
    for (size_t i = 0; i < linker->funcs.count; i++) {
        its_link_func *func = linker->funcs.items[i];
        func->queued = func->is_new = true;
        func->body = its_expand(linker, func, true);
    }
    replace_bodies(linker);
    return true;
}
