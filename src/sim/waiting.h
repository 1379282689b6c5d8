/* Why a blocked grid doesn't get on. */
#ifndef ITS_SIM_WAITING_H
#define ITS_SIM_WAITING_H

#include "sim/machine.h"

/* Adds an error with a table: who of PE `pe` waits, at which source line, for what value, and what it sees. */
void its_sim_grid_waits(its_context *ctx, const its_sim_grid *grid, uint32_t pe);

#endif
