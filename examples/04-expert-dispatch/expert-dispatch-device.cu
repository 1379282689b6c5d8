#include <intarsia/nvshmem.h>

// A signal holds the iteration and how many rows came: iteration << 32 | rows. Both only matter together, so they are
// one word, and whoever has waited for it knows how much there is to do.

/*
 * By the CTA of `expert`: sends each of this PE's tokens that chose it, one row per warp, and then says how many.
 * slots[choice] is where the row went. The inbox is [experts of a PE][PEs][tokens][width] on each PE.
 */
extern "C" __device__ void send_rows(const float *x, const int *chosen, int *slots, float *inbox, uint64_t *sent,
                                     int tokens, int top, int width, int per_pe, int expert, int iteration) {
    __shared__ int count;
    int me = nvshmem_my_pe(), pe = expert / per_pe, from = expert % per_pe * nvshmem_n_pes() + me;
    int warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    for (int i = warp; i < tokens * top; i += n_warps) {
        if (chosen[i] != expert) continue; // the same for all lanes
        int slot = 0;
        if (threadIdx.x % 32 == 0) slots[i] = slot = atomicAdd(&count, 1);
        slot = __shfl_sync(~0u, slot, 0);
        float *to = inbox + ((size_t)from * tokens + slot) * width;
        nvshmemx_putmem_warp(to, x + (size_t)(i / top) * width, width * sizeof(float), pe);
    }
    nvshmem_fence(); // each thread's rows come before what it does behind this
    __syncthreads();
    if (threadIdx.x == 0) {
        nvshmem_fence();
        nvshmemx_signal_op(sent + from, (uint64_t)iteration << 32 | (uint64_t)count, NVSHMEM_SIGNAL_SET, pe);
    }
}

// Waits for the rows of one PE for one expert; how many there are. All threads may read them.
extern "C" __device__ int await_rows(uint64_t *sent, int from, int iteration) {
    __shared__ uint64_t word;
    if (threadIdx.x == 0) {
        nvshmem_signal_wait_until(sent + from, NVSHMEM_CMP_GE, (uint64_t)iteration << 32);
        word = *(volatile uint64_t *)(sent + from);
    }
    __syncthreads();
    return (int)(uint32_t)word;
}

// Gives `rows` rows of `expert` back to the PE that they came from, also if there is none.
extern "C" __device__ void return_rows(float *results, const float *rows, int n, uint64_t *back, int expert, int tokens,
                                       int width, int pe, int iteration) {
    float *to = results + (size_t)expert * tokens * width;
    nvshmemx_putmem_signal_block(to, rows, (size_t)n * width * sizeof(float), back + expert, iteration,
                                 NVSHMEM_SIGNAL_SET, pe);
}

// Waits until all experts have given back what they got.
extern "C" __device__ void await_results(uint64_t *back, int n_experts, int iteration) {
    for (int i = threadIdx.x; i < n_experts; i += blockDim.x)
        nvshmem_signal_wait_until(back + i, NVSHMEM_CMP_GE, iteration);
    __syncthreads();
}
