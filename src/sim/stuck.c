/* Deadlocks: see stuck.h. */
#include "sim/stuck.h"

#include <time.h>

enum { LOOKS = 20 };
static const uint64_t patience = 3000 * 1000 * 1000ull; /* ns */

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The device has work and none of it gets on. */
static bool device_waits(const its_world_pe *pe) {
    uint32_t kind = atomic_load(&pe->device.kind);
    return kind == ITS_ACTIVITY_KERNEL || kind == ITS_ACTIVITY_BARRIER || kind == ITS_ACTIVITY_SIGNAL;
}

/* Nothing that this PE does by itself can help anybody. */
static bool waits(const its_world_pe *pe) {
    if (atomic_load(&pe->state) == ITS_PE_FINISHED) return true;
    if (atomic_load(&pe->state) != ITS_PE_RUNNING) return false;
    uint32_t host = atomic_load(&pe->host.kind);
    if (host == ITS_ACTIVITY_STREAM) return device_waits(pe); /* with an idle device it is about to go on */
    if (host != ITS_ACTIVITY_COLLECTIVE && host != ITS_ACTIVITY_BARRIER) return false;
    return device_waits(pe) || atomic_load(&pe->device.kind) == ITS_ACTIVITY_IDLE;
}

bool its_world_stuck(const its_world *world, its_stuck *seen) {
    const its_world_control *control = world->control;
    its_stuck now = {.waiting = true, .since = now_ns()};
    bool polled = true;
    for (uint32_t i = 0; i < control->n_pes; i++) {
        const its_world_pe *pe = &control->pes[i];
        now.waiting &= waits(pe);
        now.progress += atomic_load(&pe->host.progress) + atomic_load(&pe->device.progress);
        now.polls[i] = atomic_load(&pe->device.polls);
        if (atomic_load(&pe->state) != ITS_PE_FINISHED && device_waits(pe))
            polled &= now.polls[i] >= seen->polls[i] + LOOKS;
    }
    bool same = seen->waiting && now.waiting && now.progress == seen->progress;
    if (same && polled && now.since - seen->since > patience) return true;
    if (!same) *seen = now;
    return false;
}

void its_world_say_stuck(const its_world *world) {
    atomic_store(&world->control->stuck, 1);
    its_world_ring(world);
}

bool its_world_is_stuck(const its_world *world) {
    return atomic_load(&world->control->stuck);
}
