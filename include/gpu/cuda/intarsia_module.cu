/*
 * Compiled into every host file in CUDA: by which module the CUDA runtime has loaded its device code, so that NVSHMEM can
 * be told of it. The kernel is never launched; it is there to be asked for.
 */
#include <cuda.h>
#include <cuda_runtime.h>

static __global__ void intarsia_here(void) {
}

extern "C" int intarsia_host_module(CUmodule *module) {
    cudaFunction_t function;
    cudaError_t error = cudaGetFuncBySymbol(&function, (const void *)intarsia_here);
    return error == cudaSuccess ? (int)cuFuncGetModule(module, function) : 1000 + (int)error;
}
