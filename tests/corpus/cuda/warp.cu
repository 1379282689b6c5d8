// corpus: nvrtc nvcc; sm_80 sm_90a sm_100a; -std=c++17
// corpus lineinfo: nvcc; sm_90a; -std=c++17 -lineinfo
// corpus: clang+; sm_90a; -O3 -std=c++17
// Warp intrinsics, barriers, fences, clocks and atomics with scopes.

typedef unsigned long long u64;

extern "C" __global__ void shuffles(int *i, float *f, double *d, long long *l) {
    int t = threadIdx.x;
    unsigned m = __activemask();
    i[t] = __shfl_sync(0xffffffff, i[t], t ^ 3) + __shfl_up_sync(m, i[t], 2, 16);
    f[t] = __shfl_down_sync(0xffffffff, f[t], 1) + __shfl_xor_sync(0xffffffff, f[t], 8, 16);
    d[t] = __shfl_xor_sync(0xffffffff, d[t], 1);
    if (t < 16) l[t] = __shfl_sync(0xffff, l[t], 0, 8);
}

extern "C" __global__ void votes(unsigned *out, int p, u64 q) {
    unsigned t = threadIdx.x;
    out[t] = __ballot_sync(~0u, p > (int)t) + __all_sync(~0u, p) + __any_sync(~0u, p == 3) + __match_any_sync(~0u, t & p);
    int pred;
    out[t + 32] = __match_all_sync(~0u, q, &pred) + pred + __popc(__activemask());
    out[t + 64] = __reduce_add_sync(~0u, t) + __reduce_max_sync(~0u, (int)t) + __reduce_xor_sync(~0u, t);
    out[t + 96] = __reduce_min_sync(~0u, t) + __reduce_and_sync(~0u, t) + __reduce_or_sync(~0u, t);
    if (0xff00ff >> t & 1) __syncwarp(0xff00ff);
    __nanosleep(40);
}

extern "C" __global__ void barriers(int *out) {
    __shared__ int stage;
    u64 start = clock64();
    unsigned t = threadIdx.x;
    __syncthreads();
    out[t] = __syncthreads_count(t % 3 == 0) * 100 + __syncthreads_and(t < 90) * 10 + __syncthreads_or(t == 77);
    if (t < 64) {
        if (t == 63) stage = 5;
        asm volatile("bar.sync 3, 64;" ::: "memory");
        if (t == 0) stage = stage * 2;
        asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(5), "n"(96) : "memory");
    } else {
        asm volatile("barrier.cta.sync.aligned 5, 96;" ::: "memory");
        out[t] += stage * 1000;
    }
    __threadfence(); __threadfence_block(); __threadfence_system();
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    u64 now, later;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    __nanosleep(2000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(later));
    out[96 + t] = (now > 0 && later >= now) + ((u64)clock64() >= start) * 2 + (clock() >= 0 || clock() < 0) * 4 + warpSize * 8;
}

extern "C" __global__ void atomics(int *i, unsigned *u, u64 *w, float *f, double *d, long long *l) {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
    i[1] = atomicAdd(i, 3) + atomicSub(i, 2) + atomicExch(i, 7) + atomicMin(i, -5) + atomicMax(i, 5) + atomicCAS(i, 1, 2);
    u[1] = atomicInc(u, 10) + atomicDec(u, 10) + atomicAnd(u, 0xf0) + atomicOr(u, 1) + atomicXor(u, 3);
    w[1] = atomicAdd(w, 1ull) + atomicExch(w, 5ull) + atomicCAS(w, 5ull, 6ull) + atomicMax(w, 9ull);
    l[1] = atomicMin(l, -1LL);
    f[1] = atomicAdd(f, 1.5f) + atomicExch(f, 2.0f);
    d[1] = atomicAdd(d, 0.5);
    }
    atomicAdd_block(i + 2, 1); atomicAdd_system(i + 3, 1); atomicCAS_system(w + 3, 0ull, 1ull);
    atomicAdd(u + 4, 1u); atomicMax(i + 5, (int)threadIdx.x);
}

extern "C" __global__ void orders(int *p, u64 *q, unsigned short *h) {
    int v; u64 w; unsigned short s;
    asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(p + 1), "r"(v) : "memory");
    asm volatile("ld.relaxed.cta.u64 %0, [%1+8];" : "=l"(w) : "l"(q));
    asm volatile("atom.add.acq_rel.sys.global.u64 %0, [%1], %2;" : "=l"(w) : "l"(q), "l"(w) : "memory");
    asm volatile("red.release.gpu.global.add.u32 [%0+4], %1;" ::"l"(p), "r"(v) : "memory");
    asm volatile("atom.cas.b16 %0, [%1], %2, %3;" : "=h"(s) : "l"(h), "h"((unsigned short)1), "h"((unsigned short)2));
    asm volatile("ld.mmio.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p));
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %0, 0; @p st.volatile.global.u32 [%1], %0; }" ::"r"(v), "l"(p + 2));
    q[1] = w; h[1] = s;
}

extern "C" __global__ void reduce_block(const float *in, float *out, int n) {
    __shared__ float part[32];
    float v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += in[i];
    for (int k = 16; k; k >>= 1) v += __shfl_down_sync(~0u, v, k);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
        for (int k = 16; k; k >>= 1) v += __shfl_xor_sync(~0u, v, k);
        if (threadIdx.x == 0) atomicAdd(out, v);
    }
}
