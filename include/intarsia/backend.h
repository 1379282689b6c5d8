/*
 * Where kernels run. A backend is one processing element (PE) of a world of several: a simulated GPU or a real one.
 * Everything above (Python, the command line, examples) is written once against this interface.
 *
 * Device pointers are plain 64-bit addresses. All calls on one backend come from one thread, or from several that take
 * turns (its_sim_host_lock); a stream's work proceeds by itself. Sizes are bytes throughout.
 */
#ifndef INTARSIA_BACKEND_H
#define INTARSIA_BACKEND_H

#include "intarsia/ptx.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct its_backend its_backend;
typedef struct its_loaded its_loaded;     /* a module loaded into a backend */
typedef struct its_function its_function; /* a kernel of a loaded module; lives as long as it */
typedef uint64_t its_stream;              /* 0 is the default stream */

typedef enum its_memory {
    ITS_MEMORY_DEVICE,
    ITS_MEMORY_SYMMETRIC,
    ITS_MEMORY_HOST, /* of the host: it and kernels reach it at one address, the host also after a kernel has failed */
} its_memory;
typedef enum its_copy_kind { ITS_COPY_TO_DEVICE, ITS_COPY_FROM_DEVICE, ITS_COPY_DEVICE } its_copy_kind;

typedef struct its_launch {
    uint32_t grid[3], block[3];
    uint32_t shared; /* dynamic shared memory, bytes */
    its_stream stream;
    const void *const *params; /* one pointer per kernel parameter, to its value */
    uint32_t n_params;
} its_launch;

typedef struct its_function_info {
    const char *name;
    uint32_t n_params;
    const uint32_t *param_sizes; /* bytes of each */
    uint32_t shared;             /* static shared memory */
    uint32_t max_threads;        /* per CTA */
} its_function_info;

typedef struct its_device_info {
    char name[64];
    uint32_t compute_major, compute_minor;
    uint32_t multiprocessors, warp_size;
    uint32_t max_shared; /* bytes per CTA, opt-in limit */
    uint32_t max_regs, max_threads;
} its_device_info;

/*
 * Every call but `close` returns a status and leaves diagnostics in the backend's context. A fault in a kernel is
 * reported by the first call that waits for it, as ITS_ERR_FAULT, and by every call on the backend after that.
 * Collective calls (marked) must be made by every PE in the same order.
 */
typedef struct its_backend_ops {
    const char *name; /* "sim", "cuda" */
    /* Drops what is still queued, frees all that was allocated, loaded or made, and the backend itself. */
    void (*close)(its_backend *backend);
    /* Which PE this is, and of how many. */
    void (*identity)(its_backend *backend, uint32_t *pe, uint32_t *n_pes);
    /* What the device can do. */
    its_status (*device_info)(its_backend *backend, its_device_info *info);
    /*
     * `align` 0: 256. Device memory is not cleared. Symmetric memory: collective, same size and alignment everywhere,
     * zeroed only by `calloc` users. ITS_ERR_USAGE for 0 bytes or a bad alignment, ITS_ERR_NOMEM.
     */
    its_status (*alloc)(its_backend *backend, its_memory kind, size_t size, size_t align, uint64_t *address);
    /* Frees what `alloc` gave, of the same kind; symmetric: collective. */
    its_status (*free)(its_backend *backend, its_memory kind, uint64_t address);
    /* The address at which this PE reaches `address` (symmetric) of `pe`; ITS_ERR_INPUT if it is not symmetric. */
    its_status (*peer)(its_backend *backend, uint64_t address, uint32_t pe, uint64_t *mapped);
    /*
     * `size` bytes, in the stream's order. `device` is where to, or for ITS_COPY_FROM_DEVICE where from; `other` is the
     * host address, or for ITS_COPY_DEVICE the source. Host memory may be reused when the call returns.
     */
    its_status (*copy)(its_backend *backend, its_copy_kind kind, uint64_t device, uint64_t other, size_t size,
                       its_stream stream);
    /* Sets `size` bytes to `value`, in the stream's order. */
    its_status (*fill)(its_backend *backend, uint64_t address, uint8_t value, size_t size, its_stream stream);
    /* Loads a linked module; keeps no pointer to `module`. ITS_ERR_INPUT if it holds what this backend can't run. */
    its_status (*load)(its_backend *backend, its_module *module, its_loaded **loaded);
    /* Frees a loaded module, its functions and its variables, after what runs has ended. */
    void (*unload)(its_backend *backend, its_loaded *loaded);
    /* The kernel of that name; ITS_ERR_INPUT if there is none. */
    its_status (*function)(its_backend *backend, its_loaded *loaded, const char *name, its_function **function);
    /* What is known about a kernel; the pointers in `info` live as long as it. */
    its_status (*function_info)(its_backend *backend, its_function *function, its_function_info *info);
    /* The address and size of a .global or .const variable; ITS_ERR_INPUT if there is none. */
    its_status (*variable)(its_backend *backend, its_loaded *loaded, const char *name, uint64_t *address, size_t *size);
    /* Starts a kernel, in its stream's order; parameters are copied. ITS_ERR_USAGE if their number is wrong. */
    its_status (*launch)(its_backend *backend, its_function *function, const its_launch *launch);
    /* A new stream, whose work is in order among itself only. */
    its_status (*stream_new)(its_backend *backend, its_stream *stream);
    /* Frees a stream when its work is done. */
    its_status (*stream_free)(its_backend *backend, its_stream stream);
    /* Waits until all work of a stream is done. */
    its_status (*stream_wait)(its_backend *backend, its_stream stream);
    its_status (*wait)(its_backend *backend);    /* for all streams */
    its_status (*barrier)(its_backend *backend); /* collective: of all PEs, after `wait` */
} its_backend_ops;

struct its_backend {
    const its_backend_ops *ops;
    its_context *ctx;
    /* Where in the user's program the next call comes from, "app.py:12", for messages about calls that PEs make
     * differently; NULL: unknown. Set by the caller, who keeps it alive. */
    const char *site;
};

#ifdef __cplusplus
}
#endif
#endif
