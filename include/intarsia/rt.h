/*
 * The NVIDIA runtime: a real GPU as a backend, and NVSHMEM's host library for what is symmetric.
 *
 * Both are loaded at run time; docs/gpus.md says from where. Nothing is decided by names of kernels: a module is made
 * known to NVSHMEM if it holds NVSHMEM's device state, and is left alone otherwise.
 */
#ifndef INTARSIA_RT_H
#define INTARSIA_RT_H

#include "intarsia/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ITS_UNIQUE_ID_SIZE 128

typedef struct its_cuda_options {
    uint32_t pe, n_pes;
    int32_t device;        /* the GPU's number; PEs may share one */
    const void *unique_id; /* ITS_UNIQUE_ID_SIZE bytes, the same on all PEs; NULL: one PE makes its own */
    bool peers_only;       /* every peer must be reached by loads and stores: ITS_TRANSPORT_P2P */
    /* Nanoseconds that a wait in a module linked with `limit_waits` may take; 0: any time. Past it the kernel traps,
     * and the call that notices returns ITS_ERR_FAULT with kernel, source line, value seen and value expected. */
    uint64_t wait_limit_ns;
} its_cuda_options;

/*
 * Opens a GPU. Collective when there is more than one PE: NVSHMEM is initialised, or found initialised with the same
 * number and count of PEs. With one PE that waits until something needs it, so that a machine without NVSHMEM does for
 * kernels that don't. ITS_ERR_ABSENT without a driver, a GPU or NVSHMEM.
 */
ITS_API its_status its_cuda_open(its_context *ctx, const its_cuda_options *options, its_backend **backend);

/*
 * What one PE makes, ITS_UNIQUE_ID_SIZE bytes, and then tells all others, so that they find each other. ITS_ERR_ABSENT
 * without NVSHMEM, ITS_ERR_IO if there is no network interface to meet at.
 */
ITS_API its_status its_cuda_unique_id(its_context *ctx, void *unique_id);

/* How many GPUs there are; 0 without a driver, and no diagnostic. */
ITS_API uint32_t its_cuda_device_count(its_context *ctx);

/* Initialises NVSHMEM if that has not been done yet: collective. ITS_ERR_ABSENT without it, ITS_ERR_IO if it fails. */
ITS_API its_status its_cuda_need_nvshmem(its_backend *backend);

/*
 * A module that somebody else has loaded (a CUmodule): made known to NVSHMEM, once, if it holds NVSHMEM's device state,
 * and told the limit of waits.
 * `holds` (may be NULL) says whether it does. What was adopted is forgotten before its owner unloads it.
 * ITS_ERR_FAULT after a fault, ITS_ERR_IO if NVSHMEM does not take it.
 */
ITS_API its_status its_cuda_adopt(its_backend *backend, void *module, bool *holds);
/* The owner of an adopted module is about to unload it; nothing happens if it was not adopted. */
ITS_API void its_cuda_forget(its_backend *backend, void *module);

/* ITS_ERR_FAULT, with the report, if a kernel has waited for longer than the limit or has complained about a barrier;
 * else ITS_OK. Never waits itself: for programs that meet the error in another library's call. */
ITS_API its_status its_cuda_check_waits(its_backend *backend);

/* Closing will not wait for other PEs any more: something has failed here. */
ITS_API void its_cuda_abandon(its_backend *backend);

/* What is on this machine, and one plain sentence for each thing that would fail, as text; free with its_free. Clears
 * the diagnostics of `ctx`. */
ITS_API char *its_doctor_text(its_context *ctx, uint32_t *problems);

#ifdef __cplusplus
}
#endif
#endif
