/* Moves, packs and unpacks; address conversions. */
#include "sim/decode.h"

#define H(name) ITS_SIM_##name

/* -- mov ----------------------------------------------------------------------------------------------------------- */

/* The type of an element if `count` of them make a value of `size` bytes. */
static its_type element_type(its_sim_decoder *d, uint32_t size, uint32_t count) {
    its_type type = count && size % count == 0 ? its_type_of_bytes(size / count) : ITS_TYPE_NONE;
    if (type != ITS_TYPE_NONE && type != ITS_TYPE_B128) return type;
    its_sim_refuse_form(d);
    return ITS_TYPE_B32;
}

static its_sim_handler packer(its_sim_decoder *d, uint32_t size, uint32_t count) {
    switch (size * 16 + count) {
    case 2 * 16 + 2:
        return H(PACK_8X2);
    case 4 * 16 + 2:
        return H(PACK_16);
    case 4 * 16 + 4:
        return H(PACK_8X4);
    case 8 * 16 + 2:
        return H(PACK_32);
    case 8 * 16 + 4:
        return H(PACK_16X4);
    case 16 * 16 + 2:
        return H(PACK_64);
    default:
        its_sim_refuse_form(d);
        return H(NO_HANDLER);
    }
}

/* mov.b64 d, {a, b} */
static void pack(its_sim_decoder *d, its_type type, const its_operand *from, uint32_t dst) {
    uint32_t size = its_sim_reg_size(type), part[4] = {0, 0, 0, 0};
    if (from->count > 4) {
        its_sim_refuse_form(d);
        return;
    }
    its_type element = element_type(d, size, from->count);
    for (uint32_t i = 0; i < from->count; i++) part[i] = its_sim_source(d, &from->list[i], element);
    if (size == 16 && from->count == 4) {
        uint32_t low = its_sim_temp(d, 8), high = its_sim_temp(d, 8);
        its_sim_emit2(d, H(PACK_32), low, 8, part[0], part[1]);
        its_sim_emit2(d, H(PACK_32), high, 8, part[2], part[3]);
        its_sim_emit2(d, H(PACK_64), dst, 16, low, high);
        return;
    }
    its_sim_emit3(d, packer(d, size, from->count), dst, size, part[0], part[1], part[2])->e = part[3];
}

static its_sim_handler unpacker(its_sim_decoder *d, uint32_t size, uint32_t count) {
    switch (size * 16 + count) {
    case 2 * 16 + 2:
        return H(UNPACK_8_16);
    case 4 * 16 + 4:
        return H(UNPACK_8_32);
    case 4 * 16 + 2:
        return H(UNPACK_16_32);
    case 8 * 16 + 4:
        return H(UNPACK_16_64);
    case 8 * 16 + 2:
        return H(UNPACK_32_64);
    case 16 * 16 + 2:
        return H(UNPACK_64_128);
    case 16 * 16 + 4:
        return H(UNPACK_32_128);
    default:
        its_sim_refuse_form(d);
        return H(NO_HANDLER);
    }
}

/* mov.b64 {a, b}, s */
static void unpack(its_sim_decoder *d, its_type type, const its_operand *to, uint32_t source) {
    uint32_t size = its_sim_reg_size(type);
    its_type element = element_type(d, size, to->count);
    its_sim_handler handler = unpacker(d, size, to->count);
    if (d->refused) return;
    uint32_t safe = its_sim_temp(d, size); /* the source may be a part of what is written */
    its_sim_emit_copy(d, safe, source, size);
    for (uint32_t i = 0; i < to->count; i++) {
        if (to->list[i].kind == ITS_OPND_SINK) continue;
        uint32_t dst = its_sim_target(d, &to->list[i], element);
        its_sim_emit1(d, handler, dst, its_sim_reg_size(element), safe)->mode = (uint16_t)i;
    }
}

/* mov.v2.f32 and vector registers as a whole: element by element, through temporaries since they may overlap. */
static void move_vector(its_sim_decoder *d, its_type type, const its_operand *to, const its_operand *from) {
    uint32_t temp[8], size = its_sim_reg_size(type);
    if (to->kind != ITS_OPND_VEC || from->kind != ITS_OPND_VEC || to->count != from->count || to->count > 8) {
        its_sim_refuse_form(d);
        return;
    }
    for (uint32_t i = 0; i < to->count; i++) {
        temp[i] = its_sim_temp(d, size);
        its_sim_emit_copy(d, temp[i], its_sim_source(d, &from->list[i], type), size);
    }
    for (uint32_t i = 0; i < to->count; i++)
        if (to->list[i].kind != ITS_OPND_SINK)
            its_sim_emit_copy(d, its_sim_target(d, &to->list[i], type), temp[i], size);
}

static void move_predicate(its_sim_decoder *d) {
    bool inverted;
    uint32_t a = its_sim_predicate(d, its_sim_operand(d, 1), &inverted);
    its_sim_emit1(d, H(PRED_COPY), its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_PRED), 0, a)->mode = inverted;
}

void its_sim_decode_mov(its_sim_decoder *d) {
    its_type type = its_sim_type(d, 0);
    const its_operand *to = its_sim_operand(d, 0), *from = its_sim_operand(d, 1);
    if (d->m->vec > 1) its_sim_tick_class(d, ITS_MODCLASS_VEC);
    if (type == ITS_TYPE_NONE)
        its_sim_refuse_form(d);
    else if (d->m->vec > 1)
        move_vector(d, type, to, from);
    else if (type == ITS_TYPE_PRED)
        move_predicate(d);
    else if (from->kind == ITS_OPND_VEC && to->kind == ITS_OPND_VEC)
        its_sim_refuse_form(d);
    else if (from->kind == ITS_OPND_VEC)
        pack(d, type, from, its_sim_target(d, to, type));
    else if (to->kind == ITS_OPND_VEC)
        unpack(d, type, to, its_sim_source(d, from, type));
    else
        its_sim_emit_copy(d, its_sim_target(d, to, type), its_sim_source(d, from, type), its_sim_reg_size(type));
}

/* -- address spaces ------------------------------------------------------------------------------------------------ */

/* What is added to an address of the space to make it generic; false for spaces that have no window. */
static bool window_of(its_space space, uint64_t *window) {
    switch (space) {
    case ITS_SPACE_GLOBAL:
    case ITS_SPACE_CONST:
        *window = 0;
        return true;
    case ITS_SPACE_SHARED:
        *window = ITS_SIM_WINDOW_SHARED;
        return true;
    case ITS_SPACE_LOCAL:
        *window = ITS_SIM_WINDOW_LOCAL;
        return true;
    case ITS_SPACE_PARAM:
        *window = ITS_SIM_WINDOW_PARAM; /* the kernel's, in any function */
        return true;
    default:
        return false;
    }
}

static void convert_address(its_sim_decoder *d) {
    its_space space = (its_space)d->m->space;
    its_sim_tick_class(d, ITS_MODCLASS_SPACE);
    its_type type = its_sim_type(d, 0);
    uint64_t window;
    if (!window_of(space, &window) || its_type_size(type) != 8) {
        its_sim_refuse_form(d);
        return;
    }
    if (its_sim_has(d, ITS_MOD_TO)) window = 0 - window;
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), type), dst = its_sim_target(d, its_sim_operand(d, 0), type);
    if (window == 0)
        its_sim_emit_copy(d, dst, a, 8);
    else
        its_sim_emit2(d, H(ADD_64), dst, 8, a, its_sim_const_bits(d, window, 8));
}

static void is_in_space(its_sim_decoder *d) {
    its_space space = (its_space)d->m->space;
    its_sim_tick_class(d, ITS_MODCLASS_SPACE);
    uint64_t window;
    if (!window_of(space, &window)) {
        its_sim_refuse_form(d);
        return;
    }
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), ITS_TYPE_B64);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_PRED);
    if (window == 0) {
        its_sim_op *op = its_sim_emit_act(d, ITS_SIM_ACT_IS_CONST);
        op->a = a;
        op->dst = dst;
        op->mode = space == ITS_SPACE_CONST;
        return;
    }
    uint32_t top = its_sim_temp(d, 8);
    its_sim_emit2(d, H(SHR_U64), top, 8, a, its_sim_const_bits(d, ITS_SIM_WINDOW_SHIFT, 4));
    its_sim_emit2(d, H(EQ_64), dst, 0, top, its_sim_const_bits(d, window >> ITS_SIM_WINDOW_SHIFT, 8));
}

void its_sim_decode_address(its_sim_decoder *d) {
    if (d->m->op == ITS_OP_CVTA)
        convert_address(d);
    else
        is_in_space(d);
}
