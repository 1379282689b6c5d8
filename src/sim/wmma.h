/*
 * wmma: matrices of a warp whose layout over its registers is nobody's business. Here element e of a matrix, counted
 * row by row, is the e-th of its registers' elements, one register after the other, each with its lanes side by side.
 * Where PTX gives a matrix more registers than it needs, they repeat it.
 */
#ifndef ITS_SIM_WMMA_H
#define ITS_SIM_WMMA_H

/* What op->list is the index of, for loading and storing; behind it the registers. */
enum {
    ITS_WMMA_ROWS,
    ITS_WMMA_COLUMNS,
    ITS_WMMA_BYTES, /* of an element */
    ITS_WMMA_N_REGS,
    ITS_WMMA_REGS
};
enum { /* op->mode of WMMA_MOVE; op->b: elements from row to row, or from column to column */
       ITS_WMMA_STORES = 1,
       ITS_WMMA_BY_COLUMNS = 2
};

/* The same for a product: behind it the registers of D, A, B and C. */
enum {
    ITS_WMMA_M,
    ITS_WMMA_N,
    ITS_WMMA_K,
    ITS_WMMA_TYPE_D, /* its_sim_element */
    ITS_WMMA_TYPE_A,
    ITS_WMMA_TYPE_B,
    ITS_WMMA_TYPE_C,
    ITS_WMMA_SATURATES,
    ITS_WMMA_N_D, /* registers */
    ITS_WMMA_N_A,
    ITS_WMMA_N_B,
    ITS_WMMA_N_C,
    ITS_WMMA_PRODUCT_REGS
};

#endif
