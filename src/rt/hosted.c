/*
 * Memory of the host that kernels write to: what is said there can still be read when a kernel has failed, and nothing
 * on the GPU can be any more.
 */

#include "comm/explain.h"
#include "rt/rt.h"

enum { HOST_PORTABLE = 1, HOST_MAPPED = 2 };

its_status its_gpu_host_alloc(its_gpu *gpu, size_t size, uint64_t *address) {
    its_hosted *item = its_block_alloc(gpu->base.ctx, sizeof *item);
    if (!item) return its_fail(gpu->base.ctx, ITS_ERR_NOMEM, NULL, "no memory for an allocation");
    void *host = NULL;
    int error = gpu->cuda.cuMemHostAlloc(&host, size, HOST_PORTABLE | HOST_MAPPED);
    if (!error) error = gpu->cuda.cuMemHostGetDevicePointer_v2(address, host, 0);
    if (error || *address != (uint64_t)(uintptr_t)host) {
        its_free(gpu->base.ctx, item);
        if (host) gpu->cuda.cuMemFreeHost(host);
        if (error) return its_gpu_failed(gpu, error, "allocate %zu bytes of host memory", size);
        return its_fail(gpu->base.ctx, ITS_ERR_ABSENT, NULL, "PE %u has no addresses that are the same on host and GPU",
                        gpu->options.pe);
    }
    *item = (its_hosted){gpu->hosted, *address, size};
    gpu->hosted = item;
    return ITS_OK;
}

its_status its_gpu_host_free(its_gpu *gpu, uint64_t address) {
    for (its_hosted **at = &gpu->hosted; *at; at = &(*at)->next) {
        its_hosted *item = *at;
        if (item->address != address) continue;
        *at = item->next;
        its_free(gpu->base.ctx, item);
        int error = gpu->cuda.cuMemFreeHost((void *)(uintptr_t)address);
        return error ? its_gpu_failed(gpu, error, "free host memory at 0x%llx", (unsigned long long)address) : ITS_OK;
    }
    return its_fail(gpu->base.ctx, ITS_ERR_USAGE, NULL, "0x%llx is no host memory of PE %u",
                    (unsigned long long)address, gpu->options.pe);
}

bool its_gpu_complained(its_gpu *gpu) {
    for (const its_hosted *item = gpu->hosted; item; item = item->next)
        if (its_comm_explain(gpu->base.ctx, (const void *)(uintptr_t)item->address, item->size)) return true;
    return false;
}
