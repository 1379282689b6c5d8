// corpus: nvcc; sm_80 sm_90a; -std=c++17
// corpus: nvrtc; sm_80; -std=c++17
// A sort of the whole device in one launch, and more of CUB's blocks: merge sort, runs, exchanges, warps.
#include <cooperative_groups.h>
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
namespace cg = cooperative_groups;

struct Less {
    template <class T> __device__ bool operator()(const T &a, const T &b) const { return a < b; }
};

struct Differs {
    __device__ bool operator()(int a, int b) const { return a != b; }
};
struct Minus {
    __device__ int operator()(int a, int b) const { return a - b; }
};

// Least significant digit first, four bits at a time: each block counts its part, one scan over all counts, each block scatters.
extern "C" __global__ void __launch_bounds__(128) device_radix_sort(unsigned *keys, unsigned *other, int *counts, int n) {
    using Scan = cub::BlockScan<int, 128>;
    __shared__ typename Scan::TempStorage scan;
    __shared__ int bins[16], offsets[16];
    auto grid = cg::this_grid();
    int t = threadIdx.x, blocks = gridDim.x, each = (n + blocks - 1) / blocks, begin = blockIdx.x * each, end = min(n, begin + each);
    for (int shift = 0; shift < 32; shift += 4) {
        if (t < 16) bins[t] = 0;
        __syncthreads();
        for (int i = begin + t; i < end; i += 128) atomicAdd(bins + (keys[i] >> shift & 15), 1);
        __syncthreads();
        if (t < 16) counts[t * blocks + blockIdx.x] = bins[t];
        grid.sync();
        if (blockIdx.x == 0) {
            int total = 0;
            for (int i = 0; i < 16 * blocks; i += 128) {
                int v = i + t < 16 * blocks ? counts[i + t] : 0, all;
                Scan(scan).ExclusiveSum(v, v, all);
                if (i + t < 16 * blocks) counts[i + t] = v + total;
                total += all;
                __syncthreads();
            }
        }
        grid.sync();
        if (t < 16) offsets[t] = counts[t * blocks + blockIdx.x];
        __syncthreads();
        for (int i = begin; i < end; i += 128) { // equal digits keep their order: ranks by ballots, warp after warp
            bool mine = i + t < end;
            unsigned key = mine ? keys[i + t] : 0, digit = key >> shift & 15;
            for (int warp = 0; warp < 4; warp++) {
                if (t / 32 == warp) {
                    unsigned peers = __match_any_sync(~0u, mine ? digit : 16u), before = peers & ((1u << t % 32) - 1);
                    int at = mine ? offsets[digit] + __popc(before) : 0;
                    __syncwarp();
                    if (mine && before == 0) offsets[digit] += __popc(peers);
                    if (mine) other[at] = key;
                }
                __syncthreads();
            }
        }
        unsigned *swap = keys;
        keys = other, other = swap;
        grid.sync();
    }
}

extern "C" __global__ void __launch_bounds__(64) merge_sorts(double *keys, int *values, long long *warps) {
    using Sort = cub::BlockMergeSort<double, 64, 5, int>;
    using WarpSort = cub::WarpMergeSort<long long, 3, 32>;
    __shared__ union {
        typename Sort::TempStorage block;
        typename WarpSort::TempStorage warp[2];
    } shared;
    double k[5];
    int v[5];
    for (int i = 0; i < 5; i++) k[i] = keys[threadIdx.x * 5 + i], v[i] = values[threadIdx.x * 5 + i];
    Sort(shared.block).StableSort(k, v, Less());
    for (int i = 0; i < 5; i++) keys[threadIdx.x * 5 + i] = k[i], values[threadIdx.x * 5 + i] = v[i];
    __syncthreads();
    long long w[3];
    for (int i = 0; i < 3; i++) w[i] = warps[threadIdx.x * 3 + i];
    WarpSort(shared.warp[threadIdx.x / 32]).Sort(w, Less());
    for (int i = 0; i < 3; i++) warps[threadIdx.x * 3 + i] = w[i];
}

extern "C" __global__ void __launch_bounds__(128) radix_sorts(float *floats, short *shorts, unsigned long long *longs) {
    using Floats = cub::BlockRadixSort<float, 128, 3>;
    using Shorts = cub::BlockRadixSort<short, 128, 2>;
    using Longs = cub::BlockRadixSort<unsigned long long, 128, 2>;
    __shared__ union {
        typename Floats::TempStorage a;
        typename Shorts::TempStorage b;
        typename Longs::TempStorage c;
    } shared;
    float f[3];
    for (int i = 0; i < 3; i++) f[i] = floats[threadIdx.x * 3 + i];
    Floats(shared.a).SortDescending(f);
    for (int i = 0; i < 3; i++) floats[threadIdx.x * 3 + i] = f[i];
    __syncthreads();
    short s[2] = {shorts[threadIdx.x * 2], shorts[threadIdx.x * 2 + 1]};
    Shorts(shared.b).SortBlockedToStriped(s);
    shorts[threadIdx.x] = s[0], shorts[threadIdx.x + 128] = s[1];
    __syncthreads();
    unsigned long long l[2] = {longs[threadIdx.x * 2], longs[threadIdx.x * 2 + 1]};
    Longs(shared.c).Sort(l, 8, 24); // by these bits alone
    longs[threadIdx.x * 2] = l[0], longs[threadIdx.x * 2 + 1] = l[1];
}

extern "C" __global__ void __launch_bounds__(96) neighbours(int *out, const int *in) {
    using Heads = cub::BlockDiscontinuity<int, 96>;
    using Difference = cub::BlockAdjacentDifference<int, 96>;
    using Exchange = cub::BlockExchange<int, 96, 4>;
    using Shuffle = cub::BlockShuffle<int, 96>;
    __shared__ union {
        typename Heads::TempStorage heads;
        typename Difference::TempStorage difference;
        typename Exchange::TempStorage exchange;
        typename Shuffle::TempStorage shuffle;
    } shared;
    int v[4], flags[4], r[4], t = threadIdx.x;
    for (int i = 0; i < 4; i++) v[i] = in[t * 4 + i];
    Heads(shared.heads).FlagHeads(flags, v, Differs());
    for (int i = 0; i < 4; i++) out[t * 4 + i] = flags[i];
    __syncthreads();
    Difference(shared.difference).SubtractLeft(v, r, Minus());
    for (int i = 0; i < 4; i++) out[384 + t * 4 + i] = r[i];
    __syncthreads();
    Exchange(shared.exchange).BlockedToStriped(v, r);
    for (int i = 0; i < 4; i++) out[768 + t * 4 + i] = r[i];
    __syncthreads();
    int moved = t;
    Shuffle(shared.shuffle).Offset(v[0], moved, 5);
    out[1152 + t] = moved;
}

struct Span { int least, most, sum; };
struct Join {
    __device__ Span operator()(const Span &a, const Span &b) const { return {min(a.least, b.least), max(a.most, b.most), a.sum + b.sum}; }
};

extern "C" __global__ void __launch_bounds__(160) structures(Span *out, const int *in) { // reductions and scans of more than a word
    using Reduce = cub::BlockReduce<Span, 160, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>;
    using Scan = cub::BlockScan<Span, 160, cub::BLOCK_SCAN_WARP_SCANS>;
    using WarpReduce = cub::WarpReduce<Span, 16>;
    __shared__ typename Reduce::TempStorage a;
    __shared__ typename Scan::TempStorage b;
    __shared__ typename WarpReduce::TempStorage c[10];
    int v = in[threadIdx.x];
    Span s = {v, v, v}, all = Reduce(a).Reduce(s, Join()), scanned;
    Scan(b).InclusiveScan(s, scanned, Join());
    out[threadIdx.x] = scanned;
    if (threadIdx.x == 0) out[160] = all;
    Span part = WarpReduce(c[threadIdx.x / 16]).Reduce(s, Join());
    if (threadIdx.x % 16 == 0) out[161 + threadIdx.x / 16] = part;
    Span heads = WarpReduce(c[threadIdx.x / 16]).HeadSegmentedReduce(s, threadIdx.x % 5 == 0, Join());
    if (threadIdx.x % 16 == 0) out[171 + threadIdx.x / 16] = heads;
}
