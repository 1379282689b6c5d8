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

// Once around the ring, with the other kind of wait, and tests: PE 0 begins with 1, everybody adds 1.
extern "C" __device__ void pass_on(int *word) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    if (threadIdx.x != 0) return;
    if (me > 0) nvshmem_int_wait_until(word, NVSHMEM_CMP_NE, 0);
    nvshmem_int_p(word, me > 0 ? *word + 1 : 1, (me + 1) % n);
    while (me == 0 && !nvshmem_int_test(word, NVSHMEM_CMP_EQ, n)) {}
}
