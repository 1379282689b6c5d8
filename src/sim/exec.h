/*
 * The running machine: grids of CTAs of warps, and a warp's fragments.
 *
 * Threads of a warp make independent progress. Those that are at the same operation in the same call run together as
 * one *fragment*: a position and a mask of lanes. A branch that only some lanes take splits a fragment; fragments that
 * meet at the same operation become one again. Of several fragments the one in the deepest call with the lowest
 * position runs (what is behind comes up to what is ahead, so lanes meet again where paths join), unless it was seen
 * going round a loop that changes nothing, or had more than its share: then it is the others' turn.
 *
 *        fragment  { pc, mask, depth, base, local }
 *                       |           |     |     '-- this call's stack frame, bytes from the thread's local memory
 *                       |           |     '-------- this call's register frame, bytes from the warp's registers
 *                       |           '-------------- calls above the entry; where each lane returns to is in warp->calls
 *                       '-------------------------- lanes
 */
#ifndef ITS_SIM_EXEC_H
#define ITS_SIM_EXEC_H

#include "sim/fault.h"
#include "sim/lanes.h"
#include "sim/modes.h"
#include "sim/program.h"
#include "sim/race.h"

#define ITS_SIM_BARRIERS 16
#define ITS_SIM_CLUSTER_BARRIER ITS_SIM_BARRIERS /* the one of the cluster, behind those of the CTA */
#define ITS_SIM_RANGES 4

typedef struct its_sim_warp its_sim_warp;
typedef struct its_sim_cta its_sim_cta;
typedef struct its_sim_copies its_sim_copies;       /* async.h */
typedef struct its_sim_mbarriers its_sim_mbarriers; /* async.h */
typedef struct its_sim_products its_sim_products;   /* wgmma.h */

enum { /* its_sim_frag.state */
       ITS_SIM_READY,
       ITS_SIM_AT_SYNC,    /* at an operation that waits for the lanes of `member` */
       ITS_SIM_AT_BARRIER, /* at barrier `barrier` of the CTA */
       ITS_SIM_ASLEEP      /* until `wake` */
};

/*
 * Whether a fragment goes round in circles; see spin.c. Its state at some back edge is kept and compared with that at
 * later ones.
 */
typedef struct its_sim_spin {
    const its_sim_op *loop;        /* where the kept state was, NULL: none is kept */
    const its_sim_op *first, *end; /* the loop's operations, to notice that it was left */
    uint32_t mask, depth, base;    /* whose state it was */
    uint64_t hash, probe;          /* of its registers and stacks, and of a few of them */
    bool wide;                     /* all registers count, not only those that the loop may change */
    bool looks;                    /* stores compare with what was there */
    bool spins;                    /* it came back to the kept state, and memory was not changed */
    bool outer;                    /* the next back edge of a call no deeper than `depth` is to be looked at */
    uint32_t since, window;        /* back edges since then, and how many are compared */
    const its_sim_op *last;        /* target of the last back edge, and how often in a row */
    uint32_t streak;
    uint32_t skip;            /* back edges to that target that need no look */
    uint32_t rounds, period;  /* back edges since the last look, and after how many comes the next one */
    uint64_t mark, length;    /* frag->ran when it was last there; operations of a round */
    uint64_t began, proven;   /* grid->watch when this round began, and when the last whole round began */
    const its_sim_op *polled; /* for reports: what it most likely waits for, and where that was read */
    uint64_t polled_at;
} its_sim_spin;

typedef struct its_sim_frag {
    const its_sim_op *pc;
    uint32_t mask;
    uint32_t depth, base, local;
    uint8_t state, barrier;
    bool wrote;      /* changed memory, or read what may change by itself, since it was last seen at a back edge */
    uint32_t member; /* AT_SYNC */
    uint32_t turn;   /* how often it gave way to others: the lowest runs first */
    uint64_t wake;   /* nanoseconds */
    uint64_t ran;    /* operations */
    its_sim_spin spin;
} its_sim_frag;

/* Where the lanes that made a call return to. */
typedef struct its_sim_return {
    uint32_t pc[ITS_LANES];
    uint32_t base[ITS_LANES], local[ITS_LANES];
    uint32_t taken[ITS_LANES]; /* what the caller's alloca had taken */
} its_sim_return;

struct its_sim_warp {
    its_sim_cta *cta;
    uint32_t index; /* in the CTA */
    uint32_t born;  /* lanes that exist: fewer than 32 in the last warp of an odd block */
    uint32_t live;  /* lanes that have not exited */
    uint32_t n_frags;
    its_sim_frag frags[ITS_LANES];
    char *regs; /* register frames, a stack; in regs_block, aligned */
    void *regs_block;
    size_t regs_size;
    its_sim_return *calls;
    uint32_t calls_size;
    char *local;                /* lane i's local memory begins at i * grid->local_size */
    uint32_t taken[ITS_LANES];  /* bytes at the end of each lane's local memory that alloca has taken */
    uint64_t ran;               /* operations since a fragment last gave way */
    its_race_agent *race;       /* NULL unless races are looked for */
    its_sim_products *products; /* of matrices, begun and not computed; NULL before the first */
    its_sim_copies *copies;     /* asynchronous copies under way; NULL before the first */
    uint32_t next_range;
    its_sim_range ranges[ITS_SIM_RANGES]; /* allocations last used */
};

typedef struct its_sim_barrier {
    bool in_use;
    uint32_t expected;           /* threads; 0: all of the CTA */
    uint32_t arrived;            /* threads, with a given count */
    uint64_t watch;              /* grid->watch when somebody last arrived */
    uint32_t popc, any, all;     /* bar.red so far */
    const its_sim_op *first;     /* who began this phase, for reports */
    uint32_t waiting[ITS_LANES]; /* per warp: lanes that have arrived (also without waiting) */
} its_sim_barrier;

struct its_sim_cta {
    its_sim_grid *grid;
    bool running;
    uint64_t number; /* in the grid; says %smid */
    uint32_t id[3];
    its_sim_cta *cluster; /* the first of its CTAs, which lie side by side */
    uint32_t rank;        /* in it */
    char *shared;         /* in shared_block, aligned */
    void *shared_block;
    uint32_t live_warps, next_warp;
    uint64_t ran; /* operations since it began, or since a place was opened on its account */
    its_sim_warp *warps;
    its_sim_barrier barriers[ITS_SIM_BARRIERS + 1];
    uint32_t passed[ITS_LANES];   /* per warp: lanes for which the cluster's barrier is complete, and have not waited */
    its_sim_mbarriers *mbarriers; /* NULL before the first */
    its_race_cell *race_cells;    /* of shared memory; NULL unless races are looked for */
    uint32_t **race_barriers;     /* what has been given at each barrier; NULL: nothing yet */
};

/* What cooperative groups want of the driver for the barrier of a grid: its size, and the barrier. Zero at first. */
#define ITS_SIM_WORKSPACE 8u

struct its_sim_grid {
    its_context *ctx;
    const its_sim_program *program;
    const its_sim_func *func;
    uint32_t dim[3], block[3], cluster[3];
    uint32_t cluster_size; /* CTAs */
    uint64_t id;
    uint32_t threads, n_warps; /* per CTA */
    uint32_t shared_size;      /* static and dynamic; addresses from ITS_SIM_SHARED_BEGIN on */
    uint32_t dynamic_shared, dynamic_begin;
    uint32_t local_size; /* bytes of local memory per thread */
    char *params;
    void *workspace; /* if the program asks for it: see ITS_SIM_WORKSPACE */
    uint64_t n_ctas, next_cta, next_cluster, done_ctas;
    uint32_t n_slots, n_open, next_slot; /* places that there may be, and that there are */
    its_sim_cta *slots;
    uint64_t instructions;
    uint64_t quiet;                    /* slices in a row in which nothing changed */
    uint64_t watch;                    /* see its_sim_grid_watch */
    uint32_t *race_begun, *race_ended; /* what was seen before it, and is after it; may be NULL */
    bool faulted, done;
    its_sim_fault fault;
};

/* Two writes that nothing orders, before the second has been made. */
typedef struct its_sim_race_doubt {
    its_race_conflict conflict;
    uint32_t lane, bytes;
    char before[8]; /* at conflict.address */
} its_sim_race_doubt;

/* Those of one operation: a lane writes 32 bytes at most. */
enum { ITS_SIM_MOST_DOUBTS = ITS_LANES * 4 };
typedef struct its_sim_race_doubts {
    uint32_t count;
    its_sim_race_doubt items[ITS_SIM_MOST_DOUBTS];
} its_sim_race_doubts;

/* What the running operation sees. */
struct its_sim_exec {
    its_sim_grid *grid;
    const its_sim_program *program;
    its_sim_memory *memory;
    its_sim_cta *cta;
    its_sim_warp *warp;
    its_sim_frag *frag;
    char *regs;     /* frame of the running fragment */
    bool progress;  /* something other than going round the same way was done in this slice; once set it stays so */
    uint64_t count; /* operations in this slice */
    its_sim_race_doubts doubts;
    _Alignas(64) char scratch[ITS_LANES * 16];
};

static inline uint32_t its_sim_guard(const char *regs, const its_sim_op *op, uint32_t lanes) {
    return lanes & (*(const u32 *)(const void *)(regs + op->guard) ^ op->guard_xor);
}
static inline uint32_t its_sim_pred(const char *regs, uint32_t offset) {
    return *(const u32 *)(const void *)(regs + offset);
}
static inline void its_sim_set_pred(char *regs, uint32_t offset, uint32_t value, uint32_t mask) {
    u32 *word = (u32 *)(void *)(regs + offset);
    *word = (*word & ~mask) | (value & mask);
}
static inline uint32_t its_sim_op_index(const its_sim_exec *x, const its_sim_op *op) {
    return (uint32_t)(op - x->program->ops);
}

/* -- fragments (frag.c) -------------------------------------------------------------------------------------------- */

/* Adds a fragment like `like`, with other lanes and another position. Requires the lanes to be in no other one. */
its_sim_frag *its_sim_frag_add(its_sim_warp *warp, const its_sim_frag *like, uint32_t mask, const its_sim_op *pc);
/* Takes the running fragment's lanes apart: those of `mask` stay at pc in it, the others go on at `rest`. */
void its_sim_frag_split(its_sim_exec *x, uint32_t mask, const its_sim_op *rest);
void its_sim_frag_remove(its_sim_warp *warp, its_sim_frag *frag);
/* Joins ready fragments that are at the same place into the first of them. */
void its_sim_frag_join(its_sim_warp *warp);
/* The fragment that runs next, or NULL if all wait. Those with no lane outside of `tried` are passed over. */
its_sim_frag *its_sim_frag_pick(its_sim_warp *warp, uint32_t tried);
/* Puts the fragment behind the others of its warp. */
void its_sim_frag_yield(its_sim_warp *warp, its_sim_frag *frag);
/* The closest place ahead of `frag` at which a ready fragment of the same call waits, or NULL. */
const its_sim_op *its_sim_frag_meet(const its_sim_warp *warp, const its_sim_frag *frag);
/* Ends lanes: takes them out of the running fragment and of everything that counts live threads. */
void its_sim_frag_exit(its_sim_exec *x, uint32_t mask);

/* -- going round in circles (spin.c) ------------------------------------------------------------------------------- */

/*
 * Called at a branch that is taken backwards, `ran` operations after frag->ran was last set. True if the fragment is
 * where it was before, with the same registers, and memory was not changed since. Sets x->progress unless it was known
 * to go round this way.
 */
bool its_sim_spin_look(its_sim_exec *x, const its_sim_op *branch, uint64_t ran);
/* Forgets the state that was kept. */
void its_sim_spin_forget(its_sim_frag *frag);
/* Called when a call is left: a state of a deeper call says nothing about this one. */
void its_sim_spin_leave(its_sim_exec *x, its_sim_frag *frag);
/* Called with what an operation reads while spin->looks, for reports. */
void its_sim_spin_note(its_sim_exec *x, const its_sim_op *op, uint32_t mask);
/* Joins what is known of `b`, which is at the same place, into `a`; a->mask has the lanes of both. */
void its_sim_spin_join(its_sim_frag *a, const its_sim_frag *b);
/* A fragment that came back to its state before, and has not run for longer than a round since. */
bool its_sim_spin_holds(const its_sim_frag *frag);
/* Whether it can't get on unless somebody else changes memory; see its_sim_grid_stuck. */
bool its_sim_frag_stuck(const its_sim_cta *cta, const its_sim_frag *frag);

/* -- calls (call.c) ------------------------------------------------------------------------------------------------ */

/* Puts constants, addresses and special registers into the frame of the lanes. */
void its_sim_frame_enter(const its_sim_warp *warp, const its_sim_func *func, char *regs, uint32_t local, uint32_t mask);
/* Of a special register that stays as it is while the warp runs (sregs.c). */
uint64_t its_sim_sreg_value(const its_sim_warp *warp, its_sim_sreg sreg, uint32_t lane);
/* Grows the warp's registers to `size` bytes; false if memory ran out. */
bool its_sim_warp_reserve(its_sim_warp *warp, size_t size);

/* -- barriers (barrier.c, collect.c) ------------------------------------------------------------------------------- */

/* Lets barriers and .sync operations go on that waited for threads that have just exited. */
void its_sim_barrier_check_all(its_sim_exec *x);
its_sim_verdict its_sim_sync_check(its_sim_exec *x);
/* An operation of a group of lanes that are all there; STOP if it recorded a fault, else NEXT. */
typedef its_sim_verdict its_sim_group(its_sim_exec *x, const its_sim_op *op, uint32_t group);
/*
 * Does `operation` once all 32 lanes of the warp are at `op`, whose register op->e names them all (see collect.c). A
 * fault if some have exited or never were.
 */
its_sim_verdict its_sim_collect_warp(its_sim_exec *x, const its_sim_op *op, uint32_t mask, its_sim_group *operation);

/* -- memory (access.c) --------------------------------------------------------------------------------------------- */

typedef struct its_sim_access {
    uint64_t address[ITS_LANES]; /* as the kernel has them, of the operation's space */
    char *pointer[ITS_LANES];    /* where that is, for lanes of the mask */
} its_sim_access;

/* Fills access->address from the address register and offset of `op`. */
void its_sim_access_addresses(const its_sim_exec *x, const its_sim_op *op, its_sim_access *access);
/*
 * Checks `bytes` at access->address of each lane of `mask` and fills access->pointer; lane by lane, any mixture of
 * spaces. False: a fault was recorded.
 */
bool its_sim_access_check(its_sim_exec *x, const its_sim_op *op, uint32_t mask, uint32_t bytes, bool writes,
                          its_sim_access *access);

/* The same for any number of bytes of global memory, without alignment, of one lane. */
bool its_sim_access_global(its_sim_exec *x, const its_sim_op *op, uint32_t lane, uint64_t address, uint64_t bytes,
                           bool writes);
/* Reduces the element at `pointer` with the one at `value` (atom.c); aligned to its size. */
void its_sim_reduce(its_sim_exec *x, its_sim_atomic mode, its_type type, char *pointer, const char *value);

/*
 * The CTA of the running one's cluster in whose shared memory `pointer` lies, and its address there; NULL if in none.
 */
its_sim_cta *its_sim_shared_owner(const its_sim_exec *x, const char *pointer, uint32_t *address);

/* -- the loop, one copy per kind of CPU (exec_*.c) ----------------------------------------------------------------- */

typedef struct its_sim_isa {
    const char *name;
    its_sim_alu *const *alus; /* by handler */
    its_sim_act *const *acts;
    /* Runs the warp for up to `budget` operations; false if a fault was recorded. */
    bool (*slice)(its_sim_exec *x, its_sim_warp *warp, uint64_t budget);
} its_sim_isa;

extern const its_sim_isa its_sim_isa_base;
#ifdef ITS_SIM_HAVE_X86_LEVELS
extern const its_sim_isa its_sim_isa_v3, its_sim_isa_v4;
#endif
/* The index-th copy that this CPU can run, from the slowest; NULL past the last. */
const its_sim_isa *its_sim_isa_get(uint32_t index);
/* The best one that this CPU can run. */
const its_sim_isa *its_sim_isa_best(void);

#define ITS_ACT(id) its_sim_verdict its_sim_act_##id(its_sim_exec *x, const its_sim_op *op, uint32_t mask);
#define ITS_ACT_FAST(id)
#include "sim/acts.def"
#undef ITS_ACT
#undef ITS_ACT_FAST
its_sim_alu its_sim_alu_VIDEO, its_sim_alu_CVT, its_sim_alu_CVT_PAIR, its_sim_alu_ROUND_F32, its_sim_alu_ROUND_F64;

#endif
