/*
 * Comparisons: setp, set, testp. A comparison is one of a few handlers, with its sources swapped or its result
 * inverted: a > b is b < a, a >= b for integers is not a < b. Of floating-point ones the unordered form is the opposite
 * of the ordered form of the opposite.
 */
#include "sim/decode.h"

#define H(name) ITS_SIM_##name

enum { EQ, EQU, LT, LE, NUM }; /* as the handlers follow each other in alu_float.def */

typedef struct comparison {
    uint8_t base;
    bool swap, invert;
} comparison;

static bool float_comparison(its_mod mod, comparison *c) {
    switch (mod) {
    case ITS_MOD_EQ:
        *c = (comparison){EQ, false, false};
        return true;
    case ITS_MOD_NE:
        *c = (comparison){EQU, false, true};
        return true;
    case ITS_MOD_LT:
        *c = (comparison){LT, false, false};
        return true;
    case ITS_MOD_LE:
        *c = (comparison){LE, false, false};
        return true;
    case ITS_MOD_GT:
        *c = (comparison){LT, true, false};
        return true;
    case ITS_MOD_GE:
        *c = (comparison){LE, true, false};
        return true;
    case ITS_MOD_EQU:
        *c = (comparison){EQU, false, false};
        return true;
    case ITS_MOD_NEU:
        *c = (comparison){EQ, false, true};
        return true;
    case ITS_MOD_LTU:
        *c = (comparison){LE, true, true};
        return true;
    case ITS_MOD_LEU:
        *c = (comparison){LT, true, true};
        return true;
    case ITS_MOD_GTU:
        *c = (comparison){LE, false, true};
        return true;
    case ITS_MOD_GEU:
        *c = (comparison){LT, false, true};
        return true;
    case ITS_MOD_NUM:
        *c = (comparison){NUM, false, false};
        return true;
    case ITS_MOD_NAN:
        *c = (comparison){NUM, false, true};
        return true;
    default:
        return false;
    }
}

/* .lo .ls .hi .hs are unsigned whatever the type says. */
static bool int_comparison(its_mod mod, comparison *c, bool *is_unsigned) {
    *is_unsigned = mod == ITS_MOD_LO || mod == ITS_MOD_LS || mod == ITS_MOD_HI || mod == ITS_MOD_HS;
    switch (mod) {
    case ITS_MOD_EQ:
        *c = (comparison){EQ, false, false};
        return true;
    case ITS_MOD_NE:
        *c = (comparison){EQ, false, true};
        return true;
    case ITS_MOD_LO:
    case ITS_MOD_LT:
        *c = (comparison){LT, false, false};
        return true;
    case ITS_MOD_LS:
    case ITS_MOD_LE:
        *c = (comparison){LT, true, true};
        return true;
    case ITS_MOD_HI:
    case ITS_MOD_GT:
        *c = (comparison){LT, true, false};
        return true;
    case ITS_MOD_HS:
    case ITS_MOD_GE:
        *c = (comparison){LT, false, true};
        return true;
    default:
        return false;
    }
}

static its_sim_handler float_handler(its_sim_decoder *d, its_type type, unsigned base) {
    static const its_sim_handler single[] = {H(EQ_F32), H(EQU_F32), H(LT_F32), H(LE_F32), H(NUM_F32)};
    static const its_sim_handler real[] = {H(EQ_F64), H(EQU_F64), H(LT_F64), H(LE_F64), H(NUM_F64)};
    static const its_sim_handler half[] = {H(EQ_F16), H(EQU_F16), H(LT_F16), H(LE_F16), H(NUM_F16)};
    if (type == ITS_TYPE_F32) return single[base];
    return type == ITS_TYPE_F64 ? real[base] : its_sim_by_half(d, type, half[base]);
}

static its_sim_handler int_handler(its_sim_decoder *d, its_type type, unsigned base, bool is_unsigned) {
    if (base == EQ) return its_sim_by_width(d, type, H(EQ_16), H(EQ_32), H(EQ_64));
    if (is_unsigned) return its_sim_by_width(d, type, H(LT_U16), H(LT_U32), H(LT_U64));
    return its_sim_by_int(d, type, H(LT_U16), H(LT_S16), H(LT_U32), H(LT_S32), H(LT_U64), H(LT_S64));
}

/* The comparison of the instruction, ready to be emitted into a predicate. */
typedef struct test {
    its_type type;
    its_sim_handler handler;
    comparison c;
    uint32_t a, b;
} test;

static test take_test(its_sim_decoder *d, unsigned type_index, unsigned operand) {
    test t = {.type = its_sim_type(d, type_index)};
    its_mod mod = its_sim_first(d, ITS_MODCLASS_COMPARE);
    bool is_unsigned = false;
    t.a = its_sim_source(d, its_sim_operand(d, operand), t.type);
    t.b = its_sim_source(d, its_sim_operand(d, operand + 1), t.type);
    if (its_type_kind_of(t.type) == ITS_KIND_FLOAT) {
        if (!float_comparison(mod, &t.c)) its_sim_refuse_form(d);
        t.handler = float_handler(d, t.type, t.c.base);
        if (its_sim_has(d, ITS_MOD_FTZ)) {
            if (t.type == ITS_TYPE_F64) its_sim_refuse_form(d);
            t.a = its_sim_flushed(d, t.type, t.a);
            t.b = its_sim_flushed(d, t.type, t.b);
        }
    } else {
        if (!int_comparison(mod, &t.c, &is_unsigned)) its_sim_refuse_form(d);
        t.handler = int_handler(d, t.type, t.c.base, is_unsigned);
    }
    return t;
}

/* Emits the comparison, of the upper halves of packed operands if `upper`, or its opposite. */
static void emit_test(its_sim_decoder *d, const test *t, uint32_t dst, bool upper, bool opposite) {
    uint32_t a = t->c.swap ? t->b : t->a, b = t->c.swap ? t->a : t->b;
    its_sim_op *op = its_sim_emit2(d, t->handler, dst, 0, a, b);
    op->mode = (uint16_t)((t->c.invert != opposite) | (upper ? 2 : 0));
}

/* dst = test op c, for the boolean operator of the instruction. */
static void combine(its_sim_decoder *d, its_mod operation, uint32_t dst, uint32_t tested, uint32_t c, bool not_c) {
    its_sim_handler handler = H(PRED_COPY);
    switch (operation) {
    case ITS_MOD_UNKNOWN:
        break;
    case ITS_MOD_AND:
        handler = H(PRED_AND);
        break;
    case ITS_MOD_OR:
        handler = H(PRED_OR);
        break;
    case ITS_MOD_XOR:
        handler = H(PRED_XOR);
        break;
    default:
        its_sim_refuse_form(d);
        break;
    }
    its_sim_emit2(d, handler, dst, 0, tested, c)->mode = (uint16_t)(not_c ? 2 : 0);
}

static bool is_packed(its_type type) {
    return type == ITS_TYPE_F16X2 || type == ITS_TYPE_BF16X2;
}

/* p|q: of packed operands p is the lower and q the upper half; otherwise q is p for the opposite comparison. */
static void set_predicates(its_sim_decoder *d) {
    test t = take_test(d, 0, 1);
    its_mod operation = its_sim_first(d, ITS_MODCLASS_OPERATION);
    bool not_c = false;
    uint32_t c = operation == ITS_MOD_UNKNOWN ? 0 : its_sim_predicate(d, its_sim_operand(d, 3), &not_c), p, q;
    its_sim_pair(d, its_sim_operand(d, 0), ITS_TYPE_PRED, ITS_TYPE_PRED, &p, &q);
    if (q == ITS_SIM_NOWHERE && operation == ITS_MOD_UNKNOWN && p != ITS_SIM_NOWHERE) {
        emit_test(d, &t, p, false, false);
        return;
    }
    uint32_t first = its_sim_temp(d, 0), second = its_sim_temp(d, 0), result = its_sim_temp(d, 0);
    emit_test(d, &t, first, false, false);
    if (q != ITS_SIM_NOWHERE) {
        emit_test(d, &t, second, is_packed(t.type), !is_packed(t.type));
        combine(d, operation, result, second, c, not_c);
    }
    if (p != ITS_SIM_NOWHERE) combine(d, operation, p, first, c, not_c);
    if (q != ITS_SIM_NOWHERE) its_sim_emit_copy(d, q, result, 0);
}

/* What true is in the destination's type: 1.0 or all ones. */
static uint64_t truth(its_type type, its_sim_decoder *d) {
    switch (type) {
    case ITS_TYPE_F32:
        return 0x3f800000;
    case ITS_TYPE_F16:
        return 0x3c00;
    case ITS_TYPE_BF16:
        return 0x3f80;
    case ITS_TYPE_F16X2:
        return 0x3c003c00;
    case ITS_TYPE_BF16X2:
        return 0x3f803f80;
    case ITS_TYPE_U32:
    case ITS_TYPE_S32:
        return 0xffffffff;
    case ITS_TYPE_U16:
    case ITS_TYPE_S16:
        return 0xffff;
    default:
        its_sim_refuse_form(d);
        return 0;
    }
}

static void select_value(its_sim_decoder *d, uint32_t dst, uint32_t size, uint64_t bits, uint32_t predicate) {
    its_sim_emit3(d, size == 2 ? H(SELP_16) : H(SELP_32), dst, size, its_sim_const_bits(d, bits, size),
                  its_sim_const_bits(d, 0, size), predicate);
}

static void set_value(its_sim_decoder *d) {
    its_type type = its_sim_type(d, 0);
    test t = take_test(d, 1, 1);
    its_mod operation = its_sim_first(d, ITS_MODCLASS_OPERATION);
    bool not_c = false;
    uint32_t c = operation == ITS_MOD_UNKNOWN ? 0 : its_sim_predicate(d, its_sim_operand(d, 3), &not_c);
    uint32_t size = its_sim_reg_size(type), dst = its_sim_target(d, its_sim_operand(d, 0), type);
    uint64_t one = truth(type, d);
    uint32_t lower = its_sim_temp(d, 0);
    emit_test(d, &t, lower, false, false);
    combine(d, operation, lower, lower, c, not_c);
    if (!is_packed(t.type)) {
        select_value(d, dst, size, one, lower);
        return;
    }
    uint32_t upper = its_sim_temp(d, 0), high = its_sim_temp(d, 4);
    if (size != 4) its_sim_refuse_form(d);
    emit_test(d, &t, upper, true, false);
    combine(d, operation, upper, upper, c, not_c);
    select_value(d, high, 4, one & 0xffff0000, upper);
    select_value(d, dst, 4, one & 0xffff, lower);
    its_sim_emit2(d, H(OR_32), dst, 4, dst, high);
}

static void test_property(its_sim_decoder *d) {
    its_type type = its_sim_type(d, 0);
    bool real = type == ITS_TYPE_F64;
    if (!real && type != ITS_TYPE_F32) its_sim_refuse_form(d);
    its_sim_handler handler = H(NO_HANDLER);
    bool opposite = false;
    if (its_sim_has(d, ITS_MOD_FINITE)) handler = real ? H(FINITE_F64) : H(FINITE_F32);
    if (its_sim_has(d, ITS_MOD_INFINITE)) handler = real ? H(INFINITE_F64) : H(INFINITE_F32);
    if (its_sim_has(d, ITS_MOD_NUMBER)) handler = real ? H(NAN_F64) : H(NAN_F32), opposite = true;
    if (its_sim_has(d, ITS_MOD_NOTANUMBER)) handler = real ? H(NAN_F64) : H(NAN_F32);
    if (its_sim_has(d, ITS_MOD_NORMAL)) handler = real ? H(NORMAL_F64) : H(NORMAL_F32);
    if (its_sim_has(d, ITS_MOD_SUBNORMAL)) handler = real ? H(SUBNORMAL_F64) : H(SUBNORMAL_F32);
    if (handler == H(NO_HANDLER)) its_sim_refuse_form(d);
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), type);
    its_sim_emit1(d, handler, its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_PRED), 0, a)->mode = opposite;
}

void its_sim_decode_setp(its_sim_decoder *d) {
    switch (d->m->op) {
    case ITS_OP_SETP:
        set_predicates(d);
        break;
    case ITS_OP_SET:
        set_value(d);
        break;
    default:
        test_property(d);
        break;
    }
}
