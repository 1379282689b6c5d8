/*
 * wgmma: matrix products of a warpgroup, four warps, in the background.
 *
 * Warp w of the four computes rows 16 w to 16 w + 15 of D = A B + D. Both matrices may lie in shared memory, found by a
 * 64-bit *matrix descriptor*; A may be in registers instead. A product is computed as late as the program lets it be,
 * when a thread waits for its group, and by its warp alone: a program that doesn't wait reads what its registers held
 * before, and one that writes over the matrices too early gets what it wrote. Registers that a product still writes may
 * not be used before the wait; a compiler's `mov` of one, for which ptxas inserts a wait, waits here too.
 *
 * A matrix in shared memory is made of pieces of 16 bytes. It is *K-major* if they lie along the summed dimension, else
 * MN-major, which only elements of 16 bits may be:
 *
 *     descriptor | swizzle | 0 | base offset | 0 | stride | 0 | leading | 0 | start |
 *                 63     62     51        49      45    32     29     16     13    0      offsets in units of 16 bytes
 *
 *     K-major       piece of row r, c-th along K         MN-major      8 rows from 8 q on, at k
 *       no swizzle    r%8 * 16 + r/8 * stride + c * leading             q * stride + k%8 * 16 + k/8 * leading
 *       W bytes       r%8 * W + r/8 * stride + c * 16                   q%(W/16) * 16 + q/(W/16) * leading
 *                                                                         + k%8 * W + k/8 * stride
 */
#ifndef ITS_SIM_WGMMA_H
#define ITS_SIM_WGMMA_H

#include "sim/exec.h"
#include "sim/tensormap.h"

/* What op->list is the index of; behind it the registers of D, then the four of A if it is in registers. */
enum {
    ITS_WGMMA_N,      /* columns: 8 to 256 */
    ITS_WGMMA_A_TYPE, /* its_sim_element */
    ITS_WGMMA_B_TYPE,
    ITS_WGMMA_D_TYPE,
    ITS_WGMMA_FLAGS,
    ITS_WGMMA_N_D, /* registers of D */
    ITS_WGMMA_REGS
};
enum { /* flags */
       ITS_WGMMA_A_IN_REGS = 1,
       ITS_WGMMA_NEGATE = 2, /* one of A and B, not both */
       ITS_WGMMA_A_MN_MAJOR = 4,
       ITS_WGMMA_B_MN_MAJOR = 8,
       ITS_WGMMA_SATURATE = 16
};
enum { /* op->mode of WGMMA_TOUCH; op->list: the number of registers that an instruction uses, and these */
       ITS_WGMMA_USES,
       ITS_WGMMA_MOVES /* and does nothing else */
};
enum { /* op->mode of WGMMA_GROUP */
       ITS_WGMMA_COMMIT,
       ITS_WGMMA_WAIT /* imm: groups that may be left */
};

typedef struct its_sim_product {
    const its_sim_op *op;
    uint32_t base;  /* register frame */
    uint32_t group; /* that it belongs to */
    uint64_t a, b;  /* descriptors */
    bool accumulates;
    u32 rows[4][ITS_LANES]; /* A, if it is in registers: what they held */
} its_sim_product;

struct its_sim_products {
    its_sim_product *items;
    uint32_t count, capacity;
    uint32_t committed; /* groups */
};

typedef struct its_sim_matrix {
    uint32_t start, leading, stride; /* bytes */
    uint8_t swizzle;                 /* ITS_SWIZZLE_... */
} its_sim_matrix;

static inline its_sim_matrix its_sim_matrix_of(uint64_t descriptor) {
    static const uint8_t swizzles[] = {ITS_SWIZZLE_NONE, ITS_SWIZZLE_128, ITS_SWIZZLE_64, ITS_SWIZZLE_32};
    return (its_sim_matrix){.start = (uint32_t)(descriptor & 0x3fff) << 4,
                            .leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                            .stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
                            .swizzle = swizzles[descriptor >> 62]};
}

/* The shared address of the piece of row (or column) `row` that is the `piece`-th along K. */
static inline uint32_t its_sim_k_major(const its_sim_matrix *m, uint32_t row, uint32_t piece) {
    uint32_t width = m->swizzle ? 16u << m->swizzle : 16, along = m->swizzle ? 16 : m->leading;
    uint32_t at = m->start + row % 8 * width + row / 8 * m->stride + piece * along;
    return its_sim_swizzle(at & 0x3ffff, m->swizzle);
}

/* The shared address of rows (or columns) 8 q to 8 q + 7 at k. */
static inline uint32_t its_sim_mn_major(const its_sim_matrix *m, uint32_t q, uint32_t k) {
    uint32_t pieces = 1u << m->swizzle, at = m->start + k % 8 * 16 * pieces;
    if (m->swizzle)
        at += q % pieces * 16 + q / pieces * m->leading + k / 8 * m->stride;
    else
        at += q * m->stride + k / 8 * m->leading;
    return its_sim_swizzle(at & 0x3ffff, m->swizzle);
}

void its_sim_products_free(its_context *ctx, its_sim_warp *warp);
/* Does a product of the warp still write registers of the frame at `base`? */
bool its_sim_products_use(const its_sim_warp *warp, uint32_t base);

#endif
