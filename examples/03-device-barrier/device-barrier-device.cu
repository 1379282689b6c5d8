#include <intarsia/barrier.h>

// Gives this CTA's part of `from` to the right neighbour, and tells everybody that it is there.
extern "C" __device__ void push_right(const void *comm, float *mailbox, const float *from, int n, int block) {
    int right = (intarsia_comm_rank(comm) + 1) % intarsia_comm_size(comm);
    float *there = (float *)intarsia_peer_ptr(comm, mailbox, right);
    int first = blockIdx.x * block, last = min(first + block, n);
    for (int i = first + threadIdx.x; i < last; i += blockDim.x) there[i] = from[i];
    intarsia_barrier_arrive(comm, INTARSIA_BLOCK, blockIdx.x, INTARSIA_RELEASE);
}

// What the left neighbour has pushed may be read behind this, by all threads of the CTA.
extern "C" __device__ void wait_left(const void *comm) {
    intarsia_barrier_wait(comm, INTARSIA_BLOCK, blockIdx.x, INTARSIA_ACQUIRE);
}
