/*
 * Asynchronous copies and mbarriers.
 *
 * A copy is made as late as the program lets it be: when a thread waits for its group, or when somebody looks at the
 * mbarrier that it completes on. A program that doesn't wait reads what was there before, as it might on a GPU.
 *
 * The state of an mbarrier is kept beside shared memory, in its CTA: so a barrier that was never initialised, or one
 * that was overwritten, is recognised. In memory it has a value that nothing else is likely to have.
 */
#ifndef ITS_SIM_ASYNC_H
#define ITS_SIM_ASYNC_H

#include "sim/exec.h"
#include "sim/modes.h"
#include "sim/tensormap.h"

/* cp.async of one warp, waiting: lane i copies to[i] <- from[i]. */
typedef struct its_sim_copy {
    uint32_t mask; /* lanes that have not done it yet */
    const its_sim_op *op;
    uint32_t size; /* bytes written, from[] being read for `given` of them */
    char *to[ITS_LANES], *from[ITS_LANES];
    uint32_t given[ITS_LANES];
    uint32_t group[ITS_LANES]; /* the lane's group that it belongs to */
    uint64_t generation;       /* of the memory table, when what is read was checked */
} its_sim_copy;

struct its_sim_copies {
    its_sim_copy *items;
    uint32_t count, capacity;
    uint32_t committed[ITS_LANES]; /* groups that each lane has closed */
    char *from[ITS_LANES];         /* between the two operations of a cp.async */
    uint32_t given[ITS_LANES];
    uint32_t barrier[ITS_LANES];   /* of a bulk copy, */
    its_sim_cta *owner[ITS_LANES]; /* and the CTA that has it */
    struct its_sim_store *stores;  /* bulk copies to global memory: see async_store.c */
    uint32_t n_stores, store_capacity;
    uint32_t closed[ITS_LANES]; /* their groups that each lane has closed */
};

/* A bulk copy, or an asynchronous store, that completes on an mbarrier. */
typedef struct its_sim_bulk {
    char *to;
    const char *from;       /* NULL: `data` is stored */
    uint32_t size, barrier; /* the address of the mbarrier in shared memory */
    uint8_t mode, type;     /* ITS_TENSOR_PLAIN, or an its_sim_atomic and what it reduces */
    char data[16];
} its_sim_bulk;

/* The same of a box of a tensor. */
typedef struct its_sim_box {
    its_sim_tensor_map map;
    int32_t at[ITS_TENSOR_RANK]; /* where the box begins; part of it, or all, may be outside of the tensor */
    its_sim_cta *cta;
    uint32_t shared, barrier; /* addresses in its shared memory */
} its_sim_box;

typedef struct its_sim_mbarrier {
    uint32_t address;
    uint32_t expected, pending; /* arrivals: of each phase, still to come in this one */
    int64_t bytes;              /* still to come */
    uint32_t phase;             /* phases completed; the state that arrivals give is this, and `pending` before them */
} its_sim_mbarrier;

struct its_sim_mbarriers {
    its_sim_mbarrier *items;
    uint32_t count, capacity;
    its_sim_bulk *bulks;
    uint32_t n_bulks, bulk_capacity;
    its_sim_box *boxes;
    uint32_t n_boxes, box_capacity;
};

enum {                       /* op->mode of COPY_FROM */
       ITS_COPY_IGNORES = 1, /* predicate c: lanes that read nothing */
       ITS_COPY_NOT = 2      /* it is written with a `!` */
};

enum {                   /* op->mode of BULK_TO */
       ITS_BULK_AT_ONCE, /* a tensor map */
       ITS_BULK_IN_GROUP,
       ITS_BULK_ON_MBARRIER, /* c: a mask of the CTAs of the cluster that it goes to, or 0 */
       ITS_BULK_REDUCE,      /* in a group; vec: its_sim_atomic, type: of the elements */
       ITS_BULK_REDUCE_ON_MBARRIER
};

enum { /* op->mode of TENSOR_REPLACE: the field; vec: which of several */
       ITS_TENSOR_ADDRESS,
       ITS_TENSOR_SET_RANK,
       ITS_TENSOR_BOX,
       ITS_TENSOR_DIM,
       ITS_TENSOR_STRIDE,
       ITS_TENSOR_STEP,
       ITS_TENSOR_TYPE,
       ITS_TENSOR_INTERLEAVE,
       ITS_TENSOR_SWIZZLE,
       ITS_TENSOR_ATOMICITY,
       ITS_TENSOR_FILL
};

enum {                                     /* op->mode of TENSOR_STORE and STORE_ASYNC */
       ITS_TENSOR_PLAIN = ITS_ATOM_DEC + 1 /* or an its_sim_atomic: what is there is reduced with what comes */
};

enum { /* op->mode of COPY_GROUP */
       ITS_COPY_COMMIT,
       ITS_COPY_WAIT, /* imm: groups that may be left; -1: all copies, committed or not */
       ITS_COPY_BULK_COMMIT,
       ITS_COPY_BULK_WAIT
};

enum { /* op->mode of MBARRIER */
       ITS_MBARRIER_INIT,
       ITS_MBARRIER_INVAL,
       ITS_MBARRIER_ARRIVE,    /* b: how many, dst: the state, or NOWHERE; size: must not complete */
       ITS_MBARRIER_ARRIVE_TX, /* arrives once, and b bytes are to come */
       ITS_MBARRIER_DROP,
       ITS_MBARRIER_DROP_TX, /* drops once, and b bytes are to come */
       ITS_MBARRIER_EXPECT,
       ITS_MBARRIER_COMPLETE,
       ITS_MBARRIER_TEST, /* b: the state that arrive gave; dst: a predicate */
       ITS_MBARRIER_TEST_PARITY,
       ITS_MBARRIER_ARRIVE_COPIES, /* cp.async.mbarrier.arrive.noinc */
       ITS_MBARRIER_WAIT_COPIES    /* the same without .noinc: adds an arrival and makes it */
};

#define ITS_MBARRIER_MARK 0x6d62617272696572ull /* what an initialised one holds in memory */

#define ITS_MBARRIER_MOST_BYTES 0xfffff /* that may be expected at a time */

/* What a warp, a CTA has of these; NULL if memory ran out. */
its_sim_copies *its_sim_copies_of(its_sim_exec *x);
its_sim_mbarriers *its_sim_mbarriers_of(its_sim_exec *x, its_sim_cta *cta);
its_sim_verdict its_sim_async_no_memory(its_sim_exec *x, const its_sim_op *op, uint32_t mask);
/* Room for one more element of `size` bytes; NULL if memory ran out. */
void *its_sim_async_grow(its_context *ctx, void *items, uint32_t count, uint32_t *capacity, size_t size);
/* Writes the box to shared memory. False, with a fault, if what it reads is there no more. */
bool its_sim_box_finish(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const its_sim_box *box);

/*
 * The CTAs of its cluster that a lane copies to: those of the mask in register op->c, or `cta` if op->c is 0. 0, with a
 * fault, if there are none such.
 */
uint32_t its_sim_cluster_targets(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const its_sim_cta *cta);

/* Writes the box to global memory. `check`: its rows once more. False, with a fault, if they are there no more. */
bool its_sim_box_put(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const its_sim_box *box, bool check);

/* -- copies to global memory --------------------------------------------------------------------------------------- */

/* Begins one of a lane, which has checked what is read and written; false if memory ran out. */
bool its_sim_store_bytes(its_sim_exec *x, const its_sim_op *op, uint32_t lane, char *to, const char *from,
                         uint32_t size);
bool its_sim_store_box(its_sim_exec *x, const its_sim_op *op, uint32_t lane, const its_sim_box *box);
void its_sim_stores_close_group(its_sim_copies *copies, uint32_t mask);
/* Makes those of the lanes but for the last `left` groups that each has closed; all if it is negative. False on fault.
 */
bool its_sim_stores_wait(its_sim_exec *x, uint32_t mask, int64_t left);
/* Makes all of the grid, or all that are old. False after a fault. Leaves x at no warp in particular. */
bool its_sim_stores_settle(its_sim_exec *x, bool old, bool *any);

/* -- the rest ------------------------------------------------------------------------------------------------------ */

/* Forgets the copies and mbarriers of a CTA that has ended. */
void its_sim_async_reset(its_context *ctx, its_sim_cta *cta);

#endif
