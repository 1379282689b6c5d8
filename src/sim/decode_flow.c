/* Branches, calls and their ends. */

#include "sim/builtin.h"
#include "sim/decode.h"

/* -- branches ------------------------------------------------------------------------------------------------------ */

static void branch(its_sim_decoder *d) {
    its_sim_has(d, ITS_MOD_UNI);
    const its_operand *target = its_sim_operand(d, 0);
    if (target->kind != ITS_OPND_SYM || target->symbol->kind != ITS_SYM_LABEL) {
        its_sim_refuse_form(d);
        return;
    }
    its_sim_emit_branch(d, target->symbol);
}

static void branch_indexed(its_sim_decoder *d) {
    if (!its_sim_has(d, ITS_MOD_IDX)) its_sim_refuse_form(d);
    its_sim_has(d, ITS_MOD_UNI);
    uint32_t index = its_sim_source(d, its_sim_operand(d, 0), ITS_TYPE_U32);
    const its_operand *operand = its_sim_operand(d, 1);
    if (operand->kind != ITS_OPND_SYM || operand->symbol->kind != ITS_SYM_TARGETS || !operand->symbol->node) {
        its_sim_refuse_form(d);
        return;
    }
    const its_targets *targets = (const its_targets *)operand->symbol->node;
    its_sim_table table = {.n = targets->node.count};
    table.targets = ITS_NEW_ARRAY(d->arena, uint32_t, table.n ? table.n : 1);
    for (uint32_t i = 0; i < table.n; i++) {
        its_sim_table_fixup fixup = {&table.targets[i], targets->ops[i].symbol};
        if (targets->ops[i].kind != ITS_OPND_SYM)
            its_sim_refuse_form(d);
        else
            ITS_PUSH(&d->scratch, &d->table_fixups, fixup);
    }
    its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_BRANCH_TABLE);
    op->a = index;
    op->list = (uint32_t)d->program->tables.count;
    ITS_PUSH(d->arena, &d->program->tables, table);
}

void its_sim_decode_branch(its_sim_decoder *d) {
    switch (d->m->op) {
    case ITS_OP_BRA:
        branch(d);
        break;
    case ITS_OP_BRX:
        branch_indexed(d);
        break;
    case ITS_OP_RET:
        its_sim_has(d, ITS_MOD_UNI);
        its_sim_emit_act(d, ITS_SIM_ACT_RETURN);
        break;
    case ITS_OP_EXIT:
        its_sim_emit_act(d, ITS_SIM_ACT_EXIT);
        break;
    default:
        its_sim_emit_act(d, ITS_SIM_ACT_TRAP);
        break;
    }
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

/* A number for a parameter of `size` bytes. Nothing in a frame has one byte a lane: two alike do for two lanes. */
static bool take_literal(its_sim_decoder *d, uint64_t bits, uint32_t size, its_sim_slot *slot) {
    if (size != 1 && size != 2 && size != 4 && size != 8) {
        its_sim_refuse(d, NULL, "the simulator doesn't have calls with a number for a parameter of %u bytes",
                       (unsigned)size);
        return false;
    }
    if (size == 1) bits = (bits & 0xff) * 0x101;
    *slot = (its_sim_slot){its_sim_const_bits(d, bits, size == 1 ? 2 : size), size, true, false};
    return true;
}

/* Where a call's argument or result is: a .param or .local variable of the caller's stack, a register, or a literal. */
static bool take_slot(its_sim_decoder *d, const its_operand *operand, its_sim_slot *slot, uint32_t literal_size) {
    const its_symbol *symbol = operand->symbol;
    uint32_t size;
    switch (operand->kind) {
    case ITS_OPND_SYM:
        if (symbol->kind != ITS_SYM_VAR || (symbol->space != ITS_SPACE_PARAM && symbol->space != ITS_SPACE_LOCAL))
            break;
        if (its_sim_is_kernel_param(d, symbol) || !symbol->pass) break;
        *slot = (its_sim_slot){(uint32_t)(uintptr_t)symbol->pass - 1, (uint32_t)symbol->size, false, false};
        return true;
    case ITS_OPND_REG:
        *slot = (its_sim_slot){.in_reg = true};
        slot->offset = its_sim_wide_source(d, operand, (its_type)symbol->type, &size);
        slot->size = size;
        return true;
    case ITS_OPND_INT:
    case ITS_OPND_F32:
    case ITS_OPND_F64:
        return take_literal(d, operand->bits, literal_size, slot);
    case ITS_OPND_SINK:
        *slot = (its_sim_slot){its_sim_temp(d, 8), literal_size <= 8 ? literal_size : 8, true, false};
        return true;
    default:
        break;
    }
    its_sim_refuse(d, NULL, "the simulator doesn't have calls with an operand of this form");
    return false;
}

/* `formals`: what the callee or prototype says of them, for the size of literals; may be NULL. */
static const its_sim_slot *take_slots(its_sim_decoder *d, const its_operand *group, const its_params *formals,
                                      uint32_t *count) {
    *count = group ? group->count : 0;
    its_sim_slot *slots = ITS_NEW_ARRAY(d->arena, its_sim_slot, *count ? *count : 1);
    for (uint32_t i = 0; i < *count; i++) {
        uint32_t size = formals && i < formals->n ? (uint32_t)formals->items[i]->size : 0;
        if (formals && i < formals->n && formals->items[i]->space == ITS_SPACE_REG)
            size = its_sim_reg_size((its_type)formals->items[i]->type);
        its_operand operand = group->list[i];
        if (formals && i < formals->n) operand = its_literal_for(formals->items[i], operand);
        if (!take_slot(d, &operand, &slots[i], size)) break;
    }
    return slots;
}

typedef struct call_parts {
    const its_operand *results, *callee, *args, *prototype;
} call_parts;

/* call (results), callee, (args), prototype; everything but the callee may be missing. */
static call_parts split_call(const its_insn *insn) {
    call_parts parts = {NULL, NULL, NULL, NULL};
    for (uint32_t i = 0; i < insn->node.count; i++) {
        const its_operand *operand = &insn->ops[i];
        if (operand->kind == ITS_OPND_GROUP && !parts.callee)
            parts.results = operand;
        else if (operand->kind == ITS_OPND_GROUP)
            parts.args = operand;
        else if (!parts.callee)
            parts.callee = operand;
        else
            parts.prototype = operand;
    }
    return parts;
}

/* The parameter `va[]` of a varargs function, which can only be the last one. */
static bool has_open(const its_params *formals) {
    return formals->n && formals->items[formals->n - 1]->flags & ITS_SYM_UNSIZED;
}

/* Checks the call against the formal parameters of what it calls. */
static void check_slots(its_sim_decoder *d, const its_sim_slot *slots, uint32_t count, const its_params *formals,
                        const char *what, bool may_lack) {
    if (count != formals->n && !(may_lack && count == 0)) {
        its_sim_refuse(d, NULL, "the call has %u %ss, the function %u", (unsigned)count, what, (unsigned)formals->n);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t have = slots[i].size ? slots[i].size : 1, want = (uint32_t)its_param_bytes(formals->items[i]);
        bool open = i + 1 == count && has_open(formals) && !slots[i].in_reg;
        if (have != want && !open)
            its_sim_refuse(d, NULL, "%s %u of the call has %u bytes, the function's has %u", what, (unsigned)i + 1,
                           (unsigned)have, (unsigned)want);
    }
}

static void add_callee(its_sim_decoder *d, uint32_t func) {
    for (size_t i = d->callees.count; i-- > 0;)
        if (d->callees.items[i] == func) return;
    ITS_PUSH(&d->scratch, &d->callees, func);
}

static void emit_call(its_sim_decoder *d, const its_sim_call *call) {
    its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_CALL);
    op->list = (uint32_t)d->program->calls.count;
    if (d->refused) return;
    ITS_PUSH(d->arena, &d->program->calls, *call);
}

static void call_direct(its_sim_decoder *d, const call_parts *parts) {
    its_symbol *symbol = its_symbol_final(parts->callee->symbol);
    uintptr_t number = (uintptr_t)symbol->pass;
    const its_func *node = symbol->func;
    if (symbol->kind != ITS_SYM_FUNC || number == 0 || !node) {
        its_sim_refuse(d, "link the module that defines it", "nobody defines '%s'", symbol->name->text);
        return;
    }
    its_sim_call call = {.kind = ITS_SIM_CALL_FUNC, .func = (uint32_t)number - 1};
    call.args = take_slots(d, parts->args, &node->params, &call.n_args);
    call.results = take_slots(d, parts->results, &node->results, &call.n_results);
    if (!node->has_body) {
        call.kind = (uint8_t)its_sim_builtin_named(symbol->name->text);
        if (call.kind == ITS_SIM_CALL_FUNC)
            its_sim_refuse(d, "link the module that defines it", "nobody defines '%s'", symbol->name->text);
        else if (!its_sim_builtin_fits(&call))
            its_sim_refuse(d, NULL, "'%s' is declared with other parameters than it has", symbol->name->text);
    } else if (symbol->flags & ITS_SYM_ENTRY) {
        its_sim_refuse(d, NULL, "the simulator can't call the kernel '%s' from a kernel", symbol->name->text);
    } else {
        check_slots(d, call.args, call.n_args, &node->params, "argument", false);
        check_slots(d, call.results, call.n_results, &node->results, "result", true);
        if (!d->refused) add_callee(d, call.func);
    }
    emit_call(d, &call);
}

/* The formal parameters that a prototype, or the first function of a target list, says; false if it is neither. */
static bool find_prototype(const its_operand *operand, const its_params **params, const its_params **results) {
    if (operand && operand->kind == ITS_OPND_SYM && operand->symbol->node) {
        its_symbol *symbol = operand->symbol;
        if (symbol->kind == ITS_SYM_PROTO) {
            const its_proto *proto = (const its_proto *)symbol->node;
            *params = &proto->params;
            *results = &proto->results;
            return true;
        }
        const its_targets *targets = (const its_targets *)symbol->node;
        if (symbol->kind == ITS_SYM_TARGETS && targets->node.count && targets->ops[0].kind == ITS_OPND_SYM) {
            const its_func *first = its_symbol_final(targets->ops[0].symbol)->func;
            if (first) {
                *params = &first->params;
                *results = &first->results;
                return true;
            }
        }
    }
    return false;
}

static void call_indirect(its_sim_decoder *d, const call_parts *parts) {
    const its_params *params, *results;
    if (!find_prototype(parts->prototype, &params, &results)) {
        its_sim_refuse(d, NULL, "an indirect call needs a .callprototype or .calltargets");
        return;
    }
    its_sim_call call = {.kind = ITS_SIM_CALL_INDIRECT};
    call.address = its_sim_source(d, parts->callee, ITS_TYPE_B64);
    call.args = take_slots(d, parts->args, params, &call.n_args);
    call.results = take_slots(d, parts->results, results, &call.n_results);
    check_slots(d, call.args, call.n_args, params, "argument", false);
    check_slots(d, call.results, call.n_results, results, "result", true);
    d->func->calls_indirect = true;
    emit_call(d, &call);
}

void its_sim_decode_call(its_sim_decoder *d) {
    its_sim_has(d, ITS_MOD_UNI);
    call_parts parts = split_call(d->insn);
    if (parts.callee && parts.callee->kind == ITS_OPND_SYM)
        call_direct(d, &parts);
    else if (parts.callee && parts.callee->kind == ITS_OPND_REG)
        call_indirect(d, &parts);
    else
        its_sim_refuse_form(d);
}

/* -- varargs ------------------------------------------------------------------------------------------------------- */

static const its_params *formals_of(const call_parts *parts) {
    const its_params *params, *results;
    const its_operand *callee = parts->callee;
    if (callee && callee->kind == ITS_OPND_SYM && callee->symbol->kind == ITS_SYM_FUNC) {
        const its_func *func = its_symbol_final(callee->symbol)->func;
        return func ? &func->params : NULL;
    }
    return find_prototype(parts->prototype, &params, &results) ? params : NULL;
}

uint64_t its_sim_open_bytes(const its_insn *insn) {
    call_parts parts = split_call(insn);
    const its_params *formals = parts.args ? formals_of(&parts) : NULL;
    if (!formals || !has_open(formals) || parts.args->count != formals->n) return 0;
    const its_operand *last = &parts.args->list[formals->n - 1];
    return last->kind == ITS_OPND_SYM && last->symbol->kind == ITS_SYM_VAR ? last->symbol->size : 0;
}
