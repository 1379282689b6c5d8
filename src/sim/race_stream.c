/* Streams and the host as agents: see race.h. */
#include "sim/race_stream.h"

#include <inttypes.h>
#include <string.h>

static its_race *race_of(const its_device *device) {
    return device->pe->race;
}

its_status its_race_stream_new(its_device *device, its_stream_queue *stream) {
    if (!race_of(device)) return ITS_OK;
    stream->race = its_race_stream(race_of(device), stream->id);
    return stream->race ? ITS_OK : ITS_ERR_NOMEM;
}

its_status its_race_enqueue(its_device *device, its_work *work) {
    if (!race_of(device)) return ITS_OK;
    work->seen = its_race_vector(race_of(device));
    if (!work->seen) return ITS_ERR_NOMEM;
    its_race_give(device->host, work->seen);
    return ITS_OK;
}

/* Order is CUDA's: the default stream and the blocking ones wait for each other. */
void its_race_stream_begin(its_device *device, its_stream_queue *stream) {
    its_work *work = stream->first;
    if (!stream->race || work->followed) return;
    work->followed = true;
    its_race_take(stream->race, work->seen);
    const its_stream_queue *all = device->streams;
    for (size_t i = 0; stream->blocking && i < device->n_streams; i++)
        if (all[i].race && (stream == all ? i != 0 && all[i].blocking : i == 0))
            its_race_give(all[i].race, stream->race->vector);
    if (work->kind == ITS_WORK_KERNEL) its_sim_grid_follows(work->kernel.grid, stream->race);
    if (work->kind == ITS_WORK_BARRIER) its_race_arrive(stream->race, work->barrier.members, work->barrier.team);
}

/* -- accesses ------------------------------------------------------------------------------------------------------ */

static const char *text_of(const void *user, char *buffer, size_t size) {
    (void)buffer, (void)size;
    return user;
}

static bool complain(its_device *device, const char *what, const void *at, bool write,
                     const its_race_conflict *conflict) {
    its_sim_nearby nearby = {0};
    its_sim_memory_explain(device->pe->memory, conflict->address, &nearby);
    its_fail(device->complaints, ITS_ERR_FAULT,
             "order the two: by the stream, by an event, by a signal that is waited for, or by a barrier of the PEs",
             "PE %u: %s %s memory at %p, 0x%" PRIx64 " among it (%" PRIu64 " bytes into an allocation of %" PRIu64
             " bytes), which PE %u, %s has %s, and nothing orders the two",
             (unsigned)device->pe->world->pe, what, write ? "writes" : "reads", at, conflict->address, nearby.distance,
             nearby.allocation.size, (unsigned)conflict->pe, conflict->site,
             conflict->other_writes ? "written" : "read");
    return false;
}

/* What a copy writes, and where; the source of a fill is NULL: it is taken to differ. */
typedef struct writing {
    const char *at, *source;
} writing;

static bool differs(void *user, const its_race_conflict *conflict) {
    const writing *w = user;
    for (uint32_t i = 0; w->source && i < 8; i++) {
        const char *now = (const char *)(uintptr_t)conflict->address + i;
        if (conflict->bytes >> i & 1 && *now != w->source[now - w->at]) return true;
    }
    return !w->source;
}

static bool access_memory(its_device *device, its_stream_queue *stream, const char *what, void *at, size_t size,
                          bool write, const void *source) {
    its_race_conflict conflict;
    writing w = {at, source};
    if (!size || !its_device_reaches(device, at)) return true;
    its_race_by by = {.site = its_race_site(race_of(device), what, text_of, what)};
    if (its_race_access(stream->race, NULL, NULL, at, size, write, false, by, &conflict, differs, &w)) return true;
    return complain(device, what, at, write, &conflict);
}

/* A wait has seen what is there now, or something before it. */
static its_race_word signal_word(const its_work *work) {
    its_race_word word = {.address = (uint64_t)(uintptr_t)work->signal.at,
                          .atomic = work->kind == ITS_WORK_SIGNAL && work->signal.add,
                          .scope = ITS_RACE_SYS};
    if (work->kind == ITS_WORK_SIGNAL)
        word.value = work->signal.value;
    else
        memcpy(&word.value, work->signal.at, work->signal.width);
    return word;
}

bool its_race_stream_access(its_device *device, its_stream_queue *stream) {
    const its_work *work = stream->first;
    if (!stream->race) return true;
    switch (work->kind) {
    case ITS_WORK_COPY:
        return access_memory(device, stream, "a copy on a stream", (void *)(uintptr_t)work->copy.from, work->copy.size,
                             false, NULL) &&
               access_memory(device, stream, "a copy on a stream", work->copy.to, work->copy.size, true,
                             work->copy.from);
    case ITS_WORK_FILL:
        return access_memory(device, stream, "a fill on a stream", work->fill.at, work->fill.size, true, NULL);
    case ITS_WORK_SIGNAL:
        its_race_release(stream->race, signal_word(work));
        return true;
    default:
        return true;
    }
}

void its_race_stream_done(its_device *device, its_stream_queue *stream) {
    const its_work *work = stream->first;
    if (!stream->race) return;
    switch (work->kind) {
    case ITS_WORK_KERNEL:
        if (its_sim_grid_gave(work->kernel.grid)) its_race_take(stream->race, its_sim_grid_gave(work->kernel.grid));
        break;
    case ITS_WORK_EVENT: {
        its_event_state *event = its_device_find_event(device, work->event.event);
        if (event && !event->seen) event->seen = its_race_vector(race_of(device));
        if (event && event->seen) its_race_give(stream->race, event->seen);
        break;
    }
    case ITS_WORK_WAIT_EVENT: {
        const its_event_state *event = its_device_find_event(device, work->event.event);
        if (event && event->seen) its_race_take(stream->race, event->seen);
        break;
    }
    case ITS_WORK_BARRIER:
        its_race_leave(stream->race, work->barrier.members, work->barrier.team);
        break;
    case ITS_WORK_WAIT_SIGNAL:
        its_race_acquire(stream->race, signal_word(work));
        break;
    default:
        break;
    }
}

/* -- the host ------------------------------------------------------------------------------------------------------ */

void its_race_host_waited(its_device *device, const its_stream_queue *stream) {
    if (!race_of(device)) return;
    for (size_t i = 0; i < device->n_streams; i++)
        if (device->streams[i].race && (!stream || stream == &device->streams[i]))
            its_race_give(device->streams[i].race, device->host->vector);
}

void its_race_host_waited_event(its_device *device, const its_event_state *event) {
    if (race_of(device) && event && event->seen) its_race_take(device->host, event->seen);
}

void its_device_host_arrives(its_device *device, its_team members, uint32_t team) {
    if (device->host) its_race_arrive(device->host, members, team);
}

void its_device_host_leaves(its_device *device, its_team members, uint32_t team) {
    if (device->host) its_race_leave(device->host, members, team);
}

void its_device_host_collective(its_device *device, bool after) {
    if (device->host) its_race_collective(device->host, after);
}
