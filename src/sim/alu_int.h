/* Integer operations that need more than an expression. What PTX leaves open (a division by zero) is as on the GPU. */
#ifndef ITS_SIM_ALU_INT_H
#define ITS_SIM_ALU_INT_H

#include "sim/lanes.h"

#define ITS_TERNARY(c, x, y) ((c) ? (x) : (y))

static inline uint64_t mul_hi_u64(uint64_t a, uint64_t b) {
    return (uint64_t)(((unsigned __int128)a * (unsigned __int128)b) >> 64);
}
static inline int64_t mul_hi_s64(int64_t a, int64_t b) {
    return (int64_t)(((__int128)a * (__int128)b) >> 64);
}

static inline int32_t saturate_s32(int64_t x) {
    return (int32_t)(x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x);
}

/* Division and remainder by zero give all ones; the quotient that overflows wraps around. */
#define ITS_UDIV(T, a, b) ((T)((b) == 0 ? (T) ~(T)0 : (T)((a) / ((b) ? (b) : 1))))
#define ITS_UREM(T, a, b) ((T)((b) == 0 ? (T) ~(T)0 : (T)((a) % ((b) ? (b) : 1))))

static inline int64_t div_s64(int64_t a, int64_t b) {
    if (b == 0) return -1;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    return a / b;
}
static inline int64_t rem_s64(int64_t a, int64_t b) {
    if (b == 0) return -1;
    if (b == -1) return 0;
    return a % b;
}

/* Shifts: a count at or beyond the width shifts everything out. */
static inline uint32_t shl_u32(uint32_t a, uint32_t n) {
    return n > 31 ? 0 : a << (n & 31);
}
static inline uint64_t shl_u64(uint64_t a, uint32_t n) {
    return n > 63 ? 0 : a << (n & 63);
}
static inline uint32_t shr_u32(uint32_t a, uint32_t n) {
    return n > 31 ? 0 : a >> (n & 31);
}
static inline uint64_t shr_u64(uint64_t a, uint32_t n) {
    return n > 63 ? 0 : a >> (n & 63);
}
static inline int32_t shr_s32(int32_t a, uint32_t n) {
    return a >> (n > 31 ? 31 : n);
}
static inline int64_t shr_s64(int64_t a, uint32_t n) {
    return a >> (n > 63 ? 63 : n);
}

/* shf: the upper (left) or lower (right) word of b:a shifted by n, which is at most 32. */
static inline uint32_t shf_left(uint32_t a, uint32_t b, uint32_t n) {
    return (uint32_t)((((uint64_t)b << 32 | a) << n) >> 32);
}
static inline uint32_t shf_right(uint32_t a, uint32_t b, uint32_t n) {
    return (uint32_t)(((uint64_t)b << 32 | a) >> n);
}

static inline uint32_t brev_u32(uint32_t a) {
    a = (a & 0x55555555u) << 1 | ((a >> 1) & 0x55555555u);
    a = (a & 0x33333333u) << 2 | ((a >> 2) & 0x33333333u);
    a = (a & 0x0f0f0f0fu) << 4 | ((a >> 4) & 0x0f0f0f0fu);
    return __builtin_bswap32(a);
}
static inline uint64_t brev_u64(uint64_t a) {
    return (uint64_t)brev_u32((uint32_t)a) << 32 | brev_u32((uint32_t)(a >> 32));
}
static inline uint32_t clz_u32(uint32_t a) {
    return a ? (uint32_t)__builtin_clz(a) : 32;
}
static inline uint32_t clz_u64(uint64_t a) {
    return a ? (uint32_t)__builtin_clzll(a) : 64;
}

/* bfind: the position of the highest bit that differs from the sign, or ~0; with `shift`, the distance to the top. */
static inline uint32_t bfind_bits(uint64_t a, uint32_t width, uint32_t shift) {
    if (a == 0) return 0xffffffffu;
    uint32_t position = 63 - clz_u64(a);
    return shift ? width - 1 - position : position;
}

/* Bit fields: of 32-bit forms position and length are the low bytes of their registers, else all of them. */
static inline uint64_t bfe_bits(uint64_t a, uint32_t position, uint32_t length, uint32_t width, int is_signed) {
    if (width == 32) {
        position &= 0xff;
        length &= 0xff;
    }
    uint64_t last = (uint64_t)position + length - 1;
    if (last > width - 1) last = width - 1;
    uint64_t sign = is_signed && length ? (a >> last) & 1 : 0;
    uint64_t field = position >= width || length == 0 ? 0 : a >> position;
    uint32_t have = position >= width ? 0 : width - position < length ? width - position : length;
    if (have < 64) field &= ((uint64_t)1 << have) - 1;
    if (sign && have < 64) field |= ~(uint64_t)0 << have;
    return field;
}
static inline uint64_t bfi_bits(uint64_t a, uint64_t b, uint32_t position, uint32_t length, uint32_t width) {
    if (width == 32) {
        position &= 0xff;
        length &= 0xff;
    }
    if (position >= width || length == 0) return b;
    uint64_t ones = length >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << length) - 1;
    return (b & ~(ones << position)) | ((a & ones) << position);
}
static inline uint32_t bmsk_clamp(uint32_t position, uint32_t length) {
    if (position > 31) return 0;
    uint32_t ones = length > 31 ? ~0u : (1u << length) - 1;
    return ones << position;
}
static inline uint32_t bmsk_wrap(uint32_t position, uint32_t length) {
    return ((1u << (length & 31)) - 1) << (position & 31);
}
/* szext: the low n bits of a, sign or zero extended. */
static inline uint32_t szext_bits(uint32_t a, uint32_t n, int wrap, int is_signed) {
    if (wrap) n &= 31;
    if (n > 31) return a;
    if (n == 0) return 0;
    uint32_t field = a & ((1u << n) - 1);
    return is_signed && (field >> (n - 1)) & 1 ? field | ~0u << n : field;
}

/* fns: the position of the n-th set bit of mask from base upwards (n > 0) or downwards (n < 0); n = 0: base itself. */
static inline uint32_t fns_bits(uint32_t mask, uint32_t base, int32_t n) {
    if (base > 31) return 0xffffffffu;
    if (n == INT32_MIN) return 0; /* what a GPU makes of a number that has no absolute value */
    if (n == 0) return (mask >> base) & 1 ? base : 0xffffffffu;
    int32_t step = n > 0 ? 1 : -1;
    int64_t count = 0;
    for (int32_t at = (int32_t)base; at >= 0 && at < 32; at += step) {
        count += (mask >> at) & 1;
        if (count == (int64_t)n * step) return (uint32_t)at;
    }
    return 0xffffffffu;
}

/* dp4a, dp2a: mode bit 0 says that a is signed, bit 1 that b is; dp2a takes the upper bytes of b with bit 2. */
static inline int64_t byte_of(uint32_t a, unsigned k, int is_signed) {
    uint32_t byte = (a >> (8 * k)) & 0xff;
    return is_signed ? (int8_t)byte : (int64_t)byte;
}
static inline int64_t half_of(uint32_t a, unsigned k, int is_signed) {
    uint32_t half = (a >> (16 * k)) & 0xffff;
    return is_signed ? (int16_t)half : (int64_t)half;
}
static inline uint32_t dp4a_bits(uint32_t a, uint32_t b, uint32_t c, unsigned mode) {
    int64_t sum = c;
    for (unsigned k = 0; k < 4; k++) sum += byte_of(a, k, mode & 1) * byte_of(b, k, mode & 2);
    return (uint32_t)sum;
}
static inline uint32_t dp2a_bits(uint32_t a, uint32_t b, uint32_t c, unsigned mode) {
    int64_t sum = c;
    for (unsigned k = 0; k < 2; k++) sum += half_of(a, k, mode & 1) * byte_of(b, k + (mode & 4 ? 2 : 0), mode & 2);
    return (uint32_t)sum;
}

/* cvt.pack: mode is how many bits a result has, and 32 if it is signed. */
static inline uint32_t pack_bits(int32_t a, int32_t b, uint32_t c, unsigned mode) {
    unsigned bits = mode & 31;
    int32_t low = mode & 32 ? -(1 << (bits - 1)) : 0, high = mode & 32 ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    uint32_t kept = (1u << bits) - 1;
    uint32_t upper = (uint32_t)(a < low ? low : a > high ? high : a) & kept;
    uint32_t lower = (uint32_t)(b < low ? low : b > high ? high : b) & kept;
    uint32_t packed = upper << bits | lower;
    return bits == 16 ? packed : c << (2 * bits) | packed;
}

/* prmt: each nibble of the selector picks a byte of b:a; its top bit spreads that byte's sign. */
static inline uint32_t prmt_bits(uint32_t a, uint32_t b, uint32_t selector) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (unsigned k = 0; k < 4; k++) {
        uint32_t pick = selector >> (4 * k);
        uint32_t byte = (uint32_t)(bytes >> (8 * (pick & 7))) & 0xff;
        if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
        result |= byte << (8 * k);
    }
    return result;
}
/* The selectors that .f4e .b4e .rc8 .ecl .ecr .rc16 (modes 1 to 6) stand for, by the low two bits of c. */
static inline uint32_t prmt_selector(unsigned mode, uint32_t c) {
    static const uint16_t selectors[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123}, {0x0000, 0x1111, 0x2222, 0x3333},
        {0x3210, 0x3211, 0x3222, 0x3333}, {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232},
    };
    return selectors[mode - 1][c & 3];
}

/* lop3: bit k of the table is the result for the k-th combination of bits of a (4), b (2), c (1). */
static inline uint32_t lop3_bits(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
#define ITS_MINTERM(k) (0u - ((table >> (k)) & 1u))
    return (ITS_MINTERM(0) & ~a & ~b & ~c) | (ITS_MINTERM(1) & ~a & ~b & c) | (ITS_MINTERM(2) & ~a & b & ~c) |
           (ITS_MINTERM(3) & ~a & b & c) | (ITS_MINTERM(4) & a & ~b & ~c) | (ITS_MINTERM(5) & a & ~b & c) |
           (ITS_MINTERM(6) & a & b & ~c) | (ITS_MINTERM(7) & a & b & c);
#undef ITS_MINTERM
}

/* Two 16-bit values in a word. */
#define ITS_X2(lo, hi) ((uint32_t)(uint16_t)(lo) | (uint32_t)(uint16_t)(hi) << 16)
static inline uint16_t lo16(uint32_t x) {
    return (uint16_t)x;
}
static inline uint16_t hi16(uint32_t x) {
    return (uint16_t)(x >> 16);
}
#define ITS_MIN(a, b) ((a) < (b) ? (a) : (b))
#define ITS_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
