/* Symmetric memory, and a stream for each half of the pipeline, against NVSHMEM and the CUDA runtime. */
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

/* Zeros at the same symmetric address of every PE. Collective; NULL if there is no room. */
void *inbox_new(size_t bytes) {
    void *inbox = nvshmem_calloc(1, bytes);
    nvshmem_barrier_all(); /* nobody writes before everybody's is zero */
    return inbox;
}

/* Collective: nobody frees what another PE still writes. */
int inbox_free(void *inbox) {
    cudaError_t error = cudaDeviceSynchronize();
    nvshmem_barrier_all();
    nvshmem_free(inbox);
    return error == cudaSuccess ? 0 : -1;
}
