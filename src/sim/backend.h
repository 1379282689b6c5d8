/*
 * The backend `sim`: a PE of a world with its device, behind include/intarsia/backend.h. What is declared here beyond
 * that serves the library of host names (src/simhost), which is a shared object of its own; hence ITS_API.
 */
#ifndef ITS_SIM_BACKEND_H
#define ITS_SIM_BACKEND_H

#include "intarsia/sim.h"
#include "sim/stream.h"

enum { ITS_FIRST_FREE_TEAM = 4 }; /* those below are given: world, shared, node, same number on every node */

typedef struct its_sim_backend {
    its_backend base;
    its_pe pe;
    its_device *device;
    its_sim_machine machine;
    its_team teams[ITS_WORLD_MAX_TEAMS]; /* size 0: none, or one that this PE does not belong to */
    uint32_t next_team;                  /* the same on every PE */
    its_loaded *loaded;
} its_sim_backend;

/* NULL with ITS_ERR_USAGE if `backend` is not a simulated PE. */
ITS_API its_status its_sim_backend_of(its_backend *backend, its_sim_backend **sim);
/* Adds an error to the backend's context; returns ITS_ERR_USAGE. `hint` may be NULL. */
ITS_API its_status its_sim_error(its_sim_backend *sim, const char *hint, const char *message);

/* -- copies -------------------------------------------------------------------------------------------------------- */

typedef enum its_host_memory {
    ITS_HOST_NONE,     /* both ends are device memory */
    ITS_HOST_PAGEABLE, /* the source is read before the call returns; a destination is written before it returns */
    ITS_HOST_PINNED,   /* read or written when the stream gets there */
} its_host_memory;

/*
 * Copies in stream order. Ends that `to_device` and `from_device` name are checked against what is allocated; nothing
 * is copied if that fails.
 */
ITS_API its_status its_sim_copy(its_sim_backend *sim, uint64_t to, bool to_device, uint64_t from, bool from_device,
                                size_t size, its_host_memory host, its_stream stream);
/* Fills with a value of `width` 1, 2 or 4 bytes. */
ITS_API its_status its_sim_fill(its_sim_backend *sim, uint64_t at, uint64_t value, uint32_t width, size_t size,
                                its_stream stream);
typedef enum its_memory_at {
    ITS_AT_UNKNOWN, /* nothing that kernels can reach */
    ITS_AT_DEVICE,  /* device memory that this PE may use: its own, or symmetric memory of any PE */
    ITS_AT_HOST,    /* pinned memory of the host */
} its_memory_at;
ITS_API its_memory_at its_sim_memory_kind(its_sim_backend *sim, uint64_t address);
/* Memory of the host that kernels can reach. Released with its_sim_release_host after waiting for the device. */
ITS_API its_status its_sim_alloc_host(its_sim_backend *sim, size_t size, uint64_t *address);
ITS_API its_status its_sim_release_host(its_sim_backend *sim, uint64_t address);
/* Bytes of private memory in use, and in all. */
ITS_API void its_sim_memory_used(its_sim_backend *sim, uint64_t *used, uint64_t *total);

/* What stopped the device, if anything. */
typedef enum its_stopped {
    ITS_STOPPED_NOT,
    ITS_STOPPED_ACCESS,
    ITS_STOPPED_MISALIGNED,
    ITS_STOPPED_ASSERT,
    ITS_STOPPED_OTHER, /* another fault of a kernel */
    ITS_STOPPED_PEER,  /* another PE failed */
} its_stopped;
ITS_API its_stopped its_sim_stopped(its_sim_backend *sim);

/* -- streams and events -------------------------------------------------------------------------------------------- */

ITS_API its_status its_sim_stream_new(its_sim_backend *sim, bool blocking, its_stream *stream);
ITS_API its_status its_sim_stream_idle(its_sim_backend *sim, its_stream stream, bool *idle);
ITS_API its_status its_sim_host_call(its_sim_backend *sim, its_stream stream, void (*function)(void *user), void *user);

ITS_API its_status its_sim_event_new(its_sim_backend *sim, its_event *event);
ITS_API its_status its_sim_event_free(its_sim_backend *sim, its_event event);
ITS_API its_status its_sim_event_record(its_sim_backend *sim, its_event event, its_stream stream);
ITS_API its_status its_sim_event_wait(its_sim_backend *sim, its_event event, its_stream stream);
ITS_API its_status its_sim_event_done(its_sim_backend *sim, its_event event, bool *done);
ITS_API its_status its_sim_event_synchronize(its_sim_backend *sim, its_event event);
/* Milliseconds from one to the other; ITS_ERR_USAGE unless both were recorded and reached. */
ITS_API its_status its_sim_event_elapsed(its_sim_backend *sim, its_event from, its_event to, double *milliseconds);

/* -- symmetric memory and teams ------------------------------------------------------------------------------------ */

/* `call` is the name in messages. Collective. */
ITS_API its_status its_sim_symmetric_alloc(its_sim_backend *sim, const char *call, size_t size, size_t align,
                                           uint64_t *address);
ITS_API its_status its_sim_symmetric_free(its_sim_backend *sim, const char *call, uint64_t address);
/*
 * Where `bytes` at a symmetric address are reached at `pe`; ITS_ERR_USAGE, naming `call`, if the address is not
 * symmetric, not allocated that far, or there is no such PE.
 */
ITS_API its_status its_sim_put_target(its_sim_backend *sim, const char *call, uint64_t address, size_t bytes, int pe,
                                      uint64_t *mapped);
/* As for its_backend_ops.peer, without diagnostics. */
ITS_API bool its_sim_peer(its_sim_backend *sim, uint64_t address, uint32_t pe, uint64_t *mapped);

/* NULL if there is no such team or this PE does not belong to it. */
ITS_API const its_team *its_sim_team(its_sim_backend *sim, int32_t team);
/*
 * Makes a team of PEs of the world; collective over all PEs of the world, members or not. `*team` is its number, the
 * same everywhere, or -1 where this PE is not a member.
 */
ITS_API its_status its_sim_team_new(its_sim_backend *sim, its_team members, int32_t *team);
ITS_API its_status its_sim_team_free(its_sim_backend *sim, int32_t team);
/* The host waits for its own device first if `quiet`. */
ITS_API its_status its_sim_barrier(its_sim_backend *sim, int32_t team, bool quiet);
ITS_API its_status its_sim_barrier_on_stream(its_sim_backend *sim, int32_t team, its_stream stream);

/* -- signals ------------------------------------------------------------------------------------------------------- */

/* `at` is an address as `pe` reaches it (its_sim_peer). */
ITS_API its_status its_sim_signal_on_stream(its_sim_backend *sim, uint64_t at, uint64_t value, bool add,
                                            its_stream stream);
/* Words of 2, 4 or 8 bytes. */
ITS_API its_status its_sim_wait_signal_on_stream(its_sim_backend *sim, uint64_t at, its_compare compare, uint64_t value,
                                                 uint32_t width, bool is_signed, its_stream stream);

#endif
