// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17 -rdc=true
// corpus lineinfo: nvrtc nvcc; sm_80; -std=c++17 -rdc=true -lineinfo
// corpus: clang+; sm_80; -O3 -std=c++17 -fgpu-rdc
// Separate compilation: undefined functions and variables, weak and static ones, indirect calls into other modules.

typedef unsigned long long u64;
struct Big { float v[12]; };

extern "C" __device__ int outside(int, float);
extern "C" __device__ void put(void *, const void *, u64, int);
extern "C" __device__ Big shuffle(Big, int);
extern __device__ int shared_counter;
extern __constant__ float constants[];
extern __shared__ float window[];
__device__ __noinline__ __attribute__((weak)) int replaceable(int x) { return x + 1; }
static __device__ __noinline__ int internal(int x) { return x ^ shared_counter; }
extern "C" __device__ int (*chosen)(int);
inline __device__ int inlined_weak(int x) { static int calls; return calls++ + x; }
template <class T> __device__ __noinline__ T twice(T x) { return x + x; }

extern "C" __device__ int region(int *p, float f) { return outside(*p, f) + replaceable(*p) + internal(*p) + twice(*p); }

extern "C" __device__ void wait_until(volatile u64 *signal, u64 value) {
    while (*signal < value) {}
    __threadfence_system();
}

extern "C" __global__ void kernel(int *out, Big *b) {
    window[threadIdx.x] = constants[threadIdx.x & 3];
    __syncthreads();
    out[0] = region(out, window[1]) + chosen(3) + inlined_weak(4);
    put(out + 1, out, 64, 1);
    b[0] = shuffle(b[1], out[2]);
    if (threadIdx.x == 0) wait_until((u64 *)(out + 4), 9);
}
