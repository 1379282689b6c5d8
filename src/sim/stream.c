/* The host thread's side of a device: queues, waiting, events; see stream.h. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "sim/comm_report.h"
#include "sim/nvshmem_library.h"
#include "sim/race_stream.h"
#include "sim/waiting.h"

void its_device_timed_wait(its_device *device, pthread_cond_t *condition, uint64_t ns) {
    uint64_t until = its_clock_ns() + ns;
    struct timespec time = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    pthread_cond_timedwait(condition, &device->mutex, &time);
}

/* -- the lock ------------------------------------------------------------------------------------------------------ */

void its_device_lock(its_device *device) {
    atomic_fetch_add(&device->wanted, 1);
    pthread_mutex_lock(&device->mutex);
    atomic_fetch_sub(&device->wanted, 1);
}

void its_device_unlock(its_device *device) {
    pthread_cond_signal(&device->turn);
    pthread_mutex_unlock(&device->mutex);
}

/* -- progress ------------------------------------------------------------------------------------------------------ */

void its_device_tell(its_device *device) {
    pthread_mutex_lock(&device->telling);
    device->told++;
    pthread_cond_broadcast(&device->progress);
    pthread_mutex_unlock(&device->telling);
}

/*
 * Lets the lock go until something has happened, or for ITS_HOSTS_PATIENCE. The device thread keeps the lock while a
 * kernel runs and gives it only to those who ask for it, which waking up from a condition of that lock is not.
 */
static void wait_for_progress(its_device *device) {
    uint64_t until = its_clock_ns() + ITS_HOSTS_PATIENCE;
    struct timespec time = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    pthread_mutex_lock(&device->telling);
    its_device_unlock(device);
    for (uint64_t seen = device->told; seen == device->told;)
        if (pthread_cond_timedwait(&device->progress, &device->telling, &time)) break;
    pthread_mutex_unlock(&device->telling);
}

/* -- queues -------------------------------------------------------------------------------------------------------- */

static its_stream_queue *find_stream(const its_device *device, uint64_t id) {
    for (size_t i = 0; i < device->n_streams; i++)
        if (device->streams[i].id == id && !device->streams[i].dying) return &device->streams[i];
    return NULL;
}

its_event_state *its_device_find_event(its_device *device, its_event id) {
    for (size_t i = 0; i < device->n_events; i++)
        if (device->events[i].id == id) return &device->events[i];
    return NULL;
}

/* For the host, which must not use one that it has freed. */
static its_event_state *find_live_event(its_device *device, its_event id) {
    its_event_state *e = its_device_find_event(device, id);
    return e && !e->dying ? e : NULL;
}

bool its_device_reaches(const its_device *device, const void *at) {
    const its_world *world = device->pe->world;
    uint64_t address = (uint64_t)(uintptr_t)at;
    return its_world_heap_owner(world, address) >= 0 ||
           address - (uint64_t)(uintptr_t)its_world_private(world, world->pe) < world->control->private_stride;
}

/* Makes room for one more element; the lists are short and grow rarely. */
static bool grow(its_context *ctx, void *list, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return true;
    size_t wanted = *capacity ? *capacity * 2 : 8;
    void *old = *(void **)list, *items = its_block_alloc(ctx, wanted * size);
    if (!items) return false;
    if (count) memcpy(items, old, count * size);
    its_free(ctx, old);
    *(void **)list = items;
    *capacity = wanted;
    return true;
}

/* What a piece of work owns; grids go back to the host thread. */
static void retire(its_device *device, its_work *work) {
    its_free(device->ctx, work->seen);
    work->seen = NULL;
    if (work->kind == ITS_WORK_COPY) its_free(device->ctx, work->copy.staged);
    if (work->kind == ITS_WORK_KERNEL) {
        work->next = device->finished;
        device->finished = work;
    } else {
        its_free(device->ctx, work);
    }
}

void its_device_pop(its_device *device, its_stream_queue *s) {
    its_work *work = s->first;
    s->first = work->next;
    if (!s->first) s->last = NULL;
    s->done = work->number;
    retire(device, work);
    its_device_tell(device);
}

/* By the host thread, with the lock. */
static void free_finished(its_device *device) {
    while (device->finished) {
        its_work *work = device->finished;
        device->finished = work->next;
        its_sim_grid_free(work->kernel.grid);
        its_free(device->ctx, work);
    }
}

void its_device_drop_all(its_device *device) {
    for (size_t i = 0; i < device->n_streams; i++)
        while (device->streams[i].first) its_device_pop(device, &device->streams[i]);
}

/* -- making and freeing -------------------------------------------------------------------------------------------- */

static void init_condition(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void free_parts(its_device *device) {
    pthread_cond_destroy(&device->work);
    pthread_cond_destroy(&device->progress);
    pthread_cond_destroy(&device->turn);
    pthread_mutex_destroy(&device->telling);
    pthread_mutex_destroy(&device->mutex);
    for (size_t i = 0; i < device->n_streams; i++) its_race_agent_free(device->streams[i].race);
    for (size_t i = 0; i < device->n_events; i++) its_free(device->ctx, device->events[i].seen);
    its_race_agent_free(device->host);
    its_free(device->ctx, device->streams);
    its_free(device->ctx, device->events);
    its_context_free(device->complaints);
    its_free(device->ctx, device);
}

/* For a thread of the host that is about to wait for other PEs. */
static void wake(void *user) {
    its_device *device = user;
    its_device_lock(device);
    pthread_cond_signal(&device->work);
    its_device_unlock(device);
}

its_status its_device_new(its_context *ctx, its_pe *pe, its_device **out) {
    *out = NULL;
    its_device *device = its_block_alloc(ctx, sizeof *device);
    if (!device) return its_no_memory(ctx);
    *device = (its_device){.ctx = ctx, .pe = pe, .failed_pe = -1, .next_id = 16, .next_number = 1};
    pthread_mutex_init(&device->mutex, NULL);
    pthread_mutex_init(&device->telling, NULL);
    init_condition(&device->work);
    init_condition(&device->progress);
    init_condition(&device->turn);
    device->complaints = its_context_new(NULL);
    if (!device->complaints || !grow(ctx, &device->streams, 0, &device->stream_capacity, sizeof(its_stream_queue))) {
        free_parts(device);
        return its_no_memory(ctx);
    }
    device->streams[device->n_streams++] = (its_stream_queue){.id = 0, .blocking = true};
    if (pe->race) device->host = its_race_host(pe->race);
    if ((pe->race && !device->host) || its_race_stream_new(device, &device->streams[0]) != ITS_OK) {
        free_parts(device);
        return its_no_memory(ctx);
    }
    int error = pthread_create(&device->thread, NULL, its_device_run, device);
    if (!error) {
        pe->world->hosts.wake = wake;
        pe->world->hosts.user = device;
    } else {
        free_parts(device);
        return its_fail(ctx, ITS_ERR_NOMEM, NULL, "the device's thread can't be started: %s", strerror(error));
    }
    *out = device;
    return ITS_OK;
}

void its_device_finish(its_device *device) {
    if (device->quit) return;
    device->pe->world->hosts.wake = NULL;
    its_device_lock(device);
    device->quit = true;
    pthread_cond_broadcast(&device->work);
    its_device_unlock(device);
    pthread_join(device->thread, NULL);
    its_device_drop_all(device);
    free_finished(device);
    if (!device->fault) return;
    its_sim_grid_free(device->fault->kernel.grid);
    its_free(device->ctx, device->fault->seen);
    its_free(device->ctx, device->fault);
    device->fault = NULL;
}

void its_device_free(its_device *device) {
    if (!device) return;
    its_device_finish(device);
    free_parts(device);
}

/* -- what the host thread calls ------------------------------------------------------------------------------------ */

/* Copies what another context has to say. */
static void relay(its_context *to, const its_context *from) {
    for (size_t i = 0; i < its_diag_count(from); i++) {
        const its_diag *diag = its_diag_get(from, i);
        its_fail(to, ITS_ERR_FAULT, diag->hint, "%s", diag->message);
    }
}

static const char *waits_for(its_work_kind kind) {
    switch (kind) {
    case ITS_WORK_BARRIER:
        return "in a barrier on a stream";
    case ITS_WORK_WAIT_SIGNAL:
        return "for a signal on a stream";
    default:
        return "for other work of its own";
    }
}

/* Requires the lock. What waits at the head of each stream is told about, and dropped. */
static void report_deadlock(its_device *device) {
    const its_world *world = device->pe->world;
    for (size_t i = 0; i < device->n_streams; i++) {
        const its_work *work = device->streams[i].first;
        if (work && work->kind == ITS_WORK_KERNEL)
            its_sim_grid_waits(device->ctx, work->kernel.grid, world->pe);
        else if (work)
            its_fail(device->ctx, ITS_ERR_FAULT, NULL, "deadlock: no PE can go on, and PE %u waits %s", world->pe,
                     waits_for(work->kind));
    }
    if (!its_diag_errors(device->ctx))
        its_fail(device->ctx, ITS_ERR_FAULT, "the other PEs say what they wait for",
                 "deadlock: no PE can go on, and PE %u waits for the others", world->pe);
    its_device_drop_all(device);
}

/* With the lock: the report in full the first time, a reminder after that. */
static its_status report_stop(its_device *device) {
    const its_world *world = device->pe->world;
    if (device->reported)
        return its_fail(device->ctx, ITS_ERR_FAULT, "the first error says what happened",
                        "the device of PE %u has stopped", world->pe);
    device->reported = true;
    if (device->fault) {
        its_nvshmem_explain(device->ctx, world->pe, device->fault->kernel.complaint);
        its_sim_comm_explain(device->ctx, its_sim_grid_memory(device->fault->kernel.grid));
        its_sim_fault_report(device->ctx, its_sim_grid_fault(device->fault->kernel.grid));
    } else if (device->deadlocked) {
        report_deadlock(device);
    } else if (device->failed_pe >= 0) {
        its_world_fail(device->ctx, world, (uint32_t)device->failed_pe, "this PE's work was done");
    } else {
        relay(device->ctx, device->complaints);
    }
    return ITS_ERR_FAULT;
}

static its_status no_stream(its_device *device, uint64_t id) {
    return its_fail(device->ctx, ITS_ERR_USAGE, "a stream must not be used after it was freed",
                    "there is no stream 0x%" PRIx64, id);
}

static its_status no_event(its_device *device, its_event id) {
    return its_fail(device->ctx, ITS_ERR_USAGE, "an event must not be used after it was freed",
                    "there is no event 0x%" PRIx64, id);
}

/* requires: the lock. ensures: it is let go of. */
static its_status leave(its_device *device, its_status status) {
    its_device_unlock(device);
    return status;
}

its_status its_device_check(its_device *device) {
    its_device_lock(device);
    return leave(device, device->stopped ? report_stop(device) : ITS_OK);
}

bool its_device_stopped(its_device *device) {
    its_device_lock(device);
    bool stopped = device->stopped;
    its_device_unlock(device);
    return stopped;
}

const its_sim_fault *its_device_fault(its_device *device, bool *peer) {
    its_device_lock(device);
    const its_work *work = device->fault;
    *peer = device->failed_pe >= 0;
    its_device_unlock(device);
    return work ? its_sim_grid_fault(work->kernel.grid) : NULL;
}

its_status its_device_stream_new(its_device *device, bool blocking, uint64_t *id) {
    its_device_lock(device);
    if (!grow(device->ctx, &device->streams, device->n_streams, &device->stream_capacity, sizeof(its_stream_queue)))
        return leave(device, its_no_memory(device->ctx));
    *id = device->next_id++;
    its_stream_queue made = {.id = *id, .blocking = blocking};
    if (its_race_stream_new(device, &made) != ITS_OK) return leave(device, its_no_memory(device->ctx));
    device->streams[device->n_streams++] = made;
    return leave(device, ITS_OK);
}

its_status its_device_stream_free(its_device *device, uint64_t id) {
    its_device_lock(device);
    its_stream_queue *s = id ? find_stream(device, id) : NULL;
    if (!s) return leave(device, no_stream(device, id));
    s->dying = true;
    pthread_cond_signal(&device->work);
    return leave(device, ITS_OK);
}

its_status its_device_stream_check(its_device *device, uint64_t id) {
    its_device_lock(device);
    return leave(device, find_stream(device, id) ? ITS_OK : no_stream(device, id));
}

/* requires: the lock, a stream. */
static its_status append(its_device *device, its_stream_queue *s, const its_work *work) {
    its_work *copy = its_block_alloc(device->ctx, sizeof *copy);
    if (!copy) return its_no_memory(device->ctx);
    *copy = *work;
    copy->next = NULL;
    copy->begun = false;
    if (its_race_enqueue(device, copy) != ITS_OK) {
        its_free(device->ctx, copy);
        return its_no_memory(device->ctx);
    }
    copy->number = device->next_number++;
    copy->generation = its_sim_memory_generation(device->pe->memory);
    if (s->last)
        s->last->next = copy;
    else
        s->first = copy;
    s->last = copy;
    pthread_cond_signal(&device->work);
    return ITS_OK;
}

its_status its_device_enqueue(its_device *device, uint64_t id, const its_work *work) {
    its_device_lock(device);
    free_finished(device);
    its_stream_queue *s = find_stream(device, id);
    if (!s) return leave(device, no_stream(device, id));
    if (device->stopped) return leave(device, report_stop(device));
    return leave(device, append(device, s, work));
}

/* What a thread of the host waits for. */
typedef struct device_wait {
    its_device *device;
    uint64_t id, number; /* a stream or event, and how far it must be */
    bool (*done)(const struct device_wait *wait);
} device_wait;

static bool wait_over(const void *user) {
    const device_wait *wait = user;
    return wait->device->stopped || wait->done(wait);
}

/* Sleeps until something has happened. Now and then, without the lock, the program is asked whether it wants more. */
static bool interrupted(its_device *device, uint64_t *last_asked) {
    its_hosts *hosts = &device->pe->world->hosts;
    bool yes = false;
    bool aside = its_hosts_step_aside(hosts);
    wait_for_progress(device);
    if (its_clock_ns() - *last_asked >= ITS_HOSTS_PATIENCE) {
        *last_asked = its_clock_ns();
        yes = its_hosts_interrupted(hosts);
    }
    its_hosts_step_back(hosts, aside);
    its_device_lock(device);
    return yes;
}

/*
 * requires: the lock. ensures: what is waited for is done, or the device has stopped; or the program wants no more, and
 * the result is ITS_ERR_INTERRUPTED with its error.
 */
static its_status wait_until_done(device_wait wait) {
    its_device *device = wait.device;
    if (pthread_equal(device->thread, pthread_self()))
        return its_fail(device->ctx, ITS_ERR_USAGE, "it may not call CUDA at all: let it set a flag for the host",
                        "PE %u waits for a stream in a function that a stream calls", device->pe->world->pe);
    its_hosts *hosts = &device->pe->world->hosts;
    its_activity *activity = &its_world_me(device->pe->world)->host;
    if (wait_over(&wait)) return ITS_OK;
    its_host_wait entry = {.over = wait_over, .user = &wait};
    its_activity_set(activity, ITS_ACTIVITY_STREAM, wait.id, wait.number);
    its_hosts_enter(hosts, &entry);
    uint64_t last_asked = its_clock_ns();
    bool over;
    while (!(over = wait_over(&wait)) && !interrupted(device, &last_asked)) continue;
    its_hosts_leave(hosts, &entry);
    its_activity_set(activity, ITS_ACTIVITY_IDLE, 0, 0);
    if (over) return ITS_OK;
    return its_fail(device->ctx, ITS_ERR_INTERRUPTED, NULL, "PE %u was interrupted while it waited for its kernels",
                    device->pe->world->pe);
}

static bool stream_done(const device_wait *wait) {
    const its_stream_queue *s = find_stream(wait->device, wait->id);
    return !s || s->done >= wait->number;
}

static uint64_t last_number(const its_stream_queue *s) {
    return s->last ? s->last->number : s->done;
}

its_status its_device_wait_stream(its_device *device, uint64_t id) {
    its_device_lock(device);
    const its_stream_queue *s = find_stream(device, id);
    if (!s) return leave(device, no_stream(device, id));
    its_status status = wait_until_done((device_wait){device, id, last_number(s), stream_done});
    if (status != ITS_OK) return leave(device, status);
    s = find_stream(device, id);
    if (s) its_race_host_waited(device, s);
    free_finished(device);
    return leave(device, device->stopped ? report_stop(device) : ITS_OK);
}

static bool streams_done(const device_wait *wait) {
    const its_device *device = wait->device;
    for (size_t i = 0; i < device->n_streams; i++)
        if (device->streams[i].first && device->streams[i].first->number <= wait->number) return false;
    return true;
}

its_status its_device_wait(its_device *device) {
    its_device_lock(device);
    its_status status = wait_until_done((device_wait){device, 0, device->next_number - 1, streams_done});
    if (status != ITS_OK) return leave(device, status);
    its_race_host_waited(device, NULL);
    free_finished(device);
    return leave(device, device->stopped ? report_stop(device) : ITS_OK);
}

its_status its_device_stream_idle(its_device *device, uint64_t id, bool *idle) {
    its_device_lock(device);
    const its_stream_queue *s = find_stream(device, id);
    if (!s) return leave(device, no_stream(device, id));
    *idle = !s->first;
    if (*idle) its_race_host_waited(device, s);
    return leave(device, device->stopped ? report_stop(device) : ITS_OK);
}

/* -- events -------------------------------------------------------------------------------------------------------- */

its_status its_device_event_new(its_device *device, its_event *id) {
    its_device_lock(device);
    if (!grow(device->ctx, &device->events, device->n_events, &device->event_capacity, sizeof(its_event_state)))
        return leave(device, its_no_memory(device->ctx));
    *id = device->next_id++;
    device->events[device->n_events++] = (its_event_state){.id = *id};
    return leave(device, ITS_OK);
}

its_status its_device_event_free(its_device *device, its_event id) {
    its_device_lock(device);
    its_event_state *e = find_live_event(device, id);
    if (!e) return leave(device, no_event(device, id));
    e->dying = true;
    pthread_cond_signal(&device->work);
    return leave(device, ITS_OK);
}

its_status its_device_event_record(its_device *device, its_event id, uint64_t stream_id) {
    its_device_lock(device);
    its_event_state *e = find_live_event(device, id);
    its_stream_queue *s = find_stream(device, stream_id);
    if (!e) return leave(device, no_event(device, id));
    if (!s) return leave(device, no_stream(device, stream_id));
    if (device->stopped) return leave(device, report_stop(device));
    its_work work = {.kind = ITS_WORK_EVENT, .event = {id, e->recorded + 1}};
    its_status status = append(device, s, &work);
    if (status == ITS_OK) e->recorded++;
    return leave(device, status);
}

its_status its_device_event_wait(its_device *device, its_event id, uint64_t stream_id) {
    its_device_lock(device);
    const its_event_state *e = find_live_event(device, id);
    its_stream_queue *s = find_stream(device, stream_id);
    if (!e) return leave(device, no_event(device, id));
    if (!s) return leave(device, no_stream(device, stream_id));
    if (device->stopped) return leave(device, report_stop(device));
    its_work work = {.kind = ITS_WORK_WAIT_EVENT, .event = {id, e->recorded}};
    return leave(device, append(device, s, &work));
}

its_status its_device_event_done(its_device *device, its_event id, bool *done) {
    its_device_lock(device);
    const its_event_state *e = find_live_event(device, id);
    if (!e) return leave(device, no_event(device, id));
    *done = e->reached >= e->recorded;
    if (*done) its_race_host_waited_event(device, e);
    return leave(device, device->stopped ? report_stop(device) : ITS_OK);
}

static bool event_done(const device_wait *wait) {
    const its_event_state *e = its_device_find_event(wait->device, wait->id);
    return !e || e->reached >= wait->number;
}

its_status its_device_event_synchronize(its_device *device, its_event id) {
    its_device_lock(device);
    const its_event_state *e = find_live_event(device, id);
    if (!e) return leave(device, no_event(device, id));
    its_status status = wait_until_done((device_wait){device, id, e->recorded, event_done});
    if (status != ITS_OK) return leave(device, status);
    its_race_host_waited_event(device, its_device_find_event(device, id));
    free_finished(device);
    return leave(device, device->stopped ? report_stop(device) : ITS_OK);
}

its_status its_device_event_time(its_device *device, its_event id, uint64_t *time) {
    its_device_lock(device);
    const its_event_state *e = find_live_event(device, id);
    if (!e) return leave(device, no_event(device, id));
    *time = e->time;
    return leave(device, ITS_OK);
}
