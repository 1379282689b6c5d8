/*
 * The all-gather half: workspace, signals, and the producer that pushes this PE's shard of A to every other PE.
 *
 * The workspace is double-buffered by the parity of the epoch, and signals only grow, so nothing is ever reset and no
 * barrier is needed between iterations: a PE pushes epoch e after its own GEMM of epoch e-1, which has waited for every
 * peer's push of e-1, which came after that peer's GEMM of e-2, the last reader of the buffer that is written now.
 */
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stddef.h>
#include <stdint.h>

static char *workspace;   /* 2 buffers of n_pes shards */
static uint64_t *signals; /* n_pes rows of n_chunks */
static size_t shard_bytes, chunk_bytes;
static int n_chunks;
static cudaStream_t copies;
static cudaEvent_t gemm_done;

/* Collective. 0, or -1 if something could not be had. */
int ag_open(size_t bytes_of_shard, size_t bytes_of_chunk) {
    shard_bytes = bytes_of_shard;
    chunk_bytes = bytes_of_chunk;
    n_chunks = (int)((shard_bytes + chunk_bytes - 1) / chunk_bytes);
    size_t n = (size_t)nvshmem_n_pes();
    workspace = nvshmem_malloc(2 * n * shard_bytes);
    signals = nvshmem_calloc(n * (size_t)n_chunks, sizeof *signals);
    if (workspace == NULL || signals == NULL) return -1;
    if (cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking) != cudaSuccess) return -1;
    if (cudaEventCreateWithFlags(&gemm_done, cudaEventDisableTiming) != cudaSuccess) return -1;
    nvshmem_barrier_all(); /* nobody signals before everybody's signals are zero */
    return 0;
}

/* Where the shards of `epoch` arrive. */
void *ag_workspace(uint64_t epoch) {
    return workspace + (epoch % 2) * (size_t)nvshmem_n_pes() * shard_bytes;
}

uint64_t *ag_signals(void) {
    return signals;
}

/* Pushes the shard to all others, chunk by chunk, each chunk with its signal, beside what runs on the default stream.
 */
int ag_push(const char *shard, uint64_t epoch) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    char *dest = (char *)ag_workspace(epoch) + (size_t)me * shard_bytes;
    if (cudaEventRecord(gemm_done, 0) != cudaSuccess) return -1;
    if (cudaStreamWaitEvent(copies, gemm_done, 0) != cudaSuccess) return -1;
    for (int step = 1; step < n; step++) {
        int peer = (me - step + n) % n; /* first the PE that multiplies with this shard first */
        for (int chunk = 0; chunk < n_chunks; chunk++) {
            size_t at = (size_t)chunk * chunk_bytes;
            size_t size = shard_bytes - at < chunk_bytes ? shard_bytes - at : chunk_bytes;
            nvshmemx_putmem_signal_nbi_on_stream(dest + at, shard + at, size, signals + me * n_chunks + chunk, epoch,
                                                 NVSHMEM_SIGNAL_SET, peer, copies);
        }
    }
    return 0;
}

/* Collective. */
int ag_close(void) {
    cudaError_t error = cudaDeviceSynchronize();
    cudaStreamDestroy(copies);
    cudaEventDestroy(gemm_done);
    nvshmem_free(signals);
    nvshmem_free(workspace);
    return error == cudaSuccess ? 0 : -1;
}
