/* Symmetric memory for the shift, written against NVSHMEM and the CUDA runtime. */
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

/* One int on every PE, at the same symmetric address. Collective. */
int *inbox_new(void) {
    return nvshmem_calloc(1, sizeof(int));
}

/* What has arrived, once every PE's kernels are done. Collective. */
int inbox_read(const int *inbox) {
    int received = -1;
    nvshmemx_barrier_all_on_stream(0);
    cudaMemcpyAsync(&received, inbox, sizeof received, cudaMemcpyDeviceToHost, 0);
    if (cudaStreamSynchronize(0) != cudaSuccess) return -1;
    return received;
}

/* Collective. */
void inbox_free(int *inbox) {
    nvshmem_free(inbox);
}
