/*
 * A world: what the PEs of one simulated job share. One file of memory (a memfd) that every PE process inherits:
 *
 *     file    | control block | heap of PE 0 | heap of PE 1 | ...
 *     memory    anywhere        base           base + stride  ...   at the same addresses in every PE
 *
 *     heap    | library area | what nvshmem_malloc hands out                |
 *     private   base + private_offset + pe * private_stride: the window in which PE `pe` keeps its own device memory.
 *               Only that PE maps it, but everybody knows whose an address in it is.
 *
 * Nothing here takes a lock that a PE could die with: every word has one writer, or is changed by one atomic operation.
 * Who waits sleeps on a futex, the `bell`, and looks ten times a second whether everybody it waits for is still alive.
 */
#ifndef ITS_SIM_WORLD_H
#define ITS_SIM_WORLD_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/diag.h"
#include "intarsia/sim.h"

enum {
    ITS_WORLD_MAX_PES = 64,
    ITS_WORLD_MAX_TEAMS = 32,
    ITS_WORLD_TEXT = 480,
    ITS_WORLD_SITE = 232,
    ITS_WORLD_LIBRARY_BYTES = 1 << 16, /* of every heap, in front */
    ITS_WORLD_GRANULE = 1 << 21,       /* heaps start at multiples of a huge page */
};

typedef enum its_pe_state {
    ITS_PE_ABSENT, /* has not opened its backend yet */
    ITS_PE_RUNNING,
    ITS_PE_FINISHED, /* closed its backend */
    ITS_PE_FAULTED,  /* a kernel of it did something wrong */
    ITS_PE_ENDED,    /* its process ended without closing the backend */
} its_pe_state;

/* What a thread of a PE is doing; for whoever wants to know why nothing moves. */
typedef enum its_activity_kind {
    ITS_ACTIVITY_RUNNING,
    ITS_ACTIVITY_IDLE,       /* device: no work queued; host: not inside a call that waits */
    ITS_ACTIVITY_COLLECTIVE, /* in the collective call number `what` */
    ITS_ACTIVITY_BARRIER,    /* in a barrier of team `what`, waiting for epoch `value` */
    ITS_ACTIVITY_SIGNAL,     /* until the word at address `what` compares to `value` */
    ITS_ACTIVITY_STREAM,     /* host: for stream `what` */
    ITS_ACTIVITY_KERNEL,     /* device: kernels that make no progress */
} its_activity_kind;

typedef struct its_activity {
    _Atomic uint32_t kind; /* its_activity_kind */
    _Atomic uint64_t what, value;
} its_activity;

/* What a PE asked for in a collective call; the PEs compare theirs. */
typedef enum its_asked_kind { ITS_ASKED_NOTHING, ITS_ASKED_ALLOC, ITS_ASKED_FREE, ITS_ASKED_TEAM } its_asked_kind;

typedef struct its_asked {
    uint64_t kind;             /* its_asked_kind */
    uint64_t a, b;             /* size and alignment; offset; start | stride and size */
    char site[ITS_WORLD_SITE]; /* where the program asks, or "" */
} its_asked;

typedef struct its_world_pe {
    _Alignas(128) _Atomic uint32_t state; /* its_pe_state */
    _Atomic int32_t pid;
    _Atomic uint64_t born;        /* the process's start time as the kernel gives it: process ids are reused */
    _Atomic uint64_t collectives; /* how many collective calls this PE has reached */
    its_asked asked[2];           /* by the number of the call modulo 2 */
    _Atomic uint64_t blocked;     /* the epoch in which it was seen that this PE can't get on; see stuck.h */
    its_activity host, device;
    char fault[ITS_WORLD_TEXT]; /* valid once `state` is ITS_PE_FAULTED */
} its_world_pe;

typedef struct its_world_control {
    char magic[8];
    uint32_t abi, n_pes;
    uint32_t multiprocessors, compute_major, compute_minor;
    uint64_t heap_size; /* what allocations may use, the library area not counted */
    uint64_t base, stride;
    uint64_t private_offset, private_stride;
    uint64_t heaps_offset;               /* in the file */
    uint64_t race_offset;                /* where the PEs keep what race.h says; 0: races are not looked for */
    _Alignas(128) _Atomic uint32_t bell; /* changes whenever somebody may have something to wake up for */
    _Atomic uint32_t sleepers;
    _Atomic uint32_t stuck;    /* no PE can go on: see stuck.h */
    _Atomic uint64_t epoch;    /* grows with everything that a PE has done */
    _Atomic uint32_t failures; /* PEs that faulted or ended early, so that one load tells that none has */
    its_world_pe pes[ITS_WORLD_MAX_PES];
} its_world_control;

/*
 * The start of every heap. `arrived[pe]` of a team counts the barriers of the team that `pe` has reached, told to this
 * PE by `pe` itself; `epoch` counts those this PE has left. device/sim/nvshmem.cu knows this layout.
 */
typedef struct its_team_area {
    _Atomic uint64_t arrived[ITS_WORLD_MAX_PES];
    _Atomic uint64_t epoch;
    _Atomic uint64_t inside; /* 1 while this PE is in a barrier of the team */
} its_team_area;

typedef struct its_heap_library {
    its_team_area teams[ITS_WORLD_MAX_TEAMS];
} its_heap_library;
_Static_assert(sizeof(its_heap_library) <= ITS_WORLD_LIBRARY_BYTES, "the library area holds the teams");

/* A thread of the host in a call that waits: it goes on when `over`, or when its PE stops. */
typedef struct its_host_wait its_host_wait;
struct its_host_wait {
    its_host_wait *next;
    bool (*over)(const void *user); /* called on the device thread, which holds the device's lock */
    const void *user;
};

/* What a PE knows of the threads of its host; guarded by `mutex`. */
typedef struct its_hosts {
    pthread_mutex_t mutex;
    its_host_wait *waits;
    uint32_t n_waits;
    uint64_t changes;      /* how often a thread has begun or ended to wait */
    int (*asked)(void);    /* whether waits are to end; see its_sim_host_interrupt; may be NULL */
    int (*count)(void);    /* how many threads there are now; see its_sim_host_count; may be NULL */
    uint64_t announced;    /* how often the program has said how many there are */
    uint32_t threads;      /* that may do something, waiting ones included; 0: all of the process */
    pthread_mutex_t calls; /* see its_sim_host_lock: who holds it, and how often */
    _Atomic uintptr_t holder;
    uint32_t depth;
    void (*wake)(void *user); /* wakes the device thread, which looks whether anybody can get on; may be NULL */
    void *user;
} its_hosts;

typedef struct its_world {
    its_context *ctx;
    int fd;
    uint32_t pe;
    its_world_control *control;
    size_t control_size;
    its_hosts hosts;
} its_world;

/* Maps the world behind `fd` and registers this process as PE `pe`. `fd` is duplicated. */
its_status its_world_attach(its_context *ctx, int fd, uint32_t pe, its_world **world);
/* Tells the others that this PE is done (faulted ones stay so) and unmaps. */
void its_world_detach(its_world *world);

static inline char *its_world_heap(const its_world *world, uint32_t pe) {
    return (char *)(uintptr_t)(world->control->base + pe * world->control->stride);
}
static inline char *its_world_private(const its_world *world, uint32_t pe) {
    const its_world_control *control = world->control;
    return (char *)(uintptr_t)(control->base + control->private_offset + pe * control->private_stride);
}
static inline its_heap_library *its_world_library(const its_world *world, uint32_t pe) {
    return (its_heap_library *)(void *)its_world_heap(world, pe);
}
static inline its_world_pe *its_world_me(const its_world *world) {
    return &world->control->pes[world->pe];
}
/* The PE whose heap an address lies in, or -1. */
int its_world_heap_owner(const its_world *world, uint64_t address);

/* -- waiting ------------------------------------------------------------------------------------------------------- */

/* Wakes every PE that waits for something in the world. */
void its_world_ring(const its_world *world);

/*
 * A PE that faulted or ended without closing its backend: its number, or -1. Looks at most every 100 ms whether the
 * processes are alive (`*last_look`, in ns, starts at 0). What it finds is written down for the others.
 */
int its_world_failed(const its_world *world, uint64_t *last_look);
/* When all other PEs have finished, one of them; else -1, as in a world of one PE. */
int its_world_left_alone(const its_world *world);
/* Adds the error for a PE that failed, or that finished too early; `during` as in "the barrier". */
its_status its_world_fail(its_context *ctx, const its_world *world, uint32_t pe, const char *during);
/* Tells the others that this PE faulted; `text` is the first line of the report. May be called on the device thread. */
void its_world_faulted(const its_world *world, const char *text);
bool its_world_faulted_here(const its_world *world);

/* -- collective calls of the host ---------------------------------------------------------------------------------- */

/*
 * Returns when every PE has made its next collective call; they must ask the same. `call` is the name of the function.
 * ITS_ERR_USAGE if they don't, naming both; ITS_ERR_FAULT if one of them will never come, or, without diagnostics, if a
 * kernel of this PE itself has faulted meanwhile. So do barriers.
 */
its_status its_world_collective(its_context *ctx, its_world *world, const char *call, its_asked asked);

/* -- barriers of a team, shared with device code ------------------------------------------------------------------- */

typedef struct its_team {
    uint32_t start, stride, size; /* PE numbers of the world: start, start + stride, ... */
} its_team;

/*
 * The two halves of a barrier: `enter` tells every member and returns the epoch to wait for in `*epoch`; `leave` is
 * true once they have all come, and may be called as often as one likes until it is. ITS_ERR_USAGE from `enter` if this
 * PE is in a barrier of that team already.
 */
its_status its_world_barrier_enter(its_context *ctx, const its_world *world, uint32_t team, its_team members,
                                   uint64_t *epoch);
bool its_world_barrier_leave(const its_world *world, uint32_t team, its_team members, uint64_t epoch);
/* Both, sleeping in between. */
its_status its_world_barrier(its_context *ctx, its_world *world, uint32_t team, its_team members);

void its_activity_set(its_activity *activity, its_activity_kind kind, uint64_t what, uint64_t value);

#endif
