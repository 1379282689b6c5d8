/*
 * The all-gather half: workspace, signals, and the producer that pushes this PE's shard of A to every other PE.
 *
 * The workspace is double-buffered by the parity of the epoch, and signals only grow, so nothing is ever reset and no
 * barrier is needed between iterations: a PE pushes epoch e after its own GEMM of epoch e-1, which has waited for every
 * peer's push of e-1, which came after that peer's GEMM of e-2, the last reader of the buffer that is written now.
 *
 * A peer whose memory this GPU reaches gets copies by the copy engine, which takes no multiprocessor from the GEMM.
 * Each copy is followed by its signal in the same stream. Any other peer gets NVSHMEM's put with signal.
 */
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { MOST_LANES = 4, N_VOTES = 16 };

static struct {
    char *workspace;   /* 2 buffers of n_pes shards */
    uint64_t *signals; /* n_pes rows of most_chunks */
    int64_t *votes;    /* n_pes rows of N_VOTES */
    size_t shard_bytes;
    int most_chunks;
    cudaStream_t lanes[MOST_LANES];
    cudaEvent_t may_push, pushed[MOST_LANES];
    cudaEvent_t *times; /* for the timeline: the beginning, then two per copy */
    int n_times, most_times;
} ag;

/*
 * Streams of the highest priority. Streams of one priority may share a queue of the hardware, and then a copy behind a
 * GEMM that waits would wait as well.
 */
static int open_lanes(void) {
    int lowest, highest;
    if (cudaDeviceGetStreamPriorityRange(&lowest, &highest) != cudaSuccess) return -1;
    if (cudaEventCreateWithFlags(&ag.may_push, cudaEventDisableTiming) != cudaSuccess) return -1;
    for (int i = 0; i < MOST_LANES; i++) {
        if (cudaStreamCreateWithPriority(&ag.lanes[i], cudaStreamNonBlocking, highest) != cudaSuccess) return -1;
        if (cudaEventCreateWithFlags(&ag.pushed[i], cudaEventDisableTiming) != cudaSuccess) return -1;
    }
    return 0;
}

/* Collective. 0, or -1 if something could not be had. */
int ag_open(size_t shard_bytes, int most_chunks) {
    size_t n = (size_t)nvshmem_n_pes();
    ag.shard_bytes = shard_bytes;
    ag.most_chunks = most_chunks;
    ag.workspace = nvshmem_malloc(2 * n * shard_bytes);
    ag.signals = nvshmem_calloc(n * (size_t)most_chunks, sizeof *ag.signals);
    ag.votes = nvshmem_calloc(n * N_VOTES, sizeof *ag.votes);
    if (ag.workspace == NULL || ag.signals == NULL || ag.votes == NULL) return -1;
    if (open_lanes()) return -1;
    nvshmem_barrier_all(); /* nobody signals before everybody's signals are zero */
    return 0;
}

/* Whether this GPU reaches the memory of all PEs by loads and stores. */
int ag_all_near(void) {
    for (int pe = 0; pe < nvshmem_n_pes(); pe++)
        if (nvshmem_ptr(ag.signals, pe) == NULL) return 0;
    return 1;
}

/* Where the shards of `epoch` arrive. */
void *ag_workspace(uint64_t epoch) {
    return ag.workspace + (epoch % 2) * (size_t)nvshmem_n_pes() * ag.shard_bytes;
}

uint64_t *ag_signals(void) {
    return ag.signals;
}

void *ag_lane(int lane) {
    return ag.lanes[lane];
}

/* -- signals and streams ------------------------------------------------------------------------------------------- */

#ifdef INTARSIA_SIMULATOR
static int set_signal(uint64_t *signal, uint64_t *at_peer, uint64_t epoch, int peer, cudaStream_t lane) {
    (void)at_peer;
    nvshmemx_signal_op_on_stream(signal, epoch, NVSHMEM_SIGNAL_SET, peer, lane);
    return 0;
}

static int wait_signal(uint64_t *signal, uint64_t epoch, cudaStream_t stream) {
    nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_GE, epoch, stream);
    return 0;
}
#else
/*
 * The stream itself writes a signal into the peer's memory, or waits for one. No kernel is launched for it: a kernel
 * would wait for a multiprocessor, and a persistent GEMM that waits for this very signal gives none away.
 */
typedef int (*stream_operation)(cudaStream_t, unsigned long long address, uint64_t value, unsigned flags);

static stream_operation driver_function(const char *name) {
    enum cudaDriverEntryPointQueryResult found;
    stream_operation function = NULL;
    if (cudaGetDriverEntryPointByVersion(name, (void **)&function, 12000, cudaEnableDefault, &found) != cudaSuccess)
        return NULL;
    return found == cudaDriverEntryPointSuccess ? function : NULL;
}

static int set_signal(uint64_t *signal, uint64_t *at_peer, uint64_t epoch, int peer, cudaStream_t lane) {
    static stream_operation write_value;
    (void)signal, (void)peer;
    if (write_value == NULL) write_value = driver_function("cuStreamWriteValue64");
    return write_value && write_value(lane, (uintptr_t)at_peer, epoch, 0) == 0 ? 0 : -1;
}

static int wait_signal(uint64_t *signal, uint64_t epoch, cudaStream_t stream) {
    static stream_operation wait_value;
    enum { UNTIL_AT_LEAST = 0 };
    if (wait_value == NULL) wait_value = driver_function("cuStreamWaitValue64");
    return wait_value && wait_value(stream, (uintptr_t)signal, epoch, UNTIL_AT_LEAST) == 0 ? 0 : -1;
}
#endif

/* -- pushing ------------------------------------------------------------------------------------------------------- */

/* What happens on the lanes from now on comes after what `stream` has been given so far. */
int ag_fork(int lanes, cudaStream_t stream) {
    if (cudaEventRecord(ag.may_push, stream) != cudaSuccess) return -1;
    for (int i = 0; i < lanes; i++)
        if (cudaStreamWaitEvent(ag.lanes[i], ag.may_push, 0) != cudaSuccess) return -1;
    return 0;
}

/* What `stream` is given from now on comes after what the lanes have been given: the shard may be overwritten. */
int ag_join(int lanes, cudaStream_t stream) {
    for (int i = 0; i < lanes; i++) {
        if (cudaEventRecord(ag.pushed[i], ag.lanes[i]) != cudaSuccess) return -1;
        if (cudaStreamWaitEvent(stream, ag.pushed[i], 0) != cudaSuccess) return -1;
    }
    return 0;
}

static int note_time(cudaStream_t stream) {
    if (ag.n_times == ag.most_times) return 0;
    return cudaEventRecord(ag.times[ag.n_times++], stream) == cudaSuccess ? 0 : -1;
}

static int push(char *to, const char *from, size_t size, uint64_t *signal, uint64_t epoch, int peer,
                cudaStream_t lane) {
    char *there = nvshmem_ptr(to, peer);
    uint64_t *signal_there = nvshmem_ptr(signal, peer);
    if (there == NULL || signal_there == NULL) {
        nvshmemx_putmem_signal_nbi_on_stream(to, from, size, signal, epoch, NVSHMEM_SIGNAL_SET, peer, lane);
        return 0;
    }
    if (cudaMemcpyAsync(there, from, size, cudaMemcpyDeviceToDevice, lane) != cudaSuccess) return -1;
    return set_signal(signal, signal_there, epoch, peer, lane);
}

/*
 * Pushes the shard to all others, chunk by chunk, each with its signal, on `lanes` streams in turn: first to the PE
 * that multiplies with this shard first.
 */
int ag_push(const char *shard, uint64_t epoch, size_t chunk_bytes, int lanes) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes(), i = 0;
    char *dest = (char *)ag_workspace(epoch) + (size_t)me * ag.shard_bytes;
    for (int step = 1; step < n; step++) {
        int peer = (me - step + n) % n;
        for (size_t at = 0, chunk = 0; at < ag.shard_bytes; at += chunk_bytes, chunk++) {
            size_t size = ag.shard_bytes - at < chunk_bytes ? ag.shard_bytes - at : chunk_bytes;
            cudaStream_t lane = ag.lanes[i++ % lanes];
            uint64_t *signal = ag.signals + (size_t)me * (size_t)ag.most_chunks + chunk;
            if (note_time(lane) || push(dest + at, shard + at, size, signal, epoch, peer, lane) || note_time(lane))
                return -1;
        }
    }
    return 0;
}

/* For gathering first: brings this PE's own shard, if one is given, to its place; `stream` waits for all others. */
int ag_wait_all(const char *shard, uint64_t epoch, int n_chunks, cudaStream_t stream) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    char *own = (char *)ag_workspace(epoch) + (size_t)me * ag.shard_bytes;
    if (shard && cudaMemcpyAsync(own, shard, ag.shard_bytes, cudaMemcpyDeviceToDevice, stream) != cudaSuccess)
        return -1;
    for (int pe = 0; pe < n; pe++)
        for (int chunk = 0; pe != me && chunk < n_chunks; chunk++)
            if (wait_signal(ag.signals + (size_t)pe * (size_t)ag.most_chunks + chunk, epoch, stream)) return -1;
    return 0;
}

/* -- agreeing ------------------------------------------------------------------------------------------------------ */

/* Writes this PE's votes into its row at the PE, by whatever way there is. 0 or -1. */
static int vote(const int64_t *values, size_t size, int pe) {
    int64_t *row = ag.votes + nvshmem_my_pe() * N_VOTES, *there = nvshmem_ptr(row, pe);
    if (there == NULL) {
        nvshmem_putmem(row, row, size, pe); /* from the own row, which is written first */
        return 0;
    }
    if (cudaMemcpy(there, values, size, cudaMemcpyHostToDevice) != cudaSuccess) return -1;
    return cudaStreamSynchronize(0) == cudaSuccess ? 0 : -1; /* a copy of few bytes may still be on its way */
}

/* Collective: each of the values becomes the largest that any PE has there. */
int ag_largest(int64_t *values, int count) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    size_t size = (size_t)count * sizeof *values;
    int64_t *all = malloc((size_t)n * N_VOTES * sizeof *all);
    int bad = all == NULL || count > N_VOTES || vote(values, size, me);
    for (int pe = 0; !bad && pe < n; pe++)
        if (pe != me) bad = vote(values, size, pe);
    nvshmem_barrier_all();
    if (!bad) bad = cudaMemcpy(all, ag.votes, (size_t)n * N_VOTES * sizeof *all, cudaMemcpyDeviceToHost) != cudaSuccess;
    for (int i = 0; !bad && i < n * N_VOTES; i++)
        if (i % N_VOTES < count && all[i] > values[i % N_VOTES]) values[i % N_VOTES] = all[i];
    free(all);
    nvshmem_barrier_all(); /* nobody's next values come before all have read these */
    return bad ? -1 : 0;
}

/* -- the timeline -------------------------------------------------------------------------------------------------- */

/* From the beginning, which is now on `stream`, the next `copies` copies are timed; none if it is 0. */
int ag_time_copies(int copies, cudaStream_t stream) {
    for (int i = 0; i < ag.most_times; i++) cudaEventDestroy(ag.times[i]);
    free(ag.times);
    ag.n_times = ag.most_times = 0;
    ag.times = copies ? calloc(2 * (size_t)copies + 1, sizeof *ag.times) : NULL;
    if (ag.times == NULL) return copies ? -1 : 0;
    for (; ag.most_times < 2 * copies + 1; ag.most_times++)
        if (cudaEventCreateWithFlags(&ag.times[ag.most_times], cudaEventDefault) != cudaSuccess) return -1;
    return note_time(stream);
}

/* Milliseconds since the beginning, begin and end of each copy; how many numbers, or -1. The copies must be done. */
int ag_copy_times(float *ms, int most) {
    int n = 0;
    for (; n < most && n + 1 < ag.n_times; n++)
        if (cudaEventElapsedTime(&ms[n], ag.times[0], ag.times[n + 1]) != cudaSuccess) return -1;
    return n;
}

/* Collective. */
int ag_close(void) {
    cudaError_t error = cudaDeviceSynchronize();
    ag_time_copies(0, 0);
    for (int i = 0; i < MOST_LANES; i++) {
        cudaStreamDestroy(ag.lanes[i]);
        cudaEventDestroy(ag.pushed[i]);
    }
    cudaEventDestroy(ag.may_push);
    nvshmem_free(ag.votes);
    nvshmem_free(ag.signals);
    nvshmem_free(ag.workspace);
    return error == cudaSuccess ? 0 : -1;
}
