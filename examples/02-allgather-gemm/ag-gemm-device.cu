#include <intarsia/nvshmem.h>

// Waits until the signal has come to `epoch`; then all threads of the CTA may read what it stands for.
extern "C" __device__ void wait_chunk(uint64_t *signals, int index, uint64_t epoch) {
    if (threadIdx.x == 0) nvshmem_signal_wait_until(signals + index, NVSHMEM_CMP_GE, epoch);
    __syncthreads();
}

// The same for the one warp that loads, in a kernel whose warps do different things: no barrier, and no thread asks who
// it is. The signal is acquired by ordinary loads, the data is read by TMA, which is another proxy: hence the fence.
extern "C" __device__ void wait_for_loads(const uint64_t *signals, int index, uint64_t epoch) {
    uint64_t seen;
    do asm volatile("ld.acquire.sys.global.b64 %0, [%1];" : "=l"(seen) : "l"(signals + index) : "memory");
    while (seen < epoch);
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
}

// One chunk and its signal to a peer, by all threads of a CTA.
extern "C" __device__ void push_chunk(char *to, const char *from, uint64_t bytes, uint64_t *signal, uint64_t epoch,
                                      int peer) {
    nvshmemx_putmem_signal_block(to, from, bytes, signal, epoch, NVSHMEM_SIGNAL_SET, peer);
}

// The time, for the timeline.
extern "C" __device__ void stamp(uint64_t *stamps, int index) {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    stamps[index] = now;
}
