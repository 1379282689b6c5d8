/* The backend "cuda": one PE on one GPU, in the GPU's primary context, which torch and Triton use as well. */
#include <string.h>

#include "rt/rt.h"

enum { /* CUdevice_attribute */
       MAX_THREADS = 1,
       WARP_SIZE = 10,
       MAX_REGS = 12,
       MULTIPROCESSORS = 16,
       COMPUTE_MAJOR = 75,
       COMPUTE_MINOR = 76,
       MAX_SHARED_OPTIN = 97,
};

/* -- one PE -------------------------------------------------------------------------------------------------------- */

static void identity(its_backend *backend, uint32_t *pe, uint32_t *n_pes) {
    const its_gpu *gpu = its_gpu_of(backend);
    *pe = gpu->options.pe;
    *n_pes = gpu->options.n_pes;
}

static uint32_t attribute(its_gpu *gpu, int which) {
    int value = 0;
    return gpu->cuda.cuDeviceGetAttribute(&value, which, gpu->device) == 0 && value > 0 ? (uint32_t)value : 0;
}

static its_status device_info(its_backend *backend, its_device_info *info) {
    its_gpu *gpu = its_gpu_of(backend);
    *info = (its_device_info){
        .compute_major = attribute(gpu, COMPUTE_MAJOR),
        .compute_minor = attribute(gpu, COMPUTE_MINOR),
        .multiprocessors = attribute(gpu, MULTIPROCESSORS),
        .warp_size = attribute(gpu, WARP_SIZE),
        .max_shared = attribute(gpu, MAX_SHARED_OPTIN),
        .max_regs = attribute(gpu, MAX_REGS),
        .max_threads = attribute(gpu, MAX_THREADS),
    };
    int error = gpu->cuda.cuDeviceGetName(info->name, sizeof info->name, gpu->device);
    return error ? its_gpu_failed(gpu, error, "tell the name of GPU %d", gpu->device) : ITS_OK;
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

static its_status alloc(its_backend *backend, its_memory kind, size_t size, size_t align, uint64_t *address) {
    its_gpu *gpu = its_gpu_of(backend);
    its_status status = its_gpu_enter(gpu);
    if (status != ITS_OK) return status;
    if (kind == ITS_MEMORY_SYMMETRIC) return its_gpu_symmetric_alloc(gpu, size, align, address);
    if (kind == ITS_MEMORY_HOST) return its_gpu_host_alloc(gpu, size, address);
    if (align > 256)
        return its_fail(backend->ctx, ITS_ERR_USAGE, NULL, "device memory is aligned to 256 bytes at most");
    int error = gpu->cuda.cuMemAlloc_v2(address, size);
    return error ? its_gpu_failed(gpu, error, "allocate %zu bytes of device memory", size) : ITS_OK;
}

static its_status free_memory(its_backend *backend, its_memory kind, uint64_t address) {
    its_gpu *gpu = its_gpu_of(backend);
    its_status status = its_gpu_enter(gpu);
    if (status != ITS_OK) return status;
    if (kind == ITS_MEMORY_SYMMETRIC) return its_gpu_symmetric_free(gpu, address);
    if (kind == ITS_MEMORY_HOST) return its_gpu_host_free(gpu, address);
    int error = gpu->cuda.cuMemFree_v2(address);
    return error ? its_gpu_failed(gpu, error, "free device memory at 0x%llx", (unsigned long long)address) : ITS_OK;
}

static its_status peer(its_backend *backend, uint64_t address, uint32_t pe, uint64_t *mapped) {
    its_gpu *gpu = its_gpu_of(backend);
    if (pe >= gpu->options.n_pes)
        return its_fail(backend->ctx, ITS_ERR_INPUT, NULL, "there is no PE %u; there are %u", pe, gpu->options.n_pes);
    its_status status = its_gpu_need_world(gpu);
    if (status != ITS_OK) return status;
    void *there = gpu->nvshmem.nvshmem_ptr((const void *)(uintptr_t)address, (int)pe);
    if (!there)
        return its_fail(backend->ctx, ITS_ERR_INPUT, "only memory of the symmetric heap has peers; see nvshmem_ptr",
                        "0x%llx is not symmetric, or PE %u is not reached by loads and stores",
                        (unsigned long long)address, pe);
    *mapped = (uint64_t)(uintptr_t)there;
    return ITS_OK;
}

static its_status copy(its_backend *backend, its_copy_kind kind, uint64_t device, uint64_t other, size_t size,
                       its_stream stream) {
    its_gpu *gpu = its_gpu_of(backend);
    its_status status = its_gpu_enter(gpu);
    if (status != ITS_OK) return status;
    void *on = (void *)(uintptr_t)stream, *host = (void *)(uintptr_t)other;
    int error = kind == ITS_COPY_TO_DEVICE     ? gpu->cuda.cuMemcpyHtoDAsync_v2(device, host, size, on)
                : kind == ITS_COPY_FROM_DEVICE ? gpu->cuda.cuMemcpyDtoHAsync_v2(host, device, size, on)
                                               : gpu->cuda.cuMemcpyDtoDAsync_v2(device, other, size, on);
    if (!error && kind != ITS_COPY_DEVICE) error = gpu->cuda.cuStreamSynchronize(on); /* host memory may be reused */
    return error ? its_gpu_failed(gpu, error, "copy %zu bytes", size) : ITS_OK;
}

static its_status fill(its_backend *backend, uint64_t address, uint8_t value, size_t size, its_stream stream) {
    its_gpu *gpu = its_gpu_of(backend);
    its_status status = its_gpu_enter(gpu);
    if (status != ITS_OK) return status;
    int error = gpu->cuda.cuMemsetD8Async(address, value, size, (void *)(uintptr_t)stream);
    return error ? its_gpu_failed(gpu, error, "fill %zu bytes", size) : ITS_OK;
}

/* -- streams ------------------------------------------------------------------------------------------------------- */

static its_status stream_new(its_backend *backend, its_stream *stream) {
    its_gpu *gpu = its_gpu_of(backend);
    its_status status = its_gpu_enter(gpu);
    if (status != ITS_OK) return status;
    void *made = NULL;
    int error = gpu->cuda.cuStreamCreate(&made, 1 /* not waiting for the default stream */);
    *stream = (its_stream)(uintptr_t)made;
    return error ? its_gpu_failed(gpu, error, "make a stream") : ITS_OK;
}

static its_status stream_free(its_backend *backend, its_stream stream) {
    its_gpu *gpu = its_gpu_of(backend);
    int error = gpu->cuda.cuStreamDestroy_v2((void *)(uintptr_t)stream);
    return error ? its_gpu_failed(gpu, error, "free a stream") : ITS_OK;
}

static its_status stream_wait(its_backend *backend, its_stream stream) {
    its_gpu *gpu = its_gpu_of(backend);
    its_status status = its_gpu_enter(gpu);
    if (status != ITS_OK) return status;
    int error = gpu->cuda.cuStreamSynchronize((void *)(uintptr_t)stream);
    return error ? its_gpu_failed(gpu, error, "wait for a stream") : ITS_OK;
}

static its_status wait_all(its_backend *backend) {
    its_gpu *gpu = its_gpu_of(backend);
    its_status status = its_gpu_enter(gpu);
    if (status != ITS_OK) return status;
    int error = gpu->cuda.cuCtxSynchronize();
    return error ? its_gpu_failed(gpu, error, "wait for its kernels") : ITS_OK;
}

static its_status barrier(its_backend *backend) {
    its_gpu *gpu = its_gpu_of(backend);
    its_status status = wait_all(backend);
    if (status != ITS_OK || gpu->world == ITS_WORLD_NONE) return status; /* one PE, which nobody else waits for */
    gpu->nvshmem.nvshmem_barrier_all();
    return ITS_OK;
}

/* -- beginning and end --------------------------------------------------------------------------------------------- */

void its_cuda_abandon(its_backend *backend) {
    its_gpu_of(backend)->abandoned = true;
}

static void close_backend(its_backend *backend) {
    its_gpu *gpu = its_gpu_of(backend);
    while (gpu->adopted) its_cuda_forget(backend, gpu->adopted->handle);
    while (gpu->loaded) its_gpu_unload(backend, gpu->loaded);
    its_gpu_leave_world(gpu);
    for (its_symmetric *item = gpu->symmetric, *next; item; item = next)
        next = item->next, its_free(backend->ctx, item);
    its_gpu_forget_waits(gpu, NULL);
    if (gpu->wait_record) gpu->cuda.cuMemFreeHost(gpu->wait_record);
    while (gpu->hosted) its_gpu_host_free(gpu, gpu->hosted->address);
    if (gpu->context) gpu->cuda.cuDevicePrimaryCtxRelease_v2(gpu->device);
    its_library_close(&gpu->cuda_library);
    its_arena_free(&gpu->arena);
    its_free(backend->ctx, gpu);
}

static const its_backend_ops ops = {
    .name = "cuda",
    .close = close_backend,
    .identity = identity,
    .device_info = device_info,
    .alloc = alloc,
    .free = free_memory,
    .peer = peer,
    .copy = copy,
    .fill = fill,
    .load = its_gpu_load,
    .unload = its_gpu_unload,
    .function = its_gpu_function,
    .function_info = its_gpu_function_info,
    .variable = its_gpu_variable,
    .launch = its_gpu_launch,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_wait = stream_wait,
    .wait = wait_all,
    .barrier = barrier,
};

static its_status open_device(its_gpu *gpu) {
    int count = 0, error = gpu->cuda.cuDeviceGetCount(&count);
    if (error || gpu->options.device < 0 || gpu->options.device >= count)
        return its_fail(gpu->base.ctx, ITS_ERR_ABSENT, "CUDA_VISIBLE_DEVICES says which GPUs a process sees",
                        "PE %u is to run on GPU %d, and there are %d", gpu->options.pe, gpu->options.device, count);
    error = gpu->cuda.cuDeviceGet(&gpu->device, gpu->options.device);
    if (!error) error = gpu->cuda.cuDevicePrimaryCtxRetain(&gpu->context, gpu->device);
    if (error) return its_gpu_failed(gpu, error, "open GPU %d", gpu->options.device);
    return its_gpu_enter(gpu);
}

its_status its_cuda_open(its_context *ctx, const its_cuda_options *options, its_backend **backend) {
    *backend = NULL;
    if (options->n_pes == 0 || options->pe >= options->n_pes)
        return its_fail(ctx, ITS_ERR_USAGE, NULL, "there is no PE %u of %u", options->pe, options->n_pes);
    if (options->n_pes > 1 && !options->unique_id)
        return its_fail(ctx, ITS_ERR_USAGE, NULL, "several PEs need a unique id to find each other by");
    its_gpu *gpu = its_block_alloc(ctx, sizeof *gpu);
    if (!gpu) return its_fail(ctx, ITS_ERR_NOMEM, NULL, "no memory for a backend");
    *gpu = (its_gpu){.base = {.ops = &ops, .ctx = ctx}, .options = *options};
    its_arena_init(&gpu->arena, ctx);
    if (options->unique_id) memcpy(gpu->unique_id, options->unique_id, sizeof gpu->unique_id);
    its_status status = its_gpu_load_driver(ctx, &gpu->cuda, &gpu->cuda_library);
    if (status != ITS_OK) {
        its_arena_free(&gpu->arena);
        its_free(ctx, gpu);
        return status;
    }
    status = open_device(gpu);
    if (status == ITS_OK && options->n_pes > 1) status = its_gpu_need_world(gpu);
    if (status == ITS_OK)
        *backend = &gpu->base;
    else
        gpu->abandoned = true, close_backend(&gpu->base);
    return status;
}
