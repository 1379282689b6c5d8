/* The last children: processes that PEs started and that were left to us when their parents ended. */
#ifndef ITS_CLI_CHILDREN_H
#define ITS_CLI_CHILDREN_H

#include <stdint.h>

/* Asks every child of this process to end, kills those still there after `grace_ms`, and waits for all of them. */
void cli_end_children(uint32_t grace_ms);

#endif
