/*
 * Which calls are inlined.
 *
 * A walk over the graph of calls, from what is visible, finds the calls that close a cycle. The functions that those
 * lead to stay functions, one per cycle; without calls of them the graph has no cycles, and its functions can be looked
 * at callees first. Each call is then decided on: the size of a function is that of its own instructions plus all that
 * is inlined into it.
 *
 * Always inlined: functions of fewer than ITS_INLINE_SMALL instructions, and those called once that nobody else can
 * reach. Others up to a budget, and until a caller has taken in enough of them. What stays, stays with a reason.
 */
#include <string.h>

#include "link/clone.h"
#include "link/linker.h"

typedef struct plan {
    its_linker *linker;
    ITS_VEC(its_link_func *) order; /* callees first */
} plan;

enum { UNSEEN, ACTIVE, DONE };

/* -- roots --------------------------------------------------------------------------------------------------------- */

static void note_mention(its_operand *operand, void *user) {
    (void)user;
    if (operand->kind != ITS_OPND_SYM || operand->symbol->kind != ITS_SYM_FUNC) return;
    its_link_func *func = its_symbol_final(operand->symbol)->pass;
    if (func) func->root = true;
}

/* Functions that initialisers and directives name. */
static void note_mentions(its_linker *linker) {
    for (its_node *node = linker->out->first; node; node = node->next) its_visit_deep(node, note_mention, NULL);
}

static void note_aliases(its_linker *linker) {
    for (const its_node *node = linker->out->first; node; node = node->next) {
        if (node->kind != ITS_NODE_ALIAS) continue;
        its_link_func *func = its_symbol_final(((const its_alias *)node)->symbol)->pass;
        if (func) func->root = true;
    }
}

static void analyse_all(its_linker *linker) {
    uint16_t shown = ITS_SYM_VISIBLE | ITS_SYM_WEAK | ITS_SYM_COMMON | ITS_SYM_ENTRY;
    for (size_t i = 0; i < linker->funcs.count; i++) {
        its_link_func *func = linker->funcs.items[i];
        func->symbol->pass = func;
        func->root = func->symbol->flags & shown;
    }
    for (size_t i = 0; i < linker->funcs.count; i++) its_link_analyse(linker, linker->funcs.items[i]);
    note_mentions(linker);
    note_aliases(linker);
}

/* -- the walk ------------------------------------------------------------------------------------------------------ */

typedef struct visit {
    its_link_func *func;
    size_t next; /* call to look at */
} visit;

static void walk_from(plan *planner, its_link_func *func) {
    its_arena *scratch = &planner->linker->scratch;
    ITS_VEC(visit) stack = {0};
    visit start = {func, 0};
    if (func->state != UNSEEN) return;
    func->state = ACTIVE;
    ITS_PUSH(scratch, &stack, start);
    while (stack.count) {
        visit *top = &stack.items[stack.count - 1];
        if (top->next == top->func->calls.count) {
            top->func->state = DONE;
            ITS_PUSH(scratch, &planner->order, top->func);
            stack.count--;
            continue;
        }
        its_link_call *call = &top->func->calls.items[top->next++];
        if (!call->callee) continue;
        call->callee->n_callers++;
        if (call->callee->state == ACTIVE) call->callee->is_recursive = true;
        if (call->callee->state != UNSEEN) continue;
        visit inner = {call->callee, 0};
        call->callee->state = ACTIVE;
        ITS_PUSH(scratch, &stack, inner);
    }
}

static void walk_all(plan *planner) {
    its_linker *linker = planner->linker;
    for (int entries = 1; entries >= 0; entries--)
        for (size_t i = 0; i < linker->funcs.count; i++) {
            its_link_func *func = linker->funcs.items[i];
            bool entry = func->symbol->flags & ITS_SYM_ENTRY;
            if (func->root && entry == (entries == 1)) walk_from(planner, func);
        }
}

static void add_site(its_linker *linker, const its_link_func *func, its_link_call *call, const its_loc *loc) {
    if (!call->callee || call->callee->source == func->source) return;
    its_link_kept site = {.caller = func, .call = call, .order = linker->sites.count};
    ITS_PUSH(&linker->scratch, &linker->sites, site);
    call->site = (uint32_t)linker->sites.count;
    call->loc = loc;
}

/* Calls from the main module into another one are numbered, so that options and report can speak of them. */
static void number_sites(its_linker *linker) {
    for (size_t i = 0; i < linker->funcs.count; i++) {
        const its_link_func *func = linker->funcs.items[i];
        const its_loc *loc = NULL;
        size_t next = 0;
        if (func->source != &linker->sources[0]) continue;
        for (its_node *node = func->func->first; node && next < func->calls.count; node = node->next) {
            if (node->kind == ITS_NODE_LOC) loc = (const its_loc *)node;
            if (node == &func->calls.items[next].insn->node) add_site(linker, func, &func->calls.items[next++], loc);
        }
    }
}

/* -- one call ------------------------------------------------------------------------------------------------------ */

static uint32_t budget_of(const its_linker *linker, const its_link_func *callee) {
    const its_link_region *region = callee->source->region;
    if (region && region->budget) return region->budget;
    return linker->input->options.budget ? linker->input->options.budget : ITS_INLINE_BUDGET;
}

static void keep(its_link_call *call, its_kept_reason reason, const char *detail) {
    call->fate = ITS_CALL_KEPT;
    call->reason = (uint8_t)reason;
    call->detail = detail;
}

static void decide_builtin(const its_linker *linker, its_link_call *call) {
    const its_link_options *options = &linker->input->options;
    const char *name = call->target->name->text, *library = its_link_library_of(call->target->name);
    keep(call, ITS_KEPT_EXTERN, library ? library : "");
    if (options->strip_prints && strcmp(name, "vprintf") == 0) call->fate = ITS_CALL_REMOVED;
    if (options->trap_asserts && strcmp(name, "__assertfail") == 0) call->fate = ITS_CALL_TRAPS;
}

/* `ld.param` through a register reaches some parameter in memory: all of those must then go to .local together. */
static bool mixes_spaces(const its_link_func *func) {
    if (!func->param_by_register) return false;
    for (uint32_t i = 0; i < func->n_vars; i++) {
        const its_link_param *param = func->params[i];
        if (param && !param->regular && !(param->symbol->flags & (ITS_SYM_PARAM | ITS_SYM_RESULT))) return true;
    }
    return false;
}

/* Worth its size wherever it is called: it is small, or there is only one place. */
static bool is_free(const its_link_func *callee) {
    return callee->size < ITS_INLINE_SMALL || (callee->n_callers == 1 && !callee->root);
}

static const char *instructions(const its_linker *linker, uint64_t n, const char *what) {
    return its_arena_printf(its_module_arena(linker->out), "%llu instructions%s", (unsigned long long)n, what);
}

/* Does the call stay because of sizes? */
static bool is_too_large(const its_linker *linker, const its_link_func *caller, its_link_call *call) {
    const its_link_func *callee = call->callee;
    uint32_t budget = budget_of(linker, callee);
    if (caller->size + callee->size > ITS_INLINE_GROWTH)
        keep(call, ITS_KEPT_BUDGET, instructions(linker, callee->size, ""));
    else if (caller->weight + callee->weight > ITS_INLINE_WEIGHT)
        keep(call, ITS_KEPT_BUDGET, "too much text would be copied");
    else if (is_free(callee))
        return false;
    else if (callee->size > budget)
        keep(call, ITS_KEPT_BUDGET, instructions(linker, callee->size, ""));
    else if (budget != UINT32_MAX && caller->taken + callee->size > ITS_INLINE_CALLER)
        keep(call, ITS_KEPT_CALLER, instructions(linker, caller->taken, " were inlined into it"));
    else
        return false;
    return true;
}

static bool is_left_out(const its_linker *linker, const its_link_call *call) {
    uint32_t which = linker->input->options.leave_out;
    return call->site && (which == ITS_LEAVE_OUT_ALL || which == call->site);
}

static void decide(its_linker *linker, its_link_func *caller, its_link_call *call) {
    its_link_func *callee = call->callee;
    if (!call->target) return; /* indirect: says so already */
    if (is_left_out(linker, call)) {
        call->fate = ITS_CALL_REMOVED;
    } else if (!callee) {
        decide_builtin(linker, call);
    } else if (linker->input->options.no_inline) {
        keep(call, ITS_KEPT_OPTION, "");
    } else if (callee->is_recursive) {
        keep(call, ITS_KEPT_RECURSIVE, "");
    } else if (callee->uncloneable) {
        keep(call, ITS_KEPT_UNSUPPORTED, callee->uncloneable);
    } else if (mixes_spaces(callee) || mixes_spaces(caller)) {
        keep(call, ITS_KEPT_UNSUPPORTED, "parameters are reached through registers");
    } else if ((callee->symbol->flags & ITS_SYM_NORETURN) && (callee->n_rets || callee->falls_off)) {
        keep(call, ITS_KEPT_NORETURN, "it is declared .noreturn, but may return");
    } else if (!is_too_large(linker, caller, call)) {
        call->fate = ITS_CALL_INLINED;
        if (!is_free(callee)) caller->taken += callee->size;
        callee->is_inlined = true;
        caller->size += callee->size;
        caller->weight += callee->weight;
    }
}

/* To a call that does not stay. */
static void note_passing(its_link_func *func, its_operand *operands, uint16_t count) {
    for (uint16_t i = 0; i < count; i++) {
        its_link_param *param = its_param_of(func, &operands[i]);
        if (param) param->with_inlined = true;
    }
}

static bool report_count(its_linker *linker, const its_link_call *call, bool results, uint16_t given, uint32_t wanted) {
    const its_node *node = &call->insn->node;
    uint32_t pos = node->pos;
    for (uint16_t i = 0; i < node->count; i++)
        if (call->insn->ops[i].kind == ITS_OPND_GROUP && (i == 0) == results) pos = call->insn->ops[i].pos;
    const char *what = results ? "result" : "argument";
    its_diag_begin(linker->ctx, ITS_ERROR, its_at(node->origin->source, pos), "%u %s%s given, '%s' has %u", given, what,
                   given == 1 ? "" : "s", call->target->name->text, wanted);
    its_diag_also(linker->ctx, its_symbol_place(call->target), "declared here");
    return false;
}

static bool is_value(const its_operand *operand, bool result) {
    switch (operand->kind) {
    case ITS_OPND_REG:
    case ITS_OPND_SINK:
        return true;
    case ITS_OPND_SYM:
        return operand->symbol->space == ITS_SPACE_PARAM;
    case ITS_OPND_INT:
    case ITS_OPND_F32:
    case ITS_OPND_F64:
        return !result;
    default:
        return false;
    }
}

/* As many bytes as the parameter: a number fits any scalar, and everything the `va[]` of a varargs function. */
static bool fits(const its_operand *operand, const its_symbol *formal) {
    uint64_t size = its_param_bytes(formal);
    if (operand->kind == ITS_OPND_SINK || formal->flags & ITS_SYM_UNSIZED) return true;
    if (operand->kind == ITS_OPND_SYM) return operand->symbol->size == size;
    if (formal->n_dims) return false;
    if (operand->kind != ITS_OPND_REG) return size <= (operand->kind == ITS_OPND_INT ? 16 : 8);
    uint64_t width = its_param_bytes(operand->symbol);
    return width == size || (width == 2 && size == 1);
}

static bool check_values(its_linker *linker, const its_link_call *call, const its_operand *operands,
                         const its_params *formals, bool results) {
    const char *what = results ? "result" : "argument";
    for (uint32_t i = 0; i < formals->n; i++) {
        bool value = is_value(&operands[i], results);
        if (value && fits(&operands[i], formals->items[i])) continue;
        its_place place = its_at(call->insn->node.origin->source, operands[i].pos);
        const char *name = formals->items[i]->name->text;
        if (value)
            its_diag_begin(linker->ctx, ITS_ERROR, place, "this %s has another size than '%s'", what, name);
        else
            its_diag_begin(linker->ctx, ITS_ERROR, place, "this can't be the %s of a call", what);
        its_diag_also(linker->ctx, its_symbol_place(formals->items[i]), "declared here");
        if (!value) its_diag_hint(linker->ctx, "a register%s or a .param variable", results ? "" : ", a number");
        return false;
    }
    return true;
}

/* What the inliner relies on; the verifier checks more. */
static bool check_call(its_linker *linker, const its_link_call *call) {
    its_call_parts parts = its_call_take(call->insn);
    const its_func *func = call->callee->func;
    if (call->target->flags & ITS_SYM_ENTRY) {
        its_diag_begin(linker->ctx, ITS_ERROR, its_node_place(&call->insn->node),
                       "'%s' is an entry and can't be called", call->target->name->text);
        return false;
    }
    if (parts.n_args != func->params.n) return report_count(linker, call, false, parts.n_args, func->params.n);
    if (parts.n_results != func->results.n) return report_count(linker, call, true, parts.n_results, func->results.n);
    return check_values(linker, call, parts.args, &func->params, false) &&
           check_values(linker, call, parts.results, &func->results, true);
}

static bool decide_all(its_linker *linker, its_link_func *func) {
    bool ok = true;
    func->size = func->n_insns;
    func->weight = func->own_weight;
    for (size_t i = 0; i < func->calls.count; i++) {
        its_link_call *call = &func->calls.items[i];
        if (call->callee) ok &= check_call(linker, call);
        decide(linker, func, call);
        if (call->fate == ITS_CALL_KEPT) continue;
        its_call_parts parts = its_call_take(call->insn);
        note_passing(func, parts.args, parts.n_args);
        note_passing(func, parts.results, parts.n_results);
    }
    return ok;
}

/*
 * Requires: no region calls are left.
 * Ensures: functions that are reached from a root are analysed, each of their calls has a fate, and the calls to be
 * inlined form no cycle. `pass` of function symbols is their its_link_func.
 */
bool its_link_plan(its_linker *linker) {
    plan planner = {.linker = linker};
    bool ok = true;
    analyse_all(linker);
    number_sites(linker);
    walk_all(&planner);
    for (size_t i = 0; i < planner.order.count; i++) ok &= decide_all(linker, planner.order.items[i]);
    return ok;
}
