// corpus: nvrtc nvcc; sm_80 sm_90a sm_100a; -std=c++17
// corpus debug: nvcc; sm_90a; -std=c++17 -G
// corpus rdc: nvcc; sm_90a; -std=c++17 -rdc=true
// Cooperative groups: tiles, coalesced groups, whole grids, clusters with distributed shared memory.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;

extern "C" __global__ void tiles(int *out, const int *in) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto four = cg::tiled_partition<4>(warp);
    int v = in[block.thread_rank()];
    v += warp.shfl_xor(v, 1) + four.shfl_down(v, 2) + warp.any(v > 3) + (int)warp.ballot(v & 1);
    out[block.thread_rank()] = cg::reduce(warp, v, cg::plus<int>()) + cg::reduce(four, v, cg::greater<int>())
                               + cg::exclusive_scan(warp, v) + cg::inclusive_scan(four, v, cg::bit_xor<int>());
    block.sync();
    four.sync();
}

extern "C" __global__ void coalesced(int *out, int *counter) {
    if (threadIdx.x % 3 == 0) {
        auto g = cg::coalesced_threads();
        int first = 0;
        if (g.thread_rank() == 0) first = atomicAdd(counter, g.size());
        out[threadIdx.x] = g.shfl(first, 0) + g.thread_rank();
        auto same = cg::labeled_partition(g, threadIdx.x & 1);
        out[threadIdx.x + 64] = cg::reduce(same, out[threadIdx.x], cg::less<int>());
    }
}

extern "C" __global__ void whole_grid(int *out, int n) {
    auto grid = cg::this_grid();
    for (int i = grid.thread_rank(); i < n; i += grid.size()) out[i] = i;
    grid.sync();
    if (grid.thread_rank() == 0) out[n] = out[n - 1];
}

extern "C" __global__ void grid_rounds(int *out, int *other, int rounds) {
    auto grid = cg::this_grid();
    int i = grid.thread_rank(), n = grid.size();
    for (int k = 0; k < rounds; k++) { // each thread adds what its neighbour had
        other[i] = out[i] + out[(i + 1) % n];
        grid.sync();
        out[i] = other[i];
        grid.sync();
    }
}

extern "C" __global__ void __launch_bounds__(256) large_tiles(int *out, const int *in) {
    __shared__ cg::block_tile_memory<256> memory;
    auto block = cg::this_thread_block(memory);
    auto half = cg::tiled_partition<128>(block);
    auto two = cg::tiled_partition<64>(half);
    int v = in[block.thread_rank()];
    int sum = cg::reduce(half, v, cg::plus<int>());
    int most = cg::reduce(two, v, cg::greater<int>());
    int scanned = cg::inclusive_scan(half, v);
    int first = half.shfl(v, 77);
    two.sync();
    out[block.thread_rank()] = sum;
    out[256 + block.thread_rank()] = most;
    out[512 + block.thread_rank()] = scanned;
    out[768 + block.thread_rank()] = first + two.any(v == 5) * 1000 + half.meta_group_rank() * 10000 + two.thread_rank() * 100000;
}

extern "C" __global__ void copies(float *out, const float *in, int n) {
    extern __shared__ float tile[];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, tile, in, sizeof(float) * n);
    cg::wait(block);
    cg::memcpy_async(block, tile + n, cuda::aligned_size_t<16>(sizeof(float) * n), in, cuda::aligned_size_t<16>(64));
    cg::wait_prior<0>(block);
    out[block.thread_rank()] = tile[block.thread_rank() ^ 1] + tile[n + block.thread_rank() % 16];
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) clusters(int *out) {
    __shared__ int mine;
    auto cluster = cg::this_cluster();
    mine = cluster.block_rank() * 10;
    cluster.sync();
    int *theirs = cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
    atomicAdd(theirs, 1 + (int)cluster.query_shared_rank(theirs));
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait(static_cast<decltype(token) &&>(token));
    out[cluster.thread_rank()] = mine + cluster.num_blocks() + cluster.dim_blocks().x;
}
#endif
