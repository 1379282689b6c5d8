// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus debug: nvcc; sm_80; -std=c++17 -G
// CUB's block and warp collectives: long functions with many shared variables.
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

struct Largest {
    __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};

extern "C" __global__ void __launch_bounds__(128) sort(unsigned *keys, int *values) {
    using Load = cub::BlockLoad<unsigned, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<unsigned, 128, 4, int>;
    using Store = cub::BlockStore<unsigned, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Sort::TempStorage sort;
        typename Store::TempStorage store;
    } shared;
    unsigned k[4];
    int v[4];
    Load(shared.load).Load(keys + blockIdx.x * 512, k);
    for (int i = 0; i < 4; i++) v[i] = values[threadIdx.x * 4 + i];
    __syncthreads();
    Sort(shared.sort).Sort(k, v);
    __syncthreads();
    Store(shared.store).Store(keys + blockIdx.x * 512, k);
    for (int i = 0; i < 4; i++) values[threadIdx.x * 4 + i] = v[i];
}

extern "C" __global__ void __launch_bounds__(256) reduce_scan(int *out, const int *in, float *f) {
    using Reduce = cub::BlockReduce<int, 256>;
    using Scan = cub::BlockScan<int, 256, cub::BLOCK_SCAN_RAKING>;
    using FReduce = cub::BlockReduce<float, 256, cub::BLOCK_REDUCE_RAKING>;
    __shared__ typename Reduce::TempStorage a;
    __shared__ typename Scan::TempStorage b;
    __shared__ typename FReduce::TempStorage c;
    int v = in[threadIdx.x], total;
    int most = Reduce(a).Reduce(v, Largest());
    Scan(b).ExclusiveSum(v, v, total);
    out[threadIdx.x] = v;
    if (threadIdx.x == 0) out[256] = most + total;
    float all = FReduce(c).Sum(f[threadIdx.x]);
    if (threadIdx.x == 0) f[256] = all;
}

extern "C" __global__ void __launch_bounds__(64) warps(double *out, const double *in) {
    using Reduce = cub::WarpReduce<double>;
    using Scan = cub::WarpScan<double, 16>;
    __shared__ typename Reduce::TempStorage a[2];
    __shared__ typename Scan::TempStorage b[4];
    double v = in[threadIdx.x], s;
    Scan(b[threadIdx.x / 16]).InclusiveSum(v, s);
    out[threadIdx.x] = s;
    v = Reduce(a[threadIdx.x / 32]).Sum(v);
    if (threadIdx.x % 32 == 0) out[64 + threadIdx.x / 32] = v;
}

extern "C" __global__ void __launch_bounds__(128) histogram(unsigned *out, const unsigned char *in) {
    using Histogram = cub::BlockHistogram<unsigned char, 128, 4, 256, cub::BLOCK_HISTO_ATOMIC>;
    __shared__ typename Histogram::TempStorage a;
    __shared__ unsigned bins[256];
    unsigned char v[4];
    for (int i = 0; i < 4; i++) v[i] = in[threadIdx.x * 4 + i];
    Histogram(a).Histogram(v, bins);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += 128) out[i] = bins[i];
}
