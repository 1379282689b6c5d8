"""
The GEMM for Hopper: persistent, its warps split into a loader and two that multiply.

    loader         one warp: brings blocks of A and B by TMA into a ring of stages; it alone waits for chunks of A
    multipliers    two warpgroups: each multiplies one half of the block of A with the whole block of B, and stores
                   its part of C by TMA while the loader is already at the next tile

A stage goes round: the loader finds it free, orders the copies, their bytes make it ready; when both warpgroups have
used it, it is free again. The wait for a chunk is in front of the loads, where nothing but the loads has to wait: the
tensor cores never see it.
"""

from ag_plan import place
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

import intarsia

device = intarsia.load("ag-gemm-device.cu")
place_of = gluon.jit(place)


@gluon.jit
def _next(stage, phase, N: gl.constexpr):
    """The stage behind `stage` in a ring of N; the phase turns with every round."""
    last = stage == N - 1
    return gl.where(last, 0, stage + 1), gl.where(last, phase ^ 1, phase)


@gluon.jit
def _stamp(stamps, tile, what: gl.constexpr):
    """For the timeline, of each tile: 0 the loader begins to wait, 1 it begins to load, 2 the tile is computed."""
    if stamps is not None:
        intarsia.call(device.stamp, [stamps, tile * 3 + what], sync=False)


@gluon.jit
def _load_tile(a, b, a_ring, b_ring, ready, free, row, column, steps, stage, phase, STAGES: gl.constexpr):
    """All blocks of one tile, each as soon as its stage is free."""
    BK: gl.constexpr = a.block_shape[1]
    for step in range(steps):
        mbarrier.wait(free.index(stage), phase ^ 1)
        mbarrier.expect(ready.index(stage), a.block_type.nbytes + b.block_type.nbytes)
        tma.async_copy_global_to_shared(a, [row, step * BK], ready.index(stage), a_ring.index(stage))
        tma.async_copy_global_to_shared(b, [column, step * BK], ready.index(stage), b_ring.index(stage))
        stage, phase = _next(stage, phase, STAGES)
    return stage, phase


@gluon.jit
def _loader(
    own, gathered, b, a_ring, b_ring, ready, free, signals, epoch, stamps, me, n_pes, m, n, steps,
    signal_row, chunk_tiles, group, N_CTAS: gl.constexpr, WAITS: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    BM: gl.constexpr = own.block_shape[0]
    BN: gl.constexpr = b.block_shape[0]
    tiles_m, tiles_n = gl.cdiv(m, BM), gl.cdiv(n, BN)
    stage, phase, here = 0, 0, 0
    for tile in range(gl.program_id(0), n_pes * tiles_m * tiles_n, N_CTAS):
        turn, chunk, row, column = place_of(tile, tiles_m, tiles_n, chunk_tiles, group)
        if turn == 0:
            _stamp(stamps, tile, 1)
            stage, phase = _load_tile(
                own, b, a_ring, b_ring, ready, free, row * BM, column * BN, steps, stage, phase, STAGES
            )
        else:
            shard = (me + turn) % n_pes
            at = turn * signal_row + chunk
            if WAITS and at != here:
                _stamp(stamps, tile, 0)
                intarsia.call(device.wait_for_loads, [signals, shard * signal_row + chunk, epoch], sync=False)
            here = at
            _stamp(stamps, tile, 1)
            stage, phase = _load_tile(
                gathered, b, a_ring, b_ring, ready, free, shard * m + row * BM, column * BN, steps, stage, phase, STAGES
            )


@gluon.jit
def _store_part(c, halves, acc, row, column):
    """
    Stores a warpgroup's part of a tile of C by way of shared memory, in halves: one is on its way while the other is
    converted. Nothing waits for the stores but the next tile's.
    """
    WIDTH: gl.constexpr = acc.shape[1] // 2
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, WIDTH, 16])
    left, right = acc.reshape([acc.shape[0], 2, WIDTH]).permute(0, 2, 1).split()
    tma.store_wait(0)
    halves.index(0).store(gl.convert_layout(left.to(c.dtype), layout))
    hopper.fence_async_shared()
    tma.async_copy_shared_to_global(c, [row, column], halves.index(0))
    halves.index(1).store(gl.convert_layout(right.to(c.dtype), layout))
    hopper.fence_async_shared()
    tma.async_copy_shared_to_global(c, [row, column + WIDTH], halves.index(1))


@gluon.jit
def _multiplier(
    own, b, c, a_ring, b_ring, halves, ready, free, stamps, me, n_pes, m, n, steps,
    chunk_tiles, group, N_CTAS: gl.constexpr, STAGES: gl.constexpr, HALF: gl.constexpr,
):  # fmt: skip
    BM: gl.constexpr = own.block_shape[0]
    BN: gl.constexpr = b.block_shape[0]
    HM: gl.constexpr = BM // 2
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    tiles_m, tiles_n = gl.cdiv(m, BM), gl.cdiv(n, BN)
    stage, phase = 0, 0
    for tile in range(gl.program_id(0), n_pes * tiles_m * tiles_n, N_CTAS):
        turn, _chunk, row, column = place_of(tile, tiles_m, tiles_n, chunk_tiles, group)
        shard = (me + turn) % n_pes
        acc = gl.zeros([HM, BN], gl.float32, layout)
        before = 0
        for step in range(steps):
            mbarrier.wait(ready.index(stage), phase)
            acc = hopper.warpgroup_mma(
                a_ring.index(stage).slice(HALF * HM, HM), b_ring.index(stage).permute((1, 0)), acc,
                use_acc=step > 0, is_async=True,
            )  # fmt: skip
            acc = hopper.warpgroup_mma_wait(1, deps=[acc])
            mbarrier.arrive(free.index(before), pred=step > 0)
            before = stage
            stage, phase = _next(stage, phase, STAGES)
        acc = hopper.warpgroup_mma_wait(0, deps=[acc])
        mbarrier.arrive(free.index(before))
        if HALF == 1:
            _stamp(stamps, tile, 2)
        _store_part(c, halves, acc, shard * m + row * BM + HALF * HM, column * BN)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["epoch", "me", "n_pes", "signal_row", "chunk_tiles", "group"])
def hopper_gemm(
    own, gathered, b, c, signals, epoch: gl.int64, stamps, me, n_pes, m, n, k, signal_row, chunk_tiles, group,
    N_CTAS: gl.constexpr, WAITS: gl.constexpr, STAGES: gl.constexpr, REGISTERS: gl.constexpr,
):  # fmt: skip
    BM: gl.constexpr = own.block_shape[0]
    BN: gl.constexpr = b.block_shape[0]
    BK: gl.constexpr = b.block_shape[1]
    a_ring = gl.allocate_shared_memory(own.dtype, [STAGES, BM, BK], own.layout)
    b_ring = gl.allocate_shared_memory(b.dtype, [STAGES, BN, BK], b.layout)
    upper = gl.allocate_shared_memory(c.dtype, [2, c.block_shape[0], c.block_shape[1]], c.layout)
    lower = gl.allocate_shared_memory(c.dtype, [2, c.block_shape[0], c.block_shape[1]], c.layout)
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(ready.index(i), count=1)
        mbarrier.init(free.index(i), count=2)
    steps = gl.cdiv(k, BK)
    gl.warp_specialize(
        [
            (_multiplier, (own, b, c, a_ring, b_ring, upper, ready, free, stamps, me, n_pes, m, n, steps,
                           chunk_tiles, group, N_CTAS, STAGES, 0)),
            (_multiplier, (own, b, c, a_ring, b_ring, lower, ready, free, stamps, me, n_pes, m, n, steps,
                           chunk_tiles, group, N_CTAS, STAGES, 1)),
            (_loader, (own, gathered, b, a_ring, b_ring, ready, free, signals, epoch, stamps, me, n_pes, m, n, steps,
                       signal_row, chunk_tiles, group, N_CTAS, WAITS, STAGES)),
        ],
        [4, 1], [REGISTERS, 24],
    )  # fmt: skip


# -- launching -------------------------------------------------------------------------------------------------------


def shared_layout(width: int) -> gl.NVMMASharedLayout:
    """How blocks of that many 2-byte columns lie in shared memory, as TMA and the tensor cores want them."""
    return gl.NVMMASharedLayout(min(128, 2 * width), 16, rank=2)


def bind(plan, problem, a, gathered, b, c, signals, signal_row: int) -> tuple:
    """What of a launch stays the same while the arrays do: making TMA descriptors takes longer than launching."""
    rows, columns, depth = plan.block
    if c.dtype != a.dtype or b.dtype != a.dtype:
        raise ValueError(f"a, b and c are {a.dtype}, {b.dtype} and {c.dtype}: this kernel wants one type for all")
    blocks = ((a, rows, depth), (gathered, rows, depth), (b, columns, depth), (c, rows // 2, columns // 2))
    descriptors = [
        TensorDescriptor(x, list(x.shape), [x.shape[1], 1], [height, width], shared_layout(width))
        for x, height, width in blocks
    ]
    p = problem
    return descriptors, signals, (p.world, p.m, p.n, p.k, signal_row, plan.chunk_rows // rows, plan.group)


def launch(bound: tuple, epoch: int, me: int, n_ctas: int, plan, waits: bool, stamps=None) -> None:
    descriptors, signals, (world, m, n, k, signal_row, chunk_tiles, group) = bound
    hopper_gemm[(n_ctas,)](
        *descriptors, signals, epoch, stamps, me, world, m, n, k, signal_row, chunk_tiles, group,
        n_ctas, waits, plan.stages, 240, num_warps=4,
    )  # fmt: skip
