/*
 * One function written anew, its calls expanded.
 *
 * The callee's original nodes are copied to where the call stood, with names of this site; calls in them that are to be
 * expanded open a frame of their own. The frames are a stack in memory, not on C's: chains of calls may be thousands
 * deep.
 *
 *     name          site 3        why
 *     %r<11>        %r$i3_<11>    a range stays a range
 *     $L__BB1_4     $L__BB1_4$i3
 *     s  (second)   s$i3$1        the callee has two of that name, in different blocks
 *
 * "$i" is the marker: a text that no name of the module holds, so that nothing can be captured. The function's own
 * names stay as they are, unless they hide something that the expanded code names. If it is expanded nowhere else, its
 * instructions and symbols are not copied but taken over: most of a kernel's text is its own.
 */
#include "link/expand.h"

#include <string.h>

#include "base/intern.h"
#include "link/lines.h"

/* -- names --------------------------------------------------------------------------------------------------------- */

/* Texts are put together here before they are interned: most of them are short, and there are many. */
typedef struct text {
    its_expander *x;
    size_t size;
} text;

static void put_bytes(text *out, const char *bytes, size_t size) {
    its_expander *x = out->x;
    if (!x->text || x->text_capacity - out->size < size) {
        size_t capacity = (out->size + size) * 2 + 64;
        char *grown = its_arena_alloc(&x->linker->scratch, capacity);
        if (out->size && x->text) memcpy(grown, x->text, out->size);
        x->text = grown;
        x->text_capacity = capacity;
    }
    memcpy(x->text + out->size, bytes, size);
    out->size += size;
}

static void put_text(text *out, const char *bytes) {
    put_bytes(out, bytes, strlen(bytes));
}

static void put_number(text *out, uint32_t number) {
    char digits[10];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    put_bytes(out, digits + at, sizeof digits - at);
}

static void put_mark(text *out, const its_frame *frame, uint32_t alias) {
    put_text(out, out->x->linker->marker);
    put_number(out, frame->site);
    if (!alias) return;
    put_text(out, "$");
    put_number(out, alias);
}

static its_name take_name(const text *out) {
    return its_intern_raise(out->x->ctx, out->x->text, out->size);
}

its_name its_site_name(its_expander *x, const its_frame *frame, its_name base, uint32_t alias, const char *more) {
    text out = {x, 0};
    if (base) put_bytes(&out, base->text, base->size);
    put_mark(&out, frame, alias);
    if (more) put_text(&out, "$");
    if (more) put_text(&out, more);
    return take_name(&out);
}

/* Must a local of the function itself be renamed? */
static bool is_taken(const its_expander *x, its_name name) {
    return x->rename_all || x->root->func->depth > ITS_INLINE_BRACES || its_map_get(&x->linker->taken, name);
}

static its_name local_name(its_expander *x, const its_frame *frame, its_name base, uint32_t alias) {
    if (frame->site == 0 && !is_taken(x, base)) return base;
    return its_site_name(x, frame, base, alias, NULL);
}

static its_name range_name(its_expander *x, const its_frame *frame, const its_regs *regs, uint32_t alias) {
    uintptr_t first = (uintptr_t)its_map_get(&x->linker->taken_ranges, regs->name); /* lowest number taken, plus one */
    bool taken = is_taken(x, regs->name) || (first && first - 1 < regs->n);
    if (frame->site == 0 && !taken) return regs->name;
    text out = {x, 0};
    put_bytes(&out, regs->name->text, regs->name->size);
    put_mark(&out, frame, alias);
    put_text(&out, "_");
    return take_name(&out);
}

/* A register of a range that has another prefix now. */
static its_name member_name(its_expander *x, const its_regs *regs, const its_symbol *symbol) {
    text out = {x, 0};
    put_bytes(&out, regs->name->text, regs->name->size);
    put_text(&out, symbol->name->text + symbol->range->name->size);
    return take_name(&out);
}

/* -- emitting ------------------------------------------------------------------------------------------------------ */

/* The frame whose .loc counts for this one's instructions. */
static its_frame *line_frame(its_frame *frame) {
    return frame->loc ? frame : frame->line_frame;
}

static void write_loc(its_expander *x, const its_frame *frame) {
    its_loc *copy = its_arena_alloc(its_module_arena(x->out), sizeof *copy);
    *copy = *frame->loc;
    copy->node.next = NULL;
    its_list_append(&x->list, &copy->node);
    x->loc_site = frame->site;
    x->loc_written = true;
}

/* Goes back to the line of this frame if another one's was written last. */
static void restore_loc(its_expander *x, its_frame *frame) {
    const its_frame *wanted = line_frame(frame);
    if (wanted && (!x->loc_written || x->loc_site != wanted->site)) write_loc(x, wanted);
}

void its_emit(its_expander *x, void *node) {
    its_list_append(&x->list, node);
}

its_operand its_map_operand(its_expander *x, its_frame *frame, const its_operand *operand) {
    its_frame *saved = x->frame;
    x->frame = frame;
    its_operand mapped = its_clone_operand(&x->cloner, operand);
    x->frame = saved;
    return mapped;
}

static its_symbol *map_symbol(void *user, its_symbol *symbol);

static its_symbol *map_in(its_expander *x, its_frame *frame, its_symbol *symbol) {
    its_operand operand = {.kind = ITS_OPND_REG, .symbol = symbol};
    return its_map_operand(x, frame, &operand).symbol;
}

static const its_origin *origin_in(const its_frame *frame, const its_node *node) {
    return frame->origin ? frame->origin : node->origin;
}

static void set_guard(its_expander *x, its_frame *frame, its_insn *insn, const its_insn *like) {
    if (!like->guard) return;
    insn->guard = map_in(x, frame, like->guard);
    insn->guard_suffix = like->guard_suffix;
    insn->node.flags = like->node.flags & ITS_INSN_GUARD_NOT;
}

its_insn *its_emit_insn(its_expander *x, its_frame *frame, const its_insn *at, bool guarded, const char *name,
                        uint16_t count) {
    its_insn *insn =
        its_insn_new(x->out, its_intern_text(x->ctx, name), count, origin_in(frame, &at->node), at->node.pos);
    if (guarded) set_guard(x, frame, insn, at);
    return insn;
}

/* -- symbols of a site --------------------------------------------------------------------------------------------- */

/* A copy under another name; where the frame keeps its nodes, the symbol itself. Its id stays that of the original. */
static its_symbol *site_symbol(its_expander *x, its_frame *frame, its_symbol *symbol, its_name name) {
    if (!frame->in_place) return its_clone_symbol(x->out, symbol, name, frame->origin ? frame->origin : symbol->origin);
    symbol->name = name;
    return symbol;
}

static its_symbol *copy_reg(its_expander *x, its_frame *frame, its_symbol *symbol) {
    its_link_func *func = frame->func;
    uint32_t range = func->reg_range[symbol->id];
    its_regs *regs = range ? frame->ranges[range - 1] : NULL;
    its_name name = symbol->name;
    if (!regs)
        name = local_name(x, frame, symbol->name, func->reg_alias[symbol->id]);
    else if (regs->name != symbol->range->name)
        name = member_name(x, regs, symbol);
    its_symbol *copy = site_symbol(x, frame, symbol, name);
    copy->range = regs;
    if (!frame->in_place) copy->id = x->n_regs++;
    return copy;
}

static its_symbol *map_reg(its_expander *x, its_symbol *symbol) {
    its_symbol **slot = &x->frame->regs[symbol->id];
    if (!*slot) *slot = copy_reg(x, x->frame, symbol);
    return *slot;
}

static its_symbol *map_label(its_expander *x, its_symbol *symbol) {
    its_frame *frame = x->frame;
    its_symbol **slot = &frame->labels[symbol->id];
    if (*slot) return *slot;
    bool named = x->rename_all && x->linker->has_debug; /* debug sections name labels */
    its_name name = symbol->name;
    if (!named) name = local_name(x, frame, name, frame->func->label_alias[symbol->id]);
    *slot = site_symbol(x, frame, symbol, name);
    if (!frame->in_place) (*slot)->id = x->n_labels++;
    return *slot;
}

/* Names that machine code has as well: variables that are one object per function. */
static bool is_static(const its_symbol *symbol) {
    return symbol->kind == ITS_SYM_VAR && symbol->space != ITS_SPACE_PARAM && symbol->space != ITS_SPACE_LOCAL;
}

static its_symbol *map_var(its_expander *x, its_symbol *symbol) {
    its_frame *frame = x->frame;
    its_symbol **slot = &frame->vars[symbol->id];
    its_name name = symbol->name;
    if (*slot) return *slot;
    if (!x->rename_all || !is_static(symbol)) name = local_name(x, frame, name, frame->func->var_alias[symbol->id]);
    *slot = site_symbol(x, frame, symbol, name);
    return *slot;
}

/* The cloner's question: what stands for this symbol in the frame? */
static its_symbol *map_symbol(void *user, its_symbol *symbol) {
    if (symbol->kind == ITS_SYM_REG) return map_reg(user, symbol);
    if (symbol->kind == ITS_SYM_LABEL) return map_label(user, symbol);
    return symbol->flags & ITS_SYM_IN_FUNC ? map_var(user, symbol) : symbol;
}

its_symbol *its_new_reg(its_expander *x, its_frame *frame, its_name name, its_type type) {
    const its_node *node = &frame->func->func->node;
    its_symbol *symbol = its_reg_new(x->out, name, type, origin_in(frame, node), node->pos);
    symbol->id = x->n_regs++;
    its_emit(x, symbol->range);
    return symbol;
}

its_symbol *its_new_var(its_expander *x, its_frame *frame, its_name name, const its_symbol *like, its_space space) {
    its_var *var = its_node_new(x->out, ITS_NODE_VAR, sizeof *var, like->origin, like->pos);
    its_symbol *symbol = its_clone_symbol(x->out, like, name, frame->origin ? frame->origin : like->origin);
    symbol->flags = (uint16_t)((symbol->flags & ITS_SYM_ARRAY) | ITS_SYM_DEFINED | ITS_SYM_IN_FUNC);
    symbol->space = (uint8_t)space;
    symbol->node = &var->node;
    var->symbol = symbol;
    var->node.origin = symbol->origin;
    its_emit(x, var);
    return symbol;
}

static its_symbol *new_label(its_expander *x, its_frame *frame, const char *what) {
    const its_node *node = &frame->func->func->node;
    its_symbol *label =
        its_label_new(x->out, its_site_name(x, frame, NULL, 0, what), origin_in(frame, node), node->pos);
    label->id = x->n_labels++;
    return label;
}

static void put_label(its_expander *x, its_frame *frame, its_symbol *label) {
    its_emit(x, its_label_place(x->out, label, label->origin, frame->func->func->end_pos));
}

/* -- frames -------------------------------------------------------------------------------------------------------- */

static its_frame *new_frame(its_expander *x, its_link_func *func) {
    its_arena *scratch = &x->linker->scratch;
    its_frame *frame = ITS_NEW(scratch, its_frame);
    frame->func = func;
    frame->next = func->func->first;
    frame->regs = ITS_NEW_ARRAY(scratch, its_symbol *, func->n_regs);
    frame->labels = ITS_NEW_ARRAY(scratch, its_symbol *, func->n_labels);
    frame->vars = ITS_NEW_ARRAY(scratch, its_symbol *, func->n_vars);
    frame->slots = ITS_NEW_ARRAY(scratch, its_slot, func->n_vars);
    frame->ranges = ITS_NEW_ARRAY(scratch, its_regs *, func->n_ranges);
    const its_link_region *region = func->source->region;
    frame->region = region && region->barrier_map ? region : NULL;
    return frame;
}

static const its_origin *site_origin(its_expander *x, its_frame *caller, its_link_func *callee, its_insn *call) {
    its_origin *origin = ITS_NEW(its_module_arena(x->out), its_origin);
    origin->source = callee->func->node.origin->source;
    origin->module = callee->func->node.origin->module;
    origin->outer = origin_in(caller, &call->node);
    origin->call = call;
    origin->callee = callee->symbol->name;
    return origin;
}

static void put_comment(its_expander *x, its_frame *frame, const char *what) {
    its_comment *comment = its_node_new(x->out, ITS_NODE_COMMENT, sizeof *comment, frame->origin, 0);
    its_arena *arena = its_module_arena(x->out);
    comment->text = its_arena_printf(arena, "// %s %s", what, frame->func->symbol->name->text);
    comment->size = (uint32_t)strlen(comment->text);
    its_emit(x, comment);
}

/* `@p call` becomes a branch around the body: never a guard on each instruction. */
static void put_skip(its_expander *x, its_frame *caller, its_frame *callee) {
    if (!callee->call->guard) return;
    callee->skip = new_label(x, callee, "skip");
    its_insn *branch = its_emit_insn(x, caller, callee->call, true, "bra", 1);
    branch->node.flags ^= ITS_INSN_GUARD_NOT;
    branch->ops[0] = (its_operand){.kind = ITS_OPND_SYM, .symbol = callee->skip};
    its_emit(x, branch);
}

static void enter(its_expander *x, its_link_call *call) {
    its_frame *caller = x->frame, *callee = new_frame(x, call->callee);
    callee->caller = caller;
    callee->call = call->insn;
    callee->site = ++x->n_sites;
    callee->origin = site_origin(x, caller, call->callee, call->insn);
    callee->line_frame = line_frame(caller);
    if (!callee->region) callee->region = caller->region;
    if (call->insn->node.flags & ITS_INSN_REGION)
        x->linker->regions_inlined++;
    else
        x->linker->calls_inlined++;
    put_comment(x, callee, "begin");
    restore_loc(x, caller);
    put_skip(x, caller, callee);
    its_bind_enter(x, callee);
    x->frame = callee;
}

static void leave(its_expander *x) {
    its_frame *callee = x->frame;
    x->frame = callee->caller;
    if (callee->exit) put_label(x, callee, callee->exit);
    restore_loc(x, callee->caller);
    its_bind_leave(x, callee);
    if (callee->skip) put_label(x, callee, callee->skip);
    put_comment(x, callee, "end");
    if (!callee->func->conditional_ret || callee->func->symbol->flags & ITS_SYM_NORETURN) return;
    x->loose_ret = callee->func->conditional_ret;
    x->loose_call = callee->call;
}

/* -- instructions -------------------------------------------------------------------------------------------------- */

static void warn_aligned(its_expander *x, const its_insn *insn) {
    its_context *ctx = x->ctx;
    its_diag_begin(ctx, ITS_WARNING, its_node_place(&insn->node),
                   "'%s' needs all threads of the warp together, but a function inlined before it may return early",
                   insn->name->text);
    its_diag_also(ctx, its_node_place(&x->loose_call->node), "inlined from this call");
    its_diag_also(ctx, its_node_place(&x->loose_ret->node), "returns here on some threads only");
    its_diag_hint(ctx, "give the function one return at its end, or put bar.warp.sync behind the call");
    x->loose_ret = NULL;
}

/* `ret` of an expanded body: a branch to its end, under the same guard; the last one just falls through. */
static void put_return(its_expander *x, its_insn *insn) {
    its_frame *frame = x->frame;
    if (&insn->node == frame->func->last_insn && !insn->guard) return;
    if (!frame->exit) frame->exit = new_label(x, frame, "exit");
    its_insn *branch = its_emit_insn(x, frame, insn, true, "bra", 1);
    branch->ops[0] = (its_operand){.kind = ITS_OPND_SYM, .symbol = frame->exit};
    its_emit(x, branch);
}

static void put_call(its_expander *x, its_insn *insn) {
    its_frame *frame = x->frame;
    its_link_call *call = &frame->func->calls.items[frame->n_calls++];
    switch ((its_call_fate)call->fate) {
    case ITS_CALL_INLINED:
        enter(x, call);
        return;
    case ITS_CALL_KEPT:
        its_link_keep(x->linker, x->root->func, call, (its_kept_reason)call->reason, call->detail);
        its_bind_kept(x, frame, insn);
        return;
    case ITS_CALL_REMOVED:
        its_bind_nothing(x, frame, insn, call->callee && call->callee->func->results.n);
        return;
    case ITS_CALL_TRAPS:
        its_emit(x, its_emit_insn(x, frame, insn, true, "trap", 0));
        return;
    }
}

/* In an expanded body a parameter's address leads to .local, whatever instruction goes through it. */
static bool loads_through_register(const its_frame *frame, const its_mnemonic *m, const its_insn *insn) {
    if (!frame->site || !frame->func->param_by_register || m->space != ITS_SPACE_PARAM) return false;
    if (its_mnemonic_has(m, ITS_MOD_PARAM_ENTRY)) return false;
    uint16_t at = m->op == ITS_OP_ST ? 0 : 1;
    return insn->node.count > at && insn->ops[at].kind == ITS_OPND_ADDR && insn->ops[at].list[0].kind == ITS_OPND_REG;
}

static void map_in_place(its_operand *operand, void *user) {
    if (operand->kind == ITS_OPND_REG || operand->kind == ITS_OPND_SYM)
        operand->symbol = map_symbol(user, operand->symbol);
}

/* The instruction for this site: a copy, or the original where nobody else needs it. */
static its_insn *take_insn(its_expander *x, its_insn *insn) {
    const its_frame *frame = x->frame;
    if (!frame->in_place) return (its_insn *)its_clone(&x->cloner, &insn->node, origin_in(frame, &insn->node));
    its_node_visit(&insn->node, map_in_place, x);
    if (insn->guard) insn->guard = map_symbol(x, insn->guard);
    insn->node.next = NULL;
    return insn;
}

static void put_plain(its_expander *x, its_insn *insn) {
    its_frame *frame = x->frame;
    const its_mnemonic *m = its_mnemonic_of(x->ctx, insn->name);
    if ((m->op == ITS_OP_BAR || m->op == ITS_OP_BARRIER) && frame->region) {
        its_insn *mapped = its_map_barrier(x->linker, frame->region, insn);
        if (mapped) insn = mapped;
    }
    its_insn *copy = take_insn(x, insn);
    if (loads_through_register(frame, m, insn)) copy->name = its_in_local(x, insn->name);
    its_emit(x, copy);
}

static void put_insn(its_expander *x, its_insn *insn) {
    its_frame *frame = x->frame;
    const its_mnemonic *m = its_mnemonic_of(x->ctx, insn->name);
    its_param_access access;
    if (m->op == ITS_OP_CALL) {
        restore_loc(x, frame);
        put_call(x, insn);
        return;
    }
    restore_loc(x, frame);
    if (x->loose_ret && its_mnemonic_has(m, ITS_MOD_ALIGNED)) warn_aligned(x, insn);
    if (m->op == ITS_OP_RET && frame->site)
        put_return(x, insn);
    else if (its_param_access_of(x->linker, frame->func, insn, &access) &&
             its_bind_slot(x, frame, access.param)->form != ITS_SLOT_REAL)
        its_bind_access(x, frame, insn, &access);
    else
        put_plain(x, insn);
}

/* -- other nodes --------------------------------------------------------------------------------------------------- */

static void put_regs(its_expander *x, const its_regs *regs) {
    its_frame *frame = x->frame;
    its_regs *copy = its_node_new(x->out, ITS_NODE_REGS, sizeof *copy, origin_in(frame, &regs->node), regs->node.pos);
    copy->n = regs->n;
    copy->type = regs->type;
    copy->vec = regs->vec;
    copy->type_name = regs->type_name;
    if (regs->symbol) {
        copy->symbol = map_reg(x, regs->symbol);
        copy->symbol->range = copy;
        copy->name = copy->symbol->name;
    } else {
        copy->name = range_name(x, frame, regs, frame->func->range_alias[frame->n_ranges]);
        frame->ranges[frame->n_ranges++] = copy;
    }
    its_emit(x, copy);
}

static void put_var(its_expander *x, its_var *var) {
    its_frame *frame = x->frame;
    its_symbol *symbol = var->symbol;
    its_link_param *param = symbol->flags & ITS_SYM_IN_FUNC ? frame->func->params[symbol->id] : NULL;
    if (param && param->with_inlined) {
        its_bind_slot(x, frame, param);
        return;
    }
    its_emit(x, its_clone(&x->cloner, &var->node, origin_in(frame, &var->node)));
}

/* `.loc` of an expanded body says where it was inlined; a callee's own such line is further in and stays. */
static void put_loc(its_expander *x, its_loc *loc) {
    its_frame *frame = x->frame;
    its_loc *copy = (its_loc *)its_clone(&x->cloner, &loc->node, origin_in(frame, &loc->node));
    const its_frame *outer = frame->line_frame;
    if (!copy->inlined && outer) {
        copy->inlined = true;
        copy->function = its_lines_label(x->linker, frame->func->symbol->name);
        copy->at_file = outer->loc->file;
        copy->at_line = outer->loc->line;
        copy->at_column = outer->loc->column;
    }
    frame->loc = copy;
    x->loc_site = frame->site;
    x->loc_written = true;
    its_emit(x, copy);
}

static void put_brace(its_expander *x, const its_node *node) {
    bool open = node->kind == ITS_NODE_OPEN;
    uint32_t depth = open ? ++x->depth : x->depth--;
    if (depth <= ITS_INLINE_BRACES) its_emit(x, its_clone(&x->cloner, node, origin_in(x->frame, node)));
}

/* Pragmas that speak about the whole function must not reach the caller. */
static bool is_for_function(const its_node *node) {
    const its_directive *pragma = (const its_directive *)node;
    return node->count && pragma->ops[0].kind == ITS_OPND_STRING &&
           strcmp(pragma->ops[0].name->text, "enable_smem_spilling") == 0;
}

static void put_node(its_expander *x, its_node *node) {
    bool inner = x->frame->site != 0;
    switch ((its_node_kind)node->kind) {
    case ITS_NODE_INSN:
        put_insn(x, (its_insn *)node);
        break;
    case ITS_NODE_REGS:
        put_regs(x, (its_regs *)node);
        break;
    case ITS_NODE_VAR:
        put_var(x, (its_var *)node);
        break;
    case ITS_NODE_LOC:
        put_loc(x, (its_loc *)node);
        break;
    case ITS_NODE_OPEN:
    case ITS_NODE_CLOSE:
        put_brace(x, node);
        break;
    case ITS_NODE_PRAGMA:
        if (!inner || !is_for_function(node)) its_emit(x, its_clone(&x->cloner, node, origin_in(x->frame, node)));
        break;
    case ITS_NODE_COMMENT:
        if (!inner) its_emit(x, its_clone(&x->cloner, node, node->origin));
        break;
    default:
        its_emit(x, its_clone(&x->cloner, node, origin_in(x->frame, node)));
    }
}

/* -- the function -------------------------------------------------------------------------------------------------- */

/*
 * The function's own formal parameters keep their places, and their names but for those that hide what expanded code
 * means.
 */
static void keep_formals(its_expander *x, its_frame *frame, const its_params *params) {
    for (uint32_t i = 0; i < params->n; i++) {
        its_symbol *symbol = params->items[i];
        if (its_map_get(&x->linker->taken, symbol->name)) symbol->name = its_site_name(x, frame, symbol->name, 0, NULL);
        if (symbol->kind == ITS_SYM_REG) {
            frame->regs[symbol->id] = symbol;
            x->n_regs = frame->func->n_regs; /* the others are numbered behind the original's */
            continue;
        }
        frame->vars[symbol->id] = symbol;
        frame->slots[symbol->id] = (its_slot){ITS_SLOT_REAL, frame->func->params[symbol->id], symbol, NULL};
    }
}

its_node_list its_expand(its_linker *linker, its_link_func *func, bool rename_all) {
    its_expander x = {.linker = linker, .ctx = linker->ctx, .out = linker->out, .rename_all = rename_all};
    x.cloner = (its_cloner){linker->out, map_symbol, &x};
    x.frame = new_frame(&x, func);
    x.root = x.frame;
    x.frame->in_place = !func->is_inlined;
    if (x.frame->in_place) x.n_regs = func->n_regs, x.n_labels = func->n_labels;
    keep_formals(&x, x.frame, &func->func->results);
    keep_formals(&x, x.frame, &func->func->params);
    for (;;) {
        its_node *node = x.frame->next;
        if (node) {
            x.frame->next = node->next;
            put_node(&x, node);
        } else if (x.frame->site) {
            leave(&x);
        } else {
            break;
        }
    }
    func->func->n_regs = x.n_regs;
    func->func->n_labels = x.n_labels;
    return x.list;
}
