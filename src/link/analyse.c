/*
 * What each function of the output holds, found in one walk over its nodes: its calls, its returns, how it uses its
 * parameters, and what else decides whether and how it can be inlined.
 */
#include <string.h>

#include "link/clone.h"
#include "link/linker.h"

typedef struct analysis {
    its_linker *linker;
    its_link_func *func;
    its_map seen;   /* name -> how many symbols of the function have it so far */
    its_map ranges; /* its_regs -> its number, from 1 */
    uint32_t depth; /* of braces */
    ITS_VEC(uint32_t) range_alias;
} analysis;

/* -- calls taken apart --------------------------------------------------------------------------------------------- */

its_call_parts its_call_take(its_insn *insn) {
    its_call_parts parts = {0};
    uint16_t at = 0, n = insn->node.count;
    its_operand *ops = insn->ops;
    if (at < n && ops[at].kind == ITS_OPND_GROUP) {
        parts.results = ops[at].list;
        parts.n_results = ops[at++].count;
    } else if (at + 1 < n && ops[at].kind == ITS_OPND_SINK) {
        parts.results = &ops[at++];
        parts.n_results = 1;
    }
    if (at < n) parts.target = &ops[at++];
    if (at < n && ops[at].kind == ITS_OPND_GROUP) {
        parts.args = ops[at].list;
        parts.n_args = ops[at].count;
    }
    return parts;
}

/* -- parameters ---------------------------------------------------------------------------------------------------- */

static its_link_param *param_of_symbol(const its_link_func *func, const its_symbol *symbol) {
    if (symbol->kind != ITS_SYM_VAR || symbol->space != ITS_SPACE_PARAM || !(symbol->flags & ITS_SYM_IN_FUNC))
        return NULL;
    return func->params[symbol->id];
}

its_link_param *its_param_of(const its_link_func *func, const its_operand *operand) {
    return operand->kind == ITS_OPND_SYM ? param_of_symbol(func, operand->symbol) : NULL;
}

/* Not that of a kernel's parameter, which any function may read through a register. */
static its_operand *address_operand(const its_mnemonic *m, its_insn *insn) {
    if (insn->node.count < 2 || m->space != ITS_SPACE_PARAM || its_mnemonic_has(m, ITS_MOD_PARAM_ENTRY)) return NULL;
    its_operand *operand = &insn->ops[m->op == ITS_OP_ST ? 0 : 1];
    return (m->op == ITS_OP_LD || m->op == ITS_OP_ST) && operand->kind == ITS_OPND_ADDR ? operand : NULL;
}

bool its_param_access_of(its_linker *linker, const its_link_func *func, its_insn *insn, its_param_access *access) {
    const its_mnemonic *m = its_mnemonic_of(linker->ctx, insn->name);
    its_operand *address = address_operand(m, insn);
    if (!address || address->count != 1) return false;
    access->param = its_param_of(func, &address->list[0]);
    if (!access->param) return false;
    access->address = address;
    access->store = m->op == ITS_OP_ST;
    access->value = &insn->ops[access->store];
    access->type = its_mnemonic_type(m, 0);
    access->size = its_type_size(access->type);
    access->count = m->vec;
    access->offset = (uint64_t)address->list[0].offset;
    return true;
}

static bool is_plain_value(const its_param_access *access, const its_operand *value) {
    bool real = its_type_is_real((its_type)access->type);
    switch (value->kind) {
    case ITS_OPND_INT:
        return access->store && !real && access->size <= 8;
    case ITS_OPND_F32:
    case ITS_OPND_F64:
        return access->store && access->size >= 4 && access->size <= 8;
    case ITS_OPND_SINK:
        return !access->store;
    case ITS_OPND_REG:
        break;
    default:
        return false;
    }
    uint32_t width = its_type_size((its_type)value->symbol->type);
    if (value->suffix || value->flags || value->symbol->vec > 1 || value->symbol->type == ITS_TYPE_PRED) return false;
    if (width < 2) return false;
    return width == access->size || (width > access->size && !real && access->size < 8 && width <= 8);
}

/* One register or immediate per component. */
static bool has_plain_values(const its_param_access *access) {
    const its_operand *value = access->value;
    if (access->count == 1 && value->kind != ITS_OPND_VEC) return is_plain_value(access, value);
    if (value->kind != ITS_OPND_VEC || value->count != access->count) return false;
    for (uint16_t i = 0; i < value->count; i++)
        if (!is_plain_value(access, &value->list[i])) return false;
    return true;
}

/* Adds a cell, unless the parameter has the same one; false if it overlaps another. */
static bool add_cell(analysis *analyser, its_link_param *param, uint64_t offset, uint32_t size) {
    if (offset > param->symbol->size || size > param->symbol->size - offset || offset % size) return false;
    for (size_t i = 0; i < param->cells.count; i++) {
        const its_cell *cell = &param->cells.items[i];
        if (cell->offset == offset && cell->size == size) return true;
        if (cell->offset < offset + size && offset < (uint64_t)cell->offset + cell->size) return false;
    }
    if (param->cells.count == ITS_PARAM_CELLS) return false;
    its_cell cell = {(uint32_t)offset, size};
    ITS_PUSH(&analyser->linker->scratch, &param->cells, cell);
    return true;
}

static void note_access(analysis *analyser, its_param_access *access, uint16_t operands) {
    its_link_param *param = access->param;
    if (!param->regular) return;
    param->regular = access->size && operands == 2 && has_plain_values(access);
    for (uint32_t i = 0; i < access->count && param->regular; i++)
        param->regular = add_cell(analyser, param, access->offset + (uint64_t)i * access->size, access->size);
}

/* A parameter named in any other way is memory, a function named in any other way is kept: its address is taken. */
static void note_mention(its_operand *operand, void *user) {
    its_link_param *param = its_param_of(((analysis *)user)->func, operand);
    if (param) param->regular = false;
    if (operand->kind != ITS_OPND_SYM || operand->symbol->kind != ITS_SYM_FUNC) return;
    its_link_func *func = operand->symbol->pass;
    if (func) func->root = true;
}

static void note_params(analysis *analyser, its_operand *operands, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        its_link_param *param = its_param_of(analyser->func, &operands[i]);
        if (param && operands[i].offset) param->regular = false;
        if (!param) note_mention(&operands[i], analyser);
    }
}

/* -- what instructions say ----------------------------------------------------------------------------------------- */

static void add_call(analysis *analyser, its_insn *insn) {
    its_call_parts parts = its_call_take(insn);
    its_link_call call = {.insn = insn, .reason = ITS_KEPT_INDIRECT, .detail = ""};
    if (parts.target && parts.target->kind == ITS_OPND_SYM && parts.target->symbol->kind == ITS_SYM_FUNC) {
        call.target = its_symbol_final(parts.target->symbol);
        call.callee = call.target->pass;
    }
    for (uint16_t i = 0; i < insn->node.count; i++) { /* any other operand is none that a call has */
        its_operand *operand = &insn->ops[i];
        if (operand->kind == ITS_OPND_GROUP || operand == parts.target) continue;
        note_mention(operand, analyser);
        for (uint16_t j = 0; operand->kind == ITS_OPND_ADDR && j < operand->count; j++)
            note_mention(&operand->list[j], analyser);
    }
    note_params(analyser, parts.args, parts.n_args);
    note_params(analyser, parts.results, parts.n_results);
    ITS_PUSH(&analyser->linker->scratch, &analyser->func->calls, call);
}

static void note_ret(its_link_func *func, its_insn *insn, bool uniform) {
    func->n_rets++;
    if (((insn->guard && !uniform) || func->n_rets > 1) && !func->conditional_ret) func->conditional_ret = insn;
}

/* The number of threads that a `.reqntid` or `.maxntid` gives, 0 if there is none. */
static uint64_t threads_of(const its_func *func) {
    uint64_t threads = 0;
    for (const its_node *node = func->directives; node; node = node->next) {
        const its_directive *directive = (const its_directive *)node;
        bool exact = strcmp(directive->name->text, ".reqntid") == 0;
        if (!exact && strcmp(directive->name->text, ".maxntid") != 0) continue;
        uint64_t product = 1;
        for (uint16_t i = 0; i < node->count; i++)
            if (directive->ops[i].kind == ITS_OPND_INT && directive->ops[i].bits <= 1024)
                product *= directive->ops[i].bits;
        if (exact || !threads) threads = product;
    }
    return threads;
}

/* `bar.sync id, count` and its kin: the operand that says how many threads, NULL if all of the CTA take part. */
static const its_operand *count_operand(const its_mnemonic *m, const its_insn *insn) {
    bool red = its_mnemonic_has(m, ITS_MOD_RED);
    uint16_t at = red ? 2 : 1, needed = red ? 4 : 2;
    return insn->node.count >= needed ? &insn->ops[at] : NULL;
}

static void note_barrier(analysis *analyser, const its_mnemonic *m, its_insn *insn) {
    its_link_func *func = analyser->func;
    if (its_mnemonic_has(m, ITS_MOD_WARP)) return;
    bool cluster = its_mnemonic_has(m, ITS_MOD_CLUSTER);
    const its_operand *count = cluster ? NULL : count_operand(m, insn);
    uint64_t threads = threads_of(func->func);
    if (count && count->kind == ITS_OPND_INT && threads && count->bits < threads) {
        if (!func->splits) func->splits = insn;
    } else if (!count || (count->kind == ITS_OPND_INT && threads && count->bits >= threads)) {
        ITS_PUSH(&analyser->linker->scratch, &func->barriers, insn);
    }
}

static bool names_thread(const its_operand *operand) {
    return operand->kind == ITS_OPND_SREG &&
           (strncmp(operand->name->text, "%tid", 4) == 0 || strncmp(operand->name->text, "%ntid", 5) == 0);
}

static void note_insn(analysis *analyser, its_insn *insn) {
    its_link_func *func = analyser->func;
    const its_mnemonic *m = its_mnemonic_of(analyser->linker->ctx, insn->name);
    its_param_access access;
    func->n_insns++;
    func->last_insn = &insn->node;
    func->ends_in_label = false;
    switch (m->op) {
    case ITS_OP_CALL:
        add_call(analyser, insn);
        return;
    case ITS_OP_RET:
        note_ret(func, insn, its_mnemonic_has(m, ITS_MOD_UNI));
        return;
    case ITS_OP_BAR:
    case ITS_OP_BARRIER:
        note_barrier(analyser, m, insn);
        break;
    case ITS_OP_SETMAXNREG:
        if (!func->splits) func->splits = insn;
        break;
    case ITS_OP_ALLOCA:
    case ITS_OP_STACKSAVE:
    case ITS_OP_STACKRESTORE:
        func->uncloneable = "it moves the stack pointer";
        break;
    default:
        break;
    }
    for (uint16_t i = 0; i < insn->node.count && !func->reads_tid; i++)
        if (names_thread(&insn->ops[i])) func->reads_tid = insn;
    if (its_param_access_of(analyser->linker, func, insn, &access)) {
        note_access(analyser, &access, insn->node.count);
        return;
    }
    if (address_operand(m, insn)) func->param_by_register = true;
    its_node_visit(&insn->node, note_mention, analyser);
}

/* -- names --------------------------------------------------------------------------------------------------------- */

static uint32_t alias_number(analysis *analyser, its_name name) {
    uint32_t before = (uint32_t)(uintptr_t)its_map_get(&analyser->seen, name);
    its_map_put(&analyser->seen, &analyser->linker->scratch, name, (void *)(uintptr_t)(before + 1));
    return before;
}

static void note_param_symbol(analysis *analyser, its_symbol *symbol) {
    its_link_func *func = analyser->func;
    if (symbol->kind == ITS_SYM_REG) {
        func->reg_alias[symbol->id] = alias_number(analyser, symbol->name);
        return;
    }
    func->var_alias[symbol->id] = alias_number(analyser, symbol->name);
    if (symbol->space != ITS_SPACE_PARAM) return;
    its_link_param *param = ITS_NEW(&analyser->linker->scratch, its_link_param);
    param->symbol = symbol;
    param->regular = symbol->size != 0;
    func->params[symbol->id] = param;
}

static void note_formals(analysis *analyser, const its_params *params) {
    for (uint32_t i = 0; i < params->n; i++) {
        const its_symbol *symbol = params->items[i];
        note_param_symbol(analyser, params->items[i]);
        if (symbol->flags & ITS_SYM_UNSIZED) analyser->func->uncloneable = "a parameter has no fixed size";
        if (its_param_bytes(symbol) > ITS_INLINE_PARAM)
            analyser->func->uncloneable = "a parameter is too large to copy";
    }
}

static void note_regs(analysis *analyser, const its_regs *regs) {
    uint32_t alias = alias_number(analyser, regs->name);
    if (regs->symbol) {
        analyser->func->reg_alias[regs->symbol->id] = alias;
        return;
    }
    ITS_PUSH(&analyser->linker->scratch, &analyser->range_alias, alias);
    its_map_put(&analyser->ranges, &analyser->linker->scratch, regs, (void *)(uintptr_t)analyser->range_alias.count);
}

static void note_node(analysis *analyser, its_node *node) {
    its_link_func *func = analyser->func;
    if (node->kind != ITS_NODE_INSN) its_visit_deep(node, note_mention, analyser);
    switch ((its_node_kind)node->kind) {
    case ITS_NODE_INSN:
        note_insn(analyser, (its_insn *)node);
        break;
    case ITS_NODE_REGS:
        note_regs(analyser, (const its_regs *)node);
        break;
    case ITS_NODE_LABEL: {
        const its_symbol *symbol = ((its_decl *)node)->symbol;
        func->label_alias[symbol->id] = alias_number(analyser, symbol->name);
        func->ends_in_label = true;
        break;
    }
    case ITS_NODE_PROTO:
        note_param_symbol(analyser, ((its_proto *)node)->symbol);
        break;
    case ITS_NODE_TARGETS:
        note_param_symbol(analyser, ((its_targets *)node)->symbol);
        break;
    case ITS_NODE_OPEN:
        if (++analyser->depth > func->depth) func->depth = analyser->depth;
        break;
    case ITS_NODE_CLOSE:
        analyser->depth--;
        break;
    case ITS_NODE_SECTION:
        func->uncloneable = "it holds a section";
        break;
    default:
        break;
    }
}

/* -- weight -------------------------------------------------------------------------------------------------------- */

/* Names are made anew for each site: long ones count by their length. */
static uint64_t weight_of_name(its_name name) {
    return 1 + name->size / 16;
}

static void weigh_operand(its_operand *operand, void *user) {
    bool named = operand->kind == ITS_OPND_REG || operand->kind == ITS_OPND_SYM;
    *(uint64_t *)user += named ? 1 + weight_of_name(operand->symbol->name) : 1;
}

static uint64_t weight_of_node(its_node *node) {
    its_name name = its_declared_name(node);
    uint64_t weight = 1 + (name ? 1 + weight_of_name(name) : 0);
    its_node_visit(node, weigh_operand, &weight);
    if (node->kind == ITS_NODE_PROTO) {
        const its_proto *proto = (const its_proto *)node;
        weight += 2 * ((uint64_t)proto->params.n + proto->results.n);
    }
    return weight;
}

/* A structure may be copied to where the call finds it: a load and a store for each piece, of one byte at least. */
static uint64_t weight_of_args(const its_operand *operands, uint16_t count) {
    uint64_t weight = 0;
    for (uint16_t i = 0; i < count; i++)
        if (operands[i].kind == ITS_OPND_SYM && operands[i].symbol->n_dims) weight += 4 * operands[i].symbol->size;
    return weight;
}

static uint64_t weight_of_call(const its_link_call *call) {
    its_call_parts parts = its_call_take(call->insn);
    return 8 + weight_of_args(parts.args, parts.n_args) + weight_of_args(parts.results, parts.n_results);
}

static void weigh(its_link_func *func) {
    for (its_node *node = func->func->first; node; node = node->next) func->own_weight += weight_of_node(node);
    for (size_t i = 0; i < func->calls.count; i++) func->own_weight += weight_of_call(&func->calls.items[i]);
}

/* -- the function -------------------------------------------------------------------------------------------------- */

/* Which .reg node each register comes from: known when all of them were seen. */
static void note_register(its_operand *operand, void *user) {
    analysis *analyser = user;
    if (operand->kind != ITS_OPND_REG || !operand->symbol->range) return;
    uintptr_t number = (uintptr_t)its_map_get(&analyser->ranges, operand->symbol->range);
    analyser->func->reg_range[operand->symbol->id] = (uint32_t)number;
}

static void note_registers(analysis *analyser) {
    for (its_node *node = analyser->func->func->first; node; node = node->next) {
        its_operand guard = {.kind = ITS_OPND_REG};
        if (node->kind != ITS_NODE_INSN && node->kind != ITS_NODE_DIRECTIVE) continue;
        its_node_visit(node, note_register, analyser);
        if (node->kind != ITS_NODE_INSN) continue;
        guard.symbol = ((its_insn *)node)->guard;
        if (guard.symbol) note_register(&guard, analyser);
    }
}

/* Does control run off the end? Not behind an unguarded ret, exit, trap or branch. */
static bool falls_off(its_linker *linker, const its_link_func *func) {
    if (!func->last_insn || func->ends_in_label) return true;
    const its_insn *insn = (const its_insn *)func->last_insn;
    uint32_t ends = ITS_FX_RETURN | ITS_FX_EXIT | ITS_FX_TRAP | ITS_FX_BRANCH;
    const its_mnemonic *m = its_mnemonic_of(linker->ctx, insn->name);
    if (insn->guard || m->op == ITS_OP_UNKNOWN || m->op == ITS_OP_BRKPT) return true;
    return !(its_mnemonic_effects(m) & ends);
}

/*
 * Requires: `pass` of function symbols is their its_link_func or NULL; local symbols are numbered.
 * Ensures: every field of `func` up to `uncloneable` is set.
 */
void its_link_analyse(its_linker *linker, its_link_func *func) {
    its_arena *scratch = &linker->scratch;
    analysis analyser = {.linker = linker, .func = func};
    func->reg_alias = ITS_NEW_ARRAY(scratch, uint32_t, func->n_regs);
    func->reg_range = ITS_NEW_ARRAY(scratch, uint32_t, func->n_regs);
    func->label_alias = ITS_NEW_ARRAY(scratch, uint32_t, func->n_labels);
    func->var_alias = ITS_NEW_ARRAY(scratch, uint32_t, func->n_vars);
    func->params = ITS_NEW_ARRAY(scratch, its_link_param *, func->n_vars);
    note_formals(&analyser, &func->func->results);
    note_formals(&analyser, &func->func->params);
    for (its_node *node = func->func->first; node; node = node->next) /* text may name them before */
        if (node->kind == ITS_NODE_VAR) note_param_symbol(&analyser, ((its_var *)node)->symbol);
    for (its_node *node = func->func->first; node; node = node->next) note_node(&analyser, node);
    func->range_alias = analyser.range_alias.items;
    func->n_ranges = (uint32_t)analyser.range_alias.count;
    note_registers(&analyser);
    func->falls_off = falls_off(linker, func);
    weigh(func);
}
