/* Kernels for test_comm.c, against <intarsia/barrier.h> as a device file would use it. */
#include <intarsia/barrier.h>

typedef unsigned int u32;
typedef unsigned long long u64;

/*
 * `rounds` rounds: this PE writes the round's value into its place on every member, arrives, works, waits, and looks at
 * what the members have written for it. Two halves of the box in turn: a fast PE may be one round ahead. What is wrong is
 * counted in errors[0].
 */
extern "C" __global__ void rounds(void *comm, u64 *box, u32 *errors, u32 n_rounds, int group, int split, int work) {
    int me = intarsia_comm_rank(comm), n = intarsia_comm_size(comm);
    u32 index = blockIdx.x, width = blockDim.x;
    bool takes_part = group == INTARSIA_BLOCK || threadIdx.x < (group == INTARSIA_WARP ? 32 : 1);
    for (u32 round = 1; round <= n_rounds; round++) {
        u64 *half = box + ((u64)(round % 2) * gridDim.x + index) * n * width;
        for (int r = 0; r < n; r++) {
            u64 *there = (u64 *)intarsia_peer_ptr(comm, half, r);
            there[me * width + threadIdx.x] = round * 1000003ull + me * 1009 + threadIdx.x;
        }
        if (group != INTARSIA_BLOCK) __syncthreads();
        if (takes_part && split) {
            intarsia_barrier_arrive(comm, group, index, INTARSIA_RELEASE);
            for (volatile int i = 0; i < work; i++) {}
            intarsia_barrier_wait(comm, group, index, INTARSIA_ACQUIRE);
        } else if (takes_part) {
            intarsia_barrier_sync(comm, group, index, INTARSIA_ACQ_REL);
        }
        if (group != INTARSIA_BLOCK) __syncthreads();
        for (int r = 0; r < n; r++)
            if (half[r * width + threadIdx.x] != round * 1000003ull + r * 1009 + threadIdx.x) atomicAdd(errors, 1u);
    }
}

/* A sum around the ring by signals alone: rank r waits for its turn, adds, and passes it on. */
extern "C" __global__ void ring(void *comm, u64 *cell, u64 *total) {
    int me = intarsia_comm_rank(comm), n = intarsia_comm_size(comm), next = (me + 1) % n;
    if (me > 0) intarsia_signal_wait(comm, INTARSIA_BLOCK, 0, 1, INTARSIA_CMP_EQ);
    u64 *there = (u64 *)intarsia_peer_ptr(comm, cell, next);
    if (threadIdx.x == 0) *there = (me ? *cell : 0) + 1 + me;
    intarsia_signal(comm, INTARSIA_BLOCK, next, me == n - 1 ? 1 : 0, INTARSIA_SIGNAL_SET, 1);
    if (me == 0) {
        intarsia_signal_wait(comm, INTARSIA_BLOCK, 1, 0, INTARSIA_CMP_NE);
        if (threadIdx.x == 0) *total = *cell;
        for (int r = 0; r < n; r++) intarsia_signal(comm, INTARSIA_BLOCK, r, 2, INTARSIA_SIGNAL_ADD, 2 + r);
    }
    intarsia_signal_wait(comm, INTARSIA_BLOCK, 2, 1, INTARSIA_CMP_GT);
    intarsia_signal_wait(comm, INTARSIA_BLOCK, 2, 2 + me, INTARSIA_CMP_GE);
    intarsia_signal_wait(comm, INTARSIA_BLOCK, 2, 2 + me, INTARSIA_CMP_LE);
    intarsia_signal_wait(comm, INTARSIA_BLOCK, 2, 3 + me, INTARSIA_CMP_LT);
}

/* -- mistakes -------------------------------------------------------------------------------------------------------- */

extern "C" __global__ void sync_once(void *comm, u32 index) {
    intarsia_barrier_sync(comm, INTARSIA_BLOCK, index, INTARSIA_ACQ_REL);
}
extern "C" __global__ void two_arrives(void *comm) {
    intarsia_barrier_arrive(comm, INTARSIA_BLOCK, 1, INTARSIA_RELEASE);
    intarsia_barrier_arrive(comm, INTARSIA_BLOCK, 1, INTARSIA_RELEASE);
}
extern "C" __global__ void arrive_and_sync(void *comm) {
    intarsia_barrier_arrive(comm, INTARSIA_BLOCK, 1, INTARSIA_RELEASE);
    intarsia_barrier_sync(comm, INTARSIA_BLOCK, 1, INTARSIA_ACQ_REL);
}
extern "C" __global__ void lone_wait(void *comm) { intarsia_barrier_wait(comm, INTARSIA_BLOCK, 1, INTARSIA_ACQUIRE); }
extern "C" __global__ void bad_group(void *comm) { intarsia_barrier_wait(comm, 3, 1, INTARSIA_ACQUIRE); }
extern "C" __global__ void bad_order(void *comm) { intarsia_barrier_wait(comm, INTARSIA_BLOCK, 1, 4); }
extern "C" __global__ void bad_peer(void *comm) { intarsia_signal(comm, INTARSIA_BLOCK, 2, 0, INTARSIA_SIGNAL_SET, 1); }
extern "C" __global__ void bad_signal(void *comm) {
    intarsia_signal(comm, INTARSIA_BLOCK, 1, 9, INTARSIA_SIGNAL_SET, 1);
}
extern "C" __global__ void bad_signal_op(void *comm) { intarsia_signal(comm, INTARSIA_BLOCK, 1, 0, 2, 1); }
extern "C" __global__ void bad_wait_slot(void *comm) {
    intarsia_signal_wait(comm, INTARSIA_BLOCK, 3, 1, INTARSIA_CMP_GE);
}
extern "C" __global__ void lone_signal_wait(void *comm) {
    intarsia_signal_wait(comm, INTARSIA_BLOCK, 2, 5, INTARSIA_CMP_GE);
}
extern "C" __global__ void bad_compare(void *comm) { intarsia_signal_wait(comm, INTARSIA_BLOCK, 0, 1, 6); }
extern "C" __global__ void bad_pointer_peer(void *comm, u64 *cell) { *(u64 *)intarsia_peer_ptr(comm, cell, -1) = 1; }
