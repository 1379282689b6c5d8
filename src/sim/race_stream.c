/* Streams and the host as agents: see race.h. */
#include "sim/race_stream.h"

#include <inttypes.h>
#include <string.h>

#include "sim/fault.h"

static its_race *race_of(const its_device *device) {
    return device->pe->race;
}

its_status its_race_stream_new(its_device *device, its_stream_queue *stream) {
    if (!race_of(device)) return ITS_OK;
    stream->race = its_race_stream(race_of(device), device->streams_made++);
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

/* Work of a stream that nothing orders with something else. */
typedef struct stream_race {
    its_device *device;
    const its_stream_queue *stream;
    const char *what;
    const void *at;
    size_t size;
    bool write;
    const its_race_conflict *conflict;
    its_buffer text;
} stream_race;

static its_status tell(void *user) {
    stream_race *race = user;
    const its_race_conflict *conflict = race->conflict;
    const its_device *device = race->device;
    const uint32_t pe = device->pe->world->pe;
    const uint64_t at = (uint64_t)(uintptr_t)race->at, word = conflict->address > at ? conflict->address : at;
    its_sim_nearby nearby = {0};
    its_sim_memory_explain(device->pe->memory, at, &nearby);
    its_buffer_printf(&race->text, "PE %u: a %s on stream 0x%" PRIx64 " %s %zu bytes at 0x%" PRIx64, (unsigned)pe,
                      race->what, race->stream->id, race->write ? "writes" : "reads", race->size, at);
    if (nearby.what == ITS_SIM_NEAR_INSIDE) {
        its_buffer_printf(&race->text, ", %" PRIu64 " bytes into ", nearby.distance);
        its_sim_put_allocation(&race->text, &nearby, pe);
    }
    if (word != at) its_buffer_printf(&race->text, " (0x%" PRIx64 " among them)", word);
    its_buffer_text(&race->text, ", which ");
    if (conflict->other_pe) its_buffer_printf(&race->text, "PE %u, ", (unsigned)conflict->pe);
    its_buffer_printf(&race->text, "%s has %s, and nothing orders the two", conflict->site,
                      conflict->other_writes ? "written" : "read");
    its_buffer_char(&race->text, 0);
    const char *hint =
        "order the two: by the stream, by an event, by a signal that is waited for, or by a barrier of the "
        "PEs";
    if (conflict->other_pe) hint = its_sim_race_advice(conflict);
    return its_fail(device->complaints, ITS_ERR_FAULT, hint, "%s", race->text.data);
}

static bool complain(stream_race *race) {
    its_context *ctx = race->device->complaints;
    its_buffer_init(&race->text, ctx);
    its_protect(ctx, tell, race);
    its_buffer_free(&race->text);
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

/* `what`: "copy" or "fill". */
static bool access_memory(its_device *device, its_stream_queue *stream, const char *what, void *at, size_t size,
                          bool write, const void *source) {
    its_race_conflict conflict;
    writing w = {at, source};
    if (!size || !its_device_reaches(device, at)) return true;
    const char *site = strcmp(what, "copy") == 0 ? "a copy on a stream" : "a fill on a stream";
    its_race_by by = {.site = its_race_site(race_of(device), site, text_of, site)};
    if (its_race_access(stream->race, NULL, NULL, at, size, write, false, by, &conflict, differs, &w)) return true;
    return complain(&(stream_race){device, stream, what, at, size, write, &conflict, {0}});
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
        return access_memory(device, stream, "copy", (void *)(uintptr_t)work->copy.from, work->copy.size, false,
                             NULL) &&
               access_memory(device, stream, "copy", work->copy.to, work->copy.size, true, work->copy.from);
    case ITS_WORK_FILL:
        return access_memory(device, stream, "fill", work->fill.at, work->fill.size, true, NULL);
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
