// corpus: nvrtc nvcc; sm_90a; -std=c++17
// corpus debug: nvcc; sm_90a; -std=c++17 -G
// Clusters: histograms and sums over the shared memory of several blocks, rings, barriers across them, multicasts.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

extern "C" __global__ void __cluster_dims__(4, 1, 1) histogram(int *out, const int *in, int n) {
    extern __shared__ int bins[]; // a quarter of them in each block
    auto cluster = cg::this_cluster();
    int each = 64, rank = cluster.block_rank();
    for (int i = threadIdx.x; i < each; i += blockDim.x) bins[i] = 0;
    cluster.sync();
    for (int i = cluster.thread_rank(); i < n; i += cluster.num_threads()) {
        int bin = in[i] & 255;
        atomicAdd(cluster.map_shared_rank(bins, bin / each) + bin % each, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < each; i += blockDim.x) atomicAdd(out + rank * each + i, bins[i]);
}

extern "C" __global__ void __cluster_dims__(2, 2, 1) sums(double *out, const double *in) {
    __shared__ double part;
    auto cluster = cg::this_cluster();
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    double v = cg::reduce(warp, in[cluster.thread_rank()], cg::plus<double>());
    if (threadIdx.x == 0) part = v;
    cluster.sync();
    double total = 0;
    for (unsigned r = 0; r < cluster.num_blocks(); r++) total += *cluster.map_shared_rank(&part, r) * (r + 1);
    cluster.sync(); // nobody leaves while its shared memory is read
    if (threadIdx.x == 0) {
        dim3 at = cluster.block_index();
        out[cluster.block_rank()] = total + at.x * 1000 + at.y * 10000;
    }
}

extern "C" __global__ void __cluster_dims__(8) ring(int *out, int rounds) { // values go round, one block further in each round
    __shared__ int box[2][32];
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank(), n = cluster.num_blocks();
    box[0][threadIdx.x] = rank * 100 + threadIdx.x;
    cluster.sync();
    for (int k = 0; k < rounds; k++) {
        int *theirs = cluster.map_shared_rank(box[(k + 1) % 2], (rank + 1) % n);
        theirs[threadIdx.x] = box[k % 2][threadIdx.x] + 1;
        cluster.sync();
    }
    out[cluster.thread_rank()] = box[rounds % 2][threadIdx.x];
}

extern "C" __global__ void __cluster_dims__(2) remote_barrier(int *out, const int *in) {
    __shared__ alignas(128) int tile[64];
    __shared__ alignas(8) cuda::std::uint64_t bar;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof(tile));
    }
    cluster.sync();
    if (threadIdx.x == 0 && cluster.block_rank() == 1) { // one block copies for both
        for (int r = 0; r < 2; r++)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                             (unsigned)__cvta_generic_to_shared(cluster.map_shared_rank(tile, r))),
                         "l"(in + r * 64), "r"((int)sizeof(tile)), "r"((unsigned)__cvta_generic_to_shared(cluster.map_shared_rank(&bar, r)))
                         : "memory");
    }
    while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
    out[cluster.thread_rank()] = tile[threadIdx.x] * 2;
    cluster.sync();
}

extern "C" __global__ void __cluster_dims__(4) multicast(int *out, const int *in) {
    __shared__ alignas(128) int tile[64];
    __shared__ alignas(8) cuda::std::uint64_t bar;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        if (cluster.block_rank() != 2) ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof(tile));
    }
    tile[threadIdx.x] = -1;
    cluster.sync();
    if (threadIdx.x == 0 && cluster.block_rank() == 1) // into all but the third
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, sizeof(tile), &bar, (unsigned short)0b1011);
    if (cluster.block_rank() != 2)
        while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
    out[cluster.thread_rank()] = tile[threadIdx.x];
    cluster.sync();
}

extern "C" __global__ void __cluster_dims__(2) sent(int *out) { // shared memory of one block to that of the other, with its barrier
    __shared__ alignas(128) int mine[64], theirs[64];
    __shared__ alignas(8) cuda::std::uint64_t bar;
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof(mine));
    }
    mine[threadIdx.x] = rank * 1000 + threadIdx.x;
    ptx::fence_proxy_async(ptx::space_shared);
    cluster.sync();
    if (threadIdx.x == 0)
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, cluster.map_shared_rank(theirs, rank ^ 1), mine, sizeof(mine),
                           cluster.map_shared_rank(&bar, rank ^ 1));
    while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
    out[cluster.thread_rank()] = theirs[63 - threadIdx.x];
    cluster.sync();
}

extern "C" __global__ void __cluster_dims__(4) added(int *out) { // every block adds its own numbers to those of the first
    __shared__ alignas(128) int mine[64], total[64];
    __shared__ alignas(8) cuda::std::uint64_t bar;
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank();
    if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 1);
    mine[threadIdx.x] = (rank + 1) * threadIdx.x;
    total[threadIdx.x] = 5;
    ptx::fence_proxy_async(ptx::space_shared);
    cluster.sync();
    if (threadIdx.x == 0 && rank == 0)
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 4 * sizeof(mine));
    if (threadIdx.x == 0)
        ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_add, cluster.map_shared_rank(total, 0), mine, sizeof(mine),
                                  cluster.map_shared_rank(&bar, 0));
    if (rank == 0) {
        while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
        out[threadIdx.x] = total[threadIdx.x];
    }
    cluster.sync();
}
