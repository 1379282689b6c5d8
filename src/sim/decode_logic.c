/* Logic, shifts, selection, comparison. */
#include <string.h>

#include "sim/decode.h"

#define H(name) ITS_SIM_##name

/* -- logic and shifts ---------------------------------------------------------------------------------------------- */

/* and, or, xor of registers or predicates. */
static void binary(its_sim_decoder *d, its_sim_handler h16, its_sim_handler h32, its_sim_handler h64,
                   its_sim_handler pred) {
    its_type type = its_sim_type(d, 0);
    const its_operand *first = its_sim_operand(d, 1), *second = its_sim_operand(d, 2);
    if (type == ITS_TYPE_PRED) {
        bool not_a, not_b;
        uint32_t a = its_sim_predicate(d, first, &not_a), b = its_sim_predicate(d, second, &not_b);
        uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), type);
        its_sim_emit2(d, pred, dst, 0, a, b)->mode = (uint16_t)(not_a | not_b << 1);
        return;
    }
    uint32_t a = its_sim_source(d, first, type), b = its_sim_source(d, second, type);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), type);
    its_sim_emit2(d, its_sim_by_width(d, type, h16, h32, h64), dst, its_sim_reg_size(type), a, b);
}

static void unary(its_sim_decoder *d, its_sim_handler h16, its_sim_handler h32, its_sim_handler h64) {
    its_type type = its_sim_type(d, 0);
    if (type == ITS_TYPE_PRED) {
        bool inverted;
        uint32_t a = its_sim_predicate(d, its_sim_operand(d, 1), &inverted);
        if (d->m->op != ITS_OP_NOT) its_sim_refuse_form(d);
        its_sim_emit1(d, H(PRED_COPY), its_sim_target(d, its_sim_operand(d, 0), type), 0, a)->mode = !inverted;
        return;
    }
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), type);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), type);
    its_sim_emit1(d, its_sim_by_width(d, type, h16, h32, h64), dst, its_sim_reg_size(type), a);
}

static void shift(its_sim_decoder *d, bool right) {
    its_type type = its_sim_type(d, 0);
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), type);
    uint32_t b = its_sim_source(d, its_sim_operand(d, 2), ITS_TYPE_U32);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), type);
    its_sim_handler handler =
        right ? its_sim_by_int(d, type, H(SHR_U16), H(SHR_S16), H(SHR_U32), H(SHR_S32), H(SHR_U64), H(SHR_S64))
              : its_sim_by_width(d, type, H(SHL_16), H(SHL_32), H(SHL_64));
    its_sim_emit2(d, handler, dst, its_sim_reg_size(type), a, b);
}

static its_sim_op *three_words(its_sim_decoder *d, its_sim_handler handler) {
    its_sim_type(d, 0);
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), ITS_TYPE_B32);
    uint32_t b = its_sim_source(d, its_sim_operand(d, 2), ITS_TYPE_B32);
    uint32_t c = its_sim_source(d, its_sim_operand(d, 3), ITS_TYPE_B32);
    return its_sim_emit3(d, handler, its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_B32), 4, a, b, c);
}

static void funnel_shift(its_sim_decoder *d) {
    bool left = its_sim_has(d, ITS_MOD_L), wrap = its_sim_has(d, ITS_MOD_WRAP);
    if (left == its_sim_has(d, ITS_MOD_R) || wrap == its_sim_has(d, ITS_MOD_CLAMP)) its_sim_refuse_form(d);
    three_words(d, left ? (wrap ? H(SHF_L_WRAP) : H(SHF_L_CLAMP)) : (wrap ? H(SHF_R_WRAP) : H(SHF_R_CLAMP)));
}

static void permute(its_sim_decoder *d) {
    static const its_mod modes[] = {ITS_MOD_F4E, ITS_MOD_B4E, ITS_MOD_RC8, ITS_MOD_ECL, ITS_MOD_ECR, ITS_MOD_RC16};
    unsigned mode = 0;
    for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (its_sim_has(d, modes[i])) mode = i + 1;
    three_words(d, mode ? H(PRMT_MODE) : H(PRMT))->mode = (uint16_t)mode;
}

/* lop3, and lop3.or d|p, ..., q: p says whether any bit of the result is set, or q. */
static void lookup(its_sim_decoder *d) {
    its_mod combine = its_sim_first(d, ITS_MODCLASS_OPERATION);
    its_sim_type(d, 0);
    const its_operand *table = its_sim_operand(d, 4);
    if (table->kind != ITS_OPND_INT || table->bits > 255) its_sim_refuse_form(d);
    if (combine == ITS_MOD_UNKNOWN) {
        three_words(d, H(LOP3))->mode = (uint16_t)table->bits;
        return;
    }
    if (combine != ITS_MOD_AND && combine != ITS_MOD_OR) its_sim_refuse_form(d);
    uint32_t word[3], dst, p;
    bool inverted;
    for (unsigned i = 0; i < 3; i++) word[i] = its_sim_source(d, its_sim_operand(d, i + 1), ITS_TYPE_B32);
    uint32_t q = its_sim_predicate(d, its_sim_operand(d, 5), &inverted), any = its_sim_temp(d, 0);
    its_sim_pair(d, its_sim_operand(d, 0), ITS_TYPE_B32, ITS_TYPE_PRED, &dst, &p);
    if (dst == ITS_SIM_NOWHERE) dst = its_sim_temp(d, 4);
    its_sim_emit3(d, H(LOP3), dst, 4, word[0], word[1], word[2])->mode = (uint16_t)table->bits;
    if (p == ITS_SIM_NOWHERE) return;
    its_sim_emit2(d, H(EQ_32), any, 0, dst, its_sim_const_bits(d, 0, 4))->mode = 1;
    its_sim_emit2(d, combine == ITS_MOD_AND ? H(PRED_AND) : H(PRED_OR), p, 0, any, q)->mode = inverted ? 2 : 0;
}

/* -- selection ----------------------------------------------------------------------------------------------------- */

/* The predicate itself, or a temporary with its opposite. */
static uint32_t plain_predicate(its_sim_decoder *d, const its_operand *operand) {
    bool inverted;
    uint32_t at = its_sim_predicate(d, operand, &inverted);
    if (!inverted) return at;
    uint32_t temp = its_sim_temp(d, 0);
    its_sim_emit1(d, H(PRED_COPY), temp, 0, at)->mode = 1;
    return temp;
}

static void select(its_sim_decoder *d) {
    its_type type = its_sim_type(d, 0);
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), type), b = its_sim_source(d, its_sim_operand(d, 2), type);
    uint32_t p = plain_predicate(d, its_sim_operand(d, 3));
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), type);
    its_sim_handler handler =
        type == ITS_TYPE_B128 ? H(SELP_128) : its_sim_by_width(d, type, H(SELP_16), H(SELP_32), H(SELP_64));
    its_sim_emit3(d, handler, dst, its_sim_reg_size(type), a, b, p);
}

static void select_by_sign(its_sim_decoder *d) {
    its_type type = its_sim_type(d, 0), by = its_sim_type(d, 1);
    bool ftz = its_sim_has(d, ITS_MOD_FTZ), real = by == ITS_TYPE_F32;
    if (!real && by != ITS_TYPE_S32) its_sim_refuse_form(d);
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), type), b = its_sim_source(d, its_sim_operand(d, 2), type);
    uint32_t c = its_sim_source(d, its_sim_operand(d, 3), by);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), type);
    its_sim_handler handler = !real ? its_sim_by_width(d, type, H(SLCT_S32_16), H(SLCT_S32_32), H(SLCT_S32_64))
                              : ftz ? its_sim_by_width(d, type, H(SLCT_FTZ_16), H(SLCT_FTZ_32), H(SLCT_FTZ_64))
                                    : its_sim_by_width(d, type, H(SLCT_F32_16), H(SLCT_F32_32), H(SLCT_F32_64));
    its_sim_emit3(d, handler, dst, its_sim_reg_size(type), a, b, c);
}

void its_sim_decode_logic(its_sim_decoder *d) {
    switch (d->m->op) {
    case ITS_OP_AND:
        binary(d, H(AND_16), H(AND_32), H(AND_64), H(PRED_AND));
        break;
    case ITS_OP_OR:
        binary(d, H(OR_16), H(OR_32), H(OR_64), H(PRED_OR));
        break;
    case ITS_OP_XOR:
        binary(d, H(XOR_16), H(XOR_32), H(XOR_64), H(PRED_XOR));
        break;
    case ITS_OP_NOT:
        unary(d, H(NOT_16), H(NOT_32), H(NOT_64));
        break;
    case ITS_OP_CNOT:
        unary(d, H(CNOT_16), H(CNOT_32), H(CNOT_64));
        break;
    case ITS_OP_SHL:
        shift(d, false);
        break;
    case ITS_OP_SHR:
        shift(d, true);
        break;
    case ITS_OP_SHF:
        funnel_shift(d);
        break;
    case ITS_OP_PRMT:
        permute(d);
        break;
    case ITS_OP_LOP3:
        lookup(d);
        break;
    case ITS_OP_SELP:
        select(d);
        break;
    case ITS_OP_SLCT:
        select_by_sign(d);
        break;
    default:
        its_sim_decode_none(d);
        break;
    }
}

/* Integer, floating-point or logical: by the opcode, then by the type. */
void its_sim_decode_alu(its_sim_decoder *d) {
    its_type type = its_mnemonic_type(d->m, 0);
    its_mod mod = d->m->n_types ? (its_mod)d->m->type_mods[0] : ITS_MOD_UNKNOWN;
    bool packed = mod == ITS_MOD_U16X2 || mod == ITS_MOD_S16X2;
    if (mod != ITS_MOD_UNKNOWN && !packed && strcmp(its_type_text(type), its_mod_text(mod)) != 0) {
        if (mod == ITS_MOD_F32X2)
            its_sim_decode_float_pair(d);
        else
            its_sim_decode_none(d); /* a type that is only carried in this one */
        return;
    }
    switch (d->m->op) {
    case ITS_OP_AND:
    case ITS_OP_OR:
    case ITS_OP_XOR:
    case ITS_OP_NOT:
    case ITS_OP_CNOT:
    case ITS_OP_SHL:
    case ITS_OP_SHR:
    case ITS_OP_SHF:
    case ITS_OP_PRMT:
    case ITS_OP_LOP3:
    case ITS_OP_SELP:
    case ITS_OP_SLCT:
        its_sim_decode_logic(d);
        break;
    default:
        if (its_type_kind_of(type) == ITS_KIND_FLOAT)
            its_sim_decode_float(d);
        else
            its_sim_decode_int(d);
    }
}
