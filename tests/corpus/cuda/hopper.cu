// corpus: nvrtc nvcc; sm_90a; -std=c++17
// corpus lineinfo: nvrtc; sm_90a; -std=c++17 -lineinfo
// corpus rdc: nvcc; sm_90a; -std=c++17 -rdc=true
// corpus: clang+; sm_90a; -O3 -std=c++17
// What sm_90 brings: bulk copies, tensor maps, mbarrier transactions, wgmma, clusters, register reallocation, multimem.

typedef unsigned long long u64;
struct alignas(64) TensorMap { u64 opaque[16]; };

__device__ __forceinline__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void wait(unsigned bar, unsigned phase) {
    asm volatile("{\n"
                 ".reg .pred P1;\n"
                 "LAB_WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
                 "@P1 bra DONE;\n"
                 "bra LAB_WAIT;\n"
                 "DONE:\n"
                 "}\n" ::"r"(bar), "r"(phase) : "memory");
}

extern "C" __global__ void bulk(float *out, const float *in, int bytes) {
    __shared__ alignas(128) float tile[1024];
    __shared__ u64 bar;
    unsigned b = shared_address(&bar), t = shared_address(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
        asm volatile("fence.mbarrier_init.release.cluster;");
        u64 state;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;" : "=l"(state) : "r"(b), "r"(bytes));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(t),
                     "l"(in), "r"(bytes), "r"(b) : "memory");
    }
    __syncthreads();
    wait(b, 0);
    tile[threadIdx.x] *= 2;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out), "r"(t), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(out), "r"(t), "r"(bytes));
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(in), "r"(bytes));
        asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(b));
    }
}

extern "C" __global__ void tensors(const __grid_constant__ TensorMap map, int x, int y) {
    __shared__ alignas(128) char tile[8192];
    __shared__ u64 bar;
    unsigned b = shared_address(&bar), t = shared_address(tile);
    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(1));
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(8192));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::
                     "r"(t), "l"(&map), "r"(b), "r"(x), "r"(y) : "memory");
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%3, %4, %3}], [%2], {%5}, %6;" ::"r"(t), "l"(&map), "r"(b), "r"(x), "r"(y), "h"((short)1),
                     "h"((short)3) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(t), "r"(x), "r"(y));
        asm volatile("cp.reduce.async.bulk.tensor.1d.global.shared::cta.min.bulk_group [%0, {%2}], [%1];" ::"l"(&map), "r"(t), "r"(x));
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 1;");
    }
    asm volatile("{ .reg .pred p; .reg .b32 r; elect.sync r|p, 0xffffffff; @p st.shared.b32 [%0], r; }" ::"r"(t));
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; @p bar.sync 1, 32; }");
}

// Without a swizzle a matrix lies in blocks of 8 rows of 16 bytes; here the two blocks of a row follow each other.
__device__ __forceinline__ u64 descriptor(const void *p) { return (u64)(shared_address(p) >> 4 & 0x3fff) | 8ull << 16 | 16ull << 32; }

extern "C" __global__ void __launch_bounds__(128) wgmma(float *out, const unsigned *a, const unsigned *b, int scale) {
    __shared__ alignas(128) unsigned tile_a[512], tile_b[64];
    float d[4] = {5, 5, 5, 5};
    unsigned ones[4] = {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
    for (int i = threadIdx.x; i < 512; i += 128) { // two halves at a time: row i / 8, columns 2 (i % 8) and the next
        int at = i / 64 * 64 + i % 8 / 4 * 32 + i / 8 % 8 * 4 + i % 4;
        tile_a[at] = a[i];
        if (i < 64) tile_b[at] = b[i];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, -1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(descriptor(tile_a)), "l"(descriptor(tile_b)), "r"(scale));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(ones[0]), "r"(ones[1]), "r"(ones[2]), "r"(ones[3]),
                   "l"(descriptor(tile_b)));
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
    for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = d[i];
}

extern "C" __global__ void __launch_bounds__(256, 1) registers(int *out) {
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        asm volatile("bar.arrive 2, 256;");
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        asm volatile("barrier.sync 2, 256;");
        out[threadIdx.x] = 1;
    }
}

extern "C" __global__ void __cluster_dims__(4) cluster(unsigned *out) {
    __shared__ unsigned mine[32];
    __shared__ u64 bar;
    unsigned rank, n, theirs, remote, v;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
    mine[threadIdx.x] = rank;
    if (threadIdx.x == 0) { // one arrival here, two from a neighbour, and four bytes
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 3;" ::"r"(shared_address(&bar)));
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4;" ::"r"(shared_address(&bar)) : "memory");
    }
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(shared_address(mine)), "r"((rank + 1) % n));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(&bar)), "r"((rank + 1) % n));
    asm volatile("ld.shared::cluster.u32 %0, [%1 + 4];" : "=r"(v) : "r"(theirs) : "memory");
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], 1;" ::"r"(theirs) : "memory");
    if (threadIdx.x == 0) {
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0 + 8], %1, [%2];" ::"r"(theirs), "r"(v * 100 + 7),
                     "r"(remote) : "memory");
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], 2;" ::"r"(remote) : "memory");
    }
    wait(shared_address(&bar), 0);
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(remote) : "r"(theirs));
    if (threadIdx.x < 3) out[rank * 4 + threadIdx.x] = mine[threadIdx.x];
    out[rank * 4 + 3] = v * 10 + remote;
}

extern "C" __global__ void multicast(float *p, u64 *q) {
    float4 v;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p) : "memory");
    asm volatile("multimem.st.release.sys.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(p + 4), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w));
    asm volatile("multimem.red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(q), "l"(1ull) : "memory");
    asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;" ::: "memory");
}

extern "C" __global__ void matrices(unsigned *out) {
    __shared__ alignas(128) unsigned s[256];
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%1,%1,%1};" ::"r"(shared_address(s + threadIdx.x * 4)), "r"(7));
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(shared_address(s + threadIdx.x % 8 * 4)), "r"(9) : "memory");
    __syncwarp();
    for (int i = threadIdx.x; i < 128; i += 32) out[i] = s[i];
}
