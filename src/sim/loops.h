/* Which registers a loop may change; see loops.c. */
#ifndef ITS_SIM_LOOPS_H
#define ITS_SIM_LOOPS_H

#include "sim/program.h"

typedef struct its_sim_changed {
    uint32_t offset, size; /* in the frame; bytes per lane, 0: a predicate */
} its_sim_changed;

typedef struct its_sim_loop {
    uint32_t end; /* the last branch back to its beginning */
    uint32_t count;
    const its_sim_changed *changed;
} its_sim_loop;

/* Finds the loops of a decoded program. Requires branches with targets. */
void its_sim_program_find_loops(its_sim_program *program);
/* The loop that a branch back closes; false if all registers count. */
bool its_sim_loop_of(const its_sim_program *program, const its_sim_op *branch, its_sim_loop *loop);

#endif
