/*
 * A front end with a host file in it: the PE is attached, and failures come back to the front end instead of ending it.
 */
#include <nvshmem.h>
#include <nvshmemx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intarsia/sim.h"
#include "intarsia/simhost.h"

#define EXPECT(condition)                                                   \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(2);                                                        \
        }                                                                   \
    } while (0)

static const char *last_message(its_context *ctx) {
    return its_diag_count(ctx) ? its_diag_get(ctx, its_diag_count(ctx) - 1)->message : "";
}

/* Adds one to the word at `to`, read through `from`: *to = *from + 1. */
static const char kernel_text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                                  ".visible .entry k(.param .u64 to, .param .u64 from) {\n"
                                  "    .reg .b64 %rd<3>;\n    .reg .b32 %r<2>;\n"
                                  "    ld.param.u64 %rd1, [to];\n    ld.param.u64 %rd2, [from];\n"
                                  "    ld.global.u32 %r1, [%rd2];\n    add.u32 %r1, %r1, 1;\n"
                                  "    st.global.u32 [%rd1], %r1;\n    ret;\n}\n";

static its_status launch(its_backend *backend, its_function *function, const void *to, const void *from) {
    uint64_t addresses[] = {(uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from};
    const void *params[] = {&addresses[0], &addresses[1]};
    its_launch what = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .params = params, .n_params = 2};
    return backend->ops->launch(backend, function, &what);
}

/* What the host file allocates the front end's kernels reach; what they do wrong its CUDA calls return. */
static void kernels(its_context *ctx, its_backend *backend, int *symmetric) {
    its_module *module;
    its_loaded *loaded;
    its_function *function;
    EXPECT(its_ptx_parse(ctx, "k.ptx", kernel_text, sizeof kernel_text - 1, &module) == ITS_OK);
    EXPECT(backend->ops->load(backend, module, &loaded) == ITS_OK);
    EXPECT(backend->ops->function(backend, loaded, "k", &function) == ITS_OK);
    its_module_free(module);
    int *device, *pinned, back = 0;
    EXPECT(cudaMalloc((void **)&device, 4) == cudaSuccess && cudaMallocHost((void **)&pinned, 4) == cudaSuccess);
    *pinned = 10;
    EXPECT(launch(backend, function, device, pinned) == ITS_OK &&
           launch(backend, function, symmetric, device) == ITS_OK);
    EXPECT(cudaMemcpy(&back, symmetric, 4, cudaMemcpyDeviceToHost) == cudaSuccess && back == 12);
    EXPECT(launch(backend, function, device + 1, symmetric) == ITS_OK);
    EXPECT(cudaStreamSynchronize(0) == cudaErrorIllegalAddress);
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress && cudaFree(device) == cudaSuccess);
    EXPECT(cudaGetLastError() == cudaErrorIllegalAddress && cudaGetLastError() == cudaErrorIllegalAddress);
    bool told = false;
    for (size_t i = 0; i < its_diag_count(ctx); i++) {
        const char *message = its_diag_get(ctx, i)->message;
        told |= strstr(message, "kernel 'k'") && strstr(message, "writes 4 bytes");
    }
    EXPECT(told);
}

int main(void) {
    its_context *ctx = its_context_new(NULL);
    its_backend *backend;
    EXPECT(its_sim_open_env(ctx, &backend) == ITS_OK);
    EXPECT(its_simhost_attach(backend) == ITS_OK && its_simhost_check() == ITS_OK);
    EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED);

    /* One memory for both sides. */
    int *block = nvshmem_malloc(64), value = 42, back = 0;
    EXPECT(block && backend->ops->copy(backend, ITS_COPY_TO_DEVICE, (uint64_t)(uintptr_t)block,
                                       (uint64_t)(uintptr_t)&value, sizeof value, 0) == ITS_OK);
    EXPECT(cudaMemcpy(&back, block, sizeof back, cudaMemcpyDeviceToHost) == cudaSuccess && back == 42);
    uint64_t address;
    EXPECT(backend->ops->alloc(backend, ITS_MEMORY_DEVICE, 4, 0, &address) == ITS_OK);
    EXPECT(cudaMemcpy((void *)(uintptr_t)address, block, 4, cudaMemcpyDefault) == cudaSuccess);
    EXPECT(cudaFree((void *)(uintptr_t)address) == cudaSuccess);

    /* A failure that no function returns is kept, the first one, with its diagnostics. */
    nvshmem_int_p(&value, 1, 0);
    EXPECT(strstr(last_message(ctx), "nvshmem_int_p to PE 0") &&
           strstr(last_message(ctx), "is not in the symmetric heap"));
    EXPECT(its_simhost_check() == ITS_ERR_USAGE && its_simhost_check() == ITS_OK);

    /* The end of NVSHMEM in the host file is not the end of the front end's PE. */
    nvshmem_init();
    nvshmem_finalize();
    nvshmem_finalize();
    EXPECT(nvshmem_my_pe() == 0 && its_simhost_check() == ITS_OK);
    kernels(ctx, backend, block);
    EXPECT(its_simhost_attach(NULL) == ITS_OK);
    backend->ops->close(backend);
    its_context_free(ctx);
    puts("ok");
    return 0;
}
