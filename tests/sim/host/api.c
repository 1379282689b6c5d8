/*
 * A host file as a user writes one, and a program of its own: every call of the host API that the simulator has, on as
 * many PEs as the environment says. Compiled by tests/sim/test_host.c; exit code 0 if all is as it should be.
 */
#include <cuda.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int me = -1, n;

#define EXPECT(condition)                                                              \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: PE %d: %s\n", __FILE__, __LINE__, me, #condition); \
            exit(2);                                                                   \
        }                                                                              \
    } while (0)
#define CUDA(call)                                                                                               \
    do {                                                                                                         \
        cudaError_t error = (call);                                                                              \
        if (error != cudaSuccess) {                                                                              \
            fprintf(stderr, "%s:%d: PE %d: %s: %s\n", __FILE__, __LINE__, me, #call, cudaGetErrorString(error)); \
            exit(2);                                                                                             \
        }                                                                                                        \
    } while (0)

static void beginning(void) {
    EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
    if (getenv("TEST_UNIQUE_ID")) {
        nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
        nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
        EXPECT(nvshmemx_get_uniqueid(&id) == 0);
        EXPECT(nvshmemx_set_attr_uniqueid_args(atoi(getenv("INTARSIA_PE")), atoi(getenv("INTARSIA_N_PES")), &id,
                                               &attr) == 0);
        EXPECT(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr) == 0);
    } else {
        nvshmem_init();
    }
    EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED);
    me = nvshmem_my_pe();
    n = nvshmem_n_pes();
    EXPECT(me == atoi(getenv("INTARSIA_PE")) && n == atoi(getenv("INTARSIA_N_PES")));
    int major, minor, patch;
    char name[NVSHMEM_MAX_NAME_LEN];
    nvshmem_info_get_version(&major, &minor);
    EXPECT(major == 1 && minor == 3);
    nvshmem_info_get_name(name);
    EXPECT(strcmp(name, "Intarsia simulator") == 0);
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    EXPECT(major == 3);
    EXPECT(nvshmemx_cumodule_init(NULL) == 0);
}

static CUresult encode(CUtensorMap *map, void *base, cuuint32_t rank, cuuint32_t columns, CUtensorMapSwizzle swizzle) {
    const cuuint64_t dims[2] = {64, 32}, strides[1] = {128};
    const cuuint32_t box[2] = {columns, 8}, steps[2] = {1, 1};
    return cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, rank, base, dims, strides, box, steps,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void tensor_maps(void) {
    void *base;
    CUtensorMap one, other;
    CUDA(cudaMalloc(&base, 4096));
    memset(&one, 0, sizeof one);
    EXPECT(sizeof one == 128);
    EXPECT(encode(&one, base, 2, 64, CU_TENSOR_MAP_SWIZZLE_128B) == CUDA_SUCCESS);
    EXPECT(encode(&other, base, 2, 64, CU_TENSOR_MAP_SWIZZLE_128B) == CUDA_SUCCESS);
    EXPECT(memcmp(&one, &other, sizeof one) == 0);
    EXPECT(encode(&other, base, 2, 32, CU_TENSOR_MAP_SWIZZLE_64B) == CUDA_SUCCESS);
    EXPECT(memcmp(&one, &other, sizeof one) != 0);
    EXPECT(encode(&other, base, 2, 64, CU_TENSOR_MAP_SWIZZLE_64B) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(encode(&other, (char *)base + 8, 2, 64, CU_TENSOR_MAP_SWIZZLE_128B) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(encode(&other, base, 6, 64, CU_TENSOR_MAP_SWIZZLE_128B) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(encode(NULL, base, 2, 64, CU_TENSOR_MAP_SWIZZLE_128B) == CUDA_ERROR_INVALID_VALUE);
    CUDA(cudaFree(base));
}

static void teams(void) {
    EXPECT(nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD) == me && nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD) == n);
    EXPECT(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) == me && nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE) == n);
    EXPECT(nvshmem_team_my_pe(NVSHMEMX_TEAM_SAME_MYPE_NODE) == 0);
    EXPECT(nvshmem_team_n_pes(NVSHMEMX_TEAM_SAME_MYPE_NODE) == 1);
    EXPECT(nvshmem_team_my_pe(NVSHMEM_TEAM_INVALID) == -1 && nvshmem_team_n_pes(17) == -1);
    nvshmem_team_t odd, none;
    if (n >= 2) {
        EXPECT(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 1, 2, n / 2, NULL, 0, &odd) == 0);
        EXPECT((odd == NVSHMEM_TEAM_INVALID) == (me % 2 == 0));
        if (me % 2) {
            EXPECT(nvshmem_team_my_pe(odd) == me / 2 && nvshmem_team_n_pes(odd) == n / 2);
            EXPECT(nvshmem_team_translate_pe(odd, 0, NVSHMEM_TEAM_WORLD) == 1);
            EXPECT(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 0, odd) == -1);
            for (int i = 0; i < 10; i++) EXPECT(nvshmem_barrier(odd) == 0 && nvshmem_team_sync(odd) == 0);
            EXPECT(nvshmemx_barrier_on_stream(odd, 0) == 0 && nvshmemx_team_sync_on_stream(odd, 0) == 0);
            nvshmem_team_destroy(odd);
            EXPECT(nvshmem_team_n_pes(odd) == -1);
        }
    }
    EXPECT(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, n + 1, NULL, 0, &none) != 0);
    EXPECT(none == NVSHMEM_TEAM_INVALID);
}

static void symmetric_memory(void) {
    int *words = nvshmem_calloc(8, sizeof *words);
    double *doubles = nvshmem_malloc(4 * sizeof *doubles);
    char *aligned = nvshmem_align(4096, 100);
    EXPECT(words && doubles && aligned && (size_t)aligned % 4096 == 0);
    EXPECT(nvshmem_malloc(0) == NULL && nvshmem_calloc((size_t)-1, 16) == NULL);
    for (int i = 0; i < 8; i++) EXPECT(words[i] == 0);
    nvshmem_barrier_all();
    int right = (me + 1) % n, left = (me + n - 1) % n;
    EXPECT(nvshmem_ptr(words, me) == words && nvshmem_ptr(words, n) == NULL && nvshmem_ptr(&right, 0) == NULL);
    EXPECT(n == 1 || nvshmem_ptr(words, right) != words);
    nvshmem_int_p(&words[0], me, right);
    nvshmem_double_p(&doubles[1], me + 0.5, right);
    int row[3] = {me, me + 1, me + 2};
    nvshmem_int_put(&words[1], row, 3, right);
    nvshmem_putmem_nbi(aligned, "text", 5, right);
    nvshmem_fence();
    nvshmem_quiet();
    nvshmem_barrier_all();
    EXPECT(words[0] == left && doubles[1] == left + 0.5 && words[3] == left + 2 && strcmp(aligned, "text") == 0);
    EXPECT(nvshmem_int_g(&words[0], right) == me);
    int back[3];
    nvshmem_int_get(back, &words[1], 3, right);
    EXPECT(back[0] == me && back[2] == me + 2);
    nvshmem_getmem(back, &words[2], 4, right);
    EXPECT(back[0] == me + 1);
    nvshmem_sync_all();
    nvshmem_free(aligned);
    nvshmem_free(doubles);
    nvshmem_free(words);
    nvshmem_free(NULL);
    EXPECT(nvshmem_malloc((size_t)1 << 45) == NULL); /* told by NULL, on every PE */
}

static void device(void) {
    int count, current, value, can;
    CUDA(cudaGetDeviceCount(&count));
    EXPECT(count == n);
    CUDA(cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE)));
    CUDA(cudaGetDevice(&current));
    EXPECT(current == me);
    EXPECT(cudaSetDevice(n) == cudaErrorInvalidDevice && cudaPeekAtLastError() == cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError() == cudaErrorInvalidDevice && cudaGetLastError() == cudaSuccess);
    struct cudaDeviceProp prop;
    CUDA(cudaGetDeviceProperties(&prop, current));
    EXPECT(strstr(prop.name, "Intarsia") && prop.major == 8 && prop.minor == 0 && prop.warpSize == 32);
    CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, current));
    EXPECT(value == prop.multiProcessorCount && value > 0);
    CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, current));
    EXPECT(value == 163 * 1024);
    EXPECT(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)9999, current) == cudaErrorInvalidValue);
    CUDA(cudaDeviceCanAccessPeer(&can, 0, n - 1));
    EXPECT(can == (n > 1));
    CUDA(cudaDriverGetVersion(&value));
    EXPECT(value >= 12000);
    EXPECT(strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress") == 0);
    EXPECT(strcmp(cudaGetErrorString(cudaSuccess), "no error") == 0);
    (void)cudaGetLastError();
    CUDA(cudaDeviceSynchronize());
}

static void memory(void) {
    enum { N = 1000 };
    int *a, *b, *pinned, host[N], back[N];
    size_t free_bytes, total, later;
    CUDA(cudaMemGetInfo(&free_bytes, &total));
    EXPECT(free_bytes <= total && total > 0);
    CUDA(cudaMalloc((void **)&a, N * sizeof *a));
    CUDA(cudaMalloc((void **)&b, N * sizeof *b));
    CUDA(cudaMallocHost((void **)&pinned, N * sizeof *pinned));
    CUDA(cudaMemGetInfo(&later, &total));
    EXPECT(later < free_bytes);
    for (int i = 0; i < N; i++) host[i] = i * 3;
    CUDA(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(b, a, sizeof host, cudaMemcpyDeviceToDevice));
    CUDA(cudaMemset(a, 0xFF, 8));
    CUDA(cudaMemcpy(back, b, sizeof back, cudaMemcpyDeviceToHost));
    EXPECT(memcmp(host, back, sizeof host) == 0);
    CUDA(cudaMemcpy(back, a, sizeof back, cudaMemcpyDefault));
    EXPECT(back[0] == -1 && back[1] == -1 && back[2] == 6);
    CUDA(cudaMemcpy(pinned, b, sizeof back, cudaMemcpyDefault));
    EXPECT(pinned[N - 1] == (N - 1) * 3);
    CUDA(cudaMemcpy(back, host, sizeof back, cudaMemcpyHostToHost));
    struct cudaPointerAttributes attributes;
    CUDA(cudaPointerGetAttributes(&attributes, a + 5));
    EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.devicePointer == a + 5);
    CUDA(cudaPointerGetAttributes(&attributes, pinned));
    EXPECT(attributes.type == cudaMemoryTypeHost);
    CUDA(cudaPointerGetAttributes(&attributes, host));
    EXPECT(attributes.type == cudaMemoryTypeUnregistered);
    /* What CUDA would refuse or crash on. */
    EXPECT(cudaMemcpy(a, host, sizeof host + 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(host, host, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(a, host, 4, (enum cudaMemcpyKind)7) == cudaErrorInvalidMemcpyDirection);
    EXPECT(cudaMemcpy(a, b, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidMemcpyDirection);
    EXPECT(cudaMemcpy(a, b, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidMemcpyDirection);
    EXPECT(cudaMemcpy(host, b, 4, cudaMemcpyHostToHost) == cudaErrorInvalidMemcpyDirection);
    CUDA(cudaMemcpy(pinned, host, 4, cudaMemcpyHostToDevice)); /* kernels reach it as well */
    EXPECT(cudaMemset(a + N, 0, 1) == cudaErrorInvalidValue);
    EXPECT(cudaMalloc(NULL, 4) == cudaErrorInvalidValue);
    EXPECT(cudaMalloc((void **)&attributes.hostPointer, (size_t)1 << 60) == cudaErrorMemoryAllocation);
    EXPECT(cudaFree(a + 1) == cudaErrorInvalidValue && cudaFree(pinned) == cudaErrorInvalidValue);
    EXPECT(cudaFreeHost(a) == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    CUDA(cudaFree(a));
    EXPECT(cudaFree(a) == cudaErrorInvalidValue);
    CUDA(cudaFree(b));
    CUDA(cudaFree(NULL));
    CUDA(cudaFreeHost(pinned));
    (void)cudaGetLastError();
}

static int called;

static void count_call(void *user) {
    usleep(2000);
    *(int *)user += 1;
}

static void streams(void) {
    cudaStream_t a, b, gone;
    cudaEvent_t begun, ended, untimed;
    CUDA(cudaStreamCreate(&a));
    CUDA(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    EXPECT(cudaStreamCreateWithFlags(&gone, 8) == cudaErrorInvalidValue);
    CUDA(cudaEventCreate(&begun));
    CUDA(cudaEventCreate(&ended));
    CUDA(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    CUDA(cudaEventRecord(begun, a));
    CUDA(cudaLaunchHostFunc(a, count_call, &called));
    CUDA(cudaLaunchHostFunc(a, count_call, &called));
    CUDA(cudaEventRecord(ended, a));
    CUDA(cudaEventRecord(untimed, a));
    CUDA(cudaStreamWaitEvent(b, untimed, 0));
    EXPECT(cudaStreamQuery(b) == cudaErrorNotReady || called == 2);
    CUDA(cudaStreamSynchronize(b));
    EXPECT(called == 2);
    CUDA(cudaEventSynchronize(ended));
    CUDA(cudaEventQuery(ended));
    CUDA(cudaStreamQuery(a));
    float ms = -1;
    CUDA(cudaEventElapsedTime(&ms, begun, ended));
    EXPECT(ms >= 3.5f && ms < 2000.0f);
    EXPECT(cudaEventElapsedTime(&ms, begun, untimed) == cudaErrorInvalidResourceHandle);
    char *data, host[64], back[64];
    CUDA(cudaMalloc((void **)&data, 64));
    memset(host, 3, 64);
    CUDA(cudaMemcpyAsync(data, host, 64, cudaMemcpyHostToDevice, a));
    memset(host, 4, 64); /* pageable memory was read by the call */
    CUDA(cudaMemsetAsync(data, 5, 1, a));
    CUDA(cudaMemcpyAsync(back, data, 64, cudaMemcpyDeviceToHost, a));
    CUDA(cudaStreamSynchronize(a));
    EXPECT(back[0] == 5 && back[1] == 3 && back[63] == 3);
    CUDA(cudaMemsetAsync(data, 6, 1, cudaStreamLegacy));
    CUDA(cudaMemsetAsync(data, 6, 1, cudaStreamPerThread));
    CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    CUDA(cudaFree(data));
    CUDA(cudaStreamDestroy(a));
    EXPECT(cudaStreamSynchronize(a) == cudaErrorInvalidResourceHandle);
    CUDA(cudaStreamDestroy(b));
    CUDA(cudaEventDestroy(begun));
    EXPECT(cudaEventQuery(begun) == cudaErrorInvalidResourceHandle);
    CUDA(cudaEventDestroy(ended));
    CUDA(cudaEventDestroy(untimed));
    (void)cudaGetLastError();
}

/* Data and a signal go round the ring in the order of streams; the host only waits at the end. */
static void on_streams(void) {
    enum { N = 256, ROUNDS = 10 };
    cudaStream_t stream, other;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    int *data = nvshmem_calloc(N, sizeof *data), *from, host[N];
    uint64_t *signal = nvshmem_calloc(2, sizeof *signal);
    CUDA(cudaMalloc((void **)&from, N * sizeof *from));
    int right = (me + 1) % n, left = (me + n - 1) % n;
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < N; i++) host[i] = round * 1000000 + me * 1000 + i;
        CUDA(cudaMemcpyAsync(from, host, sizeof host, cudaMemcpyHostToDevice, stream));
        nvshmemx_putmem_signal_on_stream(data, from, N * sizeof *data, signal, (uint64_t)round, NVSHMEM_SIGNAL_SET,
                                         right, stream);
        nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_GE, (uint64_t)round, other);
        CUDA(cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, other));
        CUDA(cudaStreamSynchronize(other));
        for (int i = 0; i < N; i++) EXPECT(host[i] == round * 1000000 + left * 1000 + i);
        nvshmemx_barrier_all_on_stream(stream);
        CUDA(cudaStreamSynchronize(stream));
    }
    nvshmemx_signal_op_on_stream(&signal[1], 5, NVSHMEM_SIGNAL_ADD, right, stream);
    nvshmemx_signal_op_on_stream(&signal[1], 6, NVSHMEM_SIGNAL_ADD, right, stream);
    nvshmemx_uint64_wait_until_on_stream(&signal[1], NVSHMEM_CMP_EQ, 11, stream);
    nvshmemx_quiet_on_stream(stream);
    nvshmemx_int_p_on_stream(&data[7], -me, right, stream);
    nvshmemx_sync_all_on_stream(stream);
    nvshmemx_int_wait_until_on_stream(&data[7], NVSHMEM_CMP_LE, 0, stream);
    nvshmemx_int_get_on_stream(from, &data[7], 1, right, stream);
    CUDA(cudaMemcpyAsync(host, from, sizeof *host, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    EXPECT(host[0] == -me && nvshmem_signal_fetch(&signal[1]) == 11);
    nvshmem_barrier_all();
    nvshmem_free(signal);
    nvshmem_free(data);
    CUDA(cudaFree(from));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaStreamDestroy(other));
}

int main(void) {
    beginning();
    teams();
    symmetric_memory();
    device();
    memory();
    tensor_maps();
    streams();
    on_streams();
    CUDA(cudaGetLastError());
    nvshmem_finalize();
    EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
    printf("ok %d\n", me);
    return 0;
}
