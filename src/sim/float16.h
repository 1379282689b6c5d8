/*
 * Half precision and bfloat16 in ordinary arithmetic, written without branches so that loops over lanes vectorise.
 *
 * Sums, products and quotients of two such numbers are computed in single precision and rounded once more: with 24 bits
 * against at most 11, the second rounding never changes the result (24 >= 2 * 11 + 2). A fused multiply-add is computed
 * *rounded to odd*, which keeps the information that the last rounding needs: in single precision for halves, whose
 * products are exact there, in double precision for bfloat16, whose exponents are too large for that.
 * NaN results are the GPU's canonical ones, 0x7fff.
 */
#ifndef ITS_SIM_FLOAT16_H
#define ITS_SIM_FLOAT16_H

#include "sim/lanes.h"

static inline uint32_t bits_f32(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}
static inline float f32_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof(x));
    return x;
}
static inline uint64_t bits_f64(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}
static inline double f64_bits(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof(x));
    return x;
}

/* -- to and from single precision ---------------------------------------------------------------------------------- */

static inline float f32_f16(uint16_t h) {
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
    uint32_t finite = bits_f32(f32_bits(magnitude) * 0x1p112f); /* rebias; subnormals come out exact */
    uint32_t u = magnitude >= 0x7c00u << 13 ? magnitude | 0x7f800000u : finite;
    return f32_bits(u | (uint32_t)(h & 0x8000) << 16);
}
static inline float f32_bf16(uint16_t h) {
    return f32_bits((uint32_t)h << 16);
}

static inline uint16_t f16_f32(float x) { /* round to nearest even */
    uint32_t u = bits_f32(x), sign = (u >> 16) & 0x8000u;
    u &= 0x7fffffffu;
    uint32_t normal = (u - (112u << 23) + 0xfffu + ((u >> 13) & 1u)) >> 13;
    uint32_t small = bits_f32(f32_bits(u) + 0.5f) - 0x3f000000u; /* 0.5 has the ulp of a half's subnormals */
    uint32_t h = u < 0x38800000u ? small : normal;
    h = u >= 0x47800000u ? 0x7c00u : h;
    return (uint16_t)(u > 0x7f800000u ? 0x7fffu : h | sign);
}
static inline uint16_t bf16_f32(float x) {
    uint32_t u = bits_f32(x);
    uint32_t h = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : h);
}

/* -- from double precision, in one rounding ------------------------------------------------------------------------ */

/* Towards zero, with the last bit set if anything was lost: a further rounding to fewer bits is then exact. */
static inline float f32_odd_f64(double x) {
    float f = (float)x;
    uint32_t u = bits_f32(f);
    double back = (double)f;
    u -= __builtin_fabs(back) > __builtin_fabs(x) ? 1u : 0u;
    u |= back != x && x == x ? 1u : 0u;
    return f32_bits(u);
}
static inline uint16_t f16_f64(double x) {
    return f16_f32(f32_odd_f64(x));
}
static inline uint16_t bf16_f64(double x) {
    return bf16_f32(f32_odd_f64(x));
}

/* a * b + c rounded to odd, for factors whose product is exact in double precision. */
static inline double f64_odd_fma(double a, double b, double c) {
    double p = a * b, s = p + c;
    double part = s - p, lost = (p - (s - part)) + (c - part); /* the exact sum is s + lost */
    uint64_t u = bits_f64(s);
    uint64_t step = (lost > 0) == (s > 0) ? 1u : UINT64_MAX;
    uint64_t odd = u & 1 ? u : u + step;
    return f64_bits((lost > 0 || lost < 0) && __builtin_fabs(s) < __builtin_inf() ? odd : u);
}

/* The same in single precision, for the products of halves. */
static inline float f32_odd_fma(float a, float b, float c) {
    float p = a * b, s = p + c;
    float part = s - p, lost = (p - (s - part)) + (c - part);
    uint32_t u = bits_f32(s);
    uint32_t step = (lost > 0) == (s > 0) ? 1u : UINT32_MAX;
    uint32_t odd = u & 1 ? u : u + step;
    return f32_bits((lost > 0 || lost < 0) && __builtin_fabsf(s) < __builtin_inff() ? odd : u);
}

/* -- arithmetic on bits -------------------------------------------------------------------------------------------- */

static inline uint16_t f16_fma(uint16_t a, uint16_t b, uint16_t c) {
    return f16_f32(f32_odd_fma(f32_f16(a), f32_f16(b), f32_f16(c)));
}
static inline uint16_t bf16_fma(uint16_t a, uint16_t b, uint16_t c) {
    return bf16_f64(f64_odd_fma((double)f32_bf16(a), (double)f32_bf16(b), (double)f32_bf16(c)));
}

#define ITS_HALF_ARITHMETIC(T)                               \
    static inline uint16_t T##_add(uint16_t a, uint16_t b) { \
        return T##_f32(f32_##T(a) + f32_##T(b));             \
    }                                                        \
    static inline uint16_t T##_sub(uint16_t a, uint16_t b) { \
        return T##_f32(f32_##T(a) - f32_##T(b));             \
    }                                                        \
    static inline uint16_t T##_mul(uint16_t a, uint16_t b) { \
        return T##_f32(f32_##T(a) * f32_##T(b));             \
    }
ITS_HALF_ARITHMETIC(f16)
ITS_HALF_ARITHMETIC(bf16)
#undef ITS_HALF_ARITHMETIC

static inline int f16_is_nan(uint16_t h) {
    return (h & 0x7fff) > 0x7c00;
}
static inline int bf16_is_nan(uint16_t h) {
    return (h & 0x7fff) > 0x7f80;
}
/* Orders finite numbers and infinities as their signed integers: -0 comes before +0. */
static inline int16_t half_key(uint16_t h) {
    return (int16_t)(h & 0x8000 ? ~(h & 0x7fff) : h);
}
/* Subnormals to zeros of the same sign. */
static inline uint16_t f16_flush(uint16_t h) {
    return (uint16_t)(h & 0x7c00 ? h : h & 0x8000);
}
static inline uint16_t bf16_flush(uint16_t h) {
    return (uint16_t)(h & 0x7f80 ? h : h & 0x8000);
}

#endif
