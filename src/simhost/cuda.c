/* The CUDA runtime API for host files, on the simulator's backend. */
#include <stdio.h>
#include <string.h>

#include "simhost/simhost.h"

#define EXPORT __attribute__((visibility("default")))

/* -- errors -------------------------------------------------------------------------------------------------------- */

typedef struct error_text {
    cudaError_t error;
    const char *name, *text;
} error_text;

#define ERROR(name, text) \
    { name, #name, text }
static const error_text error_texts[] = {
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorInitializationError, "initialization error"),
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR(cudaErrorInvalidHostPointer, "invalid host pointer"),
    ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR(cudaErrorNotReady, "device not ready"),
    ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    ERROR(cudaErrorAssert, "device-side assert triggered"),
    ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR(cudaErrorNotSupported, "operation not supported"),
    ERROR(cudaErrorUnknown, "unknown error"),
};

static const error_text *find_text(cudaError_t error) {
    for (size_t i = 0; i < sizeof error_texts / sizeof *error_texts; i++)
        if (error_texts[i].error == error) return &error_texts[i];
    return NULL;
}

EXPORT const char *cudaGetErrorName(cudaError_t error) {
    const error_text *it = find_text(error);
    return it ? it->name : "unrecognized error code";
}

EXPORT const char *cudaGetErrorString(cudaError_t error) {
    const error_text *it = find_text(error);
    return it ? it->text : "unrecognized error code";
}

/* An error that stopped the device stays, as in CUDA; others are told once. */
EXPORT cudaError_t cudaGetLastError(void) {
    its_simhost *state = its_simhost_state();
    cudaError_t error = state->last_error;
    if (!state->sim || its_sim_stopped(state->sim) == ITS_STOPPED_NOT) state->last_error = cudaSuccess;
    return error;
}

EXPORT cudaError_t cudaPeekAtLastError(void) {
    return its_simhost_state()->last_error;
}

static cudaError_t invalid_value(void) {
    return its_simhost_cuda(cudaErrorInvalidValue);
}

static cudaError_t no_pe(void) {
    return its_simhost_cuda(cudaErrorInitializationError);
}

/* A stream or event that there isn't is a bad handle, not a bad value. */
static cudaError_t handle_error(its_status status) {
    return status == ITS_ERR_USAGE ? its_simhost_cuda(cudaErrorInvalidResourceHandle) : its_simhost_error(status);
}

/* -- devices ------------------------------------------------------------------------------------------------------- */

static int device_count(its_sim_backend *sim) {
    uint32_t pe, n_pes;
    sim->base.ops->identity(&sim->base, &pe, &n_pes);
    return (int)n_pes;
}

static cudaError_t check_device(its_sim_backend *sim, int device) {
    if (device >= 0 && device < device_count(sim)) return cudaSuccess;
    return its_simhost_cuda(cudaErrorInvalidDevice);
}

EXPORT cudaError_t cudaGetDeviceCount(int *count) {
    its_sim_backend *sim = its_simhost_sim();
    if (!sim) return no_pe();
    if (!count) return invalid_value();
    *count = device_count(sim);
    return cudaSuccess;
}

EXPORT cudaError_t cudaGetDevice(int *device) {
    if (!device) return invalid_value();
    *device = its_simhost_state()->device;
    return cudaSuccess;
}

EXPORT cudaError_t cudaSetDevice(int device) {
    its_sim_backend *sim = its_simhost_sim();
    if (!sim) return no_pe();
    cudaError_t error = check_device(sim, device);
    if (error == cudaSuccess) its_simhost_state()->device = device;
    return error;
}

EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device) {
    its_sim_backend *sim = its_simhost_sim();
    if (!sim) return no_pe();
    if (!prop) return invalid_value();
    cudaError_t error = check_device(sim, device);
    if (error != cudaSuccess) return error;
    its_device_info info;
    uint64_t used, total;
    sim->base.ops->device_info(&sim->base, &info);
    its_sim_memory_used(sim, &used, &total);
    *prop = (struct cudaDeviceProp){
        .totalGlobalMem = total,
        .sharedMemPerBlock = 48 * 1024,
        .regsPerBlock = (int)info.max_regs,
        .warpSize = (int)info.warp_size,
        .memPitch = 0x7FFFFFFF,
        .maxThreadsPerBlock = (int)info.max_threads,
        .maxThreadsDim = {1024, 1024, 64},
        .maxGridSize = {0x7FFFFFFF, 65535, 65535},
        .totalConstMem = 65536,
        .major = (int)info.compute_major,
        .minor = (int)info.compute_minor,
        .multiProcessorCount = (int)info.multiprocessors,
        .canMapHostMemory = 1,
        .concurrentKernels = 1,
        .pciDeviceID = device,
        .asyncEngineCount = 1,
        .unifiedAddressing = 1,
        .maxThreadsPerMultiProcessor = 2048,
        .sharedMemPerMultiprocessor = info.max_shared + 1024,
        .regsPerMultiprocessor = (int)info.max_regs,
        .sharedMemPerBlockOptin = info.max_shared,
        .maxBlocksPerMultiProcessor = 32,
    };
    snprintf(prop->name, sizeof prop->name, "%s", info.name);
    return cudaSuccess;
}

/* The value of an attribute; false if the simulator has none. */
static bool attribute(const struct cudaDeviceProp *prop, enum cudaDeviceAttr attr, int *value) {
    switch (attr) {
    case cudaDevAttrMaxThreadsPerBlock:
        return *value = prop->maxThreadsPerBlock, true;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
    case cudaDevAttrMaxBlockDimZ:
        return *value = prop->maxThreadsDim[attr - cudaDevAttrMaxBlockDimX], true;
    case cudaDevAttrMaxGridDimX:
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
        return *value = prop->maxGridSize[attr - cudaDevAttrMaxGridDimX], true;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        return *value = (int)prop->sharedMemPerBlock, true;
    case cudaDevAttrTotalConstantMemory:
        return *value = (int)prop->totalConstMem, true;
    case cudaDevAttrWarpSize:
        return *value = prop->warpSize, true;
    case cudaDevAttrMaxRegistersPerBlock:
        return *value = prop->regsPerBlock, true;
    case cudaDevAttrMultiProcessorCount:
        return *value = prop->multiProcessorCount, true;
    case cudaDevAttrIntegrated:
    case cudaDevAttrCooperativeLaunch:
        return *value = 0, true;
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
        return *value = 1, true;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        return *value = prop->maxThreadsPerMultiProcessor, true;
    case cudaDevAttrComputeCapabilityMajor:
        return *value = prop->major, true;
    case cudaDevAttrComputeCapabilityMinor:
        return *value = prop->minor, true;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        return *value = (int)prop->sharedMemPerMultiprocessor, true;
    case cudaDevAttrMaxRegistersPerMultiprocessor:
        return *value = prop->regsPerMultiprocessor, true;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        return *value = (int)prop->sharedMemPerBlockOptin, true;
    }
    return false;
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device) {
    struct cudaDeviceProp prop = {0};
    if (!value) return invalid_value();
    cudaError_t error = cudaGetDeviceProperties(&prop, device);
    if (error != cudaSuccess) return error;
    return attribute(&prop, attr, value) ? cudaSuccess : invalid_value();
}

EXPORT cudaError_t cudaDeviceSynchronize(void) {
    its_sim_backend *sim = its_simhost_sim();
    return sim ? its_simhost_error(sim->base.ops->wait(&sim->base)) : no_pe();
}

/* Waits; the PE keeps what it has, since its memory is also the other PEs'. */
EXPORT cudaError_t cudaDeviceReset(void) {
    return cudaDeviceSynchronize();
}

EXPORT cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice) {
    its_sim_backend *sim = its_simhost_sim();
    if (!sim) return no_pe();
    if (!canAccessPeer) return invalid_value();
    cudaError_t error = check_device(sim, device);
    if (error == cudaSuccess) error = check_device(sim, peerDevice);
    if (error == cudaSuccess) *canAccessPeer = device != peerDevice;
    return error;
}

EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
    its_sim_backend *sim = its_simhost_sim();
    if (!sim) return no_pe();
    return flags ? invalid_value() : check_device(sim, peerDevice);
}

EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority) {
    if (leastPriority) *leastPriority = 0;
    if (greatestPriority) *greatestPriority = 0;
    return cudaSuccess;
}

EXPORT cudaError_t cudaDriverGetVersion(int *driverVersion) {
    if (!driverVersion) return invalid_value();
    *driverVersion = CUDART_VERSION;
    return cudaSuccess;
}

EXPORT cudaError_t cudaRuntimeGetVersion(int *runtimeVersion) {
    return cudaDriverGetVersion(runtimeVersion);
}

/* -- streams ------------------------------------------------------------------------------------------------------- */

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags) {
    its_sim_backend *sim = its_simhost_sim();
    its_stream stream;
    if (!sim) return no_pe();
    if (!pStream || flags > cudaStreamNonBlocking) return invalid_value();
    its_status status = its_sim_stream_new(sim, flags != cudaStreamNonBlocking, &stream);
    if (status == ITS_OK) *pStream = (cudaStream_t)(uintptr_t)stream;
    return its_simhost_error(status);
}

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *pStream) {
    return cudaStreamCreateWithFlags(pStream, cudaStreamDefault);
}

EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority) {
    (void)priority;
    return cudaStreamCreateWithFlags(pStream, flags);
}

EXPORT cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    its_stream stream;
    if (!its_simhost_stream(handle, &stream)) return no_pe();
    its_sim_backend *sim = its_simhost_sim();
    return handle_error(sim->base.ops->stream_free(&sim->base, stream));
}

EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    its_stream stream;
    if (!its_simhost_stream(handle, &stream)) return no_pe();
    its_sim_backend *sim = its_simhost_sim();
    return handle_error(sim->base.ops->stream_wait(&sim->base, stream));
}

EXPORT cudaError_t cudaStreamQuery(cudaStream_t handle) {
    its_stream stream;
    bool idle = false;
    if (!its_simhost_stream(handle, &stream)) return no_pe();
    its_status status = its_sim_stream_idle(its_simhost_sim(), stream, &idle);
    return status != ITS_OK ? handle_error(status) : idle ? cudaSuccess : cudaErrorNotReady;
}

EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t fn, void *userData) {
    its_stream stream;
    if (!fn) return invalid_value();
    if (!its_simhost_stream(handle, &stream)) return no_pe();
    return handle_error(its_sim_host_call(its_simhost_sim(), stream, fn, userData));
}

/* -- events -------------------------------------------------------------------------------------------------------- */

/* A handle is the event's number and, in its lowest bit, whether it was made without timing. */
static cudaEvent_t event_handle(its_event event, bool untimed) {
    return (cudaEvent_t)(uintptr_t)(event << 1 | untimed);
}
static its_event event_of(cudaEvent_t handle) {
    return (its_event)(uintptr_t)handle >> 1;
}
static bool is_untimed(cudaEvent_t handle) {
    return (uintptr_t)handle & 1;
}

EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *handle, unsigned int flags) {
    its_sim_backend *sim = its_simhost_sim();
    its_event event;
    if (!sim) return no_pe();
    if (!handle || flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming)) return invalid_value();
    its_status status = its_sim_event_new(sim, &event);
    if (status == ITS_OK) *handle = event_handle(event, flags & cudaEventDisableTiming);
    return its_simhost_error(status);
}

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) {
    its_sim_backend *sim = its_simhost_sim();
    return sim ? handle_error(its_sim_event_free(sim, event_of(event))) : no_pe();
}

EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
    its_stream stream;
    if (!its_simhost_stream(handle, &stream)) return no_pe();
    return handle_error(its_sim_event_record(its_simhost_sim(), event_of(event), stream));
}

EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int flags) {
    its_stream stream;
    if (flags) return invalid_value();
    if (!its_simhost_stream(handle, &stream)) return no_pe();
    return handle_error(its_sim_event_wait(its_simhost_sim(), event_of(event), stream));
}

EXPORT cudaError_t cudaEventQuery(cudaEvent_t event) {
    its_sim_backend *sim = its_simhost_sim();
    bool done = false;
    if (!sim) return no_pe();
    its_status status = its_sim_event_done(sim, event_of(event), &done);
    return status != ITS_OK ? handle_error(status) : done ? cudaSuccess : cudaErrorNotReady;
}

EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    its_sim_backend *sim = its_simhost_sim();
    return sim ? handle_error(its_sim_event_synchronize(sim, event_of(event))) : no_pe();
}

EXPORT cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    its_sim_backend *sim = its_simhost_sim();
    double elapsed = 0;
    bool begun = false, ended = false;
    if (!sim) return no_pe();
    if (!ms) return invalid_value();
    if (is_untimed(start) || is_untimed(end)) return its_simhost_cuda(cudaErrorInvalidResourceHandle);
    its_status status = its_sim_event_done(sim, event_of(start), &begun);
    if (status == ITS_OK) status = its_sim_event_done(sim, event_of(end), &ended);
    if (status == ITS_OK && !(begun && ended)) return cudaErrorNotReady;
    if (status == ITS_OK) status = its_sim_event_elapsed(sim, event_of(start), event_of(end), &elapsed);
    if (status == ITS_OK) *ms = (float)elapsed;
    return handle_error(status);
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

EXPORT cudaError_t cudaMalloc(void **devPtr, size_t size) {
    its_sim_backend *sim = its_simhost_sim();
    uint64_t address = 0;
    if (!sim) return no_pe();
    if (!devPtr) return invalid_value();
    *devPtr = NULL;
    if (!size) return cudaSuccess;
    its_status status = sim->base.ops->alloc(&sim->base, ITS_MEMORY_DEVICE, size, 0, &address);
    if (status == ITS_OK) *devPtr = (void *)(uintptr_t)address;
    return its_simhost_error(status);
}

EXPORT cudaError_t cudaFree(void *devPtr) {
    its_sim_backend *sim = its_simhost_sim();
    if (!sim) return no_pe();
    if (!devPtr) return cudaSuccess;
    if (its_sim_memory_kind(sim, (uint64_t)(uintptr_t)devPtr) == ITS_AT_HOST) return invalid_value();
    return its_simhost_error(sim->base.ops->free(&sim->base, ITS_MEMORY_DEVICE, (uint64_t)(uintptr_t)devPtr));
}

EXPORT cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags) {
    its_sim_backend *sim = its_simhost_sim();
    uint64_t address = 0;
    if (!sim) return no_pe();
    if (!pHost || flags > 7) return invalid_value();
    *pHost = NULL;
    if (!size) return cudaSuccess;
    its_status status = its_sim_alloc_host(sim, size, &address);
    if (status == ITS_OK) *pHost = (void *)(uintptr_t)address;
    return its_simhost_error(status);
}

EXPORT cudaError_t cudaMallocHost(void **ptr, size_t size) {
    return cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

EXPORT cudaError_t cudaFreeHost(void *ptr) {
    its_sim_backend *sim = its_simhost_sim();
    if (!sim) return no_pe();
    if (!ptr) return cudaSuccess;
    if (its_sim_memory_kind(sim, (uint64_t)(uintptr_t)ptr) != ITS_AT_HOST) return invalid_value();
    return its_simhost_error(its_sim_release_host(sim, (uint64_t)(uintptr_t)ptr));
}

/* Which ends of a copy are on the device; false if the kind is none. */
static bool ends_of(its_sim_backend *sim, enum cudaMemcpyKind kind, uint64_t to, uint64_t from, bool *to_device,
                    bool *from_device) {
    *to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    *from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind == cudaMemcpyDefault) {
        *to_device = its_sim_memory_kind(sim, to) == ITS_AT_DEVICE;
        *from_device = its_sim_memory_kind(sim, from) == ITS_AT_DEVICE;
    }
    return (unsigned)kind <= cudaMemcpyDefault;
}

/* Said to be host memory, and on the device: CUDA leaves open what becomes of such a copy. */
static bool is_misplaced(its_sim_backend *sim, uint64_t end, bool on_device) {
    return !on_device && its_sim_memory_kind(sim, end) == ITS_AT_DEVICE;
}

static cudaError_t copy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t handle,
                        bool wait) {
    its_stream stream;
    bool to_device, from_device;
    uint64_t to = (uint64_t)(uintptr_t)dst, from = (uint64_t)(uintptr_t)src;
    if (!its_simhost_stream(handle, &stream)) return no_pe();
    its_sim_backend *sim = its_simhost_sim();
    if (!ends_of(sim, kind, to, from, &to_device, &from_device))
        return its_simhost_cuda(cudaErrorInvalidMemcpyDirection);
    if (count && (!dst || !src)) return invalid_value();
    if (is_misplaced(sim, to, to_device) || is_misplaced(sim, from, from_device))
        return its_simhost_cuda(cudaErrorInvalidMemcpyDirection);
    bool pinned = (to_device || its_sim_memory_kind(sim, to) == ITS_AT_HOST) &&
                  (from_device || its_sim_memory_kind(sim, from) == ITS_AT_HOST);
    its_host_memory host = to_device && from_device ? ITS_HOST_NONE : pinned ? ITS_HOST_PINNED : ITS_HOST_PAGEABLE;
    its_status status = its_sim_copy(sim, to, to_device, from, from_device, count, host, stream);
    if (status == ITS_OK && wait) status = sim->base.ops->stream_wait(&sim->base, stream);
    return its_simhost_error(status);
}

EXPORT cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind) {
    return copy(dst, src, count, kind, 0, true);
}

EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                                   cudaStream_t stream) {
    return copy(dst, src, count, kind, stream, false);
}

EXPORT cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t handle) {
    its_stream stream;
    if (!its_simhost_stream(handle, &stream)) return no_pe();
    return its_simhost_error(
        its_sim_fill(its_simhost_sim(), (uint64_t)(uintptr_t)devPtr, (unsigned char)value, 1, count, stream));
}

EXPORT cudaError_t cudaMemset(void *devPtr, int value, size_t count) {
    return cudaMemsetAsync(devPtr, value, count, 0);
}

EXPORT cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    its_sim_backend *sim = its_simhost_sim();
    uint64_t used, all;
    if (!sim) return no_pe();
    if (!free || !total) return invalid_value();
    its_sim_memory_used(sim, &used, &all);
    *total = all;
    *free = all - used;
    return cudaSuccess;
}

EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr) {
    its_sim_backend *sim = its_simhost_sim();
    if (!sim) return no_pe();
    if (!attributes) return invalid_value();
    its_memory_at at = its_sim_memory_kind(sim, (uint64_t)(uintptr_t)ptr);
    void *address = (void *)(uintptr_t)ptr;
    *attributes = (struct cudaPointerAttributes){
        .type = at == ITS_AT_DEVICE ? cudaMemoryTypeDevice
                : at == ITS_AT_HOST ? cudaMemoryTypeHost
                                    : cudaMemoryTypeUnregistered,
        .device = at == ITS_AT_UNKNOWN ? -2 : its_simhost_state()->device,
        .devicePointer = at == ITS_AT_UNKNOWN ? NULL : address,
        .hostPointer = at == ITS_AT_DEVICE ? NULL : address,
    };
    return cudaSuccess;
}
