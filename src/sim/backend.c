/* See backend.h. */
#include "sim/backend.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../device/sim/state.h"
#include "sim/fault.h"
#include "sim/nvshmem_library.h"

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

static const size_t most_staged = (size_t)1 << 20; /* larger blocks are waited for, not copied twice */

/* Legacy code finds the type by its first member. */
static its_sim_backend *sim_of(its_backend *backend) {
    return (its_sim_backend *)(void *)backend;
}

static its_status no_memory(its_sim_backend *sim) {
    return its_fail(sim->base.ctx, ITS_ERR_NOMEM, NULL, "out of memory");
}

/* -- information --------------------------------------------------------------------------------------------------- */

static void sim_identity(its_backend *backend, uint32_t *pe, uint32_t *n_pes) {
    const its_world *world = sim_of(backend)->pe.world;
    *pe = world->pe;
    *n_pes = world->control->n_pes;
}

/* The opt-in limit per CTA of the architecture that is simulated. */
static uint32_t shared_limit(uint32_t major, uint32_t minor) {
    if (major >= 9 && major < 12) return 227 * 1024;
    if (major == 8) return minor == 0 || minor == 7 ? 163 * 1024 : 99 * 1024;
    return major == 7 ? (minor == 5 ? 64 : 96) * 1024 : major == 12 ? 99 * 1024 : 227 * 1024;
}

static its_status sim_device_info(its_backend *backend, its_device_info *info) {
    const its_sim_machine *machine = &sim_of(backend)->machine;
    *info = (its_device_info){
        .compute_major = machine->compute_major,
        .compute_minor = machine->compute_minor,
        .multiprocessors = machine->multiprocessors,
        .warp_size = 32,
        .max_shared = machine->max_shared,
        .max_regs = 65536,
        .max_threads = 1024,
    };
    snprintf(info->name, sizeof info->name, "Intarsia simulator (sm_%u%u)", machine->compute_major,
             machine->compute_minor);
    return ITS_OK;
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

/* A wait for other PEs that this PE's own fault has ended leaves it to the device to say so. */
static its_status settle(its_sim_backend *sim, its_status status) {
    return status == ITS_ERR_FAULT && its_world_faulted_here(sim->pe.world) ? its_device_check(sim->device) : status;
}

its_status its_sim_symmetric_alloc(its_sim_backend *sim, const char *call, size_t size, size_t align,
                                   uint64_t *address) {
    its_context *ctx = sim->base.ctx;
    if (align & (align - 1))
        return its_fail(ctx, ITS_ERR_USAGE, "an alignment is a power of two", "%s: %zu is no alignment", call, align);
    if (!align) align = ITS_SIM_ALIGN;
    if (!size) return its_fail(ctx, ITS_ERR_USAGE, NULL, "%s: a block of 0 bytes was asked for", call);
    its_device_lock(sim->device);
    its_status reserved = its_pe_reserve(&sim->pe, size, align, address);
    its_device_unlock(sim->device);
    its_asked asked = {ITS_ASKED_ALLOC, size, align};
    its_status status = settle(sim, its_world_collective(ctx, sim->pe.world, call, asked));
    if (status == ITS_OK) return reserved == ITS_OK ? ITS_OK : its_pe_no_room(&sim->pe, call, size);
    if (reserved == ITS_OK) {
        its_device_lock(sim->device);
        its_pe_cancel(&sim->pe, *address);
        its_device_unlock(sim->device);
    }
    return status;
}

its_status its_sim_symmetric_free(its_sim_backend *sim, const char *call, uint64_t address) {
    uint64_t offset;
    its_status status = its_pe_check_symmetric(&sim->pe, call, address, &offset);
    if (status != ITS_OK) return status;
    /* Nobody frees before everybody has come: until then its memory may still be written to. */
    its_asked asked = {ITS_ASKED_FREE, offset, 0};
    status = settle(sim, its_world_collective(sim->base.ctx, sim->pe.world, call, asked));
    if (status != ITS_OK) return status;
    its_device_lock(sim->device);
    its_pe_cancel(&sim->pe, address);
    its_device_unlock(sim->device);
    return ITS_OK;
}

static its_status sim_alloc(its_backend *backend, its_memory kind, size_t size, size_t align, uint64_t *address) {
    its_sim_backend *sim = sim_of(backend);
    if (kind == ITS_MEMORY_SYMMETRIC) return its_sim_symmetric_alloc(sim, "symmetric allocation", size, align, address);
    its_device_lock(sim->device);
    its_status status = its_pe_alloc(&sim->pe, size, align, ITS_SIM_DEVICE, address);
    its_device_unlock(sim->device);
    return status;
}

/* As cudaFree does, waits for what may still use the memory; a stopped device uses nothing. */
static its_status sim_free(its_backend *backend, its_memory kind, uint64_t address) {
    its_sim_backend *sim = sim_of(backend);
    if (!its_device_stopped(sim->device)) {
        its_status status = its_device_wait(sim->device);
        if (status != ITS_OK) return status;
    }
    if (kind == ITS_MEMORY_SYMMETRIC) return its_sim_symmetric_free(sim, "symmetric release", address);
    its_device_lock(sim->device);
    its_status status = its_pe_release(&sim->pe, address);
    its_device_unlock(sim->device);
    return status;
}

bool its_sim_peer(its_sim_backend *sim, uint64_t address, uint32_t pe, uint64_t *mapped) {
    return its_pe_peer(&sim->pe, address, pe, mapped);
}

static its_status sim_peer(its_backend *backend, uint64_t address, uint32_t pe, uint64_t *mapped) {
    its_sim_backend *sim = sim_of(backend);
    const its_world *world = sim->pe.world;
    if (its_sim_peer(sim, address, pe, mapped)) return ITS_OK;
    if (pe >= world->control->n_pes)
        return its_fail(backend->ctx, ITS_ERR_INPUT, "PEs are numbered from 0", "there is no PE %u among %u", pe,
                        world->control->n_pes);
    return its_fail(backend->ctx, ITS_ERR_INPUT, "only symmetric memory can be reached from other PEs",
                    "0x%" PRIx64 " is not in the symmetric heap of PE %u", address, world->pe);
}

its_memory_at its_sim_memory_kind(its_sim_backend *sim, uint64_t address) {
    its_sim_range range;
    its_device_lock(sim->device);
    bool found = its_sim_memory_find(sim->pe.memory, address, &range);
    its_device_unlock(sim->device);
    return !found ? ITS_AT_UNKNOWN : range.kind == ITS_SIM_HOST ? ITS_AT_HOST : ITS_AT_DEVICE;
}

its_status its_sim_alloc_host(its_sim_backend *sim, size_t size, uint64_t *address) {
    its_device_lock(sim->device);
    its_status status = its_pe_alloc(&sim->pe, size, 0, ITS_SIM_HOST, address);
    its_device_unlock(sim->device);
    return status;
}

its_status its_sim_release_host(its_sim_backend *sim, uint64_t address) {
    return sim_free(&sim->base, ITS_MEMORY_DEVICE, address);
}

void its_sim_memory_used(its_sim_backend *sim, uint64_t *used, uint64_t *total) {
    its_device_lock(sim->device);
    *used = sim->pe.device.used;
    its_device_unlock(sim->device);
    *total = sim->pe.device.end;
}

its_stopped its_sim_stopped(its_sim_backend *sim) {
    bool peer;
    const its_sim_fault *fault = its_device_fault(sim->device, &peer);
    if (peer) return ITS_STOPPED_PEER;
    if (!fault) return its_device_stopped(sim->device) ? ITS_STOPPED_OTHER : ITS_STOPPED_NOT;
    switch (fault->kind) {
    case ITS_SIM_FAULT_ACCESS:
    case ITS_SIM_FAULT_READ_ONLY:
        return ITS_STOPPED_ACCESS;
    case ITS_SIM_FAULT_MISALIGNED:
        return ITS_STOPPED_MISALIGNED;
    case ITS_SIM_FAULT_ASSERT:
        return ITS_STOPPED_ASSERT;
    default:
        return ITS_STOPPED_OTHER;
    }
}

its_status its_sim_error(its_sim_backend *sim, const char *hint, const char *message) {
    return its_fail(sim->base.ctx, ITS_ERR_USAGE, hint, "%s", message);
}

/* -- copies -------------------------------------------------------------------------------------------------------- */

/* What is wrong with one end of a copy or a fill, if anything. */
static its_status check_end(its_sim_backend *sim, uint64_t address, size_t size, const char *what) {
    its_sim_range range;
    its_device_lock(sim->device);
    bool found = its_sim_memory_find(sim->pe.memory, address, &range);
    its_device_unlock(sim->device);
    if (found && size <= range.end - address) return ITS_OK;
    if (found)
        return its_fail(sim->base.ctx, ITS_ERR_USAGE, NULL,
                        "a copy or fill of %zu bytes %s 0x%" PRIx64 " leaves its allocation, which has %" PRIu64
                        " bytes from there on",
                        size, what, address, range.end - address);
    return its_fail(sim->base.ctx, ITS_ERR_USAGE, "device pointers come from device or symmetric allocations",
                    "a copy or fill of %zu bytes %s 0x%" PRIx64 ", where no device memory is allocated", size, what,
                    address);
}

its_status its_sim_put_target(its_sim_backend *sim, const char *call, uint64_t address, size_t bytes, int pe,
                              uint64_t *mapped) {
    const its_world *world = sim->pe.world;
    if (pe < 0 || (uint32_t)pe >= world->control->n_pes)
        return its_fail(sim->base.ctx, ITS_ERR_USAGE, "PEs are numbered from 0 to nvshmem_n_pes() - 1",
                        "%s: there is no PE %d", call, pe);
    if (!its_sim_peer(sim, address, (uint32_t)pe, mapped))
        return its_fail(sim->base.ctx, ITS_ERR_USAGE,
                        "only memory from nvshmem_malloc, nvshmem_calloc and nvshmem_align is symmetric",
                        "%s to PE %d: 0x%" PRIx64 " is not in the symmetric heap of PE %u", call, pe, address,
                        world->pe);
    return bytes ? check_end(sim, *mapped, bytes, "at") : ITS_OK;
}

/* A source that the caller may change as soon as the call returns is read now. */
static its_status stage(its_sim_backend *sim, its_work *work) {
    work->copy.staged = its_block_alloc(sim->base.ctx, work->copy.size);
    if (!work->copy.staged) return no_memory(sim);
    memcpy(work->copy.staged, work->copy.from, work->copy.size);
    work->copy.from = work->copy.staged;
    return ITS_OK;
}

its_status its_sim_copy(its_sim_backend *sim, uint64_t to, bool to_device, uint64_t from, bool from_device, size_t size,
                        its_host_memory host, its_stream stream) {
    its_status status = ITS_OK;
    if (size && to_device) status = check_end(sim, to, size, "to");
    if (size && status == ITS_OK && from_device) status = check_end(sim, from, size, "from");
    its_work work = {.kind = ITS_WORK_COPY,
                     .copy = {.to = (void *)(uintptr_t)to, .from = (const void *)(uintptr_t)from, .size = size}};
    bool pageable = host == ITS_HOST_PAGEABLE, staged = pageable && to_device && size && size <= most_staged;
    if (status == ITS_OK && staged) status = stage(sim, &work);
    if (status != ITS_OK) return status;
    status = its_device_enqueue(sim->device, stream, &work);
    if (status != ITS_OK) {
        its_free(sim->base.ctx, work.copy.staged);
        return status;
    }
    return pageable && !staged ? its_device_wait_stream(sim->device, stream) : ITS_OK;
}

its_status its_sim_fill(its_sim_backend *sim, uint64_t at, uint64_t value, uint32_t width, size_t size,
                        its_stream stream) {
    its_status status = size ? check_end(sim, at, size, "at") : ITS_OK;
    if (status != ITS_OK) return status;
    its_work work = {.kind = ITS_WORK_FILL,
                     .fill = {.at = (void *)(uintptr_t)at, .size = size, .value = value, .width = width}};
    return its_device_enqueue(sim->device, stream, &work);
}

static its_status sim_copy(its_backend *backend, its_copy_kind kind, uint64_t device, uint64_t other, size_t size,
                           its_stream stream) {
    its_sim_backend *sim = sim_of(backend);
    switch (kind) {
    case ITS_COPY_TO_DEVICE:
        return its_sim_copy(sim, device, true, other, false, size, ITS_HOST_PAGEABLE, stream);
    case ITS_COPY_FROM_DEVICE:
        return its_sim_copy(sim, other, false, device, true, size, ITS_HOST_PAGEABLE, stream);
    default:
        return its_sim_copy(sim, device, true, other, true, size, ITS_HOST_NONE, stream);
    }
}

static its_status sim_fill(its_backend *backend, uint64_t address, uint8_t value, size_t size, its_stream stream) {
    return its_sim_fill(sim_of(backend), address, value, 1, size, stream);
}

/* -- modules ------------------------------------------------------------------------------------------------------- */

/* A module that holds the device library's variables is told where it is; nothing else makes it special. */
static void find_library(its_sim_backend *sim, its_loaded *loaded) {
    size_t size;
    if (its_sim_program_variable(loaded->program, INTARSIA_SIM_COMPLAINT_NAME, &loaded->complaint, &size)) {
        if (size == sizeof(struct intarsia_sim_complaint))
            memset((void *)(uintptr_t)loaded->complaint, 0, size);
        else
            loaded->complaint = 0;
    }
    if (its_sim_program_variable(loaded->program, INTARSIA_SIM_STATE_NAME, &loaded->state, &size) &&
        !its_nvshmem_tell(&sim->pe, sim->teams, (void *)(uintptr_t)loaded->state, size))
        loaded->state = 0;
}

static its_status sim_load(its_backend *backend, its_module *module, its_loaded **out) {
    its_sim_backend *sim = sim_of(backend);
    *out = NULL;
    its_status status = its_device_check(sim->device);
    if (status != ITS_OK) return status;
    its_loaded *loaded = its_block_alloc(backend->ctx, sizeof *loaded);
    if (!loaded) return no_memory(sim);
    *loaded = (its_loaded){0};
    its_device_lock(sim->device);
    status = its_sim_program_new(backend->ctx, &sim->machine, module, &loaded->program);
    if (status == ITS_OK) find_library(sim, loaded);
    its_device_unlock(sim->device);
    if (status != ITS_OK) {
        its_free(backend->ctx, loaded);
        return status;
    }
    loaded->next = sim->loaded;
    sim->loaded = loaded;
    *out = loaded;
    return ITS_OK;
}

static void free_loaded(its_sim_backend *sim, its_loaded *loaded) {
    its_context *ctx = sim->base.ctx;
    while (loaded->functions) {
        its_function *function = loaded->functions;
        loaded->functions = function->next;
        its_free(ctx, function->param_sizes);
        its_free(ctx, function);
    }
    its_device_lock(sim->device);
    its_sim_program_free(loaded->program);
    its_device_unlock(sim->device);
    its_free(ctx, loaded);
}

/* Kernels of the module are still run to their end; after a fault the module stays until the backend is closed. */
static void sim_unload(its_backend *backend, its_loaded *loaded) {
    its_sim_backend *sim = sim_of(backend);
    if (!loaded || its_device_stopped(sim->device) || its_device_wait(sim->device) != ITS_OK) return;
    its_loaded **at = &sim->loaded;
    while (*at && *at != loaded) at = &(*at)->next;
    if (!*at) return;
    *at = loaded->next;
    free_loaded(sim, loaded);
}

static its_status sim_function(its_backend *backend, its_loaded *loaded, const char *name, its_function **out) {
    its_sim_backend *sim = sim_of(backend);
    const its_sim_entry *entry;
    *out = NULL;
    its_status status = its_sim_program_entry(backend->ctx, loaded->program, name, &entry);
    if (status != ITS_OK) return status;
    for (its_function *function = loaded->functions; function && !*out; function = function->next)
        if (function->entry == entry) *out = function;
    if (*out) return ITS_OK;
    its_function *function = its_block_alloc(backend->ctx, sizeof *function);
    uint32_t *sizes = its_block_alloc(backend->ctx, (entry->n_params + 1) * sizeof *sizes);
    if (!function || !sizes) {
        its_free(backend->ctx, function);
        its_free(backend->ctx, sizes);
        return no_memory(sim);
    }
    for (uint32_t i = 0; i < entry->n_params; i++) sizes[i] = entry->params[i].size;
    *function = (its_function){loaded->functions, loaded, entry, sizes};
    loaded->functions = *out = function;
    return ITS_OK;
}

static its_status sim_function_info(its_backend *backend, its_function *function, its_function_info *info) {
    (void)backend;
    const its_sim_entry *entry = function->entry;
    *info = (its_function_info){.name = entry->name,
                                .n_params = entry->n_params,
                                .param_sizes = function->param_sizes,
                                .shared = entry->shared,
                                .max_threads = entry->max_threads};
    return ITS_OK;
}

static its_status sim_variable(its_backend *backend, its_loaded *loaded, const char *name, uint64_t *address,
                               size_t *size) {
    if (its_sim_program_variable(loaded->program, name, address, size)) return ITS_OK;
    return its_fail(backend->ctx, ITS_ERR_INPUT,
                    "only .global and .const variables of the module itself have an address",
                    "the module has no variable '%s'", name);
}

static its_status make_grid(its_sim_backend *sim, const its_function *function, const its_launch *launch,
                            its_sim_grid **grid) {
    const its_sim_entry *entry = function->entry;
    its_context *ctx = sim->base.ctx;
    if (launch->n_params != entry->n_params)
        return its_fail(ctx, ITS_ERR_USAGE, NULL, "kernel '%s' has %u parameters, but %u were given", entry->name,
                        entry->n_params, launch->n_params);
    char *params = its_block_alloc(ctx, entry->param_size + 1u);
    if (!params) return no_memory(sim);
    memset(params, 0, entry->param_size);
    for (uint32_t i = 0; i < entry->n_params; i++)
        memcpy(params + entry->params[i].offset, launch->params[i], entry->params[i].size);
    its_sim_launch what = {.shared = launch->shared, .params = params};
    memcpy(what.grid, launch->grid, sizeof what.grid);
    memcpy(what.block, launch->block, sizeof what.block);
    its_status status = its_sim_grid_new(ctx, entry, &what, grid);
    its_free(ctx, params);
    return status;
}

static its_status sim_launch(its_backend *backend, its_function *function, const its_launch *launch) {
    its_sim_backend *sim = sim_of(backend);
    its_work work = {
        .kind = ITS_WORK_KERNEL,
        .kernel = {.name = function->entry->name, .complaint = (const void *)(uintptr_t)function->loaded->complaint}};
    its_status status = its_device_stream_check(sim->device, launch->stream);
    if (status == ITS_OK) status = its_device_check(sim->device);
    if (status == ITS_OK) status = make_grid(sim, function, launch, &work.kernel.grid);
    if (status != ITS_OK) return status;
    status = its_device_enqueue(sim->device, launch->stream, &work);
    if (status != ITS_OK) its_sim_grid_free(work.kernel.grid);
    return status;
}

/* -- streams and events -------------------------------------------------------------------------------------------- */

its_device *its_sim_device(its_sim_backend *sim) {
    return sim->device;
}

its_status its_sim_stream_new(its_sim_backend *sim, bool blocking, its_stream *stream) {
    return its_device_stream_new(sim->device, blocking, stream);
}

its_status its_sim_stream_idle(its_sim_backend *sim, its_stream stream, bool *idle) {
    return its_device_stream_idle(sim->device, stream, idle);
}

its_status its_sim_host_call(its_sim_backend *sim, its_stream stream, void (*function)(void *user), void *user) {
    its_work work = {.kind = ITS_WORK_CALL, .call = {function, user}};
    return its_device_enqueue(sim->device, stream, &work);
}

static its_status sim_stream_new(its_backend *backend, its_stream *stream) {
    return its_sim_stream_new(sim_of(backend), true, stream);
}

static its_status sim_stream_free(its_backend *backend, its_stream stream) {
    return its_device_stream_free(sim_of(backend)->device, stream);
}

static its_status sim_stream_wait(its_backend *backend, its_stream stream) {
    return its_device_wait_stream(sim_of(backend)->device, stream);
}

static its_status sim_wait(its_backend *backend) {
    return its_device_wait(sim_of(backend)->device);
}

its_status its_sim_event_new(its_sim_backend *sim, its_event *event) {
    return its_device_event_new(sim->device, event);
}
its_status its_sim_event_free(its_sim_backend *sim, its_event event) {
    return its_device_event_free(sim->device, event);
}
its_status its_sim_event_record(its_sim_backend *sim, its_event event, its_stream stream) {
    return its_device_event_record(sim->device, event, stream);
}
its_status its_sim_event_wait(its_sim_backend *sim, its_event event, its_stream stream) {
    return its_device_event_wait(sim->device, event, stream);
}
its_status its_sim_event_done(its_sim_backend *sim, its_event event, bool *done) {
    return its_device_event_done(sim->device, event, done);
}
its_status its_sim_event_synchronize(its_sim_backend *sim, its_event event) {
    return its_device_event_synchronize(sim->device, event);
}

its_status its_sim_event_elapsed(its_sim_backend *sim, its_event from, its_event to, double *milliseconds) {
    uint64_t begun = 0, ended = 0;
    its_status status = its_device_event_time(sim->device, from, &begun);
    if (status == ITS_OK) status = its_device_event_time(sim->device, to, &ended);
    if (status != ITS_OK) return status;
    if (!begun || !ended)
        return its_fail(sim->base.ctx, ITS_ERR_USAGE, "record both events, and wait for the second",
                        "an event was not recorded or not reached yet");
    *milliseconds = ((double)ended - (double)begun) * 1e-6;
    return ITS_OK;
}

/* -- teams and barriers -------------------------------------------------------------------------------------------- */

static void give_teams(its_sim_backend *sim) {
    const its_world *world = sim->pe.world;
    uint32_t n = world->control->n_pes;
    sim->teams[0] = sim->teams[1] = sim->teams[2] = (its_team){0, 1, n}; /* world, shared, node: one node */
    sim->teams[3] = (its_team){world->pe, 1, 1};                         /* the same number on every node */
}

const its_team *its_sim_team(its_sim_backend *sim, int32_t team) {
    if (team < 0 || team >= ITS_WORLD_MAX_TEAMS || !sim->teams[team].size) return NULL;
    return &sim->teams[team];
}

static void tell_modules(its_sim_backend *sim) {
    its_device_lock(sim->device);
    for (const its_loaded *loaded = sim->loaded; loaded; loaded = loaded->next)
        if (loaded->state)
            its_nvshmem_tell(&sim->pe, sim->teams, (void *)(uintptr_t)loaded->state, sizeof(struct intarsia_sim_state));
    its_device_unlock(sim->device);
}

static bool is_member(uint32_t pe, its_team team) {
    return pe >= team.start && (pe - team.start) % team.stride == 0 && (pe - team.start) / team.stride < team.size;
}

/*
 * Every PE of the world counts the teams alike, members or not, so that a team has one number; none is used twice. The
 * counters of its barrier are zero before anybody leaves the collective call.
 */
its_status its_sim_team_new(its_sim_backend *sim, its_team members, int32_t *team) {
    its_context *ctx = sim->base.ctx;
    const its_world *world = sim->pe.world;
    *team = -1;
    if (!members.size || !members.stride ||
        members.start + (uint64_t)(members.size - 1) * members.stride >= world->control->n_pes)
        return its_fail(ctx, ITS_ERR_USAGE, NULL, "a team of %u PEs from PE %u by %u does not fit into %u PEs",
                        members.size, members.start, members.stride, world->control->n_pes);
    int32_t number = sim->next_team < ITS_WORLD_MAX_TEAMS ? (int32_t)sim->next_team : -1;
    if (number >= 0) memset(&its_world_library(world, world->pe)->teams[number], 0, sizeof(its_team_area));
    its_asked asked = {ITS_ASKED_TEAM, members.start | (uint64_t)members.stride << 32, members.size};
    its_status status = settle(sim, its_world_collective(ctx, world, "nvshmem_team_split_strided", asked));
    if (status != ITS_OK) return status;
    if (number < 0)
        return its_fail(ctx, ITS_ERR_NOMEM, "make teams once and keep them",
                        "%d teams have been made, there are no more", ITS_WORLD_MAX_TEAMS);
    sim->next_team++;
    if (!is_member(world->pe, members)) return ITS_OK;
    sim->teams[number] = members;
    tell_modules(sim);
    *team = number;
    return ITS_OK;
}

its_status its_sim_team_free(its_sim_backend *sim, int32_t team) {
    if (team < ITS_FIRST_FREE_TEAM || !its_sim_team(sim, team))
        return its_fail(sim->base.ctx, ITS_ERR_USAGE, "only teams that were made can be freed", "%d is no team to free",
                        team);
    sim->teams[team].size = 0;
    tell_modules(sim);
    return ITS_OK;
}

static its_status no_team(its_sim_backend *sim, int32_t team) {
    return its_fail(sim->base.ctx, ITS_ERR_USAGE, "a call on a team is made by its members only",
                    "PE %u belongs to no team %d", sim->pe.world->pe, team);
}

its_status its_sim_barrier(its_sim_backend *sim, int32_t team, bool quiet) {
    const its_team *members = its_sim_team(sim, team);
    if (!members) return no_team(sim, team);
    its_status status = quiet ? its_device_wait(sim->device) : its_device_check(sim->device);
    if (status != ITS_OK) return status;
    return settle(sim, its_world_barrier(sim->base.ctx, sim->pe.world, (uint32_t)team, *members));
}

its_status its_sim_barrier_on_stream(its_sim_backend *sim, int32_t team, its_stream stream) {
    const its_team *members = its_sim_team(sim, team);
    if (!members) return no_team(sim, team);
    its_work work = {.kind = ITS_WORK_BARRIER, .barrier = {.team = (uint32_t)team, .members = *members}};
    return its_device_enqueue(sim->device, stream, &work);
}

static its_status sim_barrier(its_backend *backend) {
    return its_sim_barrier(sim_of(backend), 0, true);
}

/* -- signals ------------------------------------------------------------------------------------------------------- */

static its_status check_word(its_sim_backend *sim, uint64_t at, uint32_t width) {
    if (at % width)
        return its_fail(sim->base.ctx, ITS_ERR_USAGE, NULL, "a signal of %u bytes at 0x%" PRIx64 " is not aligned",
                        width, at);
    return check_end(sim, at, width, "at");
}

its_status its_sim_signal_on_stream(its_sim_backend *sim, uint64_t at, uint64_t value, bool add, its_stream stream) {
    its_status status = check_word(sim, at, 8);
    if (status != ITS_OK) return status;
    its_work work = {.kind = ITS_WORK_SIGNAL,
                     .signal = {.at = (void *)(uintptr_t)at, .value = value, .width = 8, .add = add}};
    return its_device_enqueue(sim->device, stream, &work);
}

its_status its_sim_wait_signal_on_stream(its_sim_backend *sim, uint64_t at, its_compare compare, uint64_t value,
                                         uint32_t width, bool is_signed, its_stream stream) {
    if ((unsigned)compare > ITS_GE)
        return its_fail(sim->base.ctx, ITS_ERR_USAGE, "compare with NVSHMEM_CMP_EQ, NE, GT, LE, LT or GE",
                        "%d is no comparison", (int)compare);
    its_status status = check_word(sim, at, width);
    if (status != ITS_OK) return status;
    its_work work = {
        .kind = ITS_WORK_WAIT_SIGNAL,
        .signal = {
            .at = (void *)(uintptr_t)at, .value = value, .width = width, .is_signed = is_signed, .compare = compare}};
    return its_device_enqueue(sim->device, stream, &work);
}

/* -- opening and closing ------------------------------------------------------------------------------------------- */

static void sim_close(its_backend *backend) {
    its_sim_backend *sim = sim_of(backend);
    its_context *ctx = backend->ctx;
    its_device_finish(sim->device);
    while (sim->loaded) {
        its_loaded *loaded = sim->loaded;
        sim->loaded = loaded->next;
        free_loaded(sim, loaded);
    }
    its_device_free(sim->device);
    its_pe_close(&sim->pe);
    its_free(ctx, sim);
}

static const its_backend_ops sim_ops = {
    .name = "sim",
    .close = sim_close,
    .identity = sim_identity,
    .device_info = sim_device_info,
    .alloc = sim_alloc,
    .free = sim_free,
    .peer = sim_peer,
    .copy = sim_copy,
    .fill = sim_fill,
    .load = sim_load,
    .unload = sim_unload,
    .function = sim_function,
    .function_info = sim_function_info,
    .variable = sim_variable,
    .launch = sim_launch,
    .stream_new = sim_stream_new,
    .stream_free = sim_stream_free,
    .stream_wait = sim_stream_wait,
    .wait = sim_wait,
    .barrier = sim_barrier,
};

its_status its_sim_backend_of(its_backend *backend, its_sim_backend **sim) {
    *sim = backend->ops == &sim_ops ? sim_of(backend) : NULL;
    if (*sim) return ITS_OK;
    return its_fail(backend->ctx, ITS_ERR_USAGE, NULL, "the backend '%s' is not the simulator", backend->ops->name);
}

static void *take_block(void *user, size_t size, size_t align) {
    return its_pe_take(user, size, align);
}
static void give_block(void *user, void *block, size_t size) {
    (void)size;
    its_pe_give(user, block);
}

/* What kernels print goes where the program prints. */
static void print_text(void *user, const char *text, size_t size) {
    (void)user;
    while (size) {
        ssize_t written = write(STDOUT_FILENO, text, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        text += written;
        size -= (size_t)written;
    }
}

static its_status open_pe(its_context *ctx, int fd, uint32_t number, its_backend **out) {
    its_sim_backend *sim = its_block_alloc(ctx, sizeof *sim);
    if (!sim) return its_fail(ctx, ITS_ERR_NOMEM, NULL, "out of memory");
    *sim = (its_sim_backend){.base = {&sim_ops, ctx}, .next_team = ITS_FIRST_FREE_TEAM};
    its_status status = its_pe_open(ctx, fd, number, &sim->pe);
    if (status != ITS_OK) {
        its_free(ctx, sim);
        return status;
    }
    const its_world_control *control = sim->pe.world->control;
    sim->machine = (its_sim_machine){
        .memory = sim->pe.memory,
        .multiprocessors = control->multiprocessors,
        .compute_major = control->compute_major,
        .compute_minor = control->compute_minor,
        .max_shared = shared_limit(control->compute_major, control->compute_minor),
        .take = take_block,
        .give = give_block,
        .print = print_text,
        .user = &sim->pe,
    };
    give_teams(sim);
    status = its_device_new(ctx, &sim->pe, &sim->device);
    if (status != ITS_OK) {
        its_pe_close(&sim->pe);
        its_free(ctx, sim);
        return status;
    }
    *out = &sim->base;
    return ITS_OK;
}

its_status its_sim_open(its_context *ctx, int fd, uint32_t pe, const its_sim_options *options, its_backend **backend) {
    *backend = NULL;
    if (fd >= 0) return open_pe(ctx, fd, pe, backend);
    its_sim_options alone = options ? *options : (its_sim_options){0};
    alone.n_pes = 1;
    its_status status = its_sim_world_new(ctx, &alone, &fd);
    if (status != ITS_OK) return status;
    status = open_pe(ctx, fd, 0, backend);
    close(fd);
    return status;
}

/* -- the environment ----------------------------------------------------------------------------------------------- */

static its_status bad_setting(its_context *ctx, const char *name, const char *text) {
    return its_fail(ctx, ITS_ERR_USAGE, "unset it, or start the program with `intarsia run --sim`",
                    "the environment variable %s holds '%s', which is not a number that fits", name, text);
}

static its_status read_number(its_context *ctx, const char *name, uint64_t most, uint64_t *number) {
    const char *text = getenv(name);
    char *end;
    errno = 0;
    unsigned long long value = text && *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : ULLONG_MAX;
    if (value > most || errno || *end) return bad_setting(ctx, name, text ? text : "");
    *number = value;
    return ITS_OK;
}

its_status its_sim_open_env(its_context *ctx, its_backend **backend) {
    *backend = NULL;
    if (!getenv("INTARSIA_SIM_FD")) return its_sim_open(ctx, -1, 0, NULL, backend);
    uint64_t fd = 0, pe = 0;
    its_status status = read_number(ctx, "INTARSIA_SIM_FD", INT_MAX, &fd);
    if (status == ITS_OK) status = read_number(ctx, "INTARSIA_PE", ITS_WORLD_MAX_PES - 1, &pe);
    return status == ITS_OK ? its_sim_open(ctx, (int)fd, (uint32_t)pe, NULL, backend) : status;
}
