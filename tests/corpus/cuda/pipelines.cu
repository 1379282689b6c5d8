// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus debug: nvcc; sm_80; -std=c++17 -G
// Copies in the background: pipelines of several stages, producers and consumers, barriers that count bytes.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void four_stages(float *out, const float4 *in, int n) {
    constexpr int stages = 4;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    __shared__ alignas(128) float4 tile[stages][64];
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    float sum = 0;
    for (int i = 0, fetched = 0; i < n; i++) {
        for (; fetched < n && fetched < i + stages; fetched++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, tile[fetched % stages], in + fetched * 64, cuda::aligned_size_t<16>(sizeof(float4) * 64), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        float4 v = tile[i % stages][(threadIdx.x + i) % 64];
        sum += v.x + 2 * v.y + 3 * v.z + 4 * v.w;
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void specialised(int *out, const int *in, int n) { // the first warp produces, the others consume
    constexpr int stages = 3;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    __shared__ alignas(16) int tile[stages][96];
    auto block = cg::this_thread_block();
    auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    int sum = 0;
    for (int i = 0; i < n; i++) {
        if (role == cuda::pipeline_role::producer) {
            pipe.producer_acquire();
            for (int k = threadIdx.x; k < 96; k += 32) cuda::memcpy_async(&tile[i % stages][k], in + i * 96 + k, sizeof(int), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            sum = sum * 3 + tile[i % stages][95 - (threadIdx.x - 32)];
            pipe.consumer_release();
        }
    }
    if (threadIdx.x >= 32) out[threadIdx.x - 32] = sum;
}

extern "C" __global__ void split_arrivals(int *out, const int *in) {
    __shared__ Barrier bar[2];
    __shared__ int tile[128];
    if (threadIdx.x == 0) init(bar, 128), init(bar + 1, 64);
    __syncthreads();
    tile[threadIdx.x] = in[threadIdx.x];
    auto token = bar[0].arrive();
    int own = in[threadIdx.x] * 3; // work between arriving and waiting
    bar[0].wait(cuda::std::move(token));
    int v = tile[127 - threadIdx.x] + own;
    if (threadIdx.x >= 64) {
        bar[1].arrive_and_drop(); // the next phase does without these
        out[threadIdx.x] = v;
        return;
    }
    bar[1].wait_parity(false);
    tile[threadIdx.x] = v;
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x] = tile[63 - threadIdx.x];
}

extern "C" __global__ void completes(int *out) { // a function of the barrier runs at the end of each phase
    struct Step {
        int *counted;
        __device__ void operator()() noexcept { *counted = *counted * 10 + 1; }
    };
    __shared__ int counted;
    __shared__ alignas(16) unsigned char space[sizeof(cuda::barrier<cuda::thread_scope_block, Step>)];
    auto &bar = *reinterpret_cast<cuda::barrier<cuda::thread_scope_block, Step> *>(space);
    if (threadIdx.x == 0) {
        counted = 0;
        new (&bar) cuda::barrier<cuda::thread_scope_block, Step>(blockDim.x, Step{&counted});
    }
    __syncthreads();
    int seen = 0;
    for (int i = 0; i < 3; i++) {
        bar.arrive_and_wait();
        seen = seen * 100 + counted % 10 + counted / 10 % 10 * 2;
        __syncthreads();
    }
    out[threadIdx.x] = seen;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
extern "C" __global__ void bytes_too(float *out, const float *in, int n) {
    constexpr int stages = 3, size = 256;
    __shared__ alignas(128) float tile[stages][size];
    __shared__ Barrier bar[stages];
    if (threadIdx.x == 0)
        for (int i = 0; i < stages; i++) init(bar + i, blockDim.x);
    cuda::device::experimental::fence_proxy_async_shared_cta();
    __syncthreads();
    Barrier::arrival_token token[stages];
    auto fetch = [&](int i) {
        if (threadIdx.x == 0) {
            cuda::device::memcpy_async_tx(tile[i % stages], in + i * size, cuda::aligned_size_t<16>(sizeof(tile[0])), bar[i % stages]);
            token[i % stages] = cuda::device::barrier_arrive_tx(bar[i % stages], 1, sizeof(tile[0]));
        } else {
            token[i % stages] = bar[i % stages].arrive();
        }
    };
    for (int i = 0; i < stages - 1 && i < n; i++) fetch(i);
    float sum = 0;
    for (int i = 0; i < n; i++) {
        if (i + stages - 1 < n) fetch(i + stages - 1);
        bar[i % stages].wait(cuda::std::move(token[i % stages]));
        sum += tile[i % stages][threadIdx.x] * (i + 1);
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void ptx_names(int *out, const int *in) { // the same by the names of <cuda/ptx>
    __shared__ alignas(128) int tile[128];
    __shared__ alignas(8) cuda::std::uint64_t bar;
    namespace ptx = cuda::ptx;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof(tile));
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, sizeof(tile), &bar);
    }
    while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
    tile[threadIdx.x] = tile[threadIdx.x] * 2 + 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_max, out, tile, sizeof(tile));
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}
#endif
