#include <intarsia/nvshmem.h>

extern "C" __device__ void ring(int *out, const int *in, uint64_t *flag, uint64_t round) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    nvshmemx_putmem_signal_block(out, in, 256 * sizeof(int), flag, round, NVSHMEM_SIGNAL_SET, (me + 1) % n);
}

extern "C" __device__ int wait(uint64_t *flag, uint64_t round) {
    if (threadIdx.x == 0) nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, round);
    __syncthreads();
    return 0;
}

// Not among the functions that are compiled together.
extern "C" __device__ void vote(unsigned int *ballot) {
    if (threadIdx.x == 0) nvshmem_uint_atomic_fetch_or(ballot, 1u << nvshmem_my_pe(), 0);
}
