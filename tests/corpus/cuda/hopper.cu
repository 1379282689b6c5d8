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

extern "C" __global__ void __launch_bounds__(128) wgmma(float *out, u64 desc_a, u64 desc_b, int scale) {
    float d[4] = {0, 0, 0, 0};
    unsigned a[4] = {1, 2, 3, 4};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, -1, 0, 1; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(desc_a), "l"(desc_b), "r"(scale));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc_b));
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
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(shared_address(mine)), "r"((rank + 1) % n));
    asm volatile("ld.shared::cluster.u32 %0, [%1 + 4];" : "=r"(v) : "r"(theirs));
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(remote) : "r"(theirs));
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], 1;" ::"r"(theirs));
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(theirs), "r"(v),
                 "r"(shared_address(&bar)));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], 2;" ::"r"(shared_address(&bar)));
    asm volatile("barrier.cluster.arrive.relaxed; barrier.cluster.wait;");
    out[rank] = v + remote;
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
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(shared_address(s)), "r"(9) : "memory");
    out[threadIdx.x] = s[threadIdx.x];
}
