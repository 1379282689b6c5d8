/* The CUDA driver: loading it, and what its errors mean. */
#include <stdio.h>

#include "rt/rt.h"

typedef struct driver_job {
    its_context *ctx;
    its_cuda *cuda;
    its_library *library;
    its_arena arena;
} driver_job;

static const char *error_text(const its_cuda *cuda, int error) {
    const char *text = NULL;
    return cuda->cuGetErrorString(error, &text) == 0 && text ? text : "unknown error";
}

static its_status load(void *user) {
    driver_job *job = user;
    its_library_search search;
    its_library_find(&job->arena, ITS_LIBRARY_CUDA, &search);
    its_status status = its_library_open(job->ctx, &search, job->library, job->cuda);
    if (status != ITS_OK) return status;
    int error = job->cuda->cuInit(0);
    if (error == 0) return ITS_OK;
    its_library_close(job->library);
    return its_fail(job->ctx, ITS_ERR_ABSENT,
                    "nvidia-smi should list a GPU; or run on the simulator: intarsia run --sim",
                    "the CUDA driver in '%s' finds no GPU: %s", search.path, error_text(job->cuda, error));
}

its_status its_gpu_load_driver(its_context *ctx, its_cuda *cuda, its_library *library) {
    driver_job job = {.ctx = ctx, .cuda = cuda, .library = library};
    its_arena_init(&job.arena, ctx);
    its_status status = its_protect(ctx, load, &job);
    its_arena_free(&job.arena);
    return status;
}

uint32_t its_cuda_device_count(its_context *ctx) {
    its_cuda cuda;
    its_library library;
    its_context *quiet = its_context_new(NULL);
    int count = 0;
    (void)ctx;
    if (quiet && its_gpu_load_driver(quiet, &cuda, &library) == ITS_OK) {
        if (cuda.cuDeviceGetCount(&count) != 0) count = 0;
        its_library_close(&library);
    }
    its_context_free(quiet);
    return count > 0 ? (uint32_t)count : 0;
}

/* Errors that a kernel leaves behind: the context is of no use after them. */
static bool is_fault(int error) {
    return error == 700 || error == 702 || (error >= 709 && error <= 720 && error != 712 && error != 713);
}

its_status its_gpu_failed(its_gpu *gpu, int error, const char *what, ...) {
    char text[256];
    va_list args;
    va_start(args, what);
    vsnprintf(text, sizeof text, what, args);
    va_end(args);
    if (is_fault(error) && (its_gpu_waited_too_long(gpu) || its_gpu_complained(gpu))) return ITS_ERR_FAULT;
    const char *name = NULL;
    gpu->cuda.cuGetErrorName(error, &name);
    if (is_fault(error))
        return its_fail(gpu->base.ctx, ITS_ERR_FAULT, "run it on the simulator, which says where: intarsia run --sim",
                        "a kernel failed on PE %u, seen when trying to %s: %s (%s)", gpu->options.pe, text,
                        error_text(&gpu->cuda, error), name ? name : "?");
    return its_fail(gpu->base.ctx, error == 2 ? ITS_ERR_NOMEM : ITS_ERR_INPUT, NULL, "PE %u can't %s: %s (%s)",
                    gpu->options.pe, text, error_text(&gpu->cuda, error), name ? name : "?");
}

its_status its_gpu_enter(its_gpu *gpu) {
    int error = gpu->cuda.cuCtxSetCurrent(gpu->context);
    return error ? its_gpu_failed(gpu, error, "use GPU %d", gpu->device) : ITS_OK;
}
