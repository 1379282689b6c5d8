// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus debug: nvcc; sm_80; -std=c++17 -G
// corpus rdc: nvcc; sm_80; -std=c++17 -rdc=true
// corpus: clang+; sm_80; -O3 -std=c++17
// corpus debug: clang+; sm_80; -O0 -g -std=c++17
// Classes and calls in which lanes part: virtual bases, members by pointer, tables of functions, deep recursion.

#ifdef __clang__ // whose device code has no C++ run time
extern "C" __device__ void __cxa_pure_virtual() { __trap(); }
#endif
#ifndef __CUDACC_RTC__
#include <new>
#endif

struct Top {
    int top;
    __device__ Top(int t) : top(t) {}
    __device__ virtual int value() const { return top; }
    __device__ virtual ~Top() {}
};
struct West : virtual Top {
    int west;
    __device__ West(int t) : Top(t), west(t * 2) {}
    __device__ int value() const override { return Top::value() + west; }
};
struct East : virtual Top {
    int east;
    __device__ East(int t) : Top(t), east(t * 3) {}
    __device__ virtual int only_here(int x) { return east - x; }
};
struct Bottom : West, East {
    __device__ Bottom(int t) : Top(t + 1), West(t), East(t) {}
    __device__ int value() const override { return West::value() * 1000 + east; }
    __device__ int only_here(int x) override { return East::only_here(x) * 7; }
};

extern "C" __global__ void virtual_bases(int *out, int n) {
    alignas(16) unsigned char space[sizeof(Bottom)];
    Top *object;
    int kind = (threadIdx.x + n) % 3; // lanes of a warp have objects of different classes
    if (kind == 0) object = new (space) West(threadIdx.x);
    else if (kind == 1) object = new (space) East(threadIdx.x);
    else object = new (space) Bottom(threadIdx.x);
    int sum = object->value();
    if (kind == 2) sum += static_cast<East *>(static_cast<Bottom *>(object ? (Bottom *)(void *)space : nullptr))->only_here(n);
    out[threadIdx.x] = sum;
    object->~Top();
}

struct Machine {
    int state = 0;
    __device__ void add(int x) { state += x; }
    __device__ void times(int x) { state *= x; }
    __device__ void flip(int x) { state ^= x; }
    __device__ virtual void late(int x) { state -= x; }
};
struct Other : Machine {
    __device__ void late(int x) override { state = state * 2 - x; }
};

extern "C" __global__ void members_by_pointer(int *out, const int *program, int n) {
    typedef void (Machine::*Step)(int);
    const Step steps[] = {&Machine::add, &Machine::times, &Machine::flip, &Machine::late};
    Machine plain;
    Other other;
    Machine &m = threadIdx.x & 1 ? other : plain;
    for (int i = 0; i < n; i++) (m.*steps[(program[i] + threadIdx.x) & 3])(program[i] >> 2);
    out[threadIdx.x] = m.state;
}

typedef int (*Function)(int);
template <int K> __device__ __noinline__ int of(int x) { return x * K + K; }
__device__ Function functions[8] = {of<1>, of<2>, of<3>, of<4>, of<5>, of<6>, of<7>, of<8>};

extern "C" __global__ void tables(int *out, int rounds) { // each lane calls another function
    int x = threadIdx.x;
    for (int i = 0; i < rounds; i++) x = functions[(x + i) & 7](x) & 0xffff;
    out[threadIdx.x] = x;
}

__device__ __noinline__ int ackermann(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
__device__ __noinline__ void quick_sort(int *a, int low, int high) {
    while (low < high) {
        int pivot = a[(low + high) / 2], i = low, j = high;
        while (i <= j) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i <= j) { int t = a[i]; a[i++] = a[j]; a[j--] = t; }
        }
        if (j - low < high - i) { quick_sort(a, low, j); low = i; }
        else { quick_sort(a, i, high); high = j; }
    }
}
__device__ __noinline__ int paths(int x, int y, int *memo) { // a frame with an array in each call
    int local[4] = {x, y, 0, 0};
    if (x == 0 || y == 0) return 1;
    if (memo[x * 8 + y]) return memo[x * 8 + y];
    local[2] = paths(x - 1, y, memo);
    local[3] = paths(x, y - 1, memo);
    return memo[local[0] * 8 + local[1]] = local[2] + local[3];
}

extern "C" __global__ void recursion(int *out, int *rows, int n) {
    int t = threadIdx.x, memo[64] = {0};
    out[t * 2] = ackermann(t % 3, t % 5);
    quick_sort(rows + t * n, 0, n - 1);
    out[t * 2 + 1] = paths(t % 8, 7 - t % 5, memo);
}

extern "C" __global__ void endless(int *out, int n) { // deeper than the stack
    struct Deep {
        __device__ static __noinline__ int go(int *p, int k) {
            int here[16];
            for (int i = 0; i < 16; i++) here[i] = p[(k + i) & 15];
            return k == 0 ? here[3] : go(p, k - 1) + here[k & 15];
        }
    };
    out[16] = Deep::go(out, n);
}
