#include <intarsia/nvshmem.h>

// The hand-written wait of the benchmark, as a region.
extern "C" __device__ void wait_plain(const uint64_t *ready, uint64_t value) {
    if (threadIdx.x == 0) {
        uint64_t seen;
        do asm volatile("ld.acquire.sys.global.b64 %0, [%1];" : "=l"(seen) : "l"(ready) : "memory");
        while (seen < value);
    }
    __syncthreads();
}

// The same through NVSHMEM.
extern "C" __device__ void wait_nvshmem(uint64_t *ready, uint64_t value) {
    if (threadIdx.x == 0) nvshmem_signal_wait_until(ready, NVSHMEM_CMP_GE, value);
    __syncthreads();
}

extern "C" __device__ void put(int *there, int value, int pe) {
    if (threadIdx.x == 0) nvshmem_int_p(there, value, pe);
}
