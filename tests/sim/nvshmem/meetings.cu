/*
 * Kernels for tests/sim/test_nvshmem.c: barriers that the host takes part in, and calls that make no sense. One block of 64
 * threads on every PE.
 */
#include <intarsia/nvshmem.h>

/* The device meets the host: a barrier that the other PEs enter from their host threads or streams. */
extern "C" __global__ void meet_once(char *heap, uint64_t *signals, unsigned *errors) {
    nvshmemx_barrier_all_block();
}

/* A team that the host made. */
extern "C" __global__ void meet_team(int team, int me, int size, unsigned *errors) {
    if (team < 0) return;
    if (nvshmem_team_my_pe(team) != me || nvshmem_team_n_pes(team) != size) *errors = 1;
    for (int i = 0; i < 10; i++) nvshmemx_barrier_block(team);
}

/* -- mistakes: each must stop the kernel with a sentence that says what is wrong -------------------------------------- */

extern "C" __global__ void wrong_address(char *heap, uint64_t *signals, unsigned *errors) {
    if (threadIdx.x == 33) nvshmem_int_p((int *)errors, 1, nvshmem_n_pes() - 1);
}
extern "C" __global__ void wrong_pe(char *heap, uint64_t *signals, unsigned *errors) {
    nvshmemx_putmem_nbi_block(heap, heap, 64, nvshmem_n_pes());
}
extern "C" __global__ void wrong_compare(char *heap, uint64_t *signals, unsigned *errors) {
    if (threadIdx.x == 0) nvshmem_long_wait_until((long *)heap, 17, 0);
}
extern "C" __global__ void wrong_signal(char *heap, uint64_t *signals, unsigned *errors) {
    if (threadIdx.x == 0) nvshmemx_signal_op(signals, 1, 3, 0);
}
extern "C" __global__ void wrong_team(char *heap, uint64_t *signals, unsigned *errors) {
    nvshmemx_team_sync_warp(30);
}
extern "C" __global__ void wrong_barrier(char *heap, uint64_t *signals, unsigned *errors) {
    if (threadIdx.x < 2) nvshmem_barrier_all();
}
extern "C" __global__ void beyond_block(char *heap, uint64_t *signals, unsigned *errors) {
    if (threadIdx.x == 0) nvshmem_put64_nbi(heap + 4096 - 8, heap, 2, 0);
}
