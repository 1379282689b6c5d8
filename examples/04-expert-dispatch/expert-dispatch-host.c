/* Symmetric memory for rows and signals, against NVSHMEM and the CUDA runtime. */
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

/* Zeros at the same symmetric address of every PE. Collective; NULL if there is no room. */
void *memory_new(size_t bytes) {
    void *memory = nvshmem_calloc(1, bytes);
    nvshmem_barrier_all(); /* nobody writes before everybody's is zero */
    return memory;
}

/* Collective: nobody frees what another PE still writes. */
int memory_free(void *memory) {
    cudaError_t error = cudaDeviceSynchronize();
    nvshmem_barrier_all();
    nvshmem_free(memory);
    return error == cudaSuccess ? 0 : -1;
}
