/*
 * The simulator: a backend that runs linked PTX on CPUs and finds faults while it does.
 *
 * Each PE is a process. The launcher (`intarsia run --sim`, or its_sim_world_new and fork in C) makes a world: shared
 * memory for the symmetric heaps and a control block. Each PE opens its backend on it. A world of one PE needs no
 * launcher.
 */
#ifndef INTARSIA_SIM_H
#define INTARSIA_SIM_H

#include "intarsia/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct its_sim_options {
    uint32_t n_pes;   /* 1 to 64 */
    size_t heap_size; /* symmetric heap per PE in bytes, reserved, not committed; 0: what the environment says in
                         INTARSIA_HEAP_SIZE, else NVSHMEM_SYMMETRIC_SIZE (512M, 2G), else 1 GiB */
    uint32_t multiprocessors;              /* 0: 4 */
    uint32_t compute_major, compute_minor; /* 0: 8.0 */
    bool find_races;                       /* also on if INTARSIA_SIM_CHECK=races is in the environment */
} its_sim_options;

/*
 * Makes the shared memory of a world and returns a file descriptor for it (not close-on-exec: PEs inherit it). The
 * caller closes it; the memory goes away with the last descriptor and mapping. ITS_ERR_USAGE if an option is out of
 * range, ITS_ERR_NOMEM if there are not enough addresses for the heaps, ITS_ERR_IO if the system gives no shared
 * memory.
 */
ITS_API its_status its_sim_world_new(its_context *ctx, const its_sim_options *options, int *fd);

/*
 * For launchers: says that the process of PE `pe` is gone, so that the others stop waiting for it. PEs notice by
 * themselves that a process they share the world with has died; this is for one that ended before it opened its
 * backend. ITS_ERR_IO or ITS_ERR_USAGE if `fd` is not of a world that has this PE.
 */
ITS_API its_status its_sim_world_ended(its_context *ctx, int fd, uint32_t pe);

/* For launchers: whether its PEs have found that none of them can go on. Each of them says what it waits for. */
ITS_API bool its_sim_world_stuck(int fd);

/*
 * Opens PE `pe` of the world behind `fd`; `options` are the world's and not looked at. With fd -1 a private world of
 * one PE is made from `options` (may be NULL). The backend is the caller's: its `close` frees it. Errors are those of
 * its_sim_world_new, and ITS_ERR_USAGE if the PE is open already or the world is of another version.
 */
ITS_API its_status its_sim_open(its_context *ctx, int fd, uint32_t pe, const its_sim_options *options,
                                its_backend **backend);

/*
 * Tells how many threads of this process may call the backend or use its memory, those in its waiting calls included.
 * Only when all of them wait can a deadlock be called one. 0, which it is in the beginning: all threads of the process.
 * ITS_ERR_USAGE if the backend is not the simulator.
 */
ITS_API its_status its_sim_host_threads(its_backend *backend, uint32_t threads);

/*
 * Threads end without making a call: while a thread waits, it calls `count` several times a second, which tells how
 * many there are now. A program with more than one says so with each call as well (its_sim_host_threads). NULL, as in
 * the beginning: nobody is asked. ITS_ERR_USAGE if the backend is not the simulator.
 */
ITS_API its_status its_sim_host_count(its_backend *backend, int (*count)(void));

/*
 * Lets a program end the waits of its host threads, say when the user presses Ctrl-C. While a thread waits, it calls
 * `asked` several times a second; when that returns something else than 0 the waiting function returns
 * ITS_ERR_INTERRUPTED. What was waited for goes on: after an interrupted collective call the PE can only be closed.
 * NULL, as in the beginning: nobody is asked. ITS_ERR_USAGE if the backend is not the simulator.
 */
ITS_API its_status its_sim_host_interrupt(its_backend *backend, int (*asked)(void));

/*
 * For programs whose threads share a backend: a lock to hold during a call and while its diagnostics are read. Calls
 * that wait let go of it while they do, unless the thread has taken it more than once, which it may; `unlock` gives it
 * back as often. ITS_ERR_USAGE if the backend is not the simulator, or for `unlock` if the thread does not hold it.
 */
ITS_API its_status its_sim_host_lock(its_backend *backend);
/* Gives back what its_sim_host_lock has taken. ITS_ERR_USAGE as said there. */
ITS_API its_status its_sim_host_unlock(its_backend *backend);

/*
 * Opens the PE that the environment names: INTARSIA_SIM_FD and INTARSIA_PE as set by `intarsia run --sim`, or a world
 * of one PE if they are not set. ITS_ERR_USAGE if they are no numbers, else as its_sim_open.
 */
ITS_API its_status its_sim_open_env(its_context *ctx, its_backend **backend);

/*
 * The PTX of the simulator's NVSHMEM device library for `arch`: compiled once by its_cc from device/ and cached. A
 * kernel that calls nvshmem_* is linked against it before it is loaded into the simulator. `*library` is the caller's,
 * to be freed with its_module_free. ITS_ERR_ABSENT without NVRTC, else as its_cc.
 */
ITS_API its_status its_sim_nvshmem_library(its_context *ctx, const char *arch, its_module **library);

/*
 * What a tensor copy (TMA) has to know of an array in global memory: innermost dimension first, numbers as the CUDA
 * driver's cuTensorMapEncodeTiled has them.
 */
typedef struct its_sim_tensor {
    uint64_t address;    /* a multiple of 16 */
    uint64_t dims[5];    /* elements */
    uint64_t strides[4]; /* bytes, of dimensions 1 to 4: multiples of 16 */
    uint32_t box[5];     /* elements of the box that is copied, 1 to 256 */
    uint32_t steps[5];   /* element strides, 1 to 8 */
    uint32_t rank;       /* 1 to 5 */
    uint32_t type;       /* CUtensorMapDataType: 0 to 9 are there */
    uint32_t interleave; /* CUtensorMapInterleave: only 0, none, is there */
    uint32_t swizzle;    /* CUtensorMapSwizzle: none, 32, 64 or 128 bytes */
    uint32_t fill;       /* what is outside of the array: 0 zeros, 1 NaNs */
} its_sim_tensor;

/*
 * Makes the 128 bytes that a kernel takes as a tensor map (CUtensorMap). ITS_ERR_INPUT, with the reason, if the
 * description is beyond a limit of the driver's, or asks for what the simulator doesn't have.
 */
ITS_API its_status its_sim_tensor_encode(its_context *ctx, const its_sim_tensor *tensor, void *map);

#ifdef __cplusplus
}
#endif
#endif
