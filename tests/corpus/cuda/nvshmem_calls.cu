// corpus: nvcc; sm_80 sm_90a; -std=c++17 -rdc=true
// corpus lineinfo: nvcc; sm_90a; -std=c++17 -rdc=true -lineinfo
// corpus: nvrtc; sm_80 sm_90a; -std=c++17 -rdc=true -default-device
// Device functions with NVSHMEM's own headers: the inlined fast paths and the externs of the slow ones.
#ifdef __CUDACC_RTC__ // whose std:: has no traits
#include <cuda/std/type_traits>
namespace std { using namespace cuda::std; }
#endif
#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __device__ int put_one(int *target, int value, int pe) {
    nvshmem_int_p(target, value, pe);
    return 0;
}

extern "C" __device__ int get_one(const int *source, int pe) { return nvshmem_int_g(source, pe); }

extern "C" __device__ void push_block(float *target, const float *source, size_t n, uint64_t *signal, uint64_t value, int pe) {
    nvshmemx_float_put_signal_nbi_block(target, source, n, signal, value, NVSHMEM_SIGNAL_SET, pe);
}

extern "C" __device__ void push_warp(void *target, const void *source, size_t bytes, int pe) {
    nvshmemx_putmem_warp(target, source, bytes, pe);
    nvshmem_fence();
}

extern "C" __device__ void wait_signal(uint64_t *signal, uint64_t value) {
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, value);
}

extern "C" __device__ void notify(uint64_t *signal, int pe) {
    nvshmem_quiet();
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, pe);
}

extern "C" __device__ void *peer(void *p, int pe) { return nvshmem_ptr(p, pe); }

extern "C" __device__ int count_up(int *p, int pe) { return nvshmem_int_atomic_fetch_add(p, 1, pe); }

extern "C" __global__ void ring(int *target, int *source, uint64_t *signal, int n) {
    int me = nvshmem_my_pe(), all = nvshmem_n_pes(), next = (me + 1) % all;
    if (threadIdx.x == 0) {
        put_one(target, source[0] + me, next);
        notify(signal, next);
        wait_signal(signal, 1);
    }
    __syncthreads();
    nvshmemx_int_put_block(target + 16, source, n, next);
    nvshmemx_barrier_all_block();
    source[1] = get_one(target, next) + count_up(target + 1, next);
    nvshmem_int_wait_until(target + 2, NVSHMEM_CMP_NE, 7);
    nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, target, source, n);
    nvshmem_barrier_all();
}
