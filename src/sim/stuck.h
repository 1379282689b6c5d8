/*
 * Deadlocks: when no PE can ever get on.
 *
 * The control block has an *epoch*, which a PE raises after it has done something and before it looks whether it is
 * blocked. Its device thread then looks whether everything waits: kernels whose threads all wait or go round the same
 * way since the epoch began (its_sim_grid_stuck), barriers and signals that have not come, and threads of the host in
 * calls that wait. If so it writes down the epoch.
 *
 *     PE 0   ... store ... epoch 7 | looks, all blocked: "7" |
 *     PE 1   ........ stores, epoch 8 | looks, all blocked: "8" |                        PE 0's 7 counts no more:
 *     PE 0                                         | looks again, all blocked: "8" |     it may have missed the store
 *
 * If all PEs have written down the same epoch, and it still is that one, nobody will ever get on. Suppose somebody did.
 * The first to do so read a word that changed after it had looked; whoever changed it did so after the epoch was raised
 * for the last time, so he had not looked when he wrote the epoch down, or had not been blocked.
 *
 * What can't be known is not held against anybody: a thread of the host outside of a call that waits may do something,
 * so its PE is never blocked. Nor is a kernel that looks at a clock, or a loop that changes a register in each round.
 * What isn't found this way ends by the time limit of the run.
 */
#ifndef ITS_SIM_STUCK_H
#define ITS_SIM_STUCK_H

#include "sim/world.h"

/* -- epochs -------------------------------------------------------------------------------------------------------- */

uint64_t its_world_epoch(const its_world *world);
/* This PE has done something. */
void its_world_raise(const its_world *world);
/* This PE was blocked throughout `epoch`. True if all are, so that none can go on. */
bool its_world_blocked(const its_world *world, uint64_t epoch);
/* Tells everybody. */
void its_world_say_stuck(const its_world *world);
bool its_world_is_stuck(const its_world *world);

/* -- threads of the host ------------------------------------------------------------------------------------------- */

its_status its_hosts_open(its_hosts *hosts);
void its_hosts_close(its_hosts *hosts);
/* Around every wait; `wait` lives until `leave`. */
void its_hosts_enter(its_hosts *hosts, its_host_wait *wait);
/* Wakes the device thread, if it sleeps for lack of work. The caller doesn't hold the device's lock. */
void its_hosts_wake(const its_hosts *hosts);
void its_hosts_leave(its_hosts *hosts, const its_host_wait *wait);
/* See its_sim_host_threads. */
void its_hosts_set_threads(its_hosts *hosts, uint32_t threads);
/* See its_sim_host_lock and its_sim_host_unlock; false if the caller does not hold it. */
void its_hosts_take(its_hosts *hosts);
bool its_hosts_give(its_hosts *hosts);
/*
 * Around the sleep of a wait: others may call meanwhile, but not in the midst of what the thread has taken the lock for
 * before. `step_back` is given what `step_aside` returned.
 */
bool its_hosts_step_aside(its_hosts *hosts);
void its_hosts_step_back(its_hosts *hosts, bool aside);
/* See its_sim_host_count. */
void its_hosts_set_count(its_hosts *hosts, int (*count)(void));
/* See its_sim_host_interrupt. */
void its_hosts_set_asked(its_hosts *hosts, int (*asked)(void));
/* Whether the program wants the caller's wait to end; counts its threads as well. To be called a few times a second,
 * without a lock. */
bool its_hosts_interrupted(its_hosts *hosts);
/* How long a wait may last until the program is asked again, in ns. */
#define ITS_HOSTS_PATIENCE ((uint64_t)50000000)
/* Whether any thread waits, and how often one has begun or ended to. */
bool its_hosts_wait(its_hosts *hosts, uint64_t *changes);
/*
 * Every thread that may do something is in a wait that is not over, and has been since `changes` was what it is.
 * `own_threads` of the process are not the host's.
 */
bool its_hosts_blocked(its_hosts *hosts, uint64_t changes, uint32_t own_threads);

#endif
