/* The inside of a simulated PE's modules, and what backend.c and backend_host.c share. */
#ifndef ITS_SIM_BACKEND_PARTS_H
#define ITS_SIM_BACKEND_PARTS_H

#include "sim/backend.h"
#include "sim/stuck.h"

struct its_function {
    its_function *next;
    its_loaded *loaded;
    const its_sim_entry *entry;
    uint32_t *param_sizes;
};

struct its_loaded {
    its_loaded *next;
    its_sim_program *program;
    its_function *functions;
    uint64_t state; /* addresses of the NVSHMEM device library's variables, or 0 */
    uint64_t complaint;
};

/* What is asked for in a collective call, with the place in the user's program. */
its_asked its_sim_asked(const its_sim_backend *sim, its_asked_kind kind, uint64_t a, uint64_t b);

/* A wait for other PEs that this PE's own fault has ended leaves it to the device to say so. */
static inline its_status its_sim_settle(its_sim_backend *sim, its_status status) {
    return status == ITS_ERR_FAULT && its_world_faulted_here(sim->pe.world) ? its_device_check(sim->device) : status;
}

/* A collective call. */
static inline its_status its_sim_meet(its_sim_backend *sim, const char *call, its_asked asked) {
    its_device_host_collective(sim->device, false);
    its_status status = its_sim_settle(sim, its_world_collective(sim->base.ctx, sim->pe.world, call, asked));
    if (status == ITS_OK) its_device_host_collective(sim->device, true);
    return status;
}

#endif
