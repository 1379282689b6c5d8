// corpus: clang; sm_80; -O3 -nocudainc -nocudalib
// corpus o0: clang; sm_80; -O0 -nocudainc -nocudalib
// corpus debug: clang; sm_80; -O0 -g -nocudainc -nocudalib
// corpus lineinfo: clang; sm_80; -O2 -gline-tables-only -nocudainc -nocudalib
// corpus directives: clang; sm_80; -O2 -gline-directives-only -nocudainc -nocudalib
// corpus rdc: clang; sm_80; -O2 -fgpu-rdc -nocudainc -nocudalib
// What clang makes of device code with no CUDA header at all.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define NOINLINE __attribute__((noinline))

typedef unsigned long long u64;
typedef float float4 __attribute__((ext_vector_type(4)));

struct Pair { int a; double b; };
struct Big { char c[3]; short s; Pair p[4]; };
extern "C" __device__ void __cxa_pure_virtual() { __builtin_trap(); } // which tables of virtual functions name
struct Base {
    __device__ virtual int get(int x) = 0;
};
struct Left : Base {
    int k;
    __device__ int get(int x) override { return x + k; }
};
struct Right : Base {
    __device__ int get(int x) override { return x * 3; }
};

__device__ int table[4] = {1, 2, 3, 4};
__device__ int *into = &table[0];
__constant__ float weights[3] = {1.5f, 2.5f, -3.0f};
static __device__ const char message[] = "hello\n";

__device__ NOINLINE Pair make(int a, double b) { return {a, b}; }
__device__ NOINLINE Big change(Big b, int i) { b.p[i & 3].a++; b.s = (short)i; return b; }
__device__ NOINLINE int recursive(int n) { return n < 2 ? 1 : n * recursive(n - 1) + recursive(n - 2); }
__device__ NOINLINE float4 vectors(float4 a, float4 b) { return a * b + a.wzyx; }
__device__ NOINLINE int add(int a, int b) { return a + b; }
__device__ NOINLINE int sub(int a, int b) { return a - b; }
__device__ NOINLINE __int128 wide(__int128 a, long long b) { return a * b + 1; }
__device__ NOINLINE bool flag(char c, unsigned short s) { return c < s; }

extern "C" __global__ void structs(Big *b, Pair *p, Big by_value, int i) {
    b[i] = change(by_value, i);
    p[i] = make(i, p[i + 1].b);
}

extern "C" __global__ void calls(int *out, int n) {
    int (*f)(int, int) = n & 1 ? add : sub;
    Right r;
    Left l;
    l.k = n;
    Base *o = n & 2 ? (Base *)&l : (Base *)&r;
    out[0] = f(n, 3) + recursive(n) + o->get(n) + flag((char)n, 7) + *into;
    out[1] = (int)wide(((__int128)n << 70) | n, n) + message[n & 3];
}

extern "C" __global__ void memory(float *out, const float4 *in, int n) {
    __shared__ float tile[256];
    float local[20];
    int t = __nvvm_read_ptx_sreg_tid_x();
    for (int i = 0; i < 20; i++) local[i] = weights[i % 3] * n;
    tile[t] = local[n % 20];
    __syncthreads();
    float4 v = vectors(in[t], in[t + 1]);
    out[t] = tile[255 - t] + v.x + v.w;
    __nvvm_atom_add_gen_i((int *)out + 256, n);
    __atomic_fetch_add((int *)out + 257, n, __ATOMIC_ACQ_REL);
    __atomic_store_n((int *)out + 258, n, __ATOMIC_RELAXED);
}

extern "C" __global__ void control(int *out, int n) {
    int r = 0;
    switch (n) {
    case 0: r = 1; break;
    case 1: r = out[4]; break;
    case 2: r = out[1] * 7; break;
    case 3: r = -n; // falls through
    case 4: r += 5; break;
    case 5: return;
    case 6: __builtin_trap();
    case 9: r = out[2] / out[3]; break;
    default: r = 8;
    }
    for (int i = 0; i < n; i++) {
        if (out[i] == 77) continue;
        if (out[i] < 0) break;
        r += out[i] % (i + 1);
    }
    asm volatile("{ .reg .pred p; setp.eq.s32 p, %0, 3; @p bra L_%=; st.global.u32 [%1], %0; L_%=: }" ::"r"(r), "l"(out));
    out[0] = r;
    if (n == 12345) __builtin_unreachable();
}
