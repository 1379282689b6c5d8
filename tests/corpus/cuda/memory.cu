// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus rdc: nvrtc nvcc; sm_80 sm_90a; -std=c++17 -rdc=true
// corpus debug: nvrtc nvcc; sm_80; -std=c++17 -G
// corpus: clang+; sm_80; -O3 -std=c++17
// corpus debug: clang+; sm_80; -O0 -g -std=c++17
// State spaces: initialisers of every kind, relocations, shared statics, dynamic shared memory, locals, volatile.

typedef unsigned long long u64;

struct Node { int value; Node *next; const char *name; };
__device__ Node last = {2, nullptr, "last"};
__device__ Node first = {1, &last, "first"};
__device__ int table[3][4] = {{1, 2, 3, 4}, {5}, {9, 10}};
__device__ float floats[5] = {1.5f, -0.0f, 1e-40f, 3e38f};
__device__ double doubles[2] = {0.1, -1e300};
__device__ char text[] = "a \"quoted\" \\ text\n\t\xff";
__device__ short halves[7] = {-1, 2, -3};
__device__ bool flags[3] = {true, false, true};
__device__ int *into_table = &table[1][2];
__device__ volatile int counter;
__constant__ float weights[16] = {0.5f, 0.25f};
__constant__ u64 big = 0xfedcba9876543210ull;
__constant__ const float *where = floats + 2;
static __device__ int hidden = 42;
__device__ __managed__ int managed_counter = 3;
__device__ struct __align__(32) { float v[3]; char c; } aligned = {{1, 2, 3}, 'x'};

__device__ __noinline__ float *scratch() { static __shared__ float tile[64]; return tile; }
__device__ __noinline__ int next_ticket() { static int ticket = 100; return ticket++; }

extern "C" __global__ void spaces(int *out, int *counted, int i) {
    __shared__ int s[33];
    __shared__ struct { char c; double d; } mixed[4];
    extern __shared__ __align__(16) unsigned char dynamic[];
    int local[17];
    for (int k = 0; k < 17; k++) local[k] = table[k % 3][k % 4] + hidden;
    s[threadIdx.x % 33] = local[i % 17];
    mixed[threadIdx.x & 3].d = doubles[i & 1];
    ((float *)dynamic)[threadIdx.x] = weights[i & 15] + floats[i % 5];
    __syncthreads();
    out[threadIdx.x] = s[(i + 1) % 33] + (int)mixed[i & 3].d + (int)((float *)dynamic)[i] + text[i & 7] + halves[i % 7]
                       + flags[i % 3] + *into_table + (int)(big >> i) + (int)*where + aligned.c;
    scratch()[threadIdx.x & 63] = (float)threadIdx.x;
    __syncthreads();
    if (threadIdx.x) return;
    counter = counter + 1;
    managed_counter += first.next->value + first.name[0];
    volatile int *v = counted;
    v[1] += v[0];
    v[2] = counter;
    v[3] = managed_counter;
    v[4] = next_ticket() * 1000 + next_ticket();
    v[5] = (int)scratch()[63];
}

extern "C" __global__ void wide(int4 *a, const int4 *__restrict__ b, double2 *c, uchar4 *d, short2 *e, longlong2 *f) {
    int i = threadIdx.x;
    a[i] = __ldg(b + i);
    c[i] = make_double2(c[i].y, c[i].x);
    d[i] = make_uchar4(d[i].w, d[i].z, d[i].y, d[i].x);
    e[i].x += e[i].y;
    f[i].y = f[i].x;
    a[i + 32] = __ldcg(a + i);
#ifndef __clang__ // whose headers lack these
    __stcs(a + i + 64, __ldcs(a + i));
    __stwt(&a[i].x, __ldlu(&a[i].y));
#endif
}

extern "C" __global__ void addresses(u64 *out, float *g) {
    __shared__ float s[4];
    float l[4] = {1, 2, 3, (float)threadIdx.x};
    for (int i = 0; i < 4; i++) s[i] = 10 + i;
    out[0] = (u64)__cvta_shared_to_generic(__cvta_generic_to_shared(s)) - (u64)s;
    out[1] = __cvta_generic_to_global(g) - (u64)g;
    out[2] = __isShared(s) + __isLocal(l) * 2 + __isGlobal(g) * 4 + __isConstant(weights) * 8;
    out[3] = (u64)((g[0] > 0 ? (float *)s : l)[(int)g[1]]);
    out[4] = (u64)__cvta_local_to_generic(__cvta_generic_to_local(l)) - (u64)l;
    out[5] = (u64)*(float *)__cvta_shared_to_generic(__cvta_generic_to_shared(s + 3));
}

#ifndef __CUDACC_RTC__ // which has no alloca
extern "C" __global__ void stack(int *out, int n) {
    char *p = (char *)alloca(n);
    for (int i = 0; i < n; i++) p[i] = (char)(i * threadIdx.x);
    int sum = 0;
    for (int i = 0; i < n; i += 3) sum += p[i];
    out[threadIdx.x] = sum;
}
#endif

extern "C" __global__ void heap(int *out, const int *in, int n) {
    int *p = (int *)malloc(n * sizeof(int)), sum = 0;
    memset(p, 1, n * sizeof(int));
    memcpy(p, in + threadIdx.x, 16);
    p[n - 1] = n;
    for (int i = 0; i < n; i++) sum += p[i];
    void *volatile too_much = malloc((size_t)1 << 40);
    out[threadIdx.x] = sum + (too_much ? 1 : 0) + ((u64)p % 16 ? 1 : 0);
    free(p);
    free(nullptr);
}

extern "C" __global__ void freed_twice(int *out) {
    int *p = (int *)malloc(64);
    free(p);
    if (out[0]) free(p);
    if (out[1]) out[2] = *(volatile int *)p;
}
