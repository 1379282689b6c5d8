/*
 * Floating-point operations on one lane, as GPUs do them (measured on one; see tests/sim/cells.txt).
 *
 * Not a number: results of single and half precision are the canonical NaN. Double precision hands a NaN on: quieted,
 * with sign and payload; what has no value at all is 0xfff8000000000000.
 *
 * .ftz flushes subnormal sources and results to zeros of the same sign. A result is subnormal if it would be with a
 * range of exponents that has no end, so that it may be flushed although it would be rounded up to the smallest normal
 * number. For min and max -0 is less than +0.
 *
 * The approximate instructions (ex2, lg2, sin, cos, rsqrt, tanh, rcp, sqrt and div without a rounding) are computed
 * more exactly than on a GPU, whose last bits come from hardware tables: they lie inside the error bounds that PTX
 * gives, but are not bit for bit the same.
 */
#ifndef ITS_SIM_ALU_FLOAT_H
#define ITS_SIM_ALU_FLOAT_H

#include <math.h>

#include "sim/float16.h"
#include "sim/modes.h"

#define ITS_NAN_F32 0x7fffffffu
#define ITS_NAN_F64 0xfff8000000000000ull
#define ITS_QUIET_F64 0x0008000000000000ull
#define ITS_NAN_HALF 0x7fff

static inline float canon_f32(float x) {
    return x == x ? x : f32_bits(ITS_NAN_F32);
}
static inline double quiet_f64(double x) {
    return x == x ? x : f64_bits(bits_f64(x) | ITS_QUIET_F64);
}
/* A result of sources that may be NaN; the first of them that is one is handed on. */
static inline double nan1_f64(double r, double a) {
    return r == r ? r : a != a ? quiet_f64(a) : f64_bits(ITS_NAN_F64);
}
static inline double nan2_f64(double r, double a, double b) {
    return r == r ? r : a != a ? quiet_f64(a) : nan1_f64(r, b);
}
static inline double nan3_f64(double r, double a, double b, double c) {
    return r == r ? r : a != a ? quiet_f64(a) : nan2_f64(r, b, c);
}
static inline float flush_f32(float x) {
    uint32_t u = bits_f32(x);
    return f32_bits(u & 0x7f800000u ? u : u & 0x80000000u);
}
static inline float ftz_f32(float x) {
    return canon_f32(flush_f32(x));
}
/*
 * An exact value (or one rounded to odd) to single precision. It is flushed if it is subnormal when rounded to 24 bits
 * without a limit to the exponent.
 */
static inline float ftz_f32_f64(double x) {
    float unlimited = (float)(x * 0x1p64);
    float zero = f32_bits((uint32_t)(bits_f64(x) >> 32) & 0x80000000u);
    return canon_f32(__builtin_fabsf(unlimited) < 0x1p-62f ? zero : (float)x);
}
static inline float mul_ftz_f32(float a, float b) {
    return ftz_f32_f64((double)flush_f32(a) * (double)flush_f32(b));
}
/* Without an instruction the C library's function takes a hundred times as long as a sum in double precision. */
static inline float fma_f32(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    return (float)f64_odd_fma((double)a, (double)b, (double)c);
#endif
}
static inline float fma_ftz_f32(float a, float b, float c) {
    return ftz_f32_f64(f64_odd_fma((double)flush_f32(a), (double)flush_f32(b), (double)flush_f32(c)));
}

/* To [0, 1]; NaN and -0 become +0. */
static inline float sat_f32(float x) {
    return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}
static inline double sat_f64(double x) {
    return x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0;
}

/* -- min, max ------------------------------------------------------------------------------------------------------ */

static inline float min_max_f32(float a, float b, unsigned mode) {
    uint32_t sign = (bits_f32(a) ^ bits_f32(b)) & 0x80000000u;
    if (mode & ITS_MIN_MAX_XORSIGN) {
        a = f32_bits(bits_f32(a) & 0x7fffffffu);
        b = f32_bits(bits_f32(b) & 0x7fffffffu);
    }
    int first = a < b || (a == b && bits_f32(a) >> 31);
    if (mode & ITS_MAX_OF) first = a > b || (a == b && bits_f32(b) >> 31);
    float r = first ? a : b;
    if (mode & ITS_MIN_MAX_NAN)
        r = a == a && b == b ? r : f32_bits(ITS_NAN_F32);
    else
        r = a == a ? (b == b ? r : a) : b;
    r = canon_f32(r);
    if (mode & ITS_MIN_MAX_XORSIGN) r = r == r ? f32_bits(bits_f32(r) | sign) : r;
    return r;
}
static inline double min_max_f64(double a, double b, unsigned mode) {
    int first = a < b || (a == b && bits_f64(a) >> 63);
    if (mode & ITS_MAX_OF) first = a > b || (a == b && bits_f64(b) >> 63);
    double r = first ? a : b;
    return quiet_f64(a == a ? (b == b ? r : a) : b);
}

#define ITS_HALF_MIN_MAX(T)                                                                                 \
    static inline uint16_t T##_min_max(uint16_t a, uint16_t b, unsigned mode) {                             \
        uint16_t sign = (uint16_t)((a ^ b) & 0x8000);                                                       \
        if (mode & ITS_MIN_MAX_XORSIGN) {                                                                   \
            a &= 0x7fff;                                                                                    \
            b &= 0x7fff;                                                                                    \
        }                                                                                                   \
        int first = mode & ITS_MAX_OF ? half_key(a) > half_key(b) : half_key(a) < half_key(b);              \
        uint16_t r = first ? a : b;                                                                         \
        int nan_a = T##_is_nan(a), nan_b = T##_is_nan(b);                                                   \
        if (mode & ITS_MIN_MAX_NAN)                                                                         \
            r = nan_a || nan_b ? ITS_NAN_HALF : r;                                                          \
        else                                                                                                \
            r = nan_a ? (nan_b ? ITS_NAN_HALF : b) : nan_b ? a : r;                                         \
        if (mode & ITS_MIN_MAX_XORSIGN) r = T##_is_nan(r) ? r : r | sign;                                   \
        return r;                                                                                           \
    }                                                                                                       \
    static inline uint16_t T##_sat(uint16_t a) { /* to [+0, 1] */                                           \
        return T##_is_nan(a) || a & 0x8000 ? 0 : half_key(a) > half_key(T##_f32(1.0f)) ? T##_f32(1.0f) : a; \
    }                                                                                                       \
    static inline uint16_t T##_relu(uint16_t a) {                                                           \
        return T##_is_nan(a) ? ITS_NAN_HALF : a & 0x8000 ? 0 : a;                                           \
    }                                                                                                       \
    static inline uint16_t T##_neg(uint16_t a) {                                                            \
        return T##_is_nan(a) ? ITS_NAN_HALF : a ^ 0x8000;                                                   \
    }                                                                                                       \
    static inline uint16_t T##_abs(uint16_t a) {                                                            \
        return T##_is_nan(a) ? ITS_NAN_HALF : a & 0x7fff;                                                   \
    }
ITS_HALF_MIN_MAX(f16)
ITS_HALF_MIN_MAX(bf16)
#undef ITS_HALF_MIN_MAX

/* Flushed if subnormal when rounded without a limit to the exponent; sources must have been flushed. */
static inline uint16_t f16_mul_ftz(uint16_t a, uint16_t b) {
    float p = f32_f16(a) * f32_f16(b);
    return (f16_f32(p * 0x1p14f) & 0x7fff) < 0x3c00 ? (uint16_t)((bits_f32(p) >> 16) & 0x8000u) : f16_f32(p);
}
static inline uint16_t f16_fma_ftz(uint16_t a, uint16_t b, uint16_t c) {
    float s = f32_odd_fma(f32_f16(a), f32_f16(b), f32_f16(c));
    return (f16_f32(s * 0x1p14f) & 0x7fff) < 0x3c00 ? (uint16_t)((bits_f32(s) >> 16) & 0x8000u) : f16_f32(s);
}

/* -- approximations ------------------------------------------------------------------------------------------------ */

/* 2 to the power of x: the fraction by a polynomial in double precision, whose error is below 2^-31. */
static inline float ex2_f32(float x) {
    double limited = x < 130.0f ? (x > -160.0f ? (double)x : -160.0) : 130.0;
    double whole = (limited + 0x1.8p52) - 0x1.8p52, t = (limited - whole) * 0.693147180559945309417;
    double p =
        1.0 +
        t * (1.0 + t * (1.0 / 2 +
                        t * (1.0 / 6 + t * (1.0 / 24 + t * (1.0 / 120 +
                                                            t * (1.0 / 720 + t * (1.0 / 5040 + t * (1.0 / 40320))))))));
    double scale = f64_bits((uint64_t)((int64_t)whole + 1023) << 52);
    return x == x ? (float)(p * scale) : f32_bits(ITS_NAN_F32);
}

/* The logarithm to base 2: the exponent plus 2 / ln 2 * artanh((m - 1) / (m + 1)) for m in [sqrt(1/2), sqrt(2)). */
static inline float lg2_f32(float x) {
    uint64_t u = bits_f64((double)x);
    uint64_t shifted = u - 0x3fe6a09e667f3bcdull; /* the bits of sqrt(1/2) */
    int64_t exponent = (int64_t)shifted >> 52;
    double m = f64_bits(u - ((uint64_t)exponent << 52));
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 + z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13))))));
    float r = (float)((double)exponent + s * p * 2.88539008177792681472);
    r = x > 0 ? r : x == 0 ? -__builtin_inff() : f32_bits(ITS_NAN_F32);
    return x == __builtin_inff() ? x : r;
}

static inline float rsqrt_f32(float x) {
    return canon_f32((float)(1.0 / __builtin_sqrt((double)x)));
}
static inline double rsqrt_f64(double x) {
    return nan1_f64(1.0 / __builtin_sqrt(x), x);
}
static inline float rcp_f32(float x) {
    return canon_f32(1.0f / x);
}
static inline float sin_approx(float x) {
    return canon_f32((float)sin((double)x));
}
static inline float cos_approx(float x) {
    return canon_f32((float)cos((double)x));
}
static inline float tanh_approx(float x) {
    return canon_f32((float)tanh((double)x));
}
/* div.approx: a divisor beyond 2^126 gives a zero. */
static inline float div_approx(float a, float b) {
    float r = a / b;
    uint32_t exponent = (bits_f32(b) >> 23) & 0xff;
    int huge = exponent >= 253 && exponent < 255 && (bits_f32(b) & 0x7fffffffu) > 0x7e800000u;
    float zero = a - a == 0 ? f32_bits((bits_f32(a) ^ bits_f32(b)) & 0x80000000u) : f32_bits(ITS_NAN_F32);
    return canon_f32(huge ? zero : r);
}
/* The gross approximations of double precision read and write the upper word only. */
static inline double upper_f64(double x) {
    return f64_bits(bits_f64(x) & 0xffffffff00000000ull);
}
static inline double flush_f64(double x) {
    uint64_t u = bits_f64(x);
    return f64_bits(u & 0x7ff0000000000000ull ? u : u & 0x8000000000000000ull);
}
static inline double gross_f64(double x) {
    return x == x ? upper_f64(flush_f64(x)) : f64_bits(0x7fffffff00000000ull);
}
static inline double rcp_gross(double x) {
    return gross_f64(1.0 / flush_f64(upper_f64(x)));
}
static inline double rsqrt_gross(double x) {
    return gross_f64(1.0 / __builtin_sqrt(flush_f64(upper_f64(x))));
}

static inline float f32_f64(double x) { /* a NaN keeps its sign and the upper bits of its payload */
    uint64_t u = bits_f64(x);
    uint32_t nan = (uint32_t)(u >> 32 & 0x80000000u) | 0x7fc00000u | (uint32_t)((u >> 29) & 0x7fffffu);
    return x == x ? (float)x : f32_bits(nan);
}
static inline double f64_f32(float x) {
    uint64_t u = bits_f32(x);
    uint64_t nan = (u & 0x80000000u) << 32 | 0x7ff8000000000000ull | (u & 0x7fffffu) << 29;
    return x == x ? (double)x : f64_bits(nan);
}

/* -- conversions that are common enough to have a loop of their own ------------------------------------------------ */

static inline int32_t s32_f32(float x) { /* towards zero */
    return x >= 0x1p31f ? INT32_MAX : x > -0x1p31f ? (int32_t)x : x == x ? INT32_MIN : 0;
}
static inline uint32_t u32_f32(float x) {
    return x >= 0x1p32f ? UINT32_MAX : x > 0.0f ? (uint32_t)x : 0;
}

#endif
