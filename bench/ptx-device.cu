#include <intarsia/nvshmem.h>

// Waits until the signal has come to `epoch`; then all threads of the CTA may read what it stands for.
extern "C" __device__ void wait_chunk(uint64_t *signals, int index, uint64_t epoch) {
    if (threadIdx.x == 0) nvshmem_signal_wait_until(signals + index, NVSHMEM_CMP_GE, epoch);
    __syncthreads();
}
