// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus lineinfo: nvrtc nvcc; sm_80; -std=c++17 -lineinfo
// corpus debug: nvrtc nvcc; sm_80; -std=c++17 -G
// corpus rdc: nvrtc nvcc; sm_80; -std=c++17 -rdc=true
// corpus: clang+; sm_80; -O3 -std=c++17
// corpus debug: clang+; sm_80; -O0 -g -std=c++17
// corpus lineinfo: clang+; sm_80; -O2 -gline-tables-only -std=c++17
// Switch tables, function pointers, virtual calls, lambdas, varargs, printf, assert, trap.

#ifdef __CUDACC_RTC__
extern "C" __device__ int printf(const char *, ...);
#else
#include <cassert>
#include <cstdio>
#include <new>
#endif

#ifdef __clang__ // whose device code has no C++ run time
extern "C" __device__ void __cxa_pure_virtual() { __trap(); }
#endif

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual void scale(float f) = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    float side;
    __device__ Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
    __device__ void scale(float f) override { side *= f; }
};
struct Circle : Shape {
    float radius;
    __device__ Circle(float r) : radius(r) {}
    __device__ float area() const override { return 3.14159f * radius * radius; }
    __device__ void scale(float f) override { radius *= f; }
};

extern "C" __global__ void virtual_calls(float *out, int n) {
    Square s((float)n);
    Circle c(2.0f);
    Shape *p = n & 1 ? (Shape *)&s : (Shape *)&c;
    p->scale(1.5f);
    out[threadIdx.x] = p->area();
}

extern "C" __global__ void heap_objects(Shape **list, float *out) {
    if (threadIdx.x == 0) list[0] = new Circle(1.0f), list[1] = new Square(2.0f);
    __syncthreads();
    out[threadIdx.x] = list[threadIdx.x & 1]->area();
    __syncthreads();
    if (threadIdx.x < 2) delete list[threadIdx.x];
}

typedef int (*Binary)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int minus(int a, int b) { return a - b; }
__device__ int times(int a, int b) { return a * b; }
__device__ Binary chosen = plus;
__constant__ Binary table[3] = {plus, minus, times};

extern "C" __global__ void function_pointers(int *out, int op, int a, int b) {
    out[0] = table[op](a, b) + chosen(b, a);
    Binary f = op ? minus : times;
    out[1] = f(a, b);
}

extern "C" __global__ void switches(int *out, int n) {
    int r = 0;
    out += threadIdx.x * 4;
    switch (out[0]) {
    case 0: r = n * 3; break;
    case 1: r = n - out[1]; break;
    case 2: r = n ^ 0x55; // falls through
    case 3: r += out[2] / (n | 1); break;
    case 4: r = __popc(n); break;
    case 5: out[3] = 1; return;
    case 6: r = n << 3; break;
    case 7: asm volatile("exit;"); break;
    case 12: r = -1; break;
    case 13: __trap(); break;
    default: r = 99;
    }
    out[0] = r;
}

extern "C" __global__ void prints(int n, float f) {
    printf("plain\n");
    printf("%d %f %s %c %lld %%\n", n, f, n ? "yes" : "no", 'x', (long long)n << 40);
}

extern "C" __global__ void formats(int *out, int n, double d, unsigned long long u) {
    int r = printf("[%5d|%-5d|%05d|%+d|% d|%i|%u]\n", n, n, n, n, n, -n, n);
    r = r * 100 + printf("[%x|%X|%#x|%o|%#o|%08x|%.3d]\n", n, n, n, n, n, n, n);
    r = r * 100 + printf("[%lld|%llu|%llx|%ld|%hd|%zu]\n", -(long long)u, u, u, (long)u, (int)(short)n, (size_t)u);
    r = r * 100 + printf("[%f|%.2f|%10.3f|%-10.1f|%+.0f|%e|%.3E|%g|%G|%a]\n", d, d, d, d, d, d, d, d, d, d);
    printf("[%*d|%-*d|%.*f|%s|%10s|%-10s|%.2s|%c%c]\n", 7, n, 7, n, 2, d, "text", "right", "left", "cut", n % 26 + 'a', 'Z');
    out[0] = r;
    out[1] = printf("");
}

template <class F> __device__ void each(int n, F f) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) f(i);
}

extern "C" __global__ void lambdas(float *out, const float *in, int n) {
    float k = in[0];
    each(n, [=](int i) { out[i] = in[i] * k; });
    auto twice = [&](float v) { k += v; return k * 2; };
    float first = twice(1.0f);
    out[n] = first + twice(2.0f);
}

template <int N> struct Unrolled {
    __device__ static __noinline__ int run(int x) { return Unrolled<N - 1>::run(x * N + 1); }
};
template <> struct Unrolled<0> { __device__ static int run(int x) { return x; } };
template <class T, int K> __global__ void templated(T *out, T x) {
    for (int i = 0; i < K; i++) out[i] = x + (T)i;
}
template __global__ void templated<double, 3>(double *, double);
template __global__ void templated<unsigned char, 5>(unsigned char *, unsigned char);
extern "C" __global__ void chain(int *out, int x) { out[0] = Unrolled<5>::run(x); }

#ifndef __CUDACC_RTC__
__device__ __noinline__ int sum_of(int n, ...) {
    __builtin_va_list list;
    __builtin_va_start(list, n);
    int sum = 0;
    for (int i = 0; i < n; i++) sum += __builtin_va_arg(list, int);
    double d = __builtin_va_arg(list, double);
    __builtin_va_end(list);
    return sum + (int)d;
}

extern "C" __global__ void varargs(int *out, int a) { out[0] = sum_of(3, a, 2, 3, 4.5) + sum_of(1, 7, 1.0); }

extern "C" __global__ void asserts(int *out, int n) {
    assert(n > 0 && "n must be positive");
    out[0] = 100 / n;
}
#endif

namespace deep { namespace er {
struct Counter {
    int n;
    __device__ Counter operator+(const Counter &o) const { return {n + o.n}; }
    __device__ explicit operator bool() const { return n != 0; }
};
__device__ __noinline__ Counter total(const Counter *c, int n) {
    Counter t{0};
    for (int i = 0; i < n; i++) t = t + c[i];
    return t;
}
}}
extern "C" __global__ void classes(deep::er::Counter *c, int n) { if (auto t = deep::er::total(c, n)) c[n] = t; }

extern "C" __global__ void gotos(int *out, int n) {
    int i = 0;
again:
    if (out[i] < 0) goto done;
    if (++i < n) goto again;
    out[0] = -1;
done:
    out[1] = i;
}
