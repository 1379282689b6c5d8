/*
 * The device of one PE: a thread that works off streams.
 *
 *     host thread                       device thread
 *     enqueue ──► stream 0: K C C        one step of the first piece of work of every stream that may run, in turn
 *                 stream 1: K            kernels a slice at a time, waits a look at a time
 *                 stream 2: W            nothing to do: sleeps; everything waits for others: sleeps a little
 *
 * So kernels on different streams, and a stream that waits for a signal next to one whose kernel will send it, make
 * progress side by side.
 *
 * Order is CUDA's. Work of one stream runs in order. Stream 0 is the legacy default stream: its work starts when all
 * work that was put into blocking streams before it is done, and work put into blocking streams after it waits for it.
 * Non-blocking streams are exempt from both.
 *
 * One lock guards everything: the queues, the memory table, and private memory. The device thread holds it while it
 * works and lets go of it whenever the host thread wants it. A fault stops the device for good: what is queued is
 * dropped, and every later call says so. What can't be freed on the device thread (grids) is handed back.
 */
#ifndef ITS_SIM_STREAM_H
#define ITS_SIM_STREAM_H

#include "sim/machine.h"
#include "sim/pe.h"

typedef struct its_device its_device;
typedef struct its_work its_work;
typedef uint64_t its_event; /* never 0 */

typedef enum its_work_kind {
    ITS_WORK_KERNEL,
    ITS_WORK_COPY,
    ITS_WORK_FILL,
    ITS_WORK_EVENT, /* an event is reached */
    ITS_WORK_WAIT_EVENT,
    ITS_WORK_CALL,        /* a function of the host */
    ITS_WORK_BARRIER,     /* of a team */
    ITS_WORK_SIGNAL,      /* a word is set or added to */
    ITS_WORK_WAIT_SIGNAL, /* until a word compares */
} its_work_kind;

typedef enum its_compare { ITS_EQ, ITS_NE, ITS_GT, ITS_LE, ITS_LT, ITS_GE } its_compare; /* as NVSHMEM_CMP_* */

struct its_work {
    its_work *next;
    its_work_kind kind;
    bool begun;
    bool followed;       /* what was before it is known to be */
    uint64_t number;     /* in the order of all work of the device */
    uint64_t generation; /* of the memory table, when it was put into the stream */
    uint32_t *seen;      /* by the host when it was put into the stream; see race.h */
    union {
        struct {
            its_sim_grid *grid;
            const char *name;      /* of the kernel; lives as long as its module */
            const void *complaint; /* the device library's, or NULL; see device/sim/state.h */
        } kernel;
        struct {
            void *to;
            const void *from;
            size_t size;
            void *staged; /* freed when done */
        } copy;
        struct {
            void *at;
            size_t size;
            uint64_t value;
            uint32_t width; /* of `value`: 1, 2 or 4 bytes */
        } fill;
        struct {
            its_event event;
            uint64_t version;
        } event;
        struct {
            void (*function)(void *user);
            void *user;
        } call;
        struct {
            uint32_t team;
            its_team members;
            uint64_t epoch;
        } barrier;
        struct {
            void *at;
            uint64_t value;
            uint32_t width; /* 2, 4 or 8 bytes */
            bool is_signed;
            bool add;
            its_compare compare;
        } signal;
    };
};

/* Starts the thread. `pe` and `machine` outlive the device. */
its_status its_device_new(its_context *ctx, its_pe *pe, its_device **device);
/* Drops what is queued and stops the thread: after that no grid is left, and programs can be freed. */
void its_device_finish(its_device *device);
void its_device_free(its_device *device); /* finishes first if that was not done */

/* The lock: short sections of the host thread that touch the memory table or private memory. */
void its_device_lock(its_device *device);
void its_device_unlock(its_device *device);

/* -- streams ------------------------------------------------------------------------------------------------------- */

its_status its_device_stream_new(its_device *device, bool blocking, uint64_t *stream);
/* Work that is queued is still done. */
its_status its_device_stream_free(its_device *device, uint64_t stream);
/* ITS_ERR_USAGE if there is no such stream. */
its_status its_device_stream_check(its_device *device, uint64_t stream);

/*
 * Puts a copy of `work` at the end of a stream. If it is refused (no such stream, a stopped device, no memory) what the
 * work owns, a grid or a staged block, stays the caller's.
 */
its_status its_device_enqueue(its_device *device, uint64_t stream, const its_work *work);
/* Returns when all work that is now in the stream is done. ITS_ERR_FAULT with the report if the device has stopped. */
its_status its_device_wait_stream(its_device *device, uint64_t stream);
its_status its_device_wait(its_device *device);
/* Whether the stream is empty; does not wait. */
its_status its_device_stream_idle(its_device *device, uint64_t stream, bool *idle);

/* -- events -------------------------------------------------------------------------------------------------------- */

its_status its_device_event_new(its_device *device, its_event *event);
its_status its_device_event_free(its_device *device, its_event event);
its_status its_device_event_record(its_device *device, its_event event, uint64_t stream);
/* The stream's later work waits for what the event stands for now; at once if it was never recorded. */
its_status its_device_event_wait(its_device *device, its_event event, uint64_t stream);
its_status its_device_event_done(its_device *device, its_event event, bool *done);
its_status its_device_event_synchronize(its_device *device, its_event event);
/* When it was last reached, in ns; 0 if never. */
its_status its_device_event_time(its_device *device, its_event event, uint64_t *time);

/* -- calls that all PEs make, for whoever looks for races ---------------------------------------------------------- */

/* What the host has seen, before and after a barrier of a team, and a collective call. */
void its_device_host_arrives(its_device *device, its_team members, uint32_t team);
void its_device_host_leaves(its_device *device, its_team members, uint32_t team);
void its_device_host_collective(its_device *device, bool after);

/* -- faults -------------------------------------------------------------------------------------------------------- */

/* ITS_OK, or ITS_ERR_FAULT with the report (the first time in full) if the device has stopped. */
its_status its_device_check(its_device *device);
/* Without diagnostics. */
bool its_device_stopped(its_device *device);
/* The fault that stopped it, or NULL; `*peer` says whether another PE's failure did. */
const its_sim_fault *its_device_fault(its_device *device, bool *peer);

#endif
