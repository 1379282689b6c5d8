// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17
// corpus debug: nvcc; sm_80; -std=c++17 -G
// corpus rdc: nvcc; sm_90a; -std=c++17 -rdc=true
// Groups of all sizes, in branches and in loops: partitions, votes, matches, scans, barriers in two halves.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
namespace cg = cooperative_groups;

template <int Size> __device__ int of_size(cg::thread_block &block, int v) {
    auto tile = cg::tiled_partition<Size>(block);
    int sum = cg::reduce(tile, v, cg::plus<int>()), all = cg::reduce(tile, v, cg::bit_and<int>());
    int before = cg::exclusive_scan(tile, v, cg::plus<int>()), most = cg::inclusive_scan(tile, v, cg::greater<int>());
    int last = tile.shfl(v, Size - 1), up = tile.shfl_up(v, 1), turned = tile.shfl_xor(v, Size / 2 ? Size / 2 : 0);
    return sum * 3 + all * 5 + before * 7 + most * 11 + last * 13 + up * 17 + turned * 19 + (int)tile.meta_group_rank() * 23 + (int)tile.meta_group_size() * 29
           + (int)tile.thread_rank() * 31;
}

extern "C" __global__ void sizes(int *out, const int *in) {
    auto block = cg::this_thread_block();
    int v = in[block.thread_rank()], n = block.size(), t = block.thread_rank();
    out[t] = of_size<1>(block, v);
    out[n + t] = of_size<2>(block, v);
    out[2 * n + t] = of_size<4>(block, v);
    out[3 * n + t] = of_size<8>(block, v);
    out[4 * n + t] = of_size<16>(block, v);
    out[5 * n + t] = of_size<32>(block, v);
    dim3 at = block.thread_index(), shape = block.dim_threads();
    out[6 * n + t] = at.x + at.y * 100 + at.z * 10000 + shape.x * shape.y * shape.z * 100000;
}

struct Pair { float a; int b; double c; };

extern "C" __global__ void shuffled_structures(Pair *p) {
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    Pair mine = p[threadIdx.x], theirs = tile.shfl(mine, (tile.thread_rank() + 5) % 16);
    p[threadIdx.x] = {theirs.a + mine.a, theirs.b, tile.shfl_down(mine, 4).c};
}

extern "C" __global__ void in_branches(int *out, int *counters, const int *in) {
    int v = in[threadIdx.x];
    if (v % 4 == 0) { // lanes that happen to be here
        auto g = cg::coalesced_threads();
        int first = 0;
        if (g.thread_rank() == 0) first = atomicAdd(counters, (int)g.num_threads());
        out[threadIdx.x] = g.shfl(first, 0) * 0 + (int)g.thread_rank() + cg::reduce(g, v, cg::plus<int>()) * 100;
        auto halves = cg::binary_partition(g, v % 8 == 0);
        out[64 + threadIdx.x] = (int)halves.num_threads() * 100 + cg::inclusive_scan(halves, 1);
    } else {
        for (int k = 0; k < v % 4; k++) { // a group that gets smaller with each round
            auto g = cg::coalesced_threads();
            out[threadIdx.x] = out[threadIdx.x] * 40 + (int)g.num_threads();
            unsigned same = g.match_any(v % 3);
            out[64 + threadIdx.x] = out[64 + threadIdx.x] * 40 + __popc(same);
        }
    }
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int pred;
    warp.sync();
    unsigned all = warp.match_all(v > 1000, pred);
    out[128 + threadIdx.x] = (int)(all == ~0u) + pred * 10 + warp.all(v < 1000) * 100 + warp.any(v == in[0]) * 1000 + __popc(warp.ballot(v & 1)) * 10000;
    auto label = cg::labeled_partition(warp, v % 5);
    out[192 + threadIdx.x] = cg::reduce(label, 1, cg::plus<int>()) * 1000 + label.meta_group_rank() * 0 + (int)label.thread_rank();
}

extern "C" __global__ void two_halves(int *out, const int *in) {
    __shared__ int tile[96];
    auto block = cg::this_thread_block();
    int t = block.thread_rank();
    tile[t] = in[t] * 2;
    auto token = block.barrier_arrive();
    int own = in[t] + 1;
    block.barrier_wait(static_cast<decltype(token) &&>(token));
    out[t] = tile[95 - t] + own;
}

extern "C" __global__ void updates(int *sum, unsigned *most, int *out, const int *in) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int v = in[blockIdx.x * blockDim.x + threadIdx.x];
    cuda::atomic_ref<int, cuda::thread_scope_device> s(*sum);
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> m(*most);
    cg::reduce_update_async(warp, s, v, cg::plus<int>());
    cg::reduce_update_async(warp, m, (unsigned)(v + 100), cg::greater<unsigned>());
    int mine = cg::exclusive_scan_update(warp, s, 1, cg::plus<int>()); // a ticket for each
    atomicAdd(out + 1, mine * 0 + 1);
    cg::invoke_one(warp, [&] { atomicAdd(out, 1); });
}
