// A host file in C++, with what CUDA's header offers only there.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdio>

extern "C" int use(int *block, cudaStream_t stream) {
    dim3 grid(4), block_size(32, 2);
    float *data;
    if (cudaMalloc(&data, 16) != cudaSuccess) return 1;
    int *pinned;
    if (cudaMallocHost(&pinned, 16) != cudaSuccess) return 2;
    *pinned = 7;
    if (cudaMemcpyAsync(data, pinned, 4, cudaMemcpyHostToDevice) != cudaSuccess) return 3;
    if (cudaMemcpyAsync(block, data, 4, cudaMemcpyDeviceToDevice, stream) != cudaSuccess) return 4;
    if (cudaStreamSynchronize(stream) != cudaSuccess) return 5;
    return cudaFree(data) == cudaSuccess && grid.y == 1 && block_size.y == 2 ? 0 : 6;
}

int main() {
    nvshmem_init();
    int *block = static_cast<int *>(nvshmem_malloc(64)), back = 0;
    int failed = use(block, nullptr);
    nvshmemx_barrier_all_on_stream(nullptr);
    cudaMemcpy(&back, block, sizeof back, cudaMemcpyDeviceToHost);
    nvshmem_free(block);
    nvshmem_finalize();
    if (!failed && back == 7) std::puts("ok");
    return failed;
}
