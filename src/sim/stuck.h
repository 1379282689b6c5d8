/*
 * Telling a deadlock from patience.
 *
 * Every PE shows in the control block what its host thread and its device do, counts what they get done (`progress`)
 * and how often the device has looked at what it waits for in vain (`polls`). If all PEs wait, and for some seconds
 * every device has looked again and again without anybody having got anything done, then nobody ever will. The seconds
 * are for a busy machine: for host threads that are about to wake up, and loops so long that one look is less than a
 * round.
 */
#ifndef ITS_SIM_STUCK_H
#define ITS_SIM_STUCK_H

#include "sim/world.h"

/* What one PE saw when it last looked. */
typedef struct its_stuck {
    uint64_t progress; /* of all PEs together */
    uint64_t polls[ITS_WORLD_MAX_PES];
    bool waiting;   /* all of them were */
    uint64_t since; /* when that began, in ns */
} its_stuck;

/* Looks at all PEs; true if none can ever go on. Called by a device that waits, now and then. */
bool its_world_stuck(const its_world *world, its_stuck *seen);
/* Tells everybody. */
void its_world_say_stuck(const its_world *world);
bool its_world_is_stuck(const its_world *world);

#endif
