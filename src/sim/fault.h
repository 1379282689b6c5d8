/* What went wrong in a kernel: recorded where it happens, told by its_sim_fault_report. */
#ifndef ITS_SIM_FAULT_H
#define ITS_SIM_FAULT_H

#include "base/buffer.h"
#include "sim/memory.h"
#include "sim/program.h"
#include "sim/race.h"

typedef enum its_sim_fault_kind {
    ITS_SIM_FAULT_ACCESS, /* nothing good is at the address */
    ITS_SIM_FAULT_MISALIGNED,
    ITS_SIM_FAULT_READ_ONLY,
    ITS_SIM_FAULT_TRAP,
    ITS_SIM_FAULT_ASSERT,  /* `text` has the message */
    ITS_SIM_FAULT_STACK,   /* too many or too deep calls */
    ITS_SIM_FAULT_CALL,    /* a call through a register that holds no function, or one of another signature */
    ITS_SIM_FAULT_BRANCH,  /* brx.idx beyond its table */
    ITS_SIM_FAULT_SYNC,    /* a .sync operation used wrongly */
    ITS_SIM_FAULT_ASYNC,   /* an asynchronous copy or an mbarrier used wrongly: `text` is the verb and all */
    ITS_SIM_FAULT_BARRIER, /* a CTA barrier used wrongly */
    ITS_SIM_FAULT_FREE,    /* device free of what is no block of device malloc */
    ITS_SIM_FAULT_PRINT,   /* a format that doesn't fit its arguments */
    ITS_SIM_FAULT_RACE,    /* an access that nothing orders with another one: `race` */
    ITS_SIM_FAULT_REFUSED, /* an operation that the simulator doesn't have */
    ITS_SIM_FAULT_NOMEM
} its_sim_fault_kind;

enum { ITS_SIM_READS, ITS_SIM_WRITES, ITS_SIM_UPDATES };

/* -- words that reports share -------------------------------------------------------------------------------------- */

/* In them `pe` is who reports: only the memory of others is said to be on a PE. */

/* "a 4096-byte allocation of device memory", "the 16-byte global variable 'x'" */
void its_sim_put_allocation(its_buffer *out, const its_sim_nearby *nearby, uint32_t pe);
/* ", right past the end of a 4096-byte allocation of device memory": of `bytes` that are not all allocated */
void its_sim_put_nearby(its_buffer *out, const its_sim_nearby *nearby, uint64_t bytes, uint32_t pe);
/* What to do about a race in memory that is not shared memory. */
const char *its_sim_race_advice(const its_race_conflict *race);

struct its_sim_fault {
    its_sim_fault_kind kind;
    uint8_t access; /* ITS_SIM_READS ... */
    uint8_t space;  /* its_space in which the address was used */
    uint8_t window; /* its_space that a generic address turned out to be in */
    uint32_t pe;
    uint32_t cta[3], thread[3];
    uint32_t warp, lane, n_lanes; /* n_lanes: how many of the warp had the same kind of fault */
    uint64_t address, bytes;
    uint64_t limit; /* .shared, .local, .param: where the space ends */
    its_sim_nearby nearby;
    const its_sim_program *program;
    const its_sim_func *kernel;
    uint32_t op; /* index in the program */
    its_race_conflict race;
    char race_site[ITS_RACE_SITE_TEXT];
    char *text; /* what the kind needs to say more; a block of the context, freed with the grid */
};

/* Adds an error at an operation: its PTX line, its source line, and what that was inlined into. */
void its_sim_report_at(its_context *ctx, const its_sim_program *program, const its_sim_op *op, const char *message);

/* The same for any operation: a line of PTX if nothing better is known. */
uint32_t its_sim_where_line(const its_sim_where *where, const its_sim_program *program, const char **path);

/*
 * Records a fault of the lanes of `mask` at `op` in the running grid; the lowest lane is the one that is told about.
 * `format` makes fault.text. Always returns ITS_SIM_STOP.
 */
its_sim_verdict its_sim_fault_at(its_sim_exec *x, const its_sim_op *op, uint32_t mask, its_sim_fault_kind kind,
                                 const char *format, ...) ITS_PRINTF(5, 6);

#endif
