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

/* cp.async of one warp, waiting: lane i copies to[i] <- from[i]. */
typedef struct its_sim_copy {
    uint32_t mask; /* lanes that have not done it yet */
    uint32_t size; /* bytes written, from[] being read for `given` of them */
    char *to[ITS_LANES], *from[ITS_LANES];
    uint32_t given[ITS_LANES];
    uint32_t group[ITS_LANES]; /* the lane's group that it belongs to */
} its_sim_copy;

struct its_sim_copies {
    its_sim_copy *items;
    uint32_t count, capacity;
    uint32_t committed[ITS_LANES]; /* groups that each lane has closed */
    char *from[ITS_LANES];         /* between the two operations of a cp.async */
    uint32_t given[ITS_LANES];
    uint32_t barrier[ITS_LANES]; /* of a bulk copy */
};

/* A bulk copy that completes on an mbarrier. */
typedef struct its_sim_bulk {
    char *to;
    const char *from;
    uint32_t size, barrier; /* the address of the mbarrier in shared memory */
} its_sim_bulk;

typedef struct its_sim_mbarrier {
    uint32_t address;
    uint32_t expected, pending; /* arrivals: of each phase, still to come in this one */
    int32_t bytes;              /* still to come */
    uint32_t phase;             /* phases completed */
} its_sim_mbarrier;

struct its_sim_mbarriers {
    its_sim_mbarrier *items;
    uint32_t count, capacity;
    its_sim_bulk *bulks;
    uint32_t n_bulks, bulk_capacity;
};

enum {                       /* op->mode of COPY_FROM */
       ITS_COPY_IGNORES = 1, /* predicate c: lanes that read nothing */
       ITS_COPY_NOT = 2      /* it is written with a `!` */
};

enum { /* op->mode of BULK_TO */
       ITS_BULK_AT_ONCE,
       ITS_BULK_ON_MBARRIER
};

enum { /* op->mode of COPY_GROUP */
       ITS_COPY_COMMIT,
       ITS_COPY_WAIT /* imm: groups that may be left; -1: all copies, committed or not */
};

enum { /* op->mode of MBARRIER */
       ITS_MBARRIER_INIT,
       ITS_MBARRIER_INVAL,
       ITS_MBARRIER_ARRIVE,    /* b: how many, dst: the state, or NOWHERE */
       ITS_MBARRIER_ARRIVE_TX, /* arrives once, and b bytes are to come */
       ITS_MBARRIER_DROP,
       ITS_MBARRIER_EXPECT,
       ITS_MBARRIER_COMPLETE,
       ITS_MBARRIER_TEST, /* b: the state that arrive gave; dst: a predicate */
       ITS_MBARRIER_TEST_PARITY,
       ITS_MBARRIER_ARRIVE_COPIES, /* cp.async.mbarrier.arrive.noinc */
       ITS_MBARRIER_WAIT_COPIES    /* the same without .noinc: adds an arrival and makes it */
};

#define ITS_MBARRIER_MARK 0x6d62617272696572ull /* what an initialised one holds in memory */

/* Forgets the copies and mbarriers of a CTA that has ended. */
void its_sim_async_reset(its_context *ctx, its_sim_cta *cta);

#endif
