// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus lineinfo: nvcc; sm_90a; -std=c++17 -lineinfo
// corpus debug: nvcc; sm_80; -std=c++17 -G
// The CUDA C++ standard library: barriers, pipelines, atomics, latches, spans, complex numbers.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/tuple>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void barriers(float *out, const float *in, int n) {
    __shared__ alignas(16) float tile[256];
    __shared__ Barrier bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    for (int i = 0; i < n; i += 256) {
        cuda::memcpy_async(&tile[threadIdx.x], &in[i + threadIdx.x], sizeof(float), bar);
        bar.arrive_and_wait();
        out[i + threadIdx.x] = tile[255 - threadIdx.x] + tile[0];
        auto token = bar.arrive();
        bar.wait(cuda::std::move(token));
    }
}

extern "C" __global__ void pipeline(float *out, const float *in, int n) {
    constexpr int stages = 2;
    __shared__ alignas(16) float tile[stages][128];
    auto pipe = cuda::make_pipeline();
    int fetch = 0;
    float acc = 0;
    for (int i = 0; i < n; i++) {
        for (; fetch < n && fetch < i + stages; fetch++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&tile[fetch % stages][threadIdx.x], in + fetch * 128 + threadIdx.x, sizeof(float), pipe);
            pipe.producer_commit();
        }
        if (i + stages > n) { // an empty stage in place of one more to fetch, so that the count of those behind it stays right
            pipe.producer_acquire();
            pipe.producer_commit();
        }
        cuda::pipeline_consumer_wait_prior<stages - 1>(pipe);
        acc += tile[i % stages][threadIdx.x];
        pipe.consumer_release();
    }
    out[threadIdx.x] = acc;
}

extern "C" __global__ void atomics(int *i, float *f, unsigned long long *u, unsigned char *c) {
    cuda::atomic_ref<int, cuda::thread_scope_device> a(*i);
    cuda::atomic_ref<float, cuda::thread_scope_system> b(*f);
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_block> d(*u);
    cuda::atomic_ref<unsigned char, cuda::thread_scope_device> e(*c);
    a.fetch_add(1, cuda::memory_order_relaxed);
    b.fetch_add(0.5f, cuda::memory_order_release);
    d.fetch_max(7, cuda::memory_order_acq_rel);
    unsigned long long want = 3;
    while (!d.compare_exchange_weak(want, want * 2, cuda::memory_order_acquire)) {}
    e.store(3);
    i[1] = a.load() + (int)e.exchange(1, cuda::memory_order_seq_cst);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
}

extern "C" __global__ void containers(float *out, cuda::std::complex<float> *z, cuda::std::complex<double> *w) {
    cuda::std::array<float, 5> a{1, 2, 3, 4, out[0]};
    float sum = 0;
    for (float v : a) sum += v;
    auto t = cuda::std::make_tuple(sum, 3, 2.0);
    z[threadIdx.x] = z[threadIdx.x] * z[0] / cuda::std::complex<float>(cuda::std::get<0>(t), 1.0f);
    w[threadIdx.x] = w[0] * w[1];
    out[1] = (float)cuda::std::get<2>(t) + abs(z[1]);
}
