/* Conversions: the common ones have loops of their own, all others go through cvt.c. */
#include "sim/cvt.h"
#include "sim/decode.h"

#define H(name) ITS_SIM_##name

/* A source or destination format as the modifier names it. */
typedef struct format {
    its_sim_format of;
    its_type type; /* of a register that holds it */
    bool packed;   /* two of them in a register */
} format;

static format format_of(its_sim_decoder *d, unsigned index) {
    its_type type = its_sim_type(d, index);
    switch (its_sim_type_mod(d, index)) {
    case ITS_MOD_U8:
        return (format){ITS_FORMAT_U8, type, false};
    case ITS_MOD_S8:
        return (format){ITS_FORMAT_S8, type, false};
    case ITS_MOD_U16:
        return (format){ITS_FORMAT_U16, type, false};
    case ITS_MOD_S16:
        return (format){ITS_FORMAT_S16, type, false};
    case ITS_MOD_U32:
        return (format){ITS_FORMAT_U32, type, false};
    case ITS_MOD_S32:
        return (format){ITS_FORMAT_S32, type, false};
    case ITS_MOD_U64:
        return (format){ITS_FORMAT_U64, type, false};
    case ITS_MOD_S64:
        return (format){ITS_FORMAT_S64, type, false};
    case ITS_MOD_F16:
        return (format){ITS_FORMAT_F16, type, false};
    case ITS_MOD_BF16:
        return (format){ITS_FORMAT_BF16, type, false};
    case ITS_MOD_TF32:
        return (format){ITS_FORMAT_TF32, ITS_TYPE_B32, false};
    case ITS_MOD_F32:
        return (format){ITS_FORMAT_F32, type, false};
    case ITS_MOD_F64:
        return (format){ITS_FORMAT_F64, type, false};
    case ITS_MOD_F16X2:
        return (format){ITS_FORMAT_F16, type, true};
    case ITS_MOD_BF16X2:
        return (format){ITS_FORMAT_BF16, type, true};
    case ITS_MOD_E4M3X2:
        return (format){ITS_FORMAT_E4M3, ITS_TYPE_B16, true};
    case ITS_MOD_E5M2X2:
        return (format){ITS_FORMAT_E5M2, ITS_TYPE_B16, true};
    default:
        its_sim_refuse_form(d);
        return (format){ITS_FORMAT_U32, ITS_TYPE_U32, false};
    }
}

static bool is_integer(its_sim_format f) {
    return f <= ITS_FORMAT_S64;
}

/* -- integers to integers ------------------------------------------------------------------------------------------ */

static its_sim_handler resize(uint32_t from, uint32_t to, bool is_signed) {
    switch (from * 16 + to) {
    case 2 * 16 + 4:
        return is_signed ? H(SIGN_16_32) : H(ZERO_16_32);
    case 2 * 16 + 8:
        return is_signed ? H(SIGN_16_64) : H(ZERO_16_64);
    case 4 * 16 + 8:
        return is_signed ? H(SIGN_32_64) : H(ZERO_32_64);
    case 4 * 16 + 2:
        return H(CUT_32_16);
    case 8 * 16 + 2:
        return H(CUT_64_16);
    case 8 * 16 + 4:
        return H(CUT_64_32);
    default:
        return from == 2 ? H(COPY_16) : from == 4 ? H(COPY_32) : H(COPY_64);
    }
}

/* Fills a register of `size` bytes from its low `bits` bits. */
static its_sim_handler extend(uint32_t size, uint32_t bits, bool is_signed) {
    if (bits == 8)
        return size == 2   ? (is_signed ? H(BYTE_S16) : H(BYTE_U16))
               : size == 4 ? (is_signed ? H(BYTE_S32) : H(BYTE_U32))
                           : (is_signed ? H(BYTE_S64) : H(BYTE_U64));
    if (bits == 16)
        return size == 4 ? (is_signed ? H(HALF_S32) : H(HALF_U32)) : (is_signed ? H(HALF_S64) : H(HALF_U64));
    return is_signed ? H(WORD_S64) : H(WORD_U64);
}

static void widen(its_sim_decoder *d, uint32_t dst, uint32_t size, uint32_t bits, bool is_signed) {
    if (bits < 8 * size) its_sim_emit1(d, extend(size, bits, is_signed), dst, size, dst);
}

/* Without .sat: cut to the narrower of the two, then extend. */
static void convert_integer(its_sim_decoder *d, format to, format from) {
    uint32_t source_size, size, from_bits = its_sim_format_bits(from.of), to_bits = its_sim_format_bits(to.of);
    bool from_signed = its_sim_format_is_signed(from.of), to_signed = its_sim_format_is_signed(to.of);
    uint32_t a = its_sim_wide_source(d, its_sim_operand(d, 1), from.type, &source_size);
    uint32_t dst = its_sim_wide_target(d, its_sim_operand(d, 0), to.type, &size);
    its_sim_emit1(d, resize(source_size, size, from_signed), dst, size, a);
    if (to_bits <= from_bits) {
        widen(d, dst, size, to_bits, to_signed);
        return;
    }
    if (from_bits < 8 * source_size) widen(d, dst, size, from_bits, from_signed);
    if (from_signed && !to_signed) widen(d, dst, size, to_bits, false);
}

/* -- everything else ----------------------------------------------------------------------------------------------- */

static void take_modifiers(its_sim_decoder *d, format to, format from, its_sim_cvt *c) {
    bool integral = false;
    switch (its_sim_first(d, ITS_MODCLASS_ROUND)) {
    case ITS_MOD_UNKNOWN:
    case ITS_MOD_RN:
        break;
    case ITS_MOD_RZ:
        c->rounding = ITS_ROUND_ZERO;
        break;
    case ITS_MOD_RM:
        c->rounding = ITS_ROUND_DOWN;
        break;
    case ITS_MOD_RP:
        c->rounding = ITS_ROUND_UP;
        break;
    case ITS_MOD_RNA:
        c->rounding = ITS_ROUND_AWAY;
        break;
    case ITS_MOD_RNI:
        integral = true;
        break;
    case ITS_MOD_RZI:
        c->rounding = ITS_ROUND_ZERO, integral = true;
        break;
    case ITS_MOD_RMI:
        c->rounding = ITS_ROUND_DOWN, integral = true;
        break;
    case ITS_MOD_RPI:
        c->rounding = ITS_ROUND_UP, integral = true;
        break;
    default:
        its_sim_refuse_form(d);
        break;
    }
    unsigned flags = 0;
    if (its_sim_has(d, ITS_MOD_FTZ)) {
        if (from.of == ITS_FORMAT_F32) flags |= ITS_CVT_FTZ_IN;
        if (to.of == ITS_FORMAT_F32) flags |= ITS_CVT_FTZ_OUT;
    }
    if (its_sim_has(d, ITS_MOD_SAT)) flags |= ITS_CVT_SAT;
    if (its_sim_has(d, ITS_MOD_SATFINITE)) flags |= ITS_CVT_SATFINITE;
    if (its_sim_has(d, ITS_MOD_RELU)) flags |= ITS_CVT_RELU;
    if (integral && !is_integer(to.of)) {
        if (to.of != from.of) its_sim_refuse_form(d);
        flags |= ITS_CVT_INTEGRAL;
    }
    if (is_integer(to.of) && !is_integer(from.of) && !integral) its_sim_refuse_form(d);
    c->flags = (uint8_t)flags;
}

/* The loop of its own that does the conversion, or NO_HANDLER. */
static its_sim_handler fast(const its_sim_cvt *c) {
    static const struct {
        uint8_t to, from, rounding;
        its_sim_handler handler;
    } loops[] = {
        {ITS_FORMAT_F32, ITS_FORMAT_S32, ITS_ROUND_NEAREST, H(CVT_F32_S32)},
        {ITS_FORMAT_F32, ITS_FORMAT_U32, ITS_ROUND_NEAREST, H(CVT_F32_U32)},
        {ITS_FORMAT_F64, ITS_FORMAT_S32, ITS_ROUND_NEAREST, H(CVT_F64_S32)},
        {ITS_FORMAT_F64, ITS_FORMAT_U32, ITS_ROUND_NEAREST, H(CVT_F64_U32)},
        {ITS_FORMAT_F64, ITS_FORMAT_S64, ITS_ROUND_NEAREST, H(CVT_F64_S64)},
        {ITS_FORMAT_F64, ITS_FORMAT_U64, ITS_ROUND_NEAREST, H(CVT_F64_U64)},
        {ITS_FORMAT_S32, ITS_FORMAT_F32, ITS_ROUND_ZERO, H(CVT_S32_F32)},
        {ITS_FORMAT_U32, ITS_FORMAT_F32, ITS_ROUND_ZERO, H(CVT_U32_F32)},
        {ITS_FORMAT_F32, ITS_FORMAT_F16, ITS_ROUND_NEAREST, H(CVT_F32_F16)},
        {ITS_FORMAT_F32, ITS_FORMAT_BF16, ITS_ROUND_NEAREST, H(CVT_F32_BF16)},
        {ITS_FORMAT_F16, ITS_FORMAT_F32, ITS_ROUND_NEAREST, H(CVT_F16_F32)},
        {ITS_FORMAT_BF16, ITS_FORMAT_F32, ITS_ROUND_NEAREST, H(CVT_BF16_F32)},
        {ITS_FORMAT_F64, ITS_FORMAT_F32, ITS_ROUND_NEAREST, H(CVT_F64_F32)},
        {ITS_FORMAT_F32, ITS_FORMAT_F64, ITS_ROUND_NEAREST, H(CVT_F32_F64)},
    };
    unsigned flags = c->flags;
    if (c->to == ITS_FORMAT_F16 || c->from == ITS_FORMAT_F16) flags &= ~(unsigned)(ITS_CVT_FTZ_IN | ITS_CVT_FTZ_OUT);
    if (flags) return H(NO_HANDLER);
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
        if (loops[i].to == c->to && loops[i].from == c->from && loops[i].rounding == c->rounding)
            return loops[i].handler;
    return H(NO_HANDLER);
}

static void convert_one(its_sim_decoder *d, format to, format from, its_sim_cvt c) {
    uint32_t source_size, size;
    uint32_t a = its_sim_wide_source(d, its_sim_operand(d, 1), from.type, &source_size);
    uint32_t dst = its_sim_wide_target(d, its_sim_operand(d, 0), to.type, &size);
    bool exact = source_size == its_sim_reg_size(from.type) && size == its_sim_reg_size(to.type);
    if ((!is_integer(from.of) && source_size < its_sim_reg_size(from.type)) || size < its_sim_reg_size(to.type))
        its_sim_refuse_form(d);
    its_sim_handler loop = from.packed || !exact ? H(NO_HANDLER) : fast(&c);
    its_sim_op *op = its_sim_emit1(d, loop != H(NO_HANDLER) ? loop : H(CVT), dst, size, a);
    op->imm = its_sim_cvt_pack(c);
    op->size = (uint8_t)source_size;
}

/* Two sources become the upper and lower half. */
static void convert_pair(its_sim_decoder *d, format to, format from, its_sim_cvt c) {
    uint32_t size = its_sim_reg_size(from.type);
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), from.type);
    uint32_t b = its_sim_source(d, its_sim_operand(d, 2), from.type);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), to.type);
    bool plain = c.flags == 0 && c.rounding == ITS_ROUND_NEAREST && from.of == ITS_FORMAT_F32;
    its_sim_handler handler = plain && to.of == ITS_FORMAT_F16    ? H(CVT_F16X2_F32)
                              : plain && to.of == ITS_FORMAT_BF16 ? H(CVT_BF16X2_F32)
                                                                  : H(CVT_PAIR);
    its_sim_op *op = its_sim_emit2(d, handler, dst, its_sim_reg_size(to.type), a, b);
    op->imm = its_sim_cvt_pack(c);
    op->size = (uint8_t)size;
}

/* cvt.pack: two numbers, saturated, beneath what c has. */
static void pack(its_sim_decoder *d) {
    static const struct {
        its_mod mod;
        uint16_t mode;
    } forms[] = {{ITS_MOD_U16, 16}, {ITS_MOD_S16, 32 | 16}, {ITS_MOD_U8, 8}, {ITS_MOD_S8, 32 | 8},
                 {ITS_MOD_U4, 4},   {ITS_MOD_S4, 32 | 4},   {ITS_MOD_U2, 2}, {ITS_MOD_S2, 32 | 2}};
    its_mod to = its_sim_type_mod(d, 0);
    uint16_t mode = 0;
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        if (forms[i].mod == to) mode = forms[i].mode;
    bool whole = (mode & 31) == 16;
    if (!mode || !its_sim_has(d, ITS_MOD_SAT) || its_sim_type(d, 1) != ITS_TYPE_S32) its_sim_refuse_form(d);
    if (!whole && its_sim_type(d, 2) != ITS_TYPE_B32) its_sim_refuse_form(d);
    uint32_t a = its_sim_source(d, its_sim_operand(d, 1), ITS_TYPE_S32);
    uint32_t b = its_sim_source(d, its_sim_operand(d, 2), ITS_TYPE_S32);
    uint32_t c = whole ? its_sim_const_bits(d, 0, 4) : its_sim_source(d, its_sim_operand(d, 3), ITS_TYPE_B32);
    uint32_t dst = its_sim_target(d, its_sim_operand(d, 0), ITS_TYPE_S32);
    its_sim_emit3(d, H(CVT_PACK), dst, 4, a, b, c)->mode = mode;
}

void its_sim_decode_cvt(its_sim_decoder *d) {
    if (its_sim_has(d, ITS_MOD_PACK)) {
        pack(d);
        return;
    }
    if (d->m->n_types != 2) {
        its_sim_decode_none(d);
        return;
    }
    format to = format_of(d, 0), from = format_of(d, 1);
    its_sim_cvt c = {.from = (uint8_t)from.of, .to = (uint8_t)to.of, .halves = 1};
    take_modifiers(d, to, from, &c);
    if (is_integer(to.of) && is_integer(from.of) && !(c.flags & ITS_CVT_SAT)) {
        convert_integer(d, to, from);
    } else if (to.packed && from.packed) {
        c.halves = 2;
        convert_one(d, to, from, c);
    } else if (to.packed) {
        if (from.of != ITS_FORMAT_F32) its_sim_refuse_form(d);
        convert_pair(d, to, from, c);
    } else if (from.packed) {
        its_sim_refuse_form(d);
    } else {
        convert_one(d, to, from, c);
    }
}
