/*
 * Conversions between all formats: exact value out, one rounding in. What CVT does is packed into op->imm.
 */
#ifndef ITS_SIM_CVT_H
#define ITS_SIM_CVT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum its_sim_format {
    ITS_FORMAT_U8,
    ITS_FORMAT_S8,
    ITS_FORMAT_U16,
    ITS_FORMAT_S16,
    ITS_FORMAT_U32,
    ITS_FORMAT_S32,
    ITS_FORMAT_U64,
    ITS_FORMAT_S64, /* integers up to here */
    ITS_FORMAT_F16,
    ITS_FORMAT_BF16,
    ITS_FORMAT_TF32,
    ITS_FORMAT_F32,
    ITS_FORMAT_F64,
    ITS_FORMAT_E4M3,
    ITS_FORMAT_E5M2,
    ITS_FORMAT_COUNT
} its_sim_format;

typedef enum its_sim_rounding {
    ITS_ROUND_NEAREST, /* ties to even */
    ITS_ROUND_ZERO,
    ITS_ROUND_DOWN,
    ITS_ROUND_UP,
    ITS_ROUND_AWAY /* to nearest, ties away from zero */
} its_sim_rounding;

enum { /* flags */
       ITS_CVT_FTZ_IN = 1 << 0,
       ITS_CVT_FTZ_OUT = 1 << 1,
       ITS_CVT_SAT = 1 << 2,       /* integers: to the range; floating point: to [0, 1] */
       ITS_CVT_SATFINITE = 1 << 3, /* to the largest finite number */
       ITS_CVT_RELU = 1 << 4,
       ITS_CVT_INTEGRAL = 1 << 5 /* floating point to an integral value of the same format */
};

typedef struct its_sim_cvt {
    uint8_t from, to; /* its_sim_format */
    uint8_t rounding; /* its_sim_rounding */
    uint8_t flags;
    uint8_t halves; /* CVT: 1, or 2 for packed formats that are converted element by element */
} its_sim_cvt;

static inline int64_t its_sim_cvt_pack(its_sim_cvt c) {
    return (int64_t)((uint64_t)c.from | (uint64_t)c.to << 8 | (uint64_t)c.rounding << 16 | (uint64_t)c.flags << 24 |
                     (uint64_t)c.halves << 32);
}
static inline its_sim_cvt its_sim_cvt_unpack(int64_t imm) {
    uint64_t u = (uint64_t)imm;
    return (its_sim_cvt){(uint8_t)u, (uint8_t)(u >> 8), (uint8_t)(u >> 16), (uint8_t)(u >> 24), (uint8_t)(u >> 32)};
}

/* Bits of a value in a format. */
uint32_t its_sim_format_bits(its_sim_format format);
bool its_sim_format_is_signed(its_sim_format format); /* integers: sign-extended in a wider register */

#endif
