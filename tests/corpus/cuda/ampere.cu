// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus: clang+; sm_80; -O3 -std=c++17
// cp.async, mbarrier of sm_80, cache policies, prefetches, and other instructions only inline assembly reaches.

typedef unsigned long long u64;

__device__ __forceinline__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void async_copies(float *out, const float4 *in, int n) {
    __shared__ alignas(16) float4 tile[2][128];
    __shared__ u64 bar;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(&bar)), "r"(blockDim.x * 2));
    __syncthreads();
    unsigned at = shared_address(&tile[0][threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(in + threadIdx.x));
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;" ::"r"(at + 2048), "l"(in), "r"(n));
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %2, 7; cp.async.ca.shared.global [%0+8], [%1], 4, p; }" ::"r"(at + 2048), "l"(in), "r"(n));
    asm volatile("cp.async.commit_group;\ncp.async.wait_group %0;" ::"n"(1));
    asm volatile("cp.async.wait_all;" ::: "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&bar)));
    u64 state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(shared_address(&bar)) : "memory");
    unsigned done;
    do {
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(shared_address(&bar)), "l"(state) : "memory");
    } while (!done);
    unsigned other = threadIdx.x ^ 1, pending = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 2;" : "=l"(state) : "r"(shared_address(&bar)));
        asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 1;" : "=l"(state) : "r"(shared_address(&bar)));
        asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
        out[blockDim.x] = pending;
    }
    out[threadIdx.x] = tile[0][other].x + tile[0][other].w * 10 + tile[1][other].x * 100 + tile[1][other].y * 1000 + tile[1][other].z * 10000;
}

extern "C" __global__ void policies(float *out, const float *in) {
    u64 policy, range;
    float a, b, c, d;
    asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(policy));
    asm volatile("createpolicy.range.global.L2::evict_first.b64 %0, [%1], 0x100000, 0x200000;" : "=l"(range) : "l"(in));
    asm volatile("ld.global.L1::evict_last.L2::cache_hint.L2::128B.f32 %0, [%1], %2;" : "=f"(a) : "l"(in), "l"(policy));
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.f32 %0, [%1+16];" : "=f"(b) : "l"(in));
    asm volatile("ld.global.v2.f32 {%0, %1}, [%2+-8];" : "=f"(c), "=f"(d) : "l"(in + 8));
    asm volatile("st.global.L1::no_allocate.L2::cache_hint.f32 [%0], %1, %2;" ::"l"(out), "f"(a + b + c + d), "l"(range));
    asm volatile("prefetch.global.L2::evict_normal [%0];" ::"l"(in));
    asm volatile("prefetchu.L1 [%0];" ::"l"(in));
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(out + 128));
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(out + 256));
}

extern "C" __global__ void odd_instructions(unsigned *o, u64 *w, float *f, double *d, unsigned x, unsigned y, int s) {
    unsigned r[12];
    asm("bfe.s32 %0, %1, %2, 7;" : "=r"(r[0]) : "r"(x), "r"(y));
    asm("bfind.shiftamt.u32 %0, %1;" : "=r"(r[1]) : "r"(x));
    asm("szext.clamp.s32 %0, %1, %2;" : "=r"(r[2]) : "r"(x), "r"(y));
    asm("bmsk.wrap.b32 %0, %1, %2;" : "=r"(r[3]) : "r"(x), "r"(y));
    asm("lop3.b32 %0, %1, %2, %3, 0x2c;" : "=r"(r[4]) : "r"(x), "r"(y), "r"(s));
    asm("shf.r.wrap.b32 %0, %1, %2, 13;" : "=r"(r[5]) : "r"(x), "r"(y));
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r[6]) : "r"(x), "r"(y), "r"(s));
    asm("vset.u32.s32.lt.add %0, %1.b2, %2.h1, %1;" : "=r"(r[7]) : "r"(x), "r"(y));
    asm("vsub.s32.u32.s32.sat.min %0, %1.b0, %2, %1;" : "=r"(r[8]) : "r"(x), "r"(y));
    asm("vabsdiff4.u32.u32.u32.add %0, %1.b7610, %2, %1;" : "=r"(r[9]) : "r"(x), "r"(y));
    asm("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r"(r[10]) : "r"(x), "r"(y), "r"(s));
    asm("fns.b32 %0, %1, 3, -2;" : "=r"(r[11]) : "r"(x));
    for (int i = 0; i < 12; i++) o[i] = r[i];
    asm("{ .reg .u32 lo; add.cc.u32 lo, %1, %2; addc.cc.u32 %0, lo, 1; addc.u32 %0, %0, 0; }" : "=r"(r[0]) : "r"(x), "r"(y));
    asm("{ sub.cc.u32 %0, %1, %2; subc.u32 %0, %0, %1; mad.lo.cc.u32 %0, %1, %2, %0; madc.hi.u32 %0, %1, %2, 0; }" : "=&r"(r[1]) : "r"(x), "r"(y));
    asm("mad24.hi.s32 %0, %1, %2, %1;" : "=r"(r[2]) : "r"(x), "r"(y));
    asm("{ .reg .pred p, q; setp.lt.and.u32 p|q, %1, %2, !p; selp.u32 %0, 5, 6, q; }" : "=r"(r[3]) : "r"(x), "r"(y));
    asm("slct.u32.s32 %0, %1, %2, %3;" : "=r"(r[4]) : "r"(x), "r"(y), "r"(s));
    asm("set.gt.u32.f32 %0, %1, 0f3f800000;" : "=r"(r[5]) : "f"(f[0]));
    asm("{ .reg .pred p; testp.subnormal.f32 p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(r[6]) : "f"(f[1]));
    for (int i = 0; i < 7; i++) o[16 + i] = r[i];
    asm("copysign.f32 %0, %1, %2;" : "=f"(f[2]) : "f"(f[0]), "f"(f[1]));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(f[3]) : "f"(f[0]));
    asm("tanh.approx.f32 %0, %1;" : "=f"(f[4]) : "f"(f[0]));
    asm("fma.rn.ftz.sat.f32 %0, %1, 0.5, 1.5e2;" : "=f"(f[5]) : "f"(f[0]));
#if __CUDA_ARCH__ >= 900
    asm("min.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(f[6]) : "f"(f[0]), "f"(f[1]));
#endif
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(d[1]) : "d"(d[0]));
    asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(r[0]) : "f"(f[0]));
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r[1]) : "f"(f[0]), "f"(f[1]));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r[2]) : "f"(f[0]));
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(r[3]) : "r"(x), "r"(y), "r"(s));
    asm("fma.rn.relu.f16x2 %0, %1, %2, %1;" : "=r"(r[4]) : "r"(x), "r"(y));
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(r[5]) : "r"(x), "r"(y));
    for (int i = 0; i < 6; i++) o[32 + i] = r[i];
    asm("mov.b64 {%0, %1}, %2;" : "=r"(r[0]), "=r"(r[1]) : "l"(w[0]));
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, l}; }" : "=r"(r[2]) : "r"(x));
    asm("{ .reg .v4 .b32 v; mov.b32 v.x, %1; mov.b32 v.w, %2; add.u32 %0, v.x, v.w; }" : "=r"(r[3]) : "r"(x), "r"(y));
    asm("{ .reg .pred p; isspacep.shared p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(r[4]) : "l"(w));
    asm volatile("pmevent 3; nanosleep.u32 20;");
    for (int i = 0; i < 5; i++) o[48 + i] = r[i];
}

extern "C" __global__ void specials(unsigned *o, u64 *w) {
    unsigned v;
#define S(i, name) asm volatile("mov.u32 %0, %%" name ";" : "=r"(v)); o[i] = v;
    S(0, "laneid") S(1, "warpid") S(2, "nwarpid") S(3, "smid") S(4, "nsmid") S(5, "lanemask_eq") S(6, "lanemask_lt")
    S(7, "lanemask_ge") S(8, "clock") S(9, "clock_hi") S(10, "globaltimer_lo") S(11, "dynamic_smem_size")
    S(12, "total_smem_size") S(13, "tid.z") S(14, "ntid.y") S(15, "ctaid.x") S(16, "nctaid.z") S(17, "pm0") S(18, "envreg1")
    S(19, "reserved_smem_offset_begin")
    u64 t;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)); w[0] = t;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(t)); w[1] = t;
    asm volatile("mov.u32 %0, WARP_SZ;" : "=r"(v)); o[20] = v;
    asm volatile("activemask.b32 %0;" : "=r"(v)); o[21] = v;
}

extern "C" __global__ void breakpoint(unsigned *o) {
    if (o[0]) asm volatile("brkpt;");
    o[1] = 1;
}
