/* What the simulator's backend does beyond its table of functions, for the library of host names; see backend.h. */
#include <inttypes.h>
#include <string.h>

#include "../../device/sim/state.h"
#include "sim/backend_parts.h"
#include "sim/fault.h"
#include "sim/nvshmem_library.h"

static const size_t most_staged = (size_t)1 << 20; /* larger blocks are waited for, not copied twice */

/* -- memory -------------------------------------------------------------------------------------------------------- */

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
    return sim->base.ops->free(&sim->base, ITS_MEMORY_DEVICE, address);
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

/* One end of a copy or a fill: the `what` of "a copy or fill of 8 bytes to 0x1000". */
typedef struct copy_end {
    its_sim_backend *sim;
    uint64_t address;
    size_t size;
    const char *what;
    its_sim_nearby nearby;
    its_buffer text;
} copy_end;

static its_status tell_end(void *user) {
    copy_end *end = user;
    const its_sim_nearby *nearby = &end->nearby;
    const uint32_t pe = end->sim->pe.world->pe;
    const char *hint = nearby->what == ITS_SIM_NEAR_FREED ? "free the memory after the last copy or fill of it"
                                                          : "check the address and the size";
    its_buffer_printf(&end->text, "a copy or fill of %zu bytes %s 0x%" PRIx64, end->size, end->what, end->address);
    if (nearby->what == ITS_SIM_NEAR_INSIDE) {
        its_buffer_printf(&end->text, " leaves its allocation, which has %" PRIu64 " bytes from there on",
                          nearby->allocation.size - nearby->distance);
        hint = NULL;
    } else if (nearby->what == ITS_SIM_NEAR_NOTHING) {
        its_buffer_text(&end->text, ", where no device memory is allocated");
        hint = "device pointers come from device or symmetric allocations";
    } else {
        its_sim_put_nearby(&end->text, nearby, end->size, pe);
    }
    its_buffer_char(&end->text, 0);
    return its_fail(end->sim->base.ctx, ITS_ERR_USAGE, hint, "%s", end->text.data);
}

/* What is wrong with one end of a copy or a fill, if anything. */
static its_status check_end(its_sim_backend *sim, uint64_t address, size_t size, const char *what) {
    its_context *ctx = sim->base.ctx;
    its_sim_range range;
    copy_end end = {.sim = sim, .address = address, .size = size, .what = what};
    its_device_lock(sim->device);
    bool good = its_sim_memory_find(sim->pe.memory, address, &range) && size <= range.end - address;
    if (!good) its_sim_memory_explain(sim->pe.memory, address, &end.nearby);
    its_device_unlock(sim->device);
    if (good) return ITS_OK;
    its_buffer_init(&end.text, ctx);
    its_status status = its_protect(ctx, tell_end, &end);
    its_buffer_free(&end.text);
    return status;
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
    if (!work->copy.staged) return its_no_memory(sim->base.ctx);
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

/* -- streams and events -------------------------------------------------------------------------------------------- */

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
    its_world *world = sim->pe.world;
    *team = -1;
    if (!members.size || !members.stride ||
        members.start + (uint64_t)(members.size - 1) * members.stride >= world->control->n_pes)
        return its_fail(ctx, ITS_ERR_USAGE, NULL, "a team of %u PEs from PE %u by %u does not fit into %u PEs",
                        members.size, members.start, members.stride, world->control->n_pes);
    int32_t number = sim->next_team < ITS_WORLD_MAX_TEAMS ? (int32_t)sim->next_team : -1;
    if (number >= 0) memset(&its_world_library(world, world->pe)->teams[number], 0, sizeof(its_team_area));
    its_asked asked = its_sim_asked(sim, ITS_ASKED_TEAM, members.start | (uint64_t)members.stride << 32, members.size);
    its_status status = its_sim_meet(sim, "nvshmem_team_split_strided", asked);
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
    its_device_host_arrives(sim->device, *members, (uint32_t)team);
    status = its_sim_settle(sim, its_world_barrier(sim->base.ctx, sim->pe.world, (uint32_t)team, *members));
    if (status == ITS_OK) its_device_host_leaves(sim->device, *members, (uint32_t)team);
    return status;
}

its_status its_sim_barrier_on_stream(its_sim_backend *sim, int32_t team, its_stream stream) {
    const its_team *members = its_sim_team(sim, team);
    if (!members) return no_team(sim, team);
    its_work work = {.kind = ITS_WORK_BARRIER, .barrier = {.team = (uint32_t)team, .members = *members}};
    return its_device_enqueue(sim->device, stream, &work);
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
