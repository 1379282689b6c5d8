// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus debug: nvcc; sm_90a; -std=c++17 -G
// Atomics of many threads: cuda::atomic_ref with scopes and orders, locks, vectors, 16 and 128 bits.
#include <cuda/atomic>
#include <cuda/semaphore>
#include <cuda/latch>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned long long u64;

template <class T, cuda::thread_scope S> using Ref = cuda::atomic_ref<T, S>;

extern "C" __global__ void sums(int *i, unsigned *u, u64 *w, float *f, double *d, short *s, unsigned char *c) {
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    Ref<int, cuda::thread_scope_device>(i[t % 4]).fetch_add((int)t, cuda::memory_order_relaxed);
    Ref<int, cuda::thread_scope_system>(i[4]).fetch_sub(3, cuda::memory_order_acq_rel);
    Ref<unsigned, cuda::thread_scope_device>(u[0]).fetch_or(1u << t % 32, cuda::memory_order_release);
    Ref<unsigned, cuda::thread_scope_device>(u[1]).fetch_and(~(1u << t % 8), cuda::memory_order_acquire);
    Ref<unsigned, cuda::thread_scope_device>(u[2]).fetch_xor(t, cuda::memory_order_seq_cst);
    Ref<u64, cuda::thread_scope_device>(w[0]).fetch_max((u64)t << 33);
    Ref<u64, cuda::thread_scope_device>(w[1]).fetch_min(~((u64)t << 40));
    Ref<u64, cuda::thread_scope_device>(w[2]).fetch_add(1ull << 31);
    Ref<float, cuda::thread_scope_device>(f[t % 2]).fetch_add(0.25f);
    Ref<double, cuda::thread_scope_device>(d[0]).fetch_add(0.5);
    Ref<short, cuda::thread_scope_device>(s[t % 3]).fetch_add((short)t);
    Ref<unsigned char, cuda::thread_scope_device>(c[t % 7]).fetch_add(1);
    Ref<float, cuda::thread_scope_device>(f[2]).fetch_max((float)t);
}

extern "C" __global__ void locked(int *out, int *lock, int rounds) {
    Ref<int, cuda::thread_scope_device> l(*lock);
    for (int k = 0; k < rounds; k++) {
        while (l.exchange(1, cuda::memory_order_acquire)) {}
        out[0] = out[0] + 1; // neither atomic nor volatile
        out[1] = out[1] + out[0] % 2;
        l.store(0, cuda::memory_order_release);
    }
}

extern "C" __global__ void tickets(int *order, unsigned *next, unsigned *serving) {
    Ref<unsigned, cuda::thread_scope_device> n(*next), s(*serving);
    unsigned mine = n.fetch_add(1);
    while (s.load(cuda::memory_order_acquire) != mine) __nanosleep(20);
    order[mine] = blockIdx.x * blockDim.x + threadIdx.x;
    s.store(mine + 1, cuda::memory_order_release);
}

extern "C" __global__ void flags(int *data, int *flag, int n) { // a chain of blocks, each of which waits for the one before
    Ref<int, cuda::thread_scope_device> mine(flag[blockIdx.x]);
    if (threadIdx.x == 0 && blockIdx.x > 0) {
        Ref<int, cuda::thread_scope_device> before(flag[blockIdx.x - 1]);
        before.wait(0, cuda::memory_order_acquire);
    }
    __syncthreads();
    int v = blockIdx.x ? data[(blockIdx.x - 1) * n + threadIdx.x] : 1;
    data[blockIdx.x * n + threadIdx.x] = v * 2 + threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        mine.store(1, cuda::memory_order_release);
        mine.notify_all();
    }
}

extern "C" __global__ void semaphores(int *out) {
    __shared__ cuda::counting_semaphore<cuda::thread_scope_block, 2> room;
    __shared__ cuda::atomic<int, cuda::thread_scope_block> inside, most;
    __shared__ alignas(16) unsigned char space[sizeof(cuda::latch<cuda::thread_scope_block>)];
    auto &done = *reinterpret_cast<cuda::latch<cuda::thread_scope_block> *>(space);
    if (threadIdx.x == 0) {
        new (&room) cuda::counting_semaphore<cuda::thread_scope_block, 2>(2);
        new (&done) cuda::latch<cuda::thread_scope_block>(blockDim.x);
        inside.store(0);
        most.store(0);
    }
    __syncthreads();
    room.acquire();
    most.fetch_max(inside.fetch_add(1) + 1);
    __nanosleep(100);
    inside.fetch_sub(1);
    room.release();
    done.arrive_and_wait();
    out[threadIdx.x] = most.load() <= 2 && most.load() >= 1 && inside.load() == 0;
}

extern "C" __global__ void old_ones(unsigned short *s, unsigned *u, float *f, double *d, u64 *w, int *got) {
    unsigned t = threadIdx.x;
    unsigned short seen = s[0], next;
    do { // 16 bits by compare and swap
        next = seen;
        seen = atomicCAS(s, next, (unsigned short)(next + t));
    } while (seen != next);
    got[t] = (int)atomicInc(u, 9);
    got[64 + t] = (int)atomicDec(u + 1, 5);
    atomicAdd_block(f, 1.0f);
    atomicAdd_system(d, 2.0);
    atomicMin(w, ~(u64)t);
    atomicMax((long long *)(w + 1), (long long)t - 40);
    if (t == 0) got[128] = (int)(atomicExch(f + 1, 3.5f) * 2);
    __shared__ int shared[4];
    if (t < 4) shared[t] = 0;
    __syncthreads();
    atomicAdd(shared + t % 4, (int)t);
    __syncthreads();
    if (t < 4) got[132 + t] = shared[t];
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
struct alignas(16) Wide { u64 low, high; };

extern "C" __global__ void vectors(float2 *f2, float4 *f4, float4 *old) {
    atomicAdd(f2, make_float2(1, 0.5f));
    float4 before = atomicAdd(f4, make_float4(1, 2, 3, 4));
    if (before.x == 0) *old = before;
}

extern "C" __global__ void wide_ones(Wide *p, u64 *out) {
    Wide seen = *p, next;
    do {
        next = {seen.low + 1, seen.high + threadIdx.x};
        Wide want = seen;
        asm volatile("{ .reg .b128 c, v, r;\n"
                     "mov.b128 c, {%3, %4}; mov.b128 v, {%5, %6};\n"
                     "atom.acq_rel.gpu.global.cas.b128 r, [%2], c, v;\n"
                     "mov.b128 {%0, %1}, r; }"
                     : "=l"(seen.low), "=l"(seen.high) : "l"(p), "l"(want.low), "l"(want.high), "l"(next.low), "l"(next.high) : "memory");
        if (seen.low == want.low && seen.high == want.high) break;
    } while (true);
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("{ .reg .b128 v, r;\n"
                     "mov.b128 v, {%3, %4};\n"
                     "atom.relaxed.sys.global.exch.b128 r, [%2], v;\n"
                     "mov.b128 {%0, %1}, r; }"
                     : "=l"(out[0]), "=l"(out[1]) : "l"(p), "l"(7ull), "l"(~0ull) : "memory");
}
#endif
