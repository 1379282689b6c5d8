#include <intarsia/nvshmem.h>

// NVSHMEM's barriers of all PEs, by the whole block: sync_all waits for the PEs, barrier_all also for what was sent.
extern "C" __device__ void sync_all(void) { nvshmemx_sync_all_block(); }
extern "C" __device__ void barrier_all(void) { nvshmemx_barrier_all_block(); }
