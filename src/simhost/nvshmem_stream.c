/* NVSHMEM's host API for host files: what is done in the order of a stream. */

#include "nvshmemx.h"
#include "simhost/simhost.h"

#define EXPORT __attribute__((visibility("default")))

/* The PE and the stream that a call means; NULL after a failure. */
static its_sim_backend *on_stream(const char *call, cudaStream_t handle, its_stream *stream) {
    its_sim_backend *sim = its_simhost_sim();
    if (sim && its_simhost_state()->initialised && its_simhost_stream(handle, stream)) return sim;
    its_simhost_wrong("call nvshmem_init first", "%s was called before nvshmem_init or after nvshmem_finalize", call);
    return NULL;
}

/* -- barriers ------------------------------------------------------------------------------------------------------ */

static int barrier(const char *call, nvshmem_team_t team, cudaStream_t handle) {
    its_stream stream;
    its_sim_backend *sim = on_stream(call, handle, &stream);
    if (!sim) return 1;
    its_status status = its_sim_barrier_on_stream(sim, team, stream);
    its_simhost_done(status);
    return status == ITS_OK ? 0 : 1;
}

EXPORT void nvshmemx_barrier_all_on_stream(cudaStream_t stream) {
    barrier("nvshmemx_barrier_all_on_stream", NVSHMEM_TEAM_WORLD, stream);
}
EXPORT void nvshmemx_sync_all_on_stream(cudaStream_t stream) {
    barrier("nvshmemx_sync_all_on_stream", NVSHMEM_TEAM_WORLD, stream);
}
EXPORT int nvshmemx_barrier_on_stream(nvshmem_team_t team, cudaStream_t stream) {
    return barrier("nvshmemx_barrier_on_stream", team, stream);
}
EXPORT int nvshmemx_team_sync_on_stream(nvshmem_team_t team, cudaStream_t stream) {
    return barrier("nvshmemx_team_sync_on_stream", team, stream);
}

/* What was put before in the stream has arrived when it was done, so there is nothing to wait for. */
EXPORT void nvshmemx_quiet_on_stream(cudaStream_t handle) {
    its_stream stream;
    on_stream("nvshmemx_quiet_on_stream", handle, &stream);
}

/* -- puts and gets ------------------------------------------------------------------------------------------------- */

static its_host_memory host_memory(its_sim_backend *sim, const void *address) {
    switch (its_sim_memory_kind(sim, (uint64_t)(uintptr_t)address)) {
    case ITS_AT_DEVICE:
        return ITS_HOST_NONE;
    case ITS_AT_HOST:
        return ITS_HOST_PINNED;
    default:
        return ITS_HOST_PAGEABLE;
    }
}

static its_status put(its_sim_backend *sim, const char *call, void *dest, const void *source, size_t bytes, int pe,
                      its_stream stream) {
    uint64_t to;
    its_host_memory host = host_memory(sim, source);
    its_status status = its_sim_put_target(sim, call, (uint64_t)(uintptr_t)dest, bytes, pe, &to);
    if (status != ITS_OK) return status;
    return its_sim_copy(sim, to, true, (uint64_t)(uintptr_t)source, host == ITS_HOST_NONE, bytes, host, stream);
}

static void put_on_stream(const char *call, void *dest, const void *source, size_t bytes, int pe, cudaStream_t handle) {
    its_stream stream;
    its_sim_backend *sim = on_stream(call, handle, &stream);
    if (sim) its_simhost_done(put(sim, call, dest, source, bytes, pe, stream));
}

static void get_on_stream(const char *call, void *dest, const void *source, size_t bytes, int pe, cudaStream_t handle) {
    its_stream stream;
    uint64_t from;
    its_sim_backend *sim = on_stream(call, handle, &stream);
    if (!sim) return;
    its_host_memory host = host_memory(sim, dest);
    its_status status = its_sim_put_target(sim, call, (uint64_t)(uintptr_t)source, bytes, pe, &from);
    if (status == ITS_OK)
        status = its_sim_copy(sim, (uint64_t)(uintptr_t)dest, host == ITS_HOST_NONE, from, true, bytes, host, stream);
    its_simhost_done(status);
}

static its_status signal_op(its_sim_backend *sim, const char *call, uint64_t *sig_addr, uint64_t signal, int sig_op,
                            int pe, its_stream stream) {
    uint64_t at;
    if (sig_op != NVSHMEM_SIGNAL_SET && sig_op != NVSHMEM_SIGNAL_ADD)
        return its_sim_error(sim, "use NVSHMEM_SIGNAL_SET or NVSHMEM_SIGNAL_ADD",
                             "a signal operation is none of NVSHMEM's");
    its_status status = its_sim_put_target(sim, call, (uint64_t)(uintptr_t)sig_addr, sizeof *sig_addr, pe, &at);
    if (status != ITS_OK) return status;
    return its_sim_signal_on_stream(sim, at, signal, sig_op == NVSHMEM_SIGNAL_ADD, stream);
}

static void put_signal_on_stream(const char *call, void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                                 uint64_t signal, int sig_op, int pe, cudaStream_t handle) {
    its_stream stream;
    its_sim_backend *sim = on_stream(call, handle, &stream);
    if (!sim) return;
    its_status status = put(sim, call, dest, source, bytes, pe, stream);
    if (status == ITS_OK) status = signal_op(sim, call, sig_addr, signal, sig_op, pe, stream);
    its_simhost_done(status);
}

EXPORT void nvshmemx_putmem_on_stream(void *dest, const void *source, size_t bytes, int pe, cudaStream_t stream) {
    put_on_stream("nvshmemx_putmem_on_stream", dest, source, bytes, pe, stream);
}
EXPORT void nvshmemx_getmem_on_stream(void *dest, const void *source, size_t bytes, int pe, cudaStream_t stream) {
    get_on_stream("nvshmemx_getmem_on_stream", dest, source, bytes, pe, stream);
}
EXPORT void nvshmemx_putmem_nbi_on_stream(void *dest, const void *source, size_t bytes, int pe, cudaStream_t stream) {
    put_on_stream("nvshmemx_putmem_nbi_on_stream", dest, source, bytes, pe, stream);
}
EXPORT void nvshmemx_getmem_nbi_on_stream(void *dest, const void *source, size_t bytes, int pe, cudaStream_t stream) {
    get_on_stream("nvshmemx_getmem_nbi_on_stream", dest, source, bytes, pe, stream);
}
EXPORT void nvshmemx_putmem_signal_on_stream(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                                             uint64_t signal, int sig_op, int pe, cudaStream_t stream) {
    put_signal_on_stream("nvshmemx_putmem_signal_on_stream", dest, source, bytes, sig_addr, signal, sig_op, pe, stream);
}
EXPORT void nvshmemx_putmem_signal_nbi_on_stream(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                                                 uint64_t signal, int sig_op, int pe, cudaStream_t stream) {
    put_signal_on_stream("nvshmemx_putmem_signal_nbi_on_stream", dest, source, bytes, sig_addr, signal, sig_op, pe,
                         stream);
}

#define DEFINE(NAME, TYPE)                                                                                             \
    EXPORT void nvshmemx_##NAME##_p_on_stream(TYPE *dest, const TYPE value, int pe, cudaStream_t stream) {             \
        put_on_stream("nvshmemx_" #NAME "_p_on_stream", dest, &value, sizeof value, pe, stream);                       \
    }                                                                                                                  \
    EXPORT void nvshmemx_##NAME##_put_on_stream(TYPE *dest, const TYPE *source, size_t nelems, int pe,                 \
                                                cudaStream_t stream) {                                                 \
        put_on_stream("nvshmemx_" #NAME "_put_on_stream", dest, source, nelems * sizeof(TYPE), pe, stream);            \
    }                                                                                                                  \
    EXPORT void nvshmemx_##NAME##_get_on_stream(TYPE *dest, const TYPE *source, size_t nelems, int pe,                 \
                                                cudaStream_t stream) {                                                 \
        get_on_stream("nvshmemx_" #NAME "_get_on_stream", dest, source, nelems * sizeof(TYPE), pe, stream);            \
    }                                                                                                                  \
    EXPORT void nvshmemx_##NAME##_put_nbi_on_stream(TYPE *dest, const TYPE *source, size_t nelems, int pe,             \
                                                    cudaStream_t stream) {                                             \
        put_on_stream("nvshmemx_" #NAME "_put_nbi_on_stream", dest, source, nelems * sizeof(TYPE), pe, stream);        \
    }                                                                                                                  \
    EXPORT void nvshmemx_##NAME##_get_nbi_on_stream(TYPE *dest, const TYPE *source, size_t nelems, int pe,             \
                                                    cudaStream_t stream) {                                             \
        get_on_stream("nvshmemx_" #NAME "_get_nbi_on_stream", dest, source, nelems * sizeof(TYPE), pe, stream);        \
    }                                                                                                                  \
    EXPORT void nvshmemx_##NAME##_put_signal_on_stream(TYPE *dest, const TYPE *source, size_t nelems,                  \
                                                       uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,        \
                                                       cudaStream_t stream) {                                          \
        put_signal_on_stream("nvshmemx_" #NAME "_put_signal_on_stream", dest, source, nelems * sizeof(TYPE), sig_addr, \
                             signal, sig_op, pe, stream);                                                              \
    }                                                                                                                  \
    EXPORT void nvshmemx_##NAME##_put_signal_nbi_on_stream(TYPE *dest, const TYPE *source, size_t nelems,              \
                                                           uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,    \
                                                           cudaStream_t stream) {                                      \
        put_signal_on_stream("nvshmemx_" #NAME "_put_signal_nbi_on_stream", dest, source, nelems * sizeof(TYPE),       \
                             sig_addr, signal, sig_op, pe, stream);                                                    \
    }
INTARSIA_NVSHMEM_HOST_TYPES(DEFINE)
#undef DEFINE

/* -- signals ------------------------------------------------------------------------------------------------------- */

EXPORT void nvshmemx_signal_op_on_stream(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, cudaStream_t handle) {
    its_stream stream;
    its_sim_backend *sim = on_stream("nvshmemx_signal_op_on_stream", handle, &stream);
    if (sim) its_simhost_done(signal_op(sim, "nvshmemx_signal_op_on_stream", sig_addr, signal, sig_op, pe, stream));
}

static void wait_on_stream(const char *call, const void *at, int cmp, uint64_t value, size_t width, bool is_signed,
                           cudaStream_t handle) {
    its_stream stream;
    its_sim_backend *sim = on_stream(call, handle, &stream);
    if (sim)
        its_simhost_done(its_sim_wait_signal_on_stream(sim, (uint64_t)(uintptr_t)at, (its_compare)cmp, value,
                                                       (uint32_t)width, is_signed, stream));
}

EXPORT void nvshmemx_signal_wait_until_on_stream(uint64_t *sig_addr, int cmp, uint64_t cmp_value, cudaStream_t stream) {
    wait_on_stream("nvshmemx_signal_wait_until_on_stream", sig_addr, cmp, cmp_value, sizeof cmp_value, false, stream);
}

/* `status` is read when the call is made. */
#define DEFINE(NAME, TYPE)                                                                                          \
    EXPORT void nvshmemx_##NAME##_wait_until_on_stream(TYPE *ivar, int cmp, TYPE cmp_value, cudaStream_t stream) {  \
        wait_on_stream("nvshmemx_" #NAME "_wait_until_on_stream", ivar, cmp, (uint64_t)cmp_value, sizeof cmp_value, \
                       (TYPE)-1 < (TYPE)1, stream);                                                                 \
    }                                                                                                               \
    EXPORT void nvshmemx_##NAME##_wait_until_all_on_stream(TYPE *ivars, size_t nelems, const int *status, int cmp,  \
                                                           TYPE cmp_value, cudaStream_t stream) {                   \
        for (size_t i = 0; i < nelems; i++)                                                                         \
            if (!status || status[i] == 0)                                                                          \
                wait_on_stream("nvshmemx_" #NAME "_wait_until_all_on_stream", ivars + i, cmp, (uint64_t)cmp_value,  \
                               sizeof cmp_value, (TYPE)-1 < (TYPE)1, stream);                                       \
    }
INTARSIA_NVSHMEM_HOST_WAIT_TYPES(DEFINE)
