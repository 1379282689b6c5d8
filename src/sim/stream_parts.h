/* The inside of a device, for the two files that work on it: stream.c (the host thread) and stream_device.c. */
#ifndef ITS_SIM_STREAM_PARTS_H
#define ITS_SIM_STREAM_PARTS_H

#include <pthread.h>

#include "sim/stream.h"
#include "sim/stuck.h"

typedef struct its_stream_queue {
    uint64_t id;
    bool blocking, dying;
    its_work *first, *last;
    uint64_t done; /* number of the last piece of work that was finished */
    its_race_agent *race;
} its_stream_queue;

typedef struct its_event_state {
    its_event id;
    bool dying;                 /* freed by the host: work that was queued before still reaches it and waits for it */
    uint64_t recorded, reached; /* versions */
    uint64_t time;
    uint32_t *seen; /* by the stream that reached it; see race.h */
} its_event_state;

struct its_device {
    its_context *ctx;
    its_pe *pe;
    its_race_agent *host; /* see race.h */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t work, progress, turn; /* for the device thread; for the host thread; for whoever wants the lock */
    pthread_mutex_t telling;             /* guards `told`, and is that of `progress`; taken inside of `mutex` */
    uint64_t told;                       /* how often there was progress */
    _Atomic uint32_t wanted;             /* host threads that want the lock */
    bool quit;
    its_stream_queue *streams; /* [0] is the default stream */
    size_t n_streams, stream_capacity;
    its_event_state *events;
    size_t n_events, event_capacity;
    uint64_t next_id, next_number;
    uint64_t streams_made; /* for whoever looks for races: streams that lie side by side have clocks of their own */

    /*
     * Once stopped, by a fault of its own (`fault`) or of another PE (`failed_pe`) or by a wrong call (`complaints`).
     */
    bool stopped, reported;
    its_work *fault;         /* the kernel; keeps its grid */
    int failed_pe;           /* or -1 */
    bool deadlocked;         /* no PE can go on; what waited is still queued */
    bool moved;              /* something was done since the epoch was last raised */
    uint64_t host_changes;   /* of world->hosts when it was last raised */
    uint64_t epoch;          /* what is looked at since */
    its_context *complaints; /* what the device thread has to say, in a context of its own */
    its_work *finished;      /* grids to be freed by the host thread */
    uint64_t last_look;      /* at the other PEs */
    uint64_t failed_at;      /* when one of them was first seen to have failed, or 0 */
};

/* Lets go of the lock until the condition is signalled or the time is over. */
void its_device_timed_wait(its_device *device, pthread_cond_t *condition, uint64_t ns);

/* All of these want the lock. */
void its_device_tell(its_device *device); /* that something was done: wakes host threads that wait */
its_event_state *its_device_find_event(its_device *device, its_event id); /* a dying one, too */
/* Whether an address is one that kernels of this PE can reach: in its own memory or in any symmetric heap. */
bool its_device_reaches(const its_device *device, const void *at);
/* Ends the first piece of work of a stream. Grids go to `finished`, for the host thread to free. */
void its_device_pop(its_device *device, its_stream_queue *stream);
void its_device_drop_all(its_device *device);

/* What the thread does; `user` is the device. */
void *its_device_run(void *user);

#endif
