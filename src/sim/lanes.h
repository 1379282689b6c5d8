/*
 * The 32 lanes of a warp as arrays. A register is 32 consecutive elements of its size (64, 128, 256 or 512 bytes,
 * aligned to 64), a predicate one 32-bit word with a bit per lane. The element types may alias each other: a register
 * has no type of its own, the instruction says what it reads.
 */
#ifndef ITS_SIM_LANES_H
#define ITS_SIM_LANES_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) || defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

#define ITS_LANES 32
#define ITS_FULL 0xffffffffu

#define ITS_ALIAS __attribute__((may_alias))
typedef uint8_t ITS_ALIAS u8;
typedef uint16_t ITS_ALIAS u16;
typedef uint32_t ITS_ALIAS u32;
typedef uint64_t ITS_ALIAS u64;
typedef int8_t ITS_ALIAS s8;
typedef int16_t ITS_ALIAS s16;
typedef int32_t ITS_ALIAS s32;
typedef int64_t ITS_ALIAS s64;
typedef float ITS_ALIAS f32;
typedef double ITS_ALIAS f64;
typedef struct ITS_ALIAS b128 {
    uint64_t low, high;
} b128;

#if defined(__clang__)
#define ITS_EACH_LANE _Pragma("clang loop vectorize(assume_safety)") for (u32 i = 0; i < ITS_LANES; i++)
#else
/* Lane i reads and writes elements i only, so registers that are the same carry no dependence from lane to lane. */
#define ITS_EACH_LANE _Pragma("GCC ivdep") for (u32 i = 0; i < ITS_LANES; i++)
#endif

#define ITS_ALIGNED64(pointer) __builtin_assume_aligned((pointer), 64)

/* One bit per lane from 32 words that are 0 or ~0. */
static inline uint32_t its_lanes_pack(const int32_t *words) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    uint32_t low = _mm512_movepi32_mask(_mm512_load_si512(words));
    uint32_t high = _mm512_movepi32_mask(_mm512_load_si512(words + 16));
    return low | high << 16;
#elif defined(__AVX2__)
    uint32_t mask = 0;
    for (unsigned k = 0; k < 4; k++) {
        __m256i part = _mm256_load_si256((const __m256i *)(const void *)(words + 8 * k));
        mask |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(part)) << (8 * k);
    }
    return mask;
#elif defined(__SSE2__)
    uint32_t mask = 0;
    for (unsigned k = 0; k < 8; k++) {
        __m128i part = _mm_load_si128((const __m128i *)(const void *)(words + 4 * k));
        mask |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(part)) << (4 * k);
    }
    return mask;
#else
    uint32_t mask = 0;
    for (unsigned i = 0; i < ITS_LANES; i++) mask |= ((uint32_t)words[i] & 1u) << i;
    return mask;
#endif
}

/* Copies the lanes of `mask` from `from` to `to`, registers of `size` bytes per lane; size 0 is a predicate. */
static inline void its_lanes_merge(char *to, const char *from, uint32_t mask, unsigned size) {
    if (size == 4) {
        u32 *d = ITS_ALIGNED64(to);
        const u32 *s = ITS_ALIGNED64(from);
        ITS_EACH_LANE d[i] = (mask >> i) & 1 ? s[i] : d[i];
    } else if (size == 0) {
        u32 *d = (u32 *)(void *)to;
        *d = (*d & ~mask) | (*(const u32 *)(const void *)from & mask);
    } else if (size == 8) {
        u64 *d = ITS_ALIGNED64(to);
        const u64 *s = ITS_ALIGNED64(from);
        ITS_EACH_LANE d[i] = (mask >> i) & 1 ? s[i] : d[i];
    } else if (size == 2) {
        u16 *d = ITS_ALIGNED64(to);
        const u16 *s = ITS_ALIGNED64(from);
        ITS_EACH_LANE d[i] = (mask >> i) & 1 ? s[i] : d[i];
    } else {
        for (unsigned i = 0; i < ITS_LANES; i++)
            if ((mask >> i) & 1) memcpy(to + i * size, from + i * size, size);
    }
}

#endif
