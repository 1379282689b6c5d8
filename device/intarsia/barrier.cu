/*
 * The provider "intarsia": what the linker's abstract barriers are lowered to (src/link/lower.c), and what the Python
 * package's signals and queries call.
 */
#include <intarsia/barrier.h>

extern "C" {

__device__ void intarsia_provider_arrive(const void *comm, int group, unsigned int index, int order) {
    intarsia_barrier_arrive(comm, group, index, order);
}
__device__ void intarsia_provider_wait(const void *comm, int group, unsigned int index, int order) {
    intarsia_barrier_wait(comm, group, index, order);
}
__device__ void intarsia_provider_sync(const void *comm, int group, unsigned int index, int order) {
    intarsia_barrier_sync(comm, group, index, order);
}

__device__ void intarsia_provider_signal(const void *comm, int peer, unsigned int slot, int op,
                                         unsigned long long value) {
    intarsia_signal(comm, INTARSIA_BLOCK, peer, slot, op, value);
}
__device__ void intarsia_provider_signal_wait(const void *comm, unsigned int slot, unsigned long long value, int cmp) {
    intarsia_signal_wait(comm, INTARSIA_BLOCK, slot, value, cmp);
}

__device__ int intarsia_provider_rank(const void *comm) { return intarsia_comm_rank(comm); }
__device__ int intarsia_provider_size(const void *comm) { return intarsia_comm_size(comm); }
__device__ int intarsia_provider_local_rank(const void *comm) { return intarsia_comm_local_rank(comm); }
__device__ int intarsia_provider_local_size(const void *comm) { return intarsia_comm_local_size(comm); }
__device__ void *intarsia_provider_peer_ptr(const void *comm, const void *address, int peer) {
    return intarsia_peer_ptr(comm, address, peer);
}
}
