/*
 * The simulated GPU: programs (modules decoded once), entries (kernels) and grids (launches that are stepped).
 *
 *     module --its_sim_program_new--> program --its_sim_program_entry--> entry --its_sim_grid_new--> grid
 *                                                                                                     |
 *                                               DONE | RAN | BLOCKED | FAULT  <--its_sim_grid_step----+
 *
 * A program keeps no pointer into its module. Variables are placed in real memory, which is entered in the memory
 * table. A grid runs its CTAs a slice at a time: its caller steps all grids that may run in turn, so that kernels on
 * different streams and PEs on the same core make progress side by side.
 *
 * The files of src/sim:
 *
 *     memory                             what is allocated: the table that every access is checked against
 *     program, variables, reach          a module becomes a program, and what its entries need and can't do
 *     decode, decode_*                   instructions become operations, one file per group of them
 *     lanes, alu_*, float16, cvt, round  arithmetic of 32 lanes
 *     exec, exec_*, isa                  the loop that runs a warp, a copy for each kind of CPU
 *     grid, frag, call, flow, sregs      launches, CTAs, the fragments of a warp, calls and their ends
 *     barrier, collect, cluster          what threads take part in together
 *     access, atom, async, tensor*       memory beyond plain loads and stores
 *     matrix, wmma, wgmma, video         instructions that have a file of their own
 *     builtin                            printf, malloc and the like in kernels
 *     loops, spin, waiting, stuck        who goes round in circles, what for, and when nobody can get on
 *     race, race_*                       accesses that nothing orders
 *     fault, comm_report                 what is told of what went wrong
 *     world, pe, pe_heap                 PEs: processes, and the memory that they share
 *     nvshmem_library                    the device functions of NVSHMEM, compiled
 *     stream, stream_*, backend*         a PE's device: streams, and what hosts ask of it
 *
 * Threads: programs, entries and grids are made and freed, and faults reported, on the context's thread. Only
 * its_sim_grid_step may be called on another one: it uses the context's allocator and nothing else of the context.
 */
#ifndef ITS_SIM_MACHINE_H
#define ITS_SIM_MACHINE_H

#include "intarsia/ptx.h"
#include "sim/memory.h"

typedef struct its_sim_program its_sim_program;
typedef struct its_sim_grid its_sim_grid;
typedef struct its_sim_fault its_sim_fault;

/* What the programs of a PE share. All of it outlives them. */
typedef struct its_sim_machine {
    its_sim_memory *memory;
    uint32_t multiprocessors;              /* 0: 4 */
    uint32_t compute_major, compute_minor; /* 0.0: 8.0 */
    uint32_t max_shared;                   /* bytes per CTA; 0: 227 KiB */
    uint32_t stack_size;                   /* bytes per thread when calls recurse or are indirect; 0: 64 KiB */

    /*
     * Where module variables and device malloc are placed; both NULL: anonymous mappings. `take` returns NULL if there
     * is no room; it need not clear. Device malloc calls them from its_sim_grid_step.
     */
    void *(*take)(void *user, size_t size, size_t align);
    void (*give)(void *user, void *block, size_t size);
    /* What a kernel prints with printf, whole and unterminated; called from its_sim_grid_step. NULL: thrown away. */
    void (*print)(void *user, const char *text, size_t size);
    void *user;
    uint64_t heap_limit;   /* bytes that device malloc may hold at a time; 0: 8 MiB */
    struct its_race *race; /* finds races; NULL: nobody does */
    uint32_t isa;          /* which copy of the loop runs programs, 1 + an index of its_sim_isa_name; 0: the best one */
} its_sim_machine;

static inline uint32_t its_sim_multiprocessors(const its_sim_machine *machine) {
    return machine->multiprocessors ? machine->multiprocessors : 4;
}

/* Names of the copies of the loop that this CPU can run, "baseline" first; NULL past the last one. */
const char *its_sim_isa_name(uint32_t index);

/* -- programs ------------------------------------------------------------------------------------------------------ */

/*
 * Decodes a linked module and places its variables. Errors: a type or operand that makes no sense (place and reason),
 * an extern variable that nobody defines, no memory. An instruction that the simulator doesn't have is no error yet:
 * see its_sim_program_entry. `machine` is kept by reference. The caller owns `*program`.
 */
its_status its_sim_program_new(its_context *ctx, const its_sim_machine *machine, const its_module *module,
                               its_sim_program **program);
/* Takes the variables out of the table and frees everything; no grid of it may be left. */
void its_sim_program_free(its_sim_program *program);
/* A .global or .const variable; false if there is none of that name. */
bool its_sim_program_variable(const its_sim_program *program, const char *name, uint64_t *address, size_t *size);

/* -- entries ------------------------------------------------------------------------------------------------------- */

typedef struct its_sim_param {
    uint32_t offset, size; /* in the parameter block, bytes */
} its_sim_param;

typedef struct its_sim_entry {
    const char *name;
    const its_sim_program *program;
    uint32_t n_params;
    const its_sim_param *params;
    uint32_t param_size;  /* of the block */
    uint32_t shared;      /* static shared memory, bytes */
    uint32_t shared_end;  /* where the last static shared variable ends, counted from the first of the module */
    uint32_t max_threads; /* per CTA: 1024, or what .maxntid or .reqntid say */
    uint32_t reqntid[3];  /* 0 0 0 if not given */
    uint32_t cluster[3];  /* CTAs of a cluster: 1 1 1 if not given */
    uint32_t func;        /* index in the program */
} its_sim_entry;

/*
 * Looks an entry up. ITS_ERR_INPUT, with the names that there are, if it isn't one; and with the places if it can reach
 * instructions that the simulator doesn't have or functions that nobody defines. `*entry` lives as long as the program.
 */
its_status its_sim_program_entry(its_context *ctx, const its_sim_program *program, const char *name,
                                 const its_sim_entry **entry);

/* -- grids --------------------------------------------------------------------------------------------------------- */

typedef struct its_sim_launch {
    uint32_t grid[3], block[3];
    uint32_t shared;    /* dynamic shared memory, bytes */
    const void *params; /* entry->param_size bytes, laid out as entry->params says; copied */
    uint64_t id;        /* %gridid */
} its_sim_launch;

/* ITS_ERR_INPUT if dimensions or shared memory are beyond the device or the entry's directives. */
its_status its_sim_grid_new(its_context *ctx, const its_sim_entry *entry, const its_sim_launch *launch,
                            its_sim_grid **grid);
void its_sim_grid_free(its_sim_grid *grid);

typedef enum its_sim_progress {
    ITS_SIM_DONE,    /* every thread has ended */
    ITS_SIM_RAN,     /* something was done, more is left */
    ITS_SIM_BLOCKED, /* nothing was done: every warp waits, or goes round a loop that reads what it read before */
    ITS_SIM_FAULT    /* see its_sim_grid_fault; no further step is taken */
} its_sim_progress;

/* Runs about `budget` warp-instructions, CTAs and warps in turn. After DONE or FAULT it returns the same again. */
its_sim_progress its_sim_grid_step(its_sim_grid *grid, uint64_t budget);
/*
 * Proof that a grid waits for others. After `watch`, and any number of steps that all ended BLOCKED, `stuck` is true if
 * every thread waits for other threads or has since gone round a whole loop and come back to the same state: if memory
 * stays as it was, it will do so for ever. False may just mean that more steps are needed, or that it can't be told.
 */
void its_sim_grid_watch(its_sim_grid *grid);
bool its_sim_grid_stuck(const its_sim_grid *grid);
/*
 * For whoever looks for races: what was done before the grid begins, and what it had done when it was DONE (or NULL).
 */
struct its_race_agent;
void its_sim_grid_follows(its_sim_grid *grid, struct its_race_agent *agent);
const uint32_t *its_sim_grid_gave(const its_sim_grid *grid);
/* Warp-instructions executed so far. */
uint64_t its_sim_grid_instructions(const its_sim_grid *grid);
/* The fault that stopped the grid, or NULL. Owned by the grid. */
const its_sim_fault *its_sim_grid_fault(const its_sim_grid *grid);
/* The table that its accesses are checked against. */
const its_sim_memory *its_sim_grid_memory(const its_sim_grid *grid);
/*
 * Adds the fault to the context's diagnostics: what, where in PTX and source, which thread, what is near the address.
 */
void its_sim_fault_report(its_context *ctx, const its_sim_fault *fault);

#endif
