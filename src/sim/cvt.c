/* Conversions by way of an exact value: sign, 64-bit magnitude, power of two. */
#include "sim/cvt.h"

#include "sim/alu_float.h"
#include "sim/alu_int.h"
#include "sim/exec.h"

typedef struct layout {
    uint8_t bits; /* in all */
    uint8_t mantissa, exponent;
    bool is_signed; /* integers */
    bool no_infinity;
} layout;

static const layout layouts[ITS_FORMAT_COUNT] = {
    [ITS_FORMAT_U8] = {8, 0, 0, false, false},     [ITS_FORMAT_S8] = {8, 0, 0, true, false},
    [ITS_FORMAT_U16] = {16, 0, 0, false, false},   [ITS_FORMAT_S16] = {16, 0, 0, true, false},
    [ITS_FORMAT_U32] = {32, 0, 0, false, false},   [ITS_FORMAT_S32] = {32, 0, 0, true, false},
    [ITS_FORMAT_U64] = {64, 0, 0, false, false},   [ITS_FORMAT_S64] = {64, 0, 0, true, false},
    [ITS_FORMAT_F16] = {16, 10, 5, false, false},  [ITS_FORMAT_BF16] = {16, 7, 8, false, false},
    [ITS_FORMAT_TF32] = {19, 10, 8, false, false}, [ITS_FORMAT_F32] = {32, 23, 8, false, false},
    [ITS_FORMAT_F64] = {64, 52, 11, false, false}, [ITS_FORMAT_E4M3] = {8, 3, 4, false, true},
    [ITS_FORMAT_E5M2] = {8, 2, 5, false, false},
};

typedef enum class { FINITE, INFINITE, NOT_A_NUMBER } class;

typedef struct value {
    class class;
    bool negative;
    uint64_t magnitude;
    int32_t exponent; /* the value is magnitude * 2^exponent */
    uint64_t payload; /* of a NaN: its mantissa, as 52 bits */
} value;

uint32_t its_sim_format_bits(its_sim_format format) {
    return format == ITS_FORMAT_TF32 ? 32 : layouts[format].bits;
}
bool its_sim_format_is_signed(its_sim_format format) {
    return layouts[format].is_signed;
}
static bool is_integer(uint8_t format) {
    return format <= ITS_FORMAT_S64;
}

static uint64_t low_bits(uint64_t x, uint32_t bits) {
    return bits >= 64 ? x : x & (((uint64_t)1 << bits) - 1);
}

/* -- out ----------------------------------------------------------------------------------------------------------- */

static value from_integer(uint8_t format, uint64_t bits) {
    const layout *l = &layouts[format];
    bits = low_bits(bits, l->bits);
    value v = {FINITE, false, bits, 0, 0};
    if (l->is_signed && bits >> (l->bits - 1)) {
        v.negative = true;
        v.magnitude = low_bits(0 - bits, l->bits);
    }
    return v;
}

static value from_float(uint8_t format, uint64_t bits) {
    const layout *l = &layouts[format];
    if (format == ITS_FORMAT_TF32) bits = low_bits(bits, 32) >> 13;
    uint64_t mantissa = low_bits(bits, l->mantissa);
    int32_t exponent = (int32_t)low_bits(bits >> l->mantissa, l->exponent);
    int32_t top = (1 << l->exponent) - 1, bias = top >> 1;
    value v = {FINITE, (bits >> (l->bits - 1)) & 1, mantissa, 1 - bias - l->mantissa, mantissa << (52 - l->mantissa)};
    if (l->no_infinity) {
        if (exponent == top && mantissa == low_bits(UINT64_MAX, l->mantissa)) v.class = NOT_A_NUMBER;
    } else if (exponent == top) {
        v.class = mantissa ? NOT_A_NUMBER : INFINITE;
    }
    if (exponent) {
        v.magnitude |= (uint64_t)1 << l->mantissa;
        v.exponent += exponent - 1;
    }
    return v;
}

/* -- in ------------------------------------------------------------------------------------------------------------ */

/* magnitude * 2^-shift as an integer, rounded; a negative shift is exact and must fit. */
static uint64_t shifted(uint64_t magnitude, int32_t shift, bool negative, uint8_t rounding) {
    if (shift <= 0) return shift <= -64 ? 0 : magnitude << -shift;
    uint64_t kept = shift >= 64 ? 0 : magnitude >> shift;
    uint64_t lost = shift >= 64 ? magnitude : low_bits(magnitude, (uint32_t)shift);
    if (lost == 0) return kept;
    /* How the lost part compares to half: half is 2^(shift - 1), beyond 2^64 it is more than any magnitude. */
    bool above = shift <= 64 && lost > (uint64_t)1 << (shift - 1);
    bool tie = shift <= 64 && lost == (uint64_t)1 << (shift - 1);
    bool up = false;
    switch (rounding) {
    case ITS_ROUND_NEAREST:
        up = above || (tie && kept & 1);
        break;
    case ITS_ROUND_AWAY:
        up = above || tie;
        break;
    case ITS_ROUND_DOWN:
        up = negative;
        break;
    case ITS_ROUND_UP:
        up = !negative;
        break;
    default:
        break;
    }
    return kept + up;
}

static uint64_t limit_of(const layout *l, bool negative) {
    if (!l->is_signed) return negative ? 0 : low_bits(UINT64_MAX, l->bits);
    return ((uint64_t)1 << (l->bits - 1)) - !negative;
}

/* What a NaN becomes as an integer: 0, but the lowest number if 64 bits or double precision take part. */
static uint64_t nan_integer(uint8_t format, uint8_t from) {
    uint32_t bits = layouts[format].bits;
    return bits == 64 || from == ITS_FORMAT_F64 ? (uint64_t)1 << (bits - 1) : 0;
}

/* To an integer; beyond the range the nearest one of it (floating-point sources always, integers with .sat). */
static uint64_t to_integer(uint8_t format, value v, uint8_t rounding, bool saturate) {
    const layout *l = &layouts[format];
    uint64_t limit = limit_of(l, v.negative), magnitude;
    int32_t high = v.magnitude ? 63 - (int32_t)clz_u64(v.magnitude) + v.exponent : 0;
    if (v.class == INFINITE || high >= 64)
        magnitude = UINT64_MAX;
    else
        magnitude = shifted(v.magnitude, -v.exponent, v.negative, rounding);
    if (saturate && magnitude > limit) magnitude = limit;
    return low_bits(v.negative ? 0 - magnitude : magnitude, l->bits);
}

static uint64_t infinity_bits(const layout *l) {
    return low_bits(UINT64_MAX, l->exponent) << l->mantissa;
}
static uint64_t largest_bits(const layout *l) {
    return l->no_infinity ? low_bits(UINT64_MAX, (uint32_t)l->bits - 1) - 1 : infinity_bits(l) - 1;
}

static uint64_t overflow_bits(const layout *l, bool negative, uint8_t rounding, uint8_t flags) {
    bool to_largest = rounding == ITS_ROUND_ZERO || (rounding == ITS_ROUND_DOWN && !negative) ||
                      (rounding == ITS_ROUND_UP && negative);
    return to_largest || flags & ITS_CVT_SATFINITE || l->no_infinity ? largest_bits(l) : infinity_bits(l);
}

/* The bits of a finite value without its sign. */
static uint64_t finite_bits(const layout *l, value v, uint8_t rounding, uint8_t flags) {
    if (v.magnitude == 0) return 0;
    int32_t lowest = 2 - (1 << (l->exponent - 1)); /* exponent of the smallest normal number */
    int32_t exponent = 63 - (int32_t)clz_u64(v.magnitude) + v.exponent;
    bool normal = exponent >= lowest;
    int32_t quantum = (normal ? exponent : lowest) - l->mantissa;
    uint64_t kept = shifted(v.magnitude, quantum - v.exponent, v.negative, rounding);
    uint64_t bits = normal ? kept + ((uint64_t)(exponent - lowest) << l->mantissa) : kept;
    if (bits > largest_bits(l)) bits = overflow_bits(l, v.negative, rounding, flags);
    if (flags & ITS_CVT_FTZ_OUT && bits < (uint64_t)1 << l->mantissa) bits = 0;
    return bits;
}

static uint64_t to_float(uint8_t format, value v, uint8_t rounding, uint8_t flags) {
    const layout *l = &layouts[format];
    if (flags & ITS_CVT_SAT && v.negative) return 0;
    uint64_t bits, sign = (uint64_t)v.negative << (l->bits - 1);
    if (v.class == INFINITE)
        bits = flags & ITS_CVT_SATFINITE || l->no_infinity ? largest_bits(l) : infinity_bits(l);
    else
        bits = finite_bits(l, v, rounding, flags);
    uint64_t one = (uint64_t)((1 << (l->exponent - 1)) - 1) << l->mantissa;
    if (flags & ITS_CVT_SAT && bits > one) bits = one;
    if (flags & ITS_CVT_RELU && v.negative) bits = sign = 0;
    bits |= sign;
    return format == ITS_FORMAT_TF32 ? bits << 13 : bits;
}

/*
 * A NaN. Between double precision and another format it is handed on, quieted; bfloat16 becomes single precision as it
 * is, and so does single precision that is only copied. Everything else makes it the format's canonical one.
 */
static uint64_t nan_bits(its_sim_cvt c, value v) {
    const layout *l = &layouts[c.to];
    bool raw = c.to == ITS_FORMAT_F32 && (c.from == ITS_FORMAT_BF16 || c.from == ITS_FORMAT_F32) &&
               !(c.flags & (ITS_CVT_FTZ_IN | ITS_CVT_FTZ_OUT | ITS_CVT_INTEGRAL | ITS_CVT_RELU));
    bool on = raw || c.from == ITS_FORMAT_F64 || c.to == ITS_FORMAT_F64;
    if (c.to == ITS_FORMAT_TF32)
        return c.rounding == ITS_ROUND_AWAY ? (uint64_t)v.negative << 31 | 0x7f800000u | (v.payload >> 29 & 0x7fe000u)
                                            : 0x7fffe000u;
    if (!on) return low_bits(UINT64_MAX, (uint32_t)l->bits - 1);
    uint64_t payload = v.payload, sign = (uint64_t)v.negative << (l->bits - 1);
    if (c.from == ITS_FORMAT_F32 && c.flags & ITS_CVT_FTZ_IN) payload = low_bits(UINT64_MAX, 23) << 29, sign = 0;
    if (!raw) payload |= ITS_QUIET_F64;
    return sign | infinity_bits(l) | payload >> (52 - l->mantissa);
}

/* -- both ---------------------------------------------------------------------------------------------------------- */

/* Converts one value; `bits` beyond the source format's width are ignored, those of the result are zero. */
static uint64_t convert(its_sim_cvt c, uint64_t bits) {
    if (is_integer(c.from)) {
        value v = from_integer(c.from, bits);
        if (is_integer(c.to)) return to_integer(c.to, v, ITS_ROUND_ZERO, c.flags & ITS_CVT_SAT);
        return to_float(c.to, v, c.rounding, c.flags);
    }
    value v = from_float(c.from, bits);
    if (c.flags & ITS_CVT_FTZ_IN && v.class == FINITE && v.magnitude >> layouts[c.from].mantissa == 0) v.magnitude = 0;
    if (v.class == NOT_A_NUMBER) {
        if (is_integer(c.to)) return nan_integer(c.to, c.from);
        return c.flags & ITS_CVT_SAT ? 0 : nan_bits(c, v);
    }
    if (is_integer(c.to)) return to_integer(c.to, v, c.rounding, true);
    if (c.flags & ITS_CVT_INTEGRAL && v.class == FINITE && v.exponent < 0) {
        v.magnitude = shifted(v.magnitude, -v.exponent, v.negative, c.rounding);
        v.exponent = 0;
    }
    return to_float(c.to, v, c.rounding, c.flags);
}

static uint64_t get(const char *reg, unsigned size, unsigned lane) {
    switch (size) {
    case 2:
        return ((const u16 *)(const void *)reg)[lane];
    case 4:
        return ((const u32 *)(const void *)reg)[lane];
    default:
        return ((const u64 *)(const void *)reg)[lane];
    }
}

static void put(char *reg, unsigned size, unsigned lane, uint64_t bits) {
    switch (size) {
    case 2:
        ((u16 *)(void *)reg)[lane] = (u16)bits;
        break;
    case 4:
        ((u32 *)(void *)reg)[lane] = (u32)bits;
        break;
    default:
        ((u64 *)(void *)reg)[lane] = bits;
        break;
    }
}

/* Fills a register that is wider than the format: with the sign for signed integers. */
static uint64_t widen(uint8_t format, uint64_t bits) {
    const layout *l = &layouts[format];
    if (is_integer(format) && l->is_signed && l->bits < 64 && (bits >> (l->bits - 1)) & 1)
        bits |= UINT64_MAX << l->bits;
    return bits;
}

void its_sim_alu_CVT(const its_sim_op *op, const char *regs, char *dst) {
    its_sim_cvt c = its_sim_cvt_unpack(op->imm);
    uint32_t from = its_sim_format_bits((its_sim_format)c.from), to = its_sim_format_bits((its_sim_format)c.to);
    for (unsigned i = 0; i < ITS_LANES; i++) {
        uint64_t bits = get(regs + op->a, op->size, i);
        uint64_t result = convert(c, bits);
        if (c.halves == 2)
            result |= convert(c, bits >> from) << to;
        else
            result = widen(c.to, result);
        put(dst, op->dst_size, i, result);
    }
}

/* The first source becomes the upper half. */
void its_sim_alu_CVT_PAIR(const its_sim_op *op, const char *regs, char *dst) {
    its_sim_cvt c = its_sim_cvt_unpack(op->imm);
    uint32_t to = its_sim_format_bits((its_sim_format)c.to);
    for (unsigned i = 0; i < ITS_LANES; i++) {
        uint64_t high = convert(c, get(regs + op->a, op->size, i));
        uint64_t low = convert(c, get(regs + op->b, op->size, i));
        put(dst, op->dst_size, i, high << to | low);
    }
}
