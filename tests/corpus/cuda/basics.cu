// corpus: nvrtc nvcc; sm_80 sm_90a sm_100a; -std=c++17
// corpus lineinfo: nvrtc nvcc; sm_80 sm_90a; -std=c++17 -lineinfo
// corpus debug: nvrtc nvcc; sm_80 sm_90a; -std=c++17 -G
// corpus rdc: nvrtc nvcc; sm_80; -std=c++17 -rdc=true
// corpus: clang+; sm_80 sm_90a; -O3 -std=c++17
// corpus debug: clang+; sm_80; -O0 -g -std=c++17
// corpus lineinfo: clang+; sm_80; -O2 -gline-tables-only -std=c++17
// Kernels and functions of the plainest kind: by value, by pointer, called, inlined, unrolled, recursive.

#define API extern "C" __global__

struct Pair { int a; float b; };
struct Holes { char c; double d; short s; };
struct Large { float v[24]; Holes h; };

__device__ __noinline__ Pair make_pair(int a, float b) { return {a + 1, b * 2.0f}; }
__device__ __noinline__ Holes turn(Holes h) { return {(char)(h.s), -h.d, (short)h.c}; }
__device__ __noinline__ Large grow(Large l, int i) { l.v[i] += (float)l.h.d; l.h.s++; return l; }
__device__ __forceinline__ float mix(float x, float y) { return x * 0.25f + y * 0.75f; }
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ int is_odd(int n);
__device__ __noinline__ int is_even(int n) { return n == 0 ? 1 : is_odd(n - 1); }
__device__ __noinline__ int is_odd(int n) { return n == 0 ? 0 : is_even(n - 1); }
__device__ __noinline__ void store_through(float *p, float v) { *p = v; }
__device__ __noinline__ bool small(char c, unsigned char u, short s, unsigned short us) { return c < u && s < us; }

API void axpy(float *y, const float *__restrict__ x, float a, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] += a * __ldg(x + i);
}

API void structs(Pair *p, Holes *h, Large *l, Large by_value, int i) {
    p[i] = make_pair(p[i].a, p[i].b);
    h[i] = turn(h[i]);
    l[i] = grow(by_value, i & 15);
}

API void recursion(int *out, int n) { out[threadIdx.x] = fib(n + (int)threadIdx.x % 3) + is_even(n); }

API void early_exits(float *out, const float *in, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    float v = in[i];
    if (v < 0) { store_through(out + i, mix(v, 1.0f)); return; }
#pragma unroll 4
    for (int k = 0; k < 16; k++) { if (v > 100.0f) break; v = mix(v, v * v); }
#pragma unroll 1
    while (v > 1.0f) v *= 0.5f;
    store_through(out + i, v);
}

API void __launch_bounds__(256, 2) bounded(int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = small(threadIdx.x, 7, 9, blockIdx.x); }
API void __maxnreg__(64) limited(double *out, double x) { out[threadIdx.x] = x / 3.0 + 1e-300; }

API void integers(long long *out, unsigned long long a, unsigned b, int c, short s) {
    out[0] = (long long)(a / b) + (long long)(a % (b | 1)) + (a >> (b & 63)) + ((long long)c << (b & 31));
    out[1] = __mulhi(c, (int)b) + __umulhi(b, 77u) + __mul24(c, s) + __sad(c, 3, b) + __clz(c) + __ffsll(a) + __popcll(a);
    out[2] = __brev(b) + __byte_perm(b, c, 0x3210) + __funnelshift_l(b, c, 5) + __usad(b, 1u, 2u) + __rhadd(c, 3);
    out[3] = min(c, 5) + max((long long)s, 7LL) + abs(c) + (long long)__umul64hi(a, a) + __dp4a(c, (int)b, 1);
}

API void conversions(double *d, float *f, int i, unsigned u, long long l, float x, double y) {
    d[0] = i; d[1] = u; d[2] = (double)l; d[3] = x;
    f[0] = (float)y; f[1] = (float)l; f[2] = __int_as_float(i); f[3] = __uint2float_rz(u);
    f[4] = (float)(int)x + (float)(unsigned)y + (float)__float2int_ru(x) + (float)__double2ll_rd(y);
    f[5] = (float)(unsigned char)x + (float)(short)y + (float)__float_as_int(x);
}
