/*
 * Matrix instructions of a warp.
 *
 * A fragment register of PTX holds, over the 32 lanes of a warp, an 8-row tile of a matrix: lane 4 * row + i holds the
 * i-th of four groups of columns. A register of the simulator is the lanes one after the other, so its memory simply is
 * that tile, row by row:
 *
 *     16-bit elements    u16[8][8]        32- and 64-bit elements   u32[8][4], u64[8][4]
 *      8-bit elements    u8[8][16]         4-bit elements           8 rows of 32
 *      1-bit elements    u32[8][4], 8 rows of 128
 *
 * Register j of A is the tile at row block j % (M / 8) and column block j / (M / 8); register j of B, stored by
 * columns, is column block j of its transpose; C and D have two registers per row block, for even and for odd columns
 * (one, of pairs, where an element has 16 bits).
 */
#ifndef ITS_SIM_MATRIX_H
#define ITS_SIM_MATRIX_H

#include <stdint.h>

typedef enum its_sim_element {
    ITS_ELEMENT_F16,
    ITS_ELEMENT_BF16,
    ITS_ELEMENT_TF32,
    ITS_ELEMENT_E4M3,
    ITS_ELEMENT_E5M2,
    ITS_ELEMENT_S8,
    ITS_ELEMENT_U8,
    ITS_ELEMENT_S4,
    ITS_ELEMENT_U4,
    ITS_ELEMENT_F64,
    ITS_ELEMENT_F32, /* C and D only, as S32 */
    ITS_ELEMENT_S32,
    ITS_ELEMENT_B1, /* A and B of mma: bits that are and-ed, or xor-ed, and counted */
    ITS_ELEMENT_B1_XOR
} its_sim_element;

/* What op->list is the index of: the shape, then the places of the registers of D, A, B and C. */
enum {
    ITS_MMA_M,      /* rows: 8 or 16 */
    ITS_MMA_K,      /* columns of A: at most ITS_MMA_MOST_K, or ITS_MMA_MOST_BITS */
    ITS_MMA_A_TYPE, /* its_sim_element */
    ITS_MMA_B_TYPE,
    ITS_MMA_C_TYPE,
    ITS_MMA_D_TYPE,
    ITS_MMA_SATURATE,
    ITS_MMA_N_A, /* registers of A; those of the others follow from the shape */
    ITS_MMA_N_B,
    ITS_MMA_N_C,
    ITS_MMA_N_D,
    ITS_MMA_REGS /* D, A, B, C */
};
enum { ITS_MMA_MOST_K = 64, ITS_MMA_MOST_BITS = 256 };

enum { /* op->flags of LDMATRIX and STMATRIX */
       ITS_MATRIX_TRANSPOSED = 1 << 6
};

#endif
