/* The device thread: works off streams, a step of each in turn; see stream.h. */
#include <string.h>

#include "base/clock.h"
#include "sim/comm_report.h"
#include "sim/nvshmem_library.h"
#include "sim/race_stream.h"

/* Warp-instructions per slice: some 0.1 ms, so that the host thread and other streams need not wait long. */
static const uint64_t slice = 20000;
/*
 * How long a device goes on after another PE has failed: if all its work waits, what was sent before may be on its way;
 * if some of it gets on, it may not need the other one at all.
 */
static const uint64_t grace_waiting = 250 * 1000 * 1000u, grace_running = 2000 * 1000 * 1000u;
/* ns, between two looks at what others may have done, and at whether they can do anything */
static const uint64_t longest_nap = 1000 * 1000u, longest_idle_nap = 20 * 1000 * 1000u;

/* -- stopping ------------------------------------------------------------------------------------------------------ */

/* The first line of what a kernel's fault is, for the other PEs; the full report waits for the host thread. */
static void tell_others(its_device *device, const its_work *work) {
    its_context *scratch = its_context_new(NULL);
    if (!scratch) {
        its_world_faulted(device->pe->world, "its kernel did something wrong");
        return;
    }
    its_nvshmem_explain(scratch, device->pe->world->pe, work->kernel.complaint);
    its_sim_comm_explain(scratch, its_sim_grid_memory(work->kernel.grid));
    its_sim_fault_report(scratch, its_sim_grid_fault(work->kernel.grid));
    its_world_faulted(device->pe->world,
                      its_diag_count(scratch) ? its_diag_get(scratch, 0)->message : "its kernel did something wrong");
    its_context_free(scratch);
}

static void stop_by_fault(its_device *device, its_stream_queue *s) {
    its_work *work = s->first;
    s->first = work->next;
    if (!s->first) s->last = NULL;
    device->stopped = true;
    device->fault = work;
    tell_others(device, work);
    its_device_drop_all(device);
    its_device_tell(device);
}

static void stop_by_peer(its_device *device, int pe) {
    device->stopped = true;
    device->failed_pe = pe;
    its_device_drop_all(device);
    its_device_tell(device);
}

static void stop_by_complaint(its_device *device) {
    device->stopped = true;
    if (its_diag_count(device->complaints))
        its_world_faulted(device->pe->world, its_diag_get(device->complaints, 0)->message);
    its_device_drop_all(device);
    its_device_tell(device);
}

/* -- memory that was freed while work waited for its turn ---------------------------------------------------------- */

/* False, with a complaint, if device memory that was there when the work was put into the stream is there no more. */
static bool still_there(its_device *device, const char *what, const void *at, size_t size) {
    its_sim_range range;
    uint64_t address = (uint64_t)(uintptr_t)at;
    if (!size || !its_device_reaches(device, at)) return true;
    if (its_sim_memory_find(device->pe->memory, address, &range) && size <= range.end - address) return true;
    its_fail(device->complaints, ITS_ERR_FAULT, "wait for the stream before memory that its work uses is freed",
             "PE %u: %s %zu bytes at %p, which were freed before the stream got there", (unsigned)device->pe->world->pe,
             what, size, at);
    return false;
}

/* What kernels use is looked at with each access, and what was checked for other work when it was asked for, here. */
static bool memory_is_there(its_device *device, const its_work *work) {
    if (work->generation == its_sim_memory_generation(device->pe->memory)) return true;
    switch (work->kind) {
    case ITS_WORK_COPY:
        return still_there(device, "a copy on a stream reads", work->copy.from, work->copy.size) &&
               still_there(device, "a copy on a stream writes", work->copy.to, work->copy.size);
    case ITS_WORK_FILL:
        return still_there(device, "a fill on a stream writes", work->fill.at, work->fill.size);
    case ITS_WORK_SIGNAL:
        return still_there(device, "a signal on a stream writes", work->signal.at, work->signal.width);
    case ITS_WORK_WAIT_SIGNAL:
        return still_there(device, "a wait on a stream reads", work->signal.at, work->signal.width);
    default:
        return true;
    }
}

/* -- steps --------------------------------------------------------------------------------------------------------- */

typedef enum step_result { STEP_DONE, STEP_RAN, STEP_BLOCKED, STEP_STOPPED } step_result;

static step_result step_kernel(its_device *device, its_stream_queue *s) {
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
static void call(its_device *device, its_stream_queue *s) {
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
    its_event_state *e = its_device_find_event(device, work->event.event);
    if (!e) return;
    e->reached = work->event.version;
    e->time = its_clock_ns();
}

static bool event_reached(its_device *device, const its_work *work) {
    const its_event_state *e = its_device_find_event(device, work->event.event);
    return !e || e->reached >= work->event.version;
}

static step_result step_work(its_device *device, its_stream_queue *s) {
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
static bool may_begin(const its_device *device, const its_stream_queue *s) {
    if (s->first->begun || !s->blocking) return true;
    const its_stream_queue *all = device->streams;
    for (size_t i = 0; i < device->n_streams; i++) {
        bool concerns = s == all ? i != 0 && all[i].blocking : i == 0;
        if (concerns && all[i].first && all[i].first->number < s->first->number) return false;
    }
    return true;
}

/* A thread of the host that is in a host call may add streams while the lock is free, so indices, not pointers. */
static step_result step_stream(its_device *device, size_t index) {
    its_stream_queue *s = &device->streams[index];
    if (!may_begin(device, s)) return STEP_BLOCKED;
    uint64_t id = s->id;
    bool barrier = s->first->kind == ITS_WORK_BARRIER;
    its_race_stream_begin(device, s);
    if (!memory_is_there(device, s->first) || !its_race_stream_access(device, s)) {
        stop_by_complaint(device);
        return STEP_STOPPED;
    }
    step_result result = step_work(device, s);
    if (result == STEP_STOPPED || device->stopped) return STEP_STOPPED;
    for (s = device->streams; s->id != id;) s++;
    if (s->first && !barrier) s->first->begun = true;
    if (result != STEP_DONE) return result;
    its_race_stream_done(device, s);
    its_device_pop(device, s);
    return result;
}

/* -- the thread ---------------------------------------------------------------------------------------------------- */

/* By the device thread between two steps: a mutex that is let go and taken again would hardly ever change hands. */
static void let_others(its_device *device) {
    if (atomic_load(&device->wanted)) its_device_timed_wait(device, &device->turn, longest_nap);
}

/* Streams that were freed go away once they are empty; events when no work is left that could wait for them. */
static void bury(its_device *device, bool any_work) {
    for (size_t i = 0; i < device->n_events && !any_work; i++)
        if (device->events[i].dying) {
            its_free(device->ctx, device->events[i].seen);
            device->events[i--] = device->events[--device->n_events];
        }
    for (size_t i = 1; i < device->n_streams; i++)
        if (device->streams[i].dying && !device->streams[i].first) {
            its_race_agent_free(device->streams[i].race);
            device->streams[i--] = device->streams[--device->n_streams];
        }
}

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

/* What waits stays queued, for the report; the host thread drops it. */
static void stop_by_deadlock(its_device *device) {
    device->stopped = device->deadlocked = true;
    its_device_tell(device);
}

/* What has begun and waits is looked at anew from here on. */
static void watch(its_device *device, uint64_t epoch) {
    device->epoch = epoch;
    for (size_t i = 0; i < device->n_streams; i++) {
        const its_work *work = device->streams[i].first;
        if (work && work->kind == ITS_WORK_KERNEL) its_sim_grid_watch(work->kernel.grid);
    }
}

/* Requires that nothing was done since the last call of watch. */
static bool kernels_stuck(const its_device *device) {
    for (size_t i = 0; i < device->n_streams; i++) {
        const its_work *work = device->streams[i].first;
        if (work && work->kind == ITS_WORK_KERNEL && work->begun && !its_sim_grid_stuck(work->kernel.grid))
            return false;
    }
    return true;
}

/* Requires that all work was looked at, in vain. Stops if nobody can ever go on: see stuck.h. */
static void mind_deadlock(its_device *device, bool any_work) {
    its_world *world = device->pe->world;
    uint64_t changes, epoch;
    if (any_work && its_world_is_stuck(world)) {
        stop_by_deadlock(device);
        return;
    }
    if (its_world_left_alone(world) >= 0) return; /* mind_others has the better words */
    its_hosts_wait(&world->hosts, &changes);
    if (device->moved || changes != device->host_changes) its_world_raise(world);
    device->moved = false;
    device->host_changes = changes;
    epoch = its_world_epoch(world);
    if (epoch != device->epoch)
        watch(device, epoch);
    else if (kernels_stuck(device) && its_hosts_blocked(&world->hosts, changes, 1) && its_world_blocked(world, epoch))
        its_world_say_stuck(world);
    if (any_work && its_world_is_stuck(world)) stop_by_deadlock(device);
}

/* Stops when another PE has failed, or nobody is left who could help, and the time of grace is over. */
static void mind_others(its_device *device, uint64_t grace) {
    int failed = its_world_failed(device->pe->world, &device->last_look);
    if (failed < 0 && grace == grace_waiting && host_waits(device)) failed = its_world_left_alone(device->pe->world);
    if (failed < 0) {
        device->failed_at = 0;
        return;
    }
    if (!device->failed_at) device->failed_at = its_clock_ns();
    if (its_clock_ns() - device->failed_at > grace) stop_by_peer(device, failed);
}

/*
 * Everything waits for other PEs. They leave their mark in memory without a word, so this one looks again and again,
 * first soon, then once in a millisecond.
 */
static void nap(its_device *device, bool any_work, uint64_t *length) {
    if (*length == 0) show_waiting(device);
    bury(device, any_work);
    mind_deadlock(device, any_work);
    if (any_work && !device->stopped) mind_others(device, grace_waiting);
    *length = *length ? *length * 2 : 20000;
    uint64_t longest = any_work ? longest_nap : longest_idle_nap;
    if (*length > longest) *length = longest;
    if (!device->stopped) its_device_timed_wait(device, &device->work, *length);
}

static void sleep_until_work(its_device *device) {
    its_activity *activity = &its_world_me(device->pe->world)->device;
    bury(device, false);
    its_activity_set(activity, ITS_ACTIVITY_IDLE, 0, 0);
    pthread_cond_wait(&device->work, &device->mutex);
    its_activity_set(activity, ITS_ACTIVITY_RUNNING, 0, 0);
}

void *its_device_run(void *user) {
    its_device *device = user;
    uint64_t length = 0;
    uint64_t changes;
    bool any_work;
    pthread_mutex_lock(&device->mutex);
    while (!device->quit) {
        if (step_all(device, &any_work)) {
            device->moved = true;
            if (length) its_activity_set(&its_world_me(device->pe->world)->device, ITS_ACTIVITY_RUNNING, 0, 0);
            length = 0;
            mind_others(device, grace_running);
        } else if (any_work || (!device->stopped && its_hosts_wait(&device->pe->world->hosts, &changes))) {
            nap(device, any_work, &length);
        } else {
            sleep_until_work(device);
            length = 0;
        }
    }
    pthread_mutex_unlock(&device->mutex);
    return NULL;
}
