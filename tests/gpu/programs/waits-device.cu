#include <intarsia/nvshmem.h>

extern "C" __device__ void by_hand(volatile int *flag, int value) {
    if (threadIdx.x == 0)
        while (*flag != value) {
        }
    __syncthreads();
}

extern "C" __device__ void by_nvshmem(uint64_t *flag, uint64_t value) {
    if (threadIdx.x == 0) nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, value);
    __syncthreads();
}
