/*
 * What is allocated on this PE: the table that every simulated memory access is checked against.
 *
 * Global memory is host memory, so a device pointer is a host virtual address. The table holds one entry per live
 * allocation, sorted by address; an access is good if it lies inside one. The executor keeps the last hit of each warp
 * and asks the table only when an access leaves it.
 *
 *     symmetric region     base            base + stride      base + 2 * stride
 *                          | heap of PE 0  | heap of PE 1     | heap of PE 2 ...      mapped alike in every PE
 *
 * All PEs allocate the same symmetric blocks at the same offsets, so an address inside a peer's heap is checked through
 * this PE's own entries: same offset, own base. Windows name address ranges that are no allocation of this PE ("private
 * memory of PE 3"), so that a stray address can be told apart from a random one. Freed blocks are remembered for a
 * while.
 *
 * Thread safety: none. Whoever adds or removes entries while kernels run holds a lock that the stepping thread holds
 * during its_sim_grid_step. Nothing here uses guards: what can run out of memory returns ITS_ERR_NOMEM.
 */
#ifndef ITS_SIM_MEMORY_H
#define ITS_SIM_MEMORY_H

#include "intarsia/base.h"

typedef enum its_sim_kind {
    ITS_SIM_DEVICE,    /* private device memory from the host API */
    ITS_SIM_SYMMETRIC, /* in this PE's part of the symmetric region */
    ITS_SIM_GLOBAL,    /* a module's .global variable */
    ITS_SIM_CONST,     /* a module's .const variable */
    ITS_SIM_HEAP,      /* device malloc */
    ITS_SIM_HOST,      /* host memory that kernels may reach */
    ITS_SIM_KINDS
} its_sim_kind;

/* "device memory", "symmetric memory" ... */
const char *its_sim_kind_text(its_sim_kind kind);

/*
 * What memory holds that nobody has written: a NaN in every floating-point format, and a large number. Who counts on
 * zeros is noticed.
 */
enum { ITS_SIM_FRESH = 0xFFF5 };
void its_sim_memory_fresh(void *memory, size_t size);

typedef struct its_sim_allocation {
    uint64_t base, size;
    uint64_t serial;   /* the how manieth entry this was, from 1 */
    its_name name;     /* of a variable, else NULL */
    const void *owner; /* of device malloc: the program that allocated it */
    uint8_t kind;      /* its_sim_kind */
    bool read_only;    /* stores and atomics are faults */
} its_sim_allocation;

typedef struct its_sim_memory its_sim_memory;

/* The table of PE `pe`; NULL if memory ran out. Blocks come from the context's allocator, which must be thread safe if
 * kernels are stepped on another thread. */
its_sim_memory *its_sim_memory_new(its_context *ctx, uint32_t pe);
void its_sim_memory_free(its_sim_memory *memory);
uint32_t its_sim_memory_pe(const its_sim_memory *memory);

/* -- entries ------------------------------------------------------------------------------------------------------- */

/*
 * Adds [base, base + size). ITS_ERR_USAGE if it is empty, wraps around or overlaps a live entry; ITS_ERR_NOMEM. A range
 * that was freed before and lies inside it is forgotten. No diagnostics are left: the caller knows what it was doing.
 */
its_status its_sim_memory_add(its_sim_memory *memory, uint64_t base, uint64_t size, its_sim_kind kind, bool read_only,
                              its_name name);
/* Removes the entry that starts at `base`, and remembers it as freed; false if there is none. */
bool its_sim_memory_remove(its_sim_memory *memory, uint64_t base);
/* Says whose the entry at `base` is; false if there is none. */
bool its_sim_memory_set_owner(its_sim_memory *memory, uint64_t base, const void *owner);
/* The live entry that holds `address` itself (no peers); NULL if none. Valid until the table changes. */
const its_sim_allocation *its_sim_memory_at(const its_sim_memory *memory, uint64_t address);
/* Number of live entries, and the index-th in order of address. */
size_t its_sim_memory_count(const its_sim_memory *memory);
const its_sim_allocation *its_sim_memory_get(const its_sim_memory *memory, size_t index);
/* Changes whenever an entry is added or removed: a remembered hit is good while this stays the same. */
uint64_t its_sim_memory_generation(const its_sim_memory *memory);

/* -- regions of other PEs ------------------------------------------------------------------------------------------ */

/* Says where the symmetric heaps lie: PE i has [base + i * stride, base + (i + 1) * stride). */
its_status its_sim_memory_set_symmetric(its_sim_memory *memory, uint64_t base, uint64_t stride, uint32_t n_pes);
/* Names a range that accesses must not reach, e.g. "private memory" of `pe`. `what` is a static text. */
its_status its_sim_memory_add_window(its_sim_memory *memory, uint64_t base, uint64_t size, const char *what,
                                     uint32_t pe);

/* -- looking up ---------------------------------------------------------------------------------------------------- */

/* Where accesses are good: [base, end) in the addresses that the access used, a peer's included. */
typedef struct its_sim_range {
    uint64_t base, end;
    uint64_t generation;
    uint32_t pe; /* whose memory it is */
    uint8_t kind;
    bool read_only;
} its_sim_range;

/* Finds the range around `address`; false if nothing is allocated there. */
bool its_sim_memory_find(const its_sim_memory *memory, uint64_t address, its_sim_range *range);

typedef enum its_sim_near {
    ITS_SIM_NEAR_NOTHING, /* nothing is known about the address */
    ITS_SIM_NEAR_NULL,    /* the first 64 KiB */
    ITS_SIM_NEAR_INSIDE,  /* starts inside `allocation`, `distance` bytes from its start */
    ITS_SIM_NEAR_AFTER,   /* `distance` bytes past the end of `allocation` (0: right at the end) */
    ITS_SIM_NEAR_BEFORE,  /* ends or starts `distance` bytes before `allocation` */
    ITS_SIM_NEAR_FREED,   /* inside `allocation`, which was freed; `distance` bytes from its start */
    ITS_SIM_NEAR_WINDOW,  /* in the range named `window`, which belongs to `pe` */
    ITS_SIM_NEAR_HEAP,    /* in `pe`'s part of the symmetric region, far from any allocation */
} its_sim_near;

/* What lies around a bad address; a copy, so it outlives changes of the table. */
typedef struct its_sim_nearby {
    its_sim_near what;
    uint32_t pe; /* whose memory it is */
    uint64_t distance;
    its_sim_allocation allocation; /* base in the addresses that the access used */
    const char *window;
} its_sim_nearby;

void its_sim_memory_explain(const its_sim_memory *memory, uint64_t address, its_sim_nearby *nearby);

#endif
