/* Integer arithmetic. */
#include "sim/decode.h"

#define H(name) ITS_SIM_##name
#define BY_INT(d, type, name) \
    its_sim_by_int(d, type, H(name##_U16), H(name##_S16), H(name##_U32), H(name##_S32), H(name##_U64), H(name##_S64))
#define BY_WIDTH(d, type, name) its_sim_by_width(d, type, H(name##_16), H(name##_32), H(name##_64))

/* The instruction's operands with one type: d, a, b, c. */
typedef struct operands {
    its_type type;
    uint32_t size, dst, a, b, c;
} operands;

static operands take(its_sim_decoder *d, unsigned sources) {
    operands o = {.type = its_sim_type(d, 0)};
    o.size = its_sim_reg_size(o.type);
    if (sources > 0) o.a = its_sim_source(d, its_sim_operand(d, 1), o.type);
    if (sources > 1) o.b = its_sim_source(d, its_sim_operand(d, 2), o.type);
    if (sources > 2) o.c = its_sim_source(d, its_sim_operand(d, 3), o.type);
    o.dst = its_sim_target(d, its_sim_operand(d, 0), o.type);
    return o;
}

static bool is_packed(its_type type, its_sim_decoder *d) {
    its_mod mod = its_sim_type_mod(d, 0);
    return type == ITS_TYPE_B32 && (mod == ITS_MOD_U16X2 || mod == ITS_MOD_S16X2);
}

/* -- carries ------------------------------------------------------------------------------------------------------- */

/* dst = a + b (+ carry), or a - b (- borrow); with `.cc` the carry out goes to the flag. */
static void add_with_carry(its_sim_decoder *d, const operands *o, bool subtract, bool carry_in) {
    its_type t = o->type;
    if (o->size != 4 && o->size != 8) its_sim_refuse_form(d);
    uint32_t in = carry_in ? ITS_SIM_CARRY : its_sim_const_bits(d, subtract, 0), out = its_sim_temp(d, 0);
    its_sim_handler sum = subtract ? its_sim_by_width(d, t, H(NO_HANDLER), H(SUBC_32), H(SUBC_64))
                                   : its_sim_by_width(d, t, H(NO_HANDLER), H(ADDC_32), H(ADDC_64));
    its_sim_handler carry = subtract ? its_sim_by_width(d, t, H(NO_HANDLER), H(NO_BORROW_32), H(NO_BORROW_64))
                                     : its_sim_by_width(d, t, H(NO_HANDLER), H(CARRY_32), H(CARRY_64));
    bool sets = its_sim_has(d, ITS_MOD_CC);
    if (sets) its_sim_emit3(d, carry, out, 0, o->a, o->b, in);
    its_sim_emit3(d, sum, o->dst, o->size, o->a, o->b, in);
    if (sets) its_sim_emit_copy(d, ITS_SIM_CARRY, out, 0);
}

/* -- sums and products --------------------------------------------------------------------------------------------- */

static void add(its_sim_decoder *d, bool subtract) {
    operands o = take(d, 2);
    if (its_sim_has(d, ITS_MOD_CC)) {
        add_with_carry(d, &o, subtract, false);
    } else if (is_packed(o.type, d)) {
        if (subtract) its_sim_refuse_form(d);
        its_sim_emit2(d, H(ADD_16X2), o.dst, 4, o.a, o.b);
    } else if (its_sim_has(d, ITS_MOD_SAT)) {
        if (o.type != ITS_TYPE_S32) its_sim_refuse_form(d);
        its_sim_emit2(d, subtract ? H(SUB_SAT_S32) : H(ADD_SAT_S32), o.dst, 4, o.a, o.b);
    } else {
        its_sim_handler handler = subtract ? BY_WIDTH(d, o.type, SUB) : BY_WIDTH(d, o.type, ADD);
        its_sim_emit2(d, handler, o.dst, o.size, o.a, o.b);
    }
}

static its_sim_handler product(its_sim_decoder *d, its_type type) {
    if (its_sim_has(d, ITS_MOD_HI)) return BY_INT(d, type, MUL_HI);
    if (!its_sim_has(d, ITS_MOD_LO)) its_sim_refuse_form(d);
    return BY_WIDTH(d, type, MUL_LO);
}

static void multiply_wide(its_sim_decoder *d, bool and_add) {
    its_type type = its_sim_type(d, 0), wide = its_type_doubled(type);
    if (wide == ITS_TYPE_NONE) {
        its_sim_refuse_form(d);
        return;
    }
    uint32_t size = its_sim_reg_size(wide);
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), type), b = its_sim_source(d, its_sim_operand(d, 2), type);
    uint32_t c = and_add ? its_sim_source(d, its_sim_operand(d, 3), wide) : 0;
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), wide);
    if (and_add)
        its_sim_emit3(d,
                      its_sim_by_int(d, type, H(MAD_WIDE_U16), H(MAD_WIDE_S16), H(MAD_WIDE_U32), H(MAD_WIDE_S32),
                                     H(NO_HANDLER), H(NO_HANDLER)),
                      dst, size, a, b, c);
    else
        its_sim_emit2(d,
                      its_sim_by_int(d, type, H(MUL_WIDE_U16), H(MUL_WIDE_S16), H(MUL_WIDE_U32), H(MUL_WIDE_S32),
                                     H(NO_HANDLER), H(NO_HANDLER)),
                      dst, size, a, b);
}

static void multiply(its_sim_decoder *d) {
    if (its_sim_has(d, ITS_MOD_WIDE)) {
        multiply_wide(d, false);
        return;
    }
    operands o = take(d, 2);
    its_sim_emit2(d, product(d, o.type), o.dst, o.size, o.a, o.b);
}

/* mad, madc: a product and a sum; the product goes to a temporary unless one handler does both. */
static void multiply_add(its_sim_decoder *d, bool carry_in) {
    if (its_sim_has(d, ITS_MOD_WIDE)) {
        multiply_wide(d, true);
        return;
    }
    operands o = take(d, 3);
    bool carries = carry_in || its_sim_has(d, ITS_MOD_CC), saturates = its_sim_has(d, ITS_MOD_SAT);
    if (!carries && !saturates && its_sim_has(d, ITS_MOD_LO)) {
        its_sim_emit3(d, BY_WIDTH(d, o.type, MAD_LO), o.dst, o.size, o.a, o.b, o.c);
        return;
    }
    uint32_t part = its_sim_temp(d, o.size);
    its_sim_emit2(d, product(d, o.type), part, o.size, o.a, o.b);
    operands sum = o;
    sum.a = part;
    sum.b = o.c;
    if (carries) {
        add_with_carry(d, &sum, false, carry_in);
    } else if (saturates) {
        if (o.type != ITS_TYPE_S32 || !its_sim_has(d, ITS_MOD_HI)) its_sim_refuse_form(d);
        its_sim_emit2(d, H(ADD_SAT_S32), o.dst, 4, part, o.c);
    } else {
        its_sim_emit2(d, BY_WIDTH(d, o.type, ADD), o.dst, o.size, part, o.c);
    }
}

static void multiply24(its_sim_decoder *d, bool and_add) {
    operands o = take(d, and_add ? 3 : 2);
    bool high = its_sim_has(d, ITS_MOD_HI), is_signed = o.type == ITS_TYPE_S32, saturates = its_sim_has(d, ITS_MOD_SAT);
    if (o.size != 4 || high == its_sim_has(d, ITS_MOD_LO)) its_sim_refuse_form(d);
    its_sim_handler handler =
        high ? (is_signed ? H(MUL24_HI_S) : H(MUL24_HI_U)) : (is_signed ? H(MUL24_LO_S) : H(MUL24_LO_U));
    uint32_t part = and_add ? its_sim_temp(d, 4) : o.dst;
    its_sim_emit2(d, handler, part, 4, o.a, o.b);
    if (saturates && !(and_add && high && is_signed)) its_sim_refuse_form(d);
    if (and_add) its_sim_emit2(d, saturates ? H(ADD_SAT_S32) : H(ADD_32), o.dst, 4, part, o.c);
}

/* -- minimum, maximum, bits ---------------------------------------------------------------------------------------- */

static void min_max(its_sim_decoder *d, bool max) {
    operands o = take(d, 2);
    bool relu = its_sim_has(d, ITS_MOD_RELU);
    if (is_packed(o.type, d)) {
        bool is_signed = its_sim_type_mod(d, 0) == ITS_MOD_S16X2;
        its_sim_handler handler =
            max ? (is_signed ? H(MAX_S16X2) : H(MAX_U16X2)) : (is_signed ? H(MIN_S16X2) : H(MIN_U16X2));
        its_sim_emit2(d, handler, o.dst, 4, o.a, o.b);
        if (relu) its_sim_emit2(d, H(MAX_S16X2), o.dst, 4, o.dst, its_sim_const_bits(d, 0, 4));
        return;
    }
    its_sim_handler handler = max ? BY_INT(d, o.type, MAX) : BY_INT(d, o.type, MIN);
    its_sim_emit2(d, handler, o.dst, o.size, o.a, o.b);
    if (!relu) return;
    if (o.type != ITS_TYPE_S32) its_sim_refuse_form(d);
    its_sim_emit2(d, H(MAX_S32), o.dst, 4, o.dst, its_sim_const_bits(d, 0, 4));
}

static void one_source(its_sim_decoder *d, its_sim_handler h16, its_sim_handler h32, its_sim_handler h64) {
    operands o = take(d, 1);
    its_sim_emit1(d, its_sim_by_width(d, o.type, h16, h32, h64), o.dst, o.size, o.a);
}

/* popc, clz, bfind: a 32-bit result. */
static its_sim_op *count_bits(its_sim_decoder *d, its_sim_handler u32, its_sim_handler s32, its_sim_handler u64,
                              its_sim_handler s64) {
    its_type type = its_sim_type(d, 0);
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), type);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_U32);
    its_sim_handler handler = its_sim_by_int(d, type, H(NO_HANDLER), H(NO_HANDLER), u32, s32, u64, s64);
    return its_sim_emit1(d, handler, dst, 4, a);
}

static void bit_field_extract(its_sim_decoder *d) {
    its_type type = its_sim_type(d, 0);
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), type);
    uint32_t b = its_sim_source(d, its_sim_operand(d, 2), ITS_TYPE_U32);
    uint32_t c = its_sim_source(d, its_sim_operand(d, 3), ITS_TYPE_U32);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), type);
    its_sim_handler handler =
        its_sim_by_int(d, type, H(NO_HANDLER), H(NO_HANDLER), H(BFE_U32), H(BFE_S32), H(BFE_U64), H(BFE_S64));
    its_sim_emit3(d, handler, dst, its_sim_reg_size(type), a, b, c);
}

static void bit_field_insert(its_sim_decoder *d) {
    its_type type = its_sim_type(d, 0);
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), type), b = its_sim_source(d, its_sim_operand(d, 2), type);
    uint32_t c = its_sim_source(d, its_sim_operand(d, 3), ITS_TYPE_U32);
    uint32_t e = its_sim_source(d, its_sim_operand(d, 4), ITS_TYPE_U32);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), type);
    its_sim_handler handler = its_sim_by_width(d, type, H(NO_HANDLER), H(BFI_32), H(BFI_64));
    its_sim_emit3(d, handler, dst, its_sim_reg_size(type), a, b, c)->e = e;
}

/* d = f(a, b[, c]), all of 32 bits whatever the type says. */
static its_sim_op *words(its_sim_decoder *d, its_sim_handler handler, unsigned sources) {
    uint32_t source[3] = {0, 0, 0};
    for (unsigned i = 0; i < sources; i++) source[i] = its_sim_source(d, its_sim_operand(d, i + 1), ITS_TYPE_B32);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_B32);
    return its_sim_emit3(d, handler, dst, 4, source[0], source[1], source[2]);
}

static void bit_mask(its_sim_decoder *d) {
    its_sim_type(d, 0);
    bool wrap = its_sim_has(d, ITS_MOD_WRAP);
    if (!wrap && !its_sim_has(d, ITS_MOD_CLAMP)) its_sim_refuse_form(d);
    words(d, wrap ? H(BMSK_WRAP) : H(BMSK_CLAMP), 2);
}

static void extend(its_sim_decoder *d) {
    unsigned mode = its_sim_is_signed(its_sim_type(d, 0)) ? 2 : 0;
    if (its_sim_has(d, ITS_MOD_WRAP))
        mode |= 1;
    else if (!its_sim_has(d, ITS_MOD_CLAMP))
        its_sim_refuse_form(d);
    words(d, H(SZEXT), 2)->mode = (uint16_t)mode;
}

static void dot_product(its_sim_decoder *d, bool halves) {
    unsigned mode = its_sim_is_signed(its_sim_type(d, 0)) ? 1 : 0;
    if (its_sim_is_signed(its_sim_type(d, 1))) mode |= 2;
    if (halves && its_sim_has(d, ITS_MOD_HI))
        mode |= 4;
    else if (halves && !its_sim_has(d, ITS_MOD_LO))
        its_sim_refuse_form(d);
    words(d, halves ? H(DP2A) : H(DP4A), 3)->mode = (uint16_t)mode;
}

static void divide(its_sim_decoder *d, bool remainder) {
    operands o = take(d, 2);
    its_sim_emit2(d, remainder ? BY_INT(d, o.type, REM) : BY_INT(d, o.type, DIV), o.dst, o.size, o.a, o.b);
}

void its_sim_decode_int(its_sim_decoder *d) {
    operands o;
    switch (d->m->op) {
    case ITS_OP_ADD:
        add(d, false);
        break;
    case ITS_OP_SUB:
        add(d, true);
        break;
    case ITS_OP_ADDC:
    case ITS_OP_SUBC:
        o = take(d, 2);
        add_with_carry(d, &o, d->m->op == ITS_OP_SUBC, true);
        break;
    case ITS_OP_MUL:
        multiply(d);
        break;
    case ITS_OP_MAD:
        multiply_add(d, false);
        break;
    case ITS_OP_MADC:
        multiply_add(d, true);
        break;
    case ITS_OP_MUL24:
        multiply24(d, false);
        break;
    case ITS_OP_MAD24:
        multiply24(d, true);
        break;
    case ITS_OP_SAD:
        o = take(d, 3);
        its_sim_emit3(d, BY_INT(d, o.type, SAD), o.dst, o.size, o.a, o.b, o.c);
        break;
    case ITS_OP_DIV:
        divide(d, false);
        break;
    case ITS_OP_REM:
        divide(d, true);
        break;
    case ITS_OP_ABS:
        one_source(d, H(ABS_16), H(ABS_32), H(ABS_64));
        break;
    case ITS_OP_NEG:
        one_source(d, H(NEG_16), H(NEG_32), H(NEG_64));
        break;
    case ITS_OP_MIN:
        min_max(d, false);
        break;
    case ITS_OP_MAX:
        min_max(d, true);
        break;
    case ITS_OP_POPC:
        count_bits(d, H(POPC_32), H(NO_HANDLER), H(POPC_64), H(NO_HANDLER));
        break;
    case ITS_OP_CLZ:
        count_bits(d, H(CLZ_32), H(NO_HANDLER), H(CLZ_64), H(NO_HANDLER));
        break;
    case ITS_OP_BFIND:
        count_bits(d, H(BFIND_U32), H(BFIND_S32), H(BFIND_U64), H(BFIND_S64))->mode = its_sim_has(d, ITS_MOD_SHIFTAMT);
        break;
    case ITS_OP_FNS:
        its_sim_type(d, 0);
        words(d, H(FNS), 3);
        break;
    case ITS_OP_BREV:
        one_source(d, H(NO_HANDLER), H(BREV_32), H(BREV_64));
        break;
    case ITS_OP_BFE:
        bit_field_extract(d);
        break;
    case ITS_OP_BFI:
        bit_field_insert(d);
        break;
    case ITS_OP_SZEXT:
        extend(d);
        break;
    case ITS_OP_BMSK:
        bit_mask(d);
        break;
    case ITS_OP_DP4A:
        dot_product(d, false);
        break;
    case ITS_OP_DP2A:
        dot_product(d, true);
        break;
    default:
        its_sim_decode_none(d);
        break;
    }
}
