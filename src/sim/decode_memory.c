/* Loads, stores, atomics, fences and hints. */
#include "sim/decode.h"
#include "sim/modes.h"
#include "sim/race.h"

/* -- addresses ----------------------------------------------------------------------------------------------------- */

/*
 * Fills in where an operation finds its address: a register and an offset. Addresses that are known are constants of
 * the frame, so they are registers too.
 */
void its_sim_take_address(its_sim_decoder *d, its_sim_op *op, const its_operand *operand) {
    if (operand->kind != ITS_OPND_ADDR || operand->count != 1) {
        its_sim_refuse(d, NULL, "the simulator doesn't have '%s' with an address of this form", d->insn->name->text);
        return;
    }
    const its_operand *base = &operand->list[0];
    its_operand plain = *base;
    uint32_t size;
    if (base->kind == ITS_OPND_REG) {
        plain.offset = 0;
        op->imm = base->offset;
    }
    op->a = its_sim_wide_source(d, &plain, ITS_TYPE_B64, &size);
    if (size == 4) op->flags |= ITS_SIM_ADDRESS32;
    bool small = op->space == ITS_SPACE_SHARED || op->space == ITS_SPACE_LOCAL || op->space == ITS_SPACE_PARAM;
    if (size != 8 && !(size == 4 && small)) its_sim_refuse(d, NULL, "'%s' needs a 64-bit address", d->insn->name->text);
}

/* Parameters of a kernel are a space of their own; those of functions and of calls lie on the stack. */
static bool is_on_stack(its_sim_decoder *d, const its_operand *address) {
    if (its_sim_has(d, ITS_MOD_PARAM_ENTRY)) return false;
    if (!d->func->is_entry || its_sim_has(d, ITS_MOD_PARAM_FUNC)) return true;
    if (address->kind != ITS_OPND_ADDR || address->count == 0 || address->list[0].kind != ITS_OPND_SYM) return false;
    return !its_sim_is_kernel_param(d, address->list[0].symbol);
}

/* The state space of the instruction. Constant memory is global memory that is read only. */
static void take_space(its_sim_decoder *d, its_sim_op *op, const its_operand *address) {
    its_sim_tick_class(d, ITS_MODCLASS_SPACE);
    op->space = d->m->space;
    if (op->space == ITS_SPACE_CONST) op->space = ITS_SPACE_GLOBAL;
    if (op->space == ITS_SPACE_PARAM && is_on_stack(d, address)) op->space = ITS_SPACE_LOCAL;
    if (op->space == ITS_SPACE_TEX) its_sim_refuse_form(d);
}

/* Without one it is that of the whole system, as for .volatile; `usual` if the instruction has another. */
static void take_scope(its_sim_decoder *d, its_sim_op *op, its_race_scope usual) {
    its_sim_tick_class(d, ITS_MODCLASS_SCOPE);
    op->scope = (uint8_t)usual;
    if (its_sim_has(d, ITS_MOD_CTA)) op->scope = ITS_RACE_CTA;
    if (its_sim_has(d, ITS_MOD_CLUSTER) || its_sim_has(d, ITS_MOD_GPU) || its_sim_has(d, ITS_MOD_GL))
        op->scope = ITS_RACE_GPU;
    if (its_sim_has(d, ITS_MOD_SYS)) op->scope = ITS_RACE_SYS;
}

static void take_order(its_sim_decoder *d, its_sim_op *op) {
    take_scope(d, op, ITS_RACE_SYS);
    switch (its_sim_first(d, ITS_MODCLASS_SEMANTICS)) {
    case ITS_MOD_UNKNOWN:
    case ITS_MOD_WEAK:
        break;
    case ITS_MOD_ACQUIRE:
        op->flags |= ITS_SIM_STRONG | ITS_SIM_ACQUIRE;
        break;
    case ITS_MOD_RELEASE:
        op->flags |= ITS_SIM_STRONG | ITS_SIM_RELEASE;
        break;
    case ITS_MOD_VOLATILE:
    case ITS_MOD_MMIO:
    case ITS_MOD_RELAXED:
        op->flags |= ITS_SIM_STRONG;
        break;
    default:
        its_sim_refuse_form(d);
        break;
    }
    /* .mmio.relaxed is two of the class */
    if (its_sim_has(d, ITS_MOD_MMIO)) its_sim_has(d, ITS_MOD_RELAXED);
}

/* -- ld, st -------------------------------------------------------------------------------------------------------- */

/* A register declared as a vector, named as a whole. */
static bool is_vector_register(const its_operand *operand) {
    return operand->kind == ITS_OPND_REG && operand->symbol->vec > 1 && !operand->suffix;
}

/* Where element `index` of the data is; its register's size in `*size`. */
static uint32_t take_element(its_sim_decoder *d, const its_operand *operand, unsigned index, its_type type, bool store,
                             uint32_t *size) {
    *size = its_sim_reg_size(type);
    if (is_vector_register(operand)) {
        *size = its_sim_reg_size((its_type)operand->symbol->type);
        return its_sim_register(d, operand->symbol) + index * *size * 32;
    }
    const its_operand *element = operand->kind == ITS_OPND_VEC ? &operand->list[index] : operand;
    if (store) return its_sim_wide_source(d, element, type, size);
    return element->kind == ITS_OPND_SINK ? ITS_SIM_NOWHERE : its_sim_wide_target(d, element, type, size);
}

/* What is loaded into or stored from: one register or a vector; the place of each goes to op->list. */
static void take_data(its_sim_decoder *d, its_sim_op *op, const its_operand *operand, its_type type, bool store) {
    uint32_t count = operand->kind == ITS_OPND_VEC ? operand->count : 1, size = 0;
    if (is_vector_register(operand)) count = operand->symbol->vec;
    if (count != d->m->vec) {
        its_sim_refuse(d, NULL, "'%s' has %u elements but is given %u registers", d->insn->name->text,
                       (unsigned)d->m->vec, (unsigned)count);
        return;
    }
    op->list = (uint32_t)d->program->lists.count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t this_size, at = take_element(d, operand, i, type, store, &this_size);
        if (this_size < its_sim_reg_size(type))
            its_sim_refuse(d, NULL, "'%s' needs registers of %u bits", d->insn->name->text,
                           (unsigned)its_type_size(type) * 8);
        if (at != ITS_SIM_NOWHERE) {
            if (size && this_size != size)
                its_sim_refuse(d, NULL, "'%s' is given registers of several sizes", d->insn->name->text);
            size = this_size;
        }
        ITS_PUSH(d->arena, &d->program->lists, at);
    }
    op->vec = (uint8_t)count;
    op->size = (uint8_t)its_type_size(type);
    op->reg_size = (uint8_t)(size ? size : its_sim_reg_size(type));
    if (store)
        op->b = d->program->lists.items[op->list];
    else
        op->dst = d->program->lists.items[op->list];
    if (count * op->size > 32) its_sim_refuse_form(d);
}

/* A load from a parameter of the kernel at a place that is known. */
static bool is_param_load(its_sim_decoder *d, const its_operand *address, its_type type, its_sim_op *op) {
    if (address->kind != ITS_OPND_ADDR || address->count != 1) return false;
    const its_operand *base = &address->list[0];
    if (base->kind != ITS_OPND_SYM || !its_sim_is_kernel_param(d, base->symbol)) return false;
    uint64_t at = its_sim_param_offset(base->symbol) + (uint64_t)base->offset;
    uint64_t bytes = (uint64_t)its_type_size(type) * d->m->vec;
    if (at > d->func->entry.param_size || d->func->entry.param_size - at < bytes)
        its_sim_refuse(d, NULL, "'%s' reads beyond the kernel's parameters", d->insn->name->text);
    op->imm = (int64_t)at;
    return true;
}

static void append(its_sim_decoder *d, const its_sim_op *filled, its_sim_handler handler) {
    its_sim_op *op = its_sim_emit_act(d, handler);
    its_sim_op copy = *filled;
    copy.guard = op->guard;
    copy.guard_xor = op->guard_xor;
    copy.handler = op->handler;
    copy.kind = op->kind;
    *op = copy;
}

static void load(its_sim_decoder *d) {
    its_sim_op op = {0};
    its_type type = its_sim_type(d, 0);
    take_space(d, &op, its_sim_operand(d, 1));
    take_order(d, &op);
    its_sim_tick_class(d, ITS_MODCLASS_CACHE);
    its_sim_tick_class(d, ITS_MODCLASS_VEC);
    if (its_sim_is_signed(type)) op.flags |= ITS_SIM_SIGNED;
    const its_operand *address = its_sim_operand(d, 1);
    take_data(d, &op, its_sim_operand(d, 0), type, false);
    if (d->m->space == ITS_SPACE_PARAM && is_param_load(d, address, type, &op)) {
        append(d, &op, ITS_SIM_ACT_LOAD_PARAM);
        return;
    }
    its_sim_take_address(d, &op, address);
    append(d, &op, ITS_SIM_ACT_LOAD);
}

static void store(its_sim_decoder *d) {
    if (its_mnemonic_has(d->m, ITS_MOD_ASYNC)) {
        its_sim_decode_store_async(d);
        return;
    }
    its_sim_op op = {0};
    its_type type = its_sim_type(d, 0);
    take_space(d, &op, its_sim_operand(d, 0));
    take_order(d, &op);
    its_sim_tick_class(d, ITS_MODCLASS_CACHE);
    its_sim_tick_class(d, ITS_MODCLASS_VEC);
    take_data(d, &op, its_sim_operand(d, 1), type, true);
    its_sim_take_address(d, &op, its_sim_operand(d, 0));
    append(d, &op, ITS_SIM_ACT_STORE);
}

void its_sim_decode_memory(its_sim_decoder *d) {
    if (d->m->op == ITS_OP_ST)
        store(d);
    else
        load(d);
}

/* -- atom, red ----------------------------------------------------------------------------------------------------- */

static bool atomic_operation(its_mod mod, its_sim_atomic *operation) {
    switch (mod) {
    case ITS_MOD_ADD:
        *operation = ITS_ATOM_ADD;
        return true;
    case ITS_MOD_MIN:
        *operation = ITS_ATOM_MIN;
        return true;
    case ITS_MOD_MAX:
        *operation = ITS_ATOM_MAX;
        return true;
    case ITS_MOD_AND:
        *operation = ITS_ATOM_AND;
        return true;
    case ITS_MOD_OR:
        *operation = ITS_ATOM_OR;
        return true;
    case ITS_MOD_XOR:
        *operation = ITS_ATOM_XOR;
        return true;
    case ITS_MOD_EXCH:
        *operation = ITS_ATOM_EXCH;
        return true;
    case ITS_MOD_CAS:
        *operation = ITS_ATOM_CAS;
        return true;
    case ITS_MOD_INC:
        *operation = ITS_ATOM_INC;
        return true;
    case ITS_MOD_DEC:
        *operation = ITS_ATOM_DEC;
        return true;
    default:
        return false;
    }
}

static bool type_fits(its_sim_atomic operation, its_type type) {
    uint32_t size = its_type_size(type);
    bool integer = its_type_kind_of(type) != ITS_KIND_FLOAT && (size == 4 || size == 8);
    switch (operation) {
    case ITS_ATOM_ADD:
        return integer || its_type_kind_of(type) == ITS_KIND_FLOAT;
    case ITS_ATOM_MIN:
    case ITS_ATOM_MAX:
        return integer || its_sim_is_half(type);
    case ITS_ATOM_AND:
    case ITS_ATOM_OR:
    case ITS_ATOM_XOR:
        return integer;
    case ITS_ATOM_EXCH:
        return size == 4 || size == 8 || size == 16;
    case ITS_ATOM_CAS:
        return size == 2 || size == 4 || size == 8 || size == 16;
    default:
        return integer && size == 4;
    }
}

/* The registers of an atomic: op->list has those of the old values (`to` may be NULL), then those of the new ones. */
static void take_atomic_data(its_sim_decoder *d, its_sim_op *op, const its_operand *to, const its_operand *from,
                             its_type type) {
    unsigned count = from->kind == ITS_OPND_VEC ? from->count : 1;
    bool fits = !to || to->kind == ITS_OPND_SINK || (to->kind == ITS_OPND_VEC ? to->count : 1u) == count;
    op->vec = d->m->vec;
    op->list = (uint32_t)d->program->lists.count;
    if (count != d->m->vec || !fits ||
        (to && (to->kind == ITS_OPND_VEC) != (from->kind == ITS_OPND_VEC) && to->kind != ITS_OPND_SINK)) {
        its_sim_refuse(d, NULL, "'%s' has %u elements but is given others", d->insn->name->text, (unsigned)d->m->vec);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        const its_operand *one = to && to->kind == ITS_OPND_VEC ? &to->list[i] : to;
        uint32_t at = ITS_SIM_NOWHERE;
        if (one && one->kind != ITS_OPND_SINK) at = its_sim_target(d, one, type);
        ITS_PUSH(d->arena, &d->program->lists, at);
    }
    for (unsigned i = 0; i < count; i++) {
        const its_operand *one = from->kind == ITS_OPND_VEC ? &from->list[i] : from;
        uint32_t at = its_sim_source(d, one, type);
        ITS_PUSH(d->arena, &d->program->lists, at);
    }
    op->dst = d->program->lists.items[op->list];
    op->b = d->program->lists.items[op->list + count];
}

void its_sim_decode_atom(its_sim_decoder *d) {
    if (its_mnemonic_has(d->m, ITS_MOD_ASYNC)) {
        its_sim_decode_store_async(d);
        return;
    }
    its_sim_op op = {.dst = ITS_SIM_NOWHERE};
    its_type type = its_sim_type(d, 0);
    its_sim_atomic operation = ITS_ATOM_ADD;
    unsigned next = d->m->op == ITS_OP_ATOM ? 1 : 0;
    take_space(d, &op, its_sim_operand(d, next));
    if (op.space != ITS_SPACE_NONE && op.space != ITS_SPACE_GLOBAL && op.space != ITS_SPACE_SHARED)
        its_sim_refuse_form(d);
    if (!atomic_operation(its_sim_first(d, ITS_MODCLASS_OPERATION), &operation) || !type_fits(operation, type))
        its_sim_refuse_form(d);
    /* every atomic is sequentially consistent here, but for whoever looks for races */
    if (its_sim_has(d, ITS_MOD_ACQUIRE) || its_sim_has(d, ITS_MOD_ACQ_REL)) op.flags |= ITS_SIM_ACQUIRE;
    if (its_sim_has(d, ITS_MOD_RELEASE) || its_sim_has(d, ITS_MOD_ACQ_REL)) op.flags |= ITS_SIM_RELEASE;
    its_sim_tick_class(d, ITS_MODCLASS_SEMANTICS);
    take_scope(d, &op, ITS_RACE_GPU);
    its_sim_tick_class(d, ITS_MODCLASS_CACHE);
    its_sim_has(d, ITS_MOD_NOFTZ);
    its_sim_tick_class(d, ITS_MODCLASS_VEC);
    its_sim_take_address(d, &op, its_sim_operand(d, next));
    take_atomic_data(d, &op, next ? its_sim_operand(d, 0) : NULL, its_sim_operand(d, next + 1), type);
    if (operation == ITS_ATOM_CAS) op.c = its_sim_source(d, its_sim_operand(d, next + 2), type);
    op.mode = (uint16_t)operation;
    op.type = (uint8_t)type;
    op.size = op.reg_size = (uint8_t)its_type_size(type);
    if (op.vec > 1 && (its_type_kind_of(type) != ITS_KIND_FLOAT || op.vec * op.size > 16)) its_sim_refuse_form(d);
    append(d, &op, ITS_SIM_ACT_ATOM);
}

/* -- fences and hints ---------------------------------------------------------------------------------------------- */

/* All PEs see one coherent memory, and no proxy has a cache of its own: every fence is the strongest one. */
void its_sim_decode_fence(its_sim_decoder *d) {
    its_sim_op fence = {0};
    take_scope(d, &fence, ITS_RACE_SYS);
    its_sim_tick_all(d);
    its_sim_emit_act(d, ITS_SIM_ACT_FENCE)->scope = fence.scope;
}

void its_sim_decode_hint(its_sim_decoder *d) {
    switch (d->m->op) {
    case ITS_OP_NANOSLEEP:
        its_sim_type(d, 0);
        uint32_t time = its_sim_source(d, its_sim_operand(d, 0), ITS_TYPE_U32);
        its_sim_emit_act(d, ITS_SIM_ACT_NANOSLEEP)->a = time;
        break;
    case ITS_OP_CREATEPOLICY: {
        its_sim_tick_all(d);
        uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_B64);
        its_sim_emit_copy(d, dst, its_sim_const_bits(d, 0, 8), 8);
        break;
    }
    case ITS_OP_DISCARD:
        its_sim_tick_all(d);
        its_sim_emit_at(d, ITS_SIM_ACT_DISCARD, 0, (its_space)d->m->space);
        break;
    default:
        its_sim_tick_all(d);
        its_sim_emit_act(d, ITS_SIM_ACT_PREFETCH);
        break;
    }
}
