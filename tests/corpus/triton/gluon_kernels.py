"""Gluon: explicit layouts, shared memory, cp.async, mbarrier, TMA, wgmma, tensor memory, warp specialisation."""

import numpy as np
from cases import SM90, SM100, Descriptor, case, full, ints, rand
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.ampere import mma_v2
from triton.experimental.gluon.language.nvidia.blackwell import (TensorMemoryLayout, allocate_tensor_memory, float2,
                                                                 get_tmem_reg_layout, tcgen05_commit, tcgen05_mma)
from triton.experimental.gluon.language.nvidia.blackwell import tma as blackwell_tma
from triton.experimental.gluon.language.nvidia.hopper import (fence_async_shared, mbarrier, tma, warpgroup_mma,
                                                              warpgroup_mma_init, warpgroup_mma_wait)

HOPPER = (SM90, SM100)


@gluon.jit
def copy_1d(x, z, n, B: gl.constexpr, L: gl.constexpr):
    o = gl.program_id(0) * B + gl.arange(0, B, L)
    gl.store(z + o, gl.load(x + o, mask=o < n), mask=o < n)


for per_thread in [1, 2, 4, 8]:
    case(copy_1d, (2,), lambda x, **_: {"z": x}, tag=f"{per_thread}", x=rand(1000), z=full(1000), n=1000, B=1024,
         L=gl.BlockedLayout([per_thread], [32], [4], [0]))


@gluon.jit
def convert(x, z, M: gl.constexpr, K: gl.constexpr, A: gl.constexpr, B: gl.constexpr):
    i, j = gl.arange(0, M, gl.SliceLayout(1, A)), gl.arange(0, K, gl.SliceLayout(0, A))
    v = gl.convert_layout(gl.load(x + i[:, None] * K + j[None, :]), B)
    s, t = gl.arange(0, M, gl.SliceLayout(1, B)), gl.arange(0, K, gl.SliceLayout(0, B))
    gl.store(z + t[None, :] * M + s[:, None], v)


for t in ["fp32", "fp16", "i8", "i64"]:
    make = ints if t[0] == "i" else rand
    case(convert, (1,), lambda x, **_: {"z": x.T}, tag=t, x=make((64, 32), t), z=full((32, 64), 0, t), M=64, K=32,
         A=gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]), B=gl.BlockedLayout([4, 1], [16, 2], [1, 4], [0, 1]))


@gluon.jit
def through_shared(x, z, M: gl.constexpr, K: gl.constexpr, L: gl.constexpr, S: gl.constexpr):
    i, j = gl.arange(0, M, gl.SliceLayout(1, L)), gl.arange(0, K, gl.SliceLayout(0, L))
    smem = gl.allocate_shared_memory(gl.float32, [M, K], S, gl.load(x + i[:, None] * K + j[None, :]))
    top, bottom = smem.slice(0, M // 2), smem.slice(M // 2, M // 2)
    a, b = top.load(L), bottom.load(L)
    gl.thread_barrier()
    top.store(b * 2.0)
    bottom.store(a * 3.0)
    gl.thread_barrier()
    gl.store(z + i[:, None] * K + j[None, :], smem.load(L))


case(through_shared, (1,), lambda x, **_: {"z": np.concatenate([x[32:] * 2, x[:32] * 3])}, x=rand((64, 32)),
     z=full((64, 32)), M=64, K=32, L=gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]),
     S=gl.SwizzledSharedLayout(4, 2, 4, [1, 0]))


@gluon.jit
def async_pipeline(x, z, rounds, B: gl.constexpr, L: gl.constexpr, S: gl.constexpr, DEPTH: gl.constexpr):
    o = gl.arange(0, B, L)
    smem = gl.allocate_shared_memory(gl.float32, [DEPTH, B], S)
    acc = gl.zeros([B], gl.float32, L)
    for i in gl.static_range(DEPTH - 1):
        async_copy.async_copy_global_to_shared(smem.index(i), x + i * B + o, mask=o < B - 8)
        async_copy.commit_group()
    for i in range(rounds):
        ahead = i + DEPTH - 1
        async_copy.async_copy_global_to_shared(smem.index(ahead % DEPTH), x + ahead * B + o, mask=(o < B - 8) & (ahead < rounds))
        async_copy.commit_group()
        async_copy.wait_group(DEPTH - 1)
        gl.thread_barrier()
        acc += smem.index(i % DEPTH).load(L)
        gl.thread_barrier()
    gl.store(z + o, acc, mask=o < B - 8)


def pipeline_ref(x, **_):
    z = x.sum(0)
    z[-8:] = 0
    return {"z": z}


case(async_pipeline, (1,), pipeline_ref, tol=1e-4, x=rand((7, 512)), z=full(512), rounds=7, B=512, DEPTH=3,
     L=gl.BlockedLayout([4], [32], [4], [0]), S=gl.SwizzledSharedLayout(1, 1, 1, [0]))


@gluon.jit
def mma_tile(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, L: gl.constexpr, ACC: gl.constexpr):
    i, j = gl.arange(0, M, gl.SliceLayout(1, L)), gl.arange(0, K, gl.SliceLayout(0, L))
    x = gl.convert_layout(gl.load(a + i[:, None] * K + j[None, :]), gl.DotOperandLayout(0, ACC, 2))
    k, n = gl.arange(0, K, gl.SliceLayout(1, L)), gl.arange(0, N, gl.SliceLayout(0, L))
    y = gl.convert_layout(gl.load(b + k[:, None] * N + n[None, :]), gl.DotOperandLayout(1, ACC, 2))
    acc = mma_v2(x, y, gl.zeros([M, N], gl.float32, ACC))
    s, t = gl.arange(0, M, gl.SliceLayout(1, ACC)), gl.arange(0, N, gl.SliceLayout(0, ACC))
    gl.store(c + s[:, None] * N + t[None, :], acc)


for t in ["fp16", "bf16"]:
    case(mma_tile, (1,), lambda a, b, **_: {"c": a.astype(np.float64) @ b}, tag=t, tol=1e-2, a=rand((64, 32), t),
         b=rand((32, 64), t), c=full((64, 64)), M=64, N=64, K=32, L=gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]),
         ACC=gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8]))


@gluon.jit
def tma_copy(x, z, M: gl.constexpr, K: gl.constexpr, BM: gl.constexpr, BK: gl.constexpr):
    smem = gl.allocate_shared_memory(x.dtype, [BM, BK], x.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    phase = 0
    for k in range(0, K, BK):
        mbarrier.expect(bar, x.block_type.nbytes)
        tma.async_copy_global_to_shared(x, [gl.program_id(0) * BM, k], bar, smem)
        mbarrier.wait(bar, phase)
        tma.async_copy_shared_to_global(z, [gl.program_id(0) * BM, k], smem)
        tma.store_wait(0)
        phase ^= 1
    mbarrier.invalidate(bar)


def block(shape, dtype, tile, spec=None):
    names = {"fp16": gl.float16, "fp32": gl.float32, "bf16": gl.bfloat16, "i8": gl.int8}
    layout = gl.NVMMASharedLayout.get_default_for(list(tile), names[dtype])
    return Descriptor(spec or rand(shape, dtype), tile, {"layout": layout})


for t in ["fp16", "fp32"]:
    case(tma_copy, (2,), lambda x, **_: {"z": x}, tag=t, sm=HOPPER, x=block((128, 128), t, (64, 32)),
         z=block(None, t, (64, 32), full((128, 128), 0, t)), M=128, K=128, BM=64, BK=32)


@gluon.jit
def wgmma_tile(a, b, c, z, N: gl.constexpr, K: gl.constexpr, BM: gl.constexpr, BK: gl.constexpr, DEPTH: gl.constexpr):
    sa = gl.allocate_shared_memory(a.dtype, [DEPTH] + a.block_type.shape, a.layout)
    sb = gl.allocate_shared_memory(b.dtype, [DEPTH] + b.block_type.shape, b.layout)
    bars = gl.allocate_shared_memory(gl.int64, [DEPTH, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(DEPTH):
        mbarrier.init(bars.index(i), count=1)
    fence_async_shared()
    L: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    acc = warpgroup_mma_init(gl.zeros([BM, N], gl.float32, L))
    for i in range(K // BK):
        slot, phase = i % DEPTH, i // DEPTH & 1
        bar = bars.index(slot)
        mbarrier.expect(bar, a.block_type.nbytes + b.block_type.nbytes)
        tma.async_copy_global_to_shared(a, [gl.program_id(0) * BM, i * BK], bar, sa.index(slot))
        tma.async_copy_global_to_shared(b, [i * BK, 0], bar, sb.index(slot))
        mbarrier.wait(bar, phase)
        acc = warpgroup_mma(sa.index(slot), sb.index(slot), acc, is_async=True)
        acc = warpgroup_mma_wait(0, deps=(acc, ))
        acc = warpgroup_mma_init(acc)
    acc = warpgroup_mma_wait(0, deps=(acc, ))
    s, t = gl.arange(0, BM, gl.SliceLayout(1, L)), gl.arange(0, N, gl.SliceLayout(0, L))
    gl.store(z + (gl.program_id(0) * BM + s[:, None]) * N + t[None, :], acc + gl.load(c + t)[None, :])


for n in [64, 128]:
    case(wgmma_tile, (2,), lambda a, b, c, **_: {"z": a.astype(np.float64) @ b + c}, tag=f"n{n}", tol=1e-2, sm=(SM90,),
         a=block((128, 192), "fp16", (64, 64)), b=block((192, n), "fp16", (64, n)), c=rand(n), z=full((128, n)), N=n,
         K=192, BM=64, BK=64, DEPTH=2)


@gluon.jit
def tcgen05_tile(a, b, z, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, BK: gl.constexpr):
    sa = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
    sb = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
    loaded = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(loaded, count=1)
    mbarrier.init(done, count=1)
    layout: gl.constexpr = TensorMemoryLayout([M, N], col_stride=1)
    acc = allocate_tensor_memory(gl.float32, [M, N], layout)
    phase = 0
    for k in range(0, K, BK):
        mbarrier.expect(loaded, a.block_type.nbytes + b.block_type.nbytes)
        blackwell_tma.async_copy_global_to_shared(a, [0, k], loaded, sa)
        blackwell_tma.async_copy_global_to_shared(b, [k, 0], loaded, sb)
        mbarrier.wait(loaded, phase)
        tcgen05_mma(sa, sb, acc, use_acc=k > 0)
        tcgen05_commit(done)
        mbarrier.wait(done, phase)
        phase ^= 1
    L: gl.constexpr = get_tmem_reg_layout(gl.float32, [M, N], layout, gl.num_warps())
    v = acc.load(L)
    s, t = gl.arange(0, M, gl.SliceLayout(1, L)), gl.arange(0, N, gl.SliceLayout(0, L))
    gl.store(z + s[:, None] * N + t[None, :], v)


for n in [64, 128]:
    case(tcgen05_tile, (1,), lambda a, b, **_: {"z": a.astype(np.float64) @ b}, tag=f"n{n}", tol=1e-2, sm=(SM100,),
         a=block((128, 128), "fp16", (128, 64)), b=block((128, n), "fp16", (64, n)), z=full((128, n)), M=128, N=n, K=128,
         BK=64)


@gluon.jit
def tensor_memory_pass(x, z, M: gl.constexpr, N: gl.constexpr):
    layout: gl.constexpr = TensorMemoryLayout([M, N], col_stride=1)
    L: gl.constexpr = get_tmem_reg_layout(gl.float32, [M, N], layout, gl.num_warps())
    s, t = gl.arange(0, M, gl.SliceLayout(1, L)), gl.arange(0, N, gl.SliceLayout(0, L))
    tmem = allocate_tensor_memory(gl.float32, [M, N], layout, gl.load(x + s[:, None] * N + t[None, :]))
    a, b = float2.pack(tmem.load(L), axis=1), float2.pack(gl.full([M, N], 2.0, gl.float32, L), axis=1)
    tmem.store(float2.unpack(float2.fma(a, b, a), axis=1))
    gl.store(z + s[:, None] * N + t[None, :], tmem.load(L))


case(tensor_memory_pass, (1,), lambda x, **_: {"z": x * 3}, sm=(SM100,), x=rand((128, 64)), z=full((128, 64)), M=128, N=64)


@gluon.jit
def load_partition(x, smem, bars, n, B: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
    o = gl.arange(0, B, L)
    for i in range(n):
        slot, phase = i % 2, i // 2 & 1
        mbarrier.wait(bars.index(2 + slot), phase ^ 1)
        smem.index(slot).store(gl.load(x + i * B + o))
        mbarrier.arrive(bars.index(slot), count=1)


@gluon.jit
def add_partition(z, smem, bars, n, B: gl.constexpr):
    L: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    acc = gl.zeros([B], gl.float32, L)
    for i in range(n):
        slot, phase = i % 2, i // 2 & 1
        mbarrier.wait(bars.index(slot), phase)
        acc += smem.index(slot).load(L)
        mbarrier.arrive(bars.index(2 + slot), count=1)
    gl.store(z + gl.arange(0, B, L), acc)


@gluon.jit
def specialised(x, z, n, B: gl.constexpr):
    S: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    smem = gl.allocate_shared_memory(gl.float32, [2, B], S)
    bars = gl.allocate_shared_memory(gl.int64, [4, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(4):
        mbarrier.init(bars.index(i), count=1)
    gl.warp_specialize([(add_partition, (z, smem, bars, n, B)), (load_partition, (x, smem, bars, n, B))], [1], [24])


case(specialised, (1,), lambda x, **_: {"z": x.sum(0)}, tol=1e-4, sm=HOPPER, x=rand((5, 128)), z=full(128), n=5, B=128)


@gluon.jit
def reductions(x, z, M: gl.constexpr, K: gl.constexpr, L: gl.constexpr):
    i, j = gl.arange(0, M, gl.SliceLayout(1, L)), gl.arange(0, K, gl.SliceLayout(0, L))
    v = gl.load(x + i[:, None] * K + j[None, :])
    gl.store(z + i, gl.sum(v, 1))
    gl.store(z + M + j, gl.max(v, 0))


case(reductions, (1,), lambda x, **_: {"z": np.concatenate([x.sum(1), x.max(0)])}, tol=1e-4, x=rand((32, 64)), z=full(96),
     M=32, K=64, L=gl.BlockedLayout([2, 2], [8, 4], [2, 2], [1, 0]))


@gluon.jit
def histogram(x, z, B: gl.constexpr, L: gl.constexpr):
    o = gl.arange(0, B, L)
    h = gl.histogram(gl.load(x + o), 128, layout=L)
    gl.store(z + gl.arange(0, 128, L), h)


case(histogram, (1,), lambda x, **_: {"z": np.bincount(x, minlength=128)}, x=ints(512, "i32", 0, 128),
     z=full(128, 0, "i32"), B=512, L=gl.BlockedLayout([1], [32], [4], [0]))
