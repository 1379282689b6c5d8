/* Which PE the names mean, and what becomes of failures. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "simhost/simhost.h"

/* The only variable of the library that changes, because the names it provides have no argument that could hold it. */
static its_simhost state;

its_simhost *its_simhost_state(void) {
    return &state;
}

its_status its_simhost_attach(its_backend *backend) {
    its_sim_backend *sim = NULL;
    if (backend) {
        its_status status = its_sim_backend_of(backend, &sim);
        if (status != ITS_OK) return status;
    }
    if (state.own) its_simhost_close();
    state = (its_simhost){.sim = sim, .initialised = sim ? 1 : 0};
    return ITS_OK;
}

its_status its_simhost_check(void) {
    its_status status = state.failed;
    state.failed = ITS_OK;
    return status;
}

static void print_and_end(its_context *ctx) {
    char *text = its_diag_render(ctx, false);
    fflush(stdout);
    fputs(text ? text : "out of memory\n", stderr);
    exit(1);
}

its_sim_backend *its_simhost_sim(void) {
    if (state.sim) return state.sim;
    its_context *ctx = its_context_new(NULL);
    its_backend *backend = NULL;
    its_status status = ctx ? its_sim_open_env(ctx, &backend) : ITS_ERR_NOMEM;
    if (status == ITS_OK) status = its_sim_backend_of(backend, &state.sim);
    if (status == ITS_OK)
        state.own = true;
    else if (ctx)
        print_and_end(ctx);
    return state.sim;
}

void its_simhost_close(void) {
    if (!state.own) return;
    its_context *ctx = state.sim->base.ctx;
    state.sim->base.ops->close(&state.sim->base);
    its_context_free(ctx);
    state = (its_simhost){0};
}

void its_simhost_done(its_status status) {
    if (status == ITS_OK) return;
    if (state.own) print_and_end(state.sim->base.ctx);
    if (state.failed == ITS_OK) state.failed = status;
}

void its_simhost_wrong(const char *hint, const char *format, ...) {
    its_sim_backend *sim = its_simhost_sim();
    if (!sim) return;
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    its_simhost_done(its_sim_error(sim, hint, text));
}

cudaError_t its_simhost_cuda(cudaError_t error) {
    if (error != cudaSuccess && error != cudaErrorNotReady) state.last_error = error;
    return error;
}

static cudaError_t fault_error(void) {
    switch (state.sim ? its_sim_stopped(state.sim) : ITS_STOPPED_OTHER) {
    case ITS_STOPPED_ACCESS:
        return cudaErrorIllegalAddress;
    case ITS_STOPPED_MISALIGNED:
        return cudaErrorMisalignedAddress;
    case ITS_STOPPED_ASSERT:
        return cudaErrorAssert;
    case ITS_STOPPED_PEER:
        return cudaErrorUnknown;
    default:
        return cudaErrorLaunchFailure;
    }
}

cudaError_t its_simhost_error(its_status status) {
    switch (status) {
    case ITS_OK:
        return cudaSuccess;
    case ITS_ERR_NOMEM:
        return its_simhost_cuda(cudaErrorMemoryAllocation);
    case ITS_ERR_FAULT:
        return its_simhost_cuda(fault_error());
    case ITS_ERR_USAGE:
    case ITS_ERR_INPUT:
        return its_simhost_cuda(cudaErrorInvalidValue);
    default:
        return its_simhost_cuda(cudaErrorUnknown);
    }
}

/* Handles of CUDA: 0 and 1 are the default stream, 2 one that is made when it is first used. */
bool its_simhost_stream(cudaStream_t handle, its_stream *stream) {
    its_sim_backend *sim = its_simhost_sim();
    if (!sim) return false;
    *stream = (its_stream)(uintptr_t)handle;
    if (*stream == 1) *stream = 0;
    if (*stream != 2) return true;
    if (!state.per_thread && its_sim_stream_new(sim, true, &state.per_thread) != ITS_OK) return false;
    *stream = state.per_thread;
    return true;
}
