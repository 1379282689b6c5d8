/*
 * Communicators (device/intarsia/comm.h) as reports see them: what a barrier complained about, and which barrier a
 * thread that polls is waiting at. Both are found by the marks that a communicator's memory begins with.
 */
#ifndef ITS_SIM_COMM_REPORT_H
#define ITS_SIM_COMM_REPORT_H

#include "sim/memory.h"

/* If a barrier or signal complained, adds an error that says which, and what was wrong. Returns whether one did. */
bool its_sim_comm_explain(its_context *ctx, const its_sim_memory *memory);

/*
 * If `address`, where a thread polls, belongs to a communicator: what it waits for ("barrier 3") and what it sees
 * ("PE 2 has not come: 4 of 5"), where `wanted` is the value it compares with. False if it doesn't.
 */
bool its_sim_comm_describe(const its_sim_memory *memory, uint64_t address, uint64_t wanted, char *waits,
                           size_t waits_size, char *sees, size_t sees_size);

#endif
