/* See stream.h. */
#include "sim/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/nvshmem_library.h"

/* Warp-instructions per slice: some 0.1 ms, so that the host thread and other streams need not wait long. */
static const uint64_t slice = 20000;
/*
 * How long a device goes on after another PE has failed: if all its work waits, what was sent before may be on its way;
 * if some of it gets on, it may not need the other one at all.
 */
static const uint64_t grace_waiting = 250 * 1000 * 1000u, grace_running = 2000 * 1000 * 1000u;
static const uint64_t longest_nap = 1000 * 1000u; /* ns, between two looks at what others may have done */

typedef struct stream {
    uint64_t id;
    bool blocking, dying;
    its_work *first, *last;
    uint64_t done; /* number of the last piece of work that was finished */
} stream;

typedef struct event {
    its_event id;
    uint64_t recorded, reached; /* versions */
    uint64_t time;
} event;

struct its_device {
    its_context *ctx;
    its_pe *pe;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t work, progress, turn; /* for the device thread; for the host thread; for whoever wants the lock */
    _Atomic uint32_t wanted;             /* host threads that want the lock */
    bool quit;
    stream *streams; /* [0] is the default stream */
    size_t n_streams, stream_capacity;
    event *events;
    size_t n_events, event_capacity;
    uint64_t next_id, next_number;

    /* Once stopped, by a fault of its own (`fault`) or of another PE (`failed_pe`) or by a wrong call (`broken`). */
    bool stopped, reported;
    its_work *fault;         /* the kernel; keeps its grid */
    int failed_pe;           /* or -1 */
    its_context *complaints; /* what the device thread has to say, in a context of its own; or NULL */
    its_work *finished;      /* grids to be freed by the host thread */
    uint64_t last_look;      /* at the other PEs */
    uint64_t failed_at;      /* when one of them was first seen to have failed, or 0 */
};

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void timed_wait(its_device *device, pthread_cond_t *condition, uint64_t ns) {
    uint64_t until = now_ns() + ns;
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

/* By the device thread between two steps: a mutex that is let go and taken again would hardly ever change hands. */
static void let_others(its_device *device) {
    if (atomic_load(&device->wanted)) timed_wait(device, &device->turn, longest_nap);
}

/* -- queues -------------------------------------------------------------------------------------------------------- */

static stream *find_stream(its_device *device, uint64_t id) {
    for (size_t i = 0; i < device->n_streams; i++)
        if (device->streams[i].id == id && !device->streams[i].dying) return &device->streams[i];
    return NULL;
}

static event *find_event(its_device *device, its_event id) {
    for (size_t i = 0; i < device->n_events; i++)
        if (device->events[i].id == id) return &device->events[i];
    return NULL;
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
    if (work->kind == ITS_WORK_COPY) its_free(device->ctx, work->copy.staged);
    if (work->kind == ITS_WORK_KERNEL) {
        work->next = device->finished;
        device->finished = work;
    } else {
        its_free(device->ctx, work);
    }
}

static void pop(its_device *device, stream *s) {
    its_work *work = s->first;
    s->first = work->next;
    if (!s->first) s->last = NULL;
    s->done = work->number;
    retire(device, work);
    pthread_cond_broadcast(&device->progress);
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

/* Streams that were freed go away once they are empty. */
static void bury(its_device *device) {
    for (size_t i = 1; i < device->n_streams; i++)
        if (device->streams[i].dying && !device->streams[i].first)
            device->streams[i--] = device->streams[--device->n_streams];
}

/* -- stopping ------------------------------------------------------------------------------------------------------ */

static void drop_all(its_device *device) {
    for (size_t i = 0; i < device->n_streams; i++)
        while (device->streams[i].first) pop(device, &device->streams[i]);
}

/* The first line of what a kernel's fault is, for the other PEs; the full report waits for the host thread. */
static void tell_others(its_device *device, const its_work *work) {
    its_context *scratch = its_context_new(NULL);
    if (!scratch) {
        its_world_faulted(device->pe->world, "its kernel did something wrong");
        return;
    }
    its_nvshmem_explain(scratch, device->pe->world->pe, work->kernel.complaint);
    its_sim_fault_report(scratch, its_sim_grid_fault(work->kernel.grid));
    its_world_faulted(device->pe->world,
                      its_diag_count(scratch) ? its_diag_get(scratch, 0)->message : "its kernel did something wrong");
    its_context_free(scratch);
}

static void stop_by_fault(its_device *device, stream *s) {
    its_work *work = s->first;
    s->first = work->next;
    if (!s->first) s->last = NULL;
    device->stopped = true;
    device->fault = work;
    tell_others(device, work);
    drop_all(device);
    pthread_cond_broadcast(&device->progress);
}

static void stop_by_peer(its_device *device, int pe) {
    device->stopped = true;
    device->failed_pe = pe;
    drop_all(device);
    pthread_cond_broadcast(&device->progress);
}

static void stop_by_complaint(its_device *device) {
    device->stopped = true;
    if (its_diag_count(device->complaints))
        its_world_faulted(device->pe->world, its_diag_get(device->complaints, 0)->message);
    drop_all(device);
    pthread_cond_broadcast(&device->progress);
}

/* -- steps --------------------------------------------------------------------------------------------------------- */

typedef enum step_result { STEP_DONE, STEP_RAN, STEP_BLOCKED, STEP_STOPPED } step_result;

static step_result step_kernel(its_device *device, stream *s) {
    switch (its_sim_grid_step(s->first->kernel.grid, slice)) {
    case ITS_SIM_DONE:
        return STEP_DONE;
    case ITS_SIM_RAN:
        return STEP_RAN;
    case ITS_SIM_BLOCKED:
        return STEP_BLOCKED;
    default:
        stop_by_fault(device, s);
        return STEP_STOPPED;
    }
}

static void fill(its_work *work) {
    char *at = work->fill.at;
    uint32_t width = work->fill.width;
    if (width == 1) {
        memset(at, (int)work->fill.value, work->fill.size);
        return;
    }
    for (size_t i = 0; i + width <= work->fill.size; i += width) memcpy(at + i, &work->fill.value, width);
}

/* The host's function may take its time, and may call nothing of the device. */
static void call(its_device *device, stream *s) {
    its_work *work = s->first;
    pthread_mutex_unlock(&device->mutex);
    work->call.function(work->call.user);
    pthread_mutex_lock(&device->mutex);
}

static step_result step_barrier(its_device *device, its_work *work) {
    const its_world *world = device->pe->world;
    if (!work->begun) {
        if (its_world_barrier_enter(device->complaints, world, work->barrier.team, work->barrier.members,
                                    &work->barrier.epoch) != ITS_OK) {
            stop_by_complaint(device);
            return STEP_STOPPED;
        }
        work->begun = true;
    }
    if (!its_world_barrier_leave(world, work->barrier.team, work->barrier.members, work->barrier.epoch))
        return STEP_BLOCKED;
    return STEP_DONE;
}

static void set_signal(const its_work *work) {
    _Atomic uint64_t *at = work->signal.at;
    if (work->signal.add)
        atomic_fetch_add(at, work->signal.value);
    else
        atomic_store(at, work->signal.value);
}

/* The word sign- or zero-extended to 64 bits. */
static uint64_t read_word(const void *at, uint32_t width, bool is_signed) {
    uint64_t word;
    if (width == 8)
        word = __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
    else if (width == 4)
        word = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
    else
        word = __atomic_load_n((const uint16_t *)at, __ATOMIC_ACQUIRE);
    uint32_t shift = 64 - 8 * width;
    return is_signed ? (uint64_t)((int64_t)(word << shift) >> shift) : word;
}

static bool holds(const its_work *work) {
    uint64_t word = read_word(work->signal.at, work->signal.width, work->signal.is_signed), to = work->signal.value;
    bool less = work->signal.is_signed ? (int64_t)word < (int64_t)to : word < to;
    switch (work->signal.compare) {
    case ITS_EQ:
        return word == to;
    case ITS_NE:
        return word != to;
    case ITS_GT:
        return !less && word != to;
    case ITS_LE:
        return less || word == to;
    case ITS_LT:
        return less;
    default:
        return !less;
    }
}

static void reach_event(its_device *device, const its_work *work) {
    event *e = find_event(device, work->event.event);
    if (!e) return;
    e->reached = work->event.version;
    e->time = now_ns();
}

static bool event_reached(its_device *device, const its_work *work) {
    const event *e = find_event(device, work->event.event);
    return !e || e->reached >= work->event.version;
}

static step_result step_work(its_device *device, stream *s) {
    its_work *work = s->first;
    switch (work->kind) {
    case ITS_WORK_KERNEL:
        return step_kernel(device, s);
    case ITS_WORK_COPY:
        if (work->copy.size) memmove(work->copy.to, work->copy.from, work->copy.size);
        return STEP_DONE;
    case ITS_WORK_FILL:
        fill(work);
        return STEP_DONE;
    case ITS_WORK_EVENT:
        reach_event(device, work);
        return STEP_DONE;
    case ITS_WORK_WAIT_EVENT:
        return event_reached(device, work) ? STEP_DONE : STEP_BLOCKED;
    case ITS_WORK_CALL:
        call(device, s);
        return STEP_DONE;
    case ITS_WORK_BARRIER:
        return step_barrier(device, work);
    case ITS_WORK_SIGNAL:
        set_signal(work);
        its_world_ring(device->pe->world);
        return STEP_DONE;
    case ITS_WORK_WAIT_SIGNAL:
        return holds(work) ? STEP_DONE : STEP_BLOCKED;
    }
    return STEP_DONE;
}

/* Whether the default stream and the blocking streams let each other's first piece of work begin. */
static bool may_begin(const its_device *device, const stream *s) {
    if (s->first->begun || !s->blocking) return true;
    const stream *all = device->streams;
    for (size_t i = 0; i < device->n_streams; i++) {
        bool concerns = s == all ? i != 0 && all[i].blocking : i == 0;
        if (concerns && all[i].first && all[i].first->number < s->first->number) return false;
    }
    return true;
}

/* A thread of the host that is in a host call may add streams while the lock is free, so indices, not pointers. */
static step_result step_stream(its_device *device, size_t index) {
    stream *s = &device->streams[index];
    if (!may_begin(device, s)) return STEP_BLOCKED;
    uint64_t id = s->id;
    bool barrier = s->first->kind == ITS_WORK_BARRIER;
    step_result result = step_work(device, s);
    if (result == STEP_STOPPED || device->stopped) return STEP_STOPPED;
    for (s = device->streams; s->id != id;) s++;
    if (s->first && !barrier) s->first->begun = true;
    if (result == STEP_DONE) pop(device, s);
    return result;
}

/* -- the thread ---------------------------------------------------------------------------------------------------- */

/* For whoever asks why nothing moves: what the first waiting stream waits for. */
static void show_waiting(its_device *device) {
    its_activity *activity = &its_world_me(device->pe->world)->device;
    for (size_t i = 0; i < device->n_streams; i++) {
        const its_work *work = device->streams[i].first;
        if (!work || !may_begin(device, &device->streams[i])) continue;
        if (work->kind == ITS_WORK_BARRIER)
            its_activity_set(activity, ITS_ACTIVITY_BARRIER, work->barrier.team, work->barrier.epoch);
        else if (work->kind == ITS_WORK_WAIT_SIGNAL)
            its_activity_set(activity, ITS_ACTIVITY_SIGNAL, (uint64_t)(uintptr_t)work->signal.at, work->signal.value);
        else if (work->kind == ITS_WORK_KERNEL)
            its_activity_set(activity, ITS_ACTIVITY_KERNEL, device->streams[i].id, 0);
        else
            continue;
        return;
    }
}

/* Steps every stream once. ensures: whether there was work, and whether any of it got on. */
static bool step_all(its_device *device, bool *any_work) {
    bool any_progress = false;
    *any_work = false;
    for (size_t i = 0; i < device->n_streams && !device->stopped; i++) {
        if (!device->streams[i].first) continue;
        *any_work = true;
        step_result result = step_stream(device, i);
        any_progress |= result != STEP_BLOCKED;
        let_others(device);
    }
    return any_progress;
}

/* Whether the host waits for the device, so that it can't do what the device waits for. */
static bool host_waits(const its_device *device) {
    return atomic_load(&its_world_me(device->pe->world)->host.kind) == ITS_ACTIVITY_STREAM;
}

/* Stops when another PE has failed, or nobody is left who could help, and the time of grace is over. */
static void mind_others(its_device *device, uint64_t grace) {
    int failed = its_world_failed(device->pe->world, &device->last_look);
    if (failed < 0 && grace == grace_waiting && host_waits(device)) failed = its_world_left_alone(device->pe->world);
    if (failed < 0) {
        device->failed_at = 0;
        return;
    }
    if (!device->failed_at) device->failed_at = now_ns();
    if (now_ns() - device->failed_at > grace) stop_by_peer(device, failed);
}

/*
 * Everything waits for other PEs. They leave their mark in memory without a word, so this one looks again and again,
 * first soon, then once in a millisecond.
 */
static void nap(its_device *device, uint64_t *length) {
    if (*length == 0) show_waiting(device);
    mind_others(device, grace_waiting);
    *length = *length ? *length * 2 : 20000;
    if (*length > longest_nap) *length = longest_nap;
    if (!device->stopped) timed_wait(device, &device->work, *length);
}

static void sleep_until_work(its_device *device) {
    its_activity *activity = &its_world_me(device->pe->world)->device;
    bury(device);
    its_activity_set(activity, ITS_ACTIVITY_IDLE, 0, 0);
    pthread_cond_wait(&device->work, &device->mutex);
    its_activity_set(activity, ITS_ACTIVITY_RUNNING, 0, 0);
}

static void *run(void *user) {
    its_device *device = user;
    uint64_t length = 0;
    bool any_work;
    pthread_mutex_lock(&device->mutex);
    while (!device->quit) {
        if (step_all(device, &any_work)) {
            if (length) its_activity_set(&its_world_me(device->pe->world)->device, ITS_ACTIVITY_RUNNING, 0, 0);
            length = 0;
            mind_others(device, grace_running);
        } else if (any_work) {
            nap(device, &length);
        } else {
            sleep_until_work(device);
            length = 0;
        }
    }
    pthread_mutex_unlock(&device->mutex);
    return NULL;
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
    pthread_mutex_destroy(&device->mutex);
    its_free(device->ctx, device->streams);
    its_free(device->ctx, device->events);
    its_context_free(device->complaints);
    its_free(device->ctx, device);
}

its_status its_device_new(its_context *ctx, its_pe *pe, its_device **out) {
    *out = NULL;
    its_device *device = its_block_alloc(ctx, sizeof *device);
    if (!device) return its_fail(ctx, ITS_ERR_NOMEM, NULL, "out of memory");
    *device = (its_device){.ctx = ctx, .pe = pe, .failed_pe = -1, .next_id = 16, .next_number = 1};
    pthread_mutex_init(&device->mutex, NULL);
    init_condition(&device->work);
    init_condition(&device->progress);
    init_condition(&device->turn);
    device->complaints = its_context_new(NULL);
    if (!device->complaints || !grow(ctx, &device->streams, 0, &device->stream_capacity, sizeof(stream))) {
        free_parts(device);
        return its_fail(ctx, ITS_ERR_NOMEM, NULL, "out of memory");
    }
    device->streams[device->n_streams++] = (stream){.id = 0, .blocking = true};
    int error = pthread_create(&device->thread, NULL, run, device);
    if (error) {
        free_parts(device);
        return its_fail(ctx, ITS_ERR_NOMEM, NULL, "the device's thread can't be started: %s", strerror(error));
    }
    *out = device;
    return ITS_OK;
}

void its_device_finish(its_device *device) {
    if (device->quit) return;
    its_device_lock(device);
    device->quit = true;
    pthread_cond_broadcast(&device->work);
    its_device_unlock(device);
    pthread_join(device->thread, NULL);
    drop_all(device);
    free_finished(device);
    if (!device->fault) return;
    its_sim_grid_free(device->fault->kernel.grid);
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

/* With the lock: the report in full the first time, a reminder after that. */
static its_status report_stop(its_device *device) {
    const its_world *world = device->pe->world;
    if (device->reported)
        return its_fail(device->ctx, ITS_ERR_FAULT, "the first error says what happened",
                        "the device of PE %u has stopped", world->pe);
    device->reported = true;
    if (device->fault) {
        its_nvshmem_explain(device->ctx, world->pe, device->fault->kernel.complaint);
        its_sim_fault_report(device->ctx, its_sim_grid_fault(device->fault->kernel.grid));
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
    if (!grow(device->ctx, &device->streams, device->n_streams, &device->stream_capacity, sizeof(stream)))
        return leave(device, its_fail(device->ctx, ITS_ERR_NOMEM, NULL, "out of memory"));
    *id = device->next_id++;
    device->streams[device->n_streams++] = (stream){.id = *id, .blocking = blocking};
    return leave(device, ITS_OK);
}

its_status its_device_stream_free(its_device *device, uint64_t id) {
    its_device_lock(device);
    stream *s = id ? find_stream(device, id) : NULL;
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
static its_status append(its_device *device, stream *s, const its_work *work) {
    its_work *copy = its_block_alloc(device->ctx, sizeof *copy);
    if (!copy) return its_fail(device->ctx, ITS_ERR_NOMEM, NULL, "out of memory");
    *copy = *work;
    copy->next = NULL;
    copy->begun = false;
    copy->number = device->next_number++;
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
    stream *s = find_stream(device, id);
    if (!s) return leave(device, no_stream(device, id));
    if (device->stopped) return leave(device, report_stop(device));
    return leave(device, append(device, s, work));
}

/* requires: the lock. ensures: the stream's work up to `number` is done, or the device has stopped. */
static void wait_number(its_device *device, uint64_t id, uint64_t number) {
    its_activity *activity = &its_world_me(device->pe->world)->host;
    its_activity_set(activity, ITS_ACTIVITY_STREAM, id, number);
    while (!device->stopped) {
        const stream *s = find_stream(device, id);
        if (!s || s->done >= number) break;
        pthread_cond_signal(&device->turn);
        pthread_cond_wait(&device->progress, &device->mutex);
    }
    its_activity_set(activity, ITS_ACTIVITY_IDLE, 0, 0);
}

static uint64_t last_number(const stream *s) {
    return s->last ? s->last->number : s->done;
}

its_status its_device_wait_stream(its_device *device, uint64_t id) {
    its_device_lock(device);
    const stream *s = find_stream(device, id);
    if (!s) return leave(device, no_stream(device, id));
    wait_number(device, id, last_number(s));
    free_finished(device);
    return leave(device, device->stopped ? report_stop(device) : ITS_OK);
}

its_status its_device_wait(its_device *device) {
    its_device_lock(device);
    uint64_t number = device->next_number - 1;
    for (;;) {
        const stream *busy = NULL;
        for (size_t i = 0; i < device->n_streams && !busy; i++)
            if (device->streams[i].first && device->streams[i].first->number <= number) busy = &device->streams[i];
        if (!busy || device->stopped) break;
        its_activity_set(&its_world_me(device->pe->world)->host, ITS_ACTIVITY_STREAM, busy->id, number);
        pthread_cond_signal(&device->turn);
        pthread_cond_wait(&device->progress, &device->mutex);
    }
    its_activity_set(&its_world_me(device->pe->world)->host, ITS_ACTIVITY_IDLE, 0, 0);
    free_finished(device);
    return leave(device, device->stopped ? report_stop(device) : ITS_OK);
}

its_status its_device_stream_idle(its_device *device, uint64_t id, bool *idle) {
    its_device_lock(device);
    const stream *s = find_stream(device, id);
    if (!s) return leave(device, no_stream(device, id));
    *idle = !s->first;
    return leave(device, device->stopped ? report_stop(device) : ITS_OK);
}

/* -- events -------------------------------------------------------------------------------------------------------- */

its_status its_device_event_new(its_device *device, its_event *id) {
    its_device_lock(device);
    if (!grow(device->ctx, &device->events, device->n_events, &device->event_capacity, sizeof(event)))
        return leave(device, its_fail(device->ctx, ITS_ERR_NOMEM, NULL, "out of memory"));
    *id = device->next_id++;
    device->events[device->n_events++] = (event){.id = *id};
    return leave(device, ITS_OK);
}

its_status its_device_event_free(its_device *device, its_event id) {
    its_device_lock(device);
    event *e = find_event(device, id);
    if (!e) return leave(device, no_event(device, id));
    *e = device->events[--device->n_events];
    return leave(device, ITS_OK);
}

its_status its_device_event_record(its_device *device, its_event id, uint64_t stream_id) {
    its_device_lock(device);
    event *e = find_event(device, id);
    stream *s = find_stream(device, stream_id);
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
    const event *e = find_event(device, id);
    stream *s = find_stream(device, stream_id);
    if (!e) return leave(device, no_event(device, id));
    if (!s) return leave(device, no_stream(device, stream_id));
    if (device->stopped) return leave(device, report_stop(device));
    its_work work = {.kind = ITS_WORK_WAIT_EVENT, .event = {id, e->recorded}};
    return leave(device, append(device, s, &work));
}

its_status its_device_event_done(its_device *device, its_event id, bool *done) {
    its_device_lock(device);
    const event *e = find_event(device, id);
    if (!e) return leave(device, no_event(device, id));
    *done = e->reached >= e->recorded;
    return leave(device, device->stopped ? report_stop(device) : ITS_OK);
}

its_status its_device_event_synchronize(its_device *device, its_event id) {
    its_device_lock(device);
    const event *e = find_event(device, id);
    if (!e) return leave(device, no_event(device, id));
    uint64_t version = e->recorded;
    while (!device->stopped && (e = find_event(device, id)) && e->reached < version) {
        pthread_cond_signal(&device->turn);
        pthread_cond_wait(&device->progress, &device->mutex);
    }
    free_finished(device);
    return leave(device, device->stopped ? report_stop(device) : ITS_OK);
}

its_status its_device_event_time(its_device *device, its_event id, uint64_t *time) {
    its_device_lock(device);
    const event *e = find_event(device, id);
    if (!e) return leave(device, no_event(device, id));
    *time = e->time;
    return leave(device, ITS_OK);
}
