"""Tensor descriptors, made on the host and on the device: copies, matrix products, gather, warp specialisation."""

import numpy as np
import triton
import triton.language as tl
from cases import SM90, SM100, Descriptor, case, full, given, ints, rand

HOPPER = (SM90, SM100)
M, N, K = 256, 128, 192


def product(a, b, **_):
    return {"c": a.astype(np.float64) @ b.astype(np.float64).T}


@triton.jit
def copy(x, z, M, N, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    z.store([i, j], x.load([i, j]))


for t, block in [("fp32", (32, 32)), ("fp16", (64, 64)), ("i8", (16, 128)), ("bf16", (8, 16))]:
    make = ints if t == "i8" else rand
    case(copy, (-(-M // block[0]), -(-N // block[1])), lambda x, **_: {"z": x}, tag=t, sm=HOPPER,
         x=Descriptor(make((M, N), t), block), z=Descriptor(full((M, N), 0, t), block), M=M, N=N, BM=block[0],
         BN=block[1])


@triton.jit
def copy_device_made(x, z, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """On targets without TMA the same source becomes plain loads and stores."""
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    target = tl.make_tensor_descriptor(z, [M, N], [N, 1], [BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([i, j], source.load([i, j]) + 1.0)


case(copy_device_made, (5, 3), lambda x, **_: {"z": x + 1}, x=rand((150, 80)), z=full((150, 80)), M=150, N=80, BM=32,
     BN=32)


@triton.jit
def reduce_to(x, z, KIND: tl.constexpr, B: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * B * B + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :])
    if KIND == "add":
        z.atomic_add([0, 0], v)
    elif KIND == "max":
        z.atomic_max([0, 0], v)
    elif KIND == "and":
        z.atomic_and([0, 0], v)
    elif KIND == "xor":
        z.atomic_xor([0, 0], v)


REDUCE = {"add": lambda x: x.sum(0), "max": lambda x: np.maximum(x.max(0), 0), "xor": np.bitwise_xor.reduce,
          "and": lambda x: np.zeros_like(x[0])}
for kind, f in REDUCE.items():
    case(reduce_to, (3,), lambda x, f=f, **_: {"z": f(x)}, tag=f"{kind}_i32", sm=HOPPER, x=ints((3, 32, 32), "i32"),
         z=Descriptor(full((32, 32), 0, "i32"), (32, 32)), KIND=kind, B=32)
case(reduce_to, (3,), lambda x, **_: {"z": x.sum(0)}, tag="add_fp16", tol=1e-2, sm=HOPPER, x=rand((3, 32, 32), "fp16"),
     z=Descriptor(full((32, 32), 0, "fp16"), (32, 32)), KIND="add", B=32)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=WS):
        acc = tl.dot(a.load([i, k]), b.load([j, k]).T, acc)
    c.store([i, j], acc.to(c.dtype))


def matmul_case(tag, t, tc, bm, bn, bk, ws=False, sm=HOPPER, tol=1e-2, **more):
    case(matmul, (-(-M // bm), -(-N // bn)), product, tag=tag, tol=tol, sm=sm, a=Descriptor(rand((M, K), t), (bm, bk)),
         b=Descriptor(rand((N, K), t), (bn, bk)), c=Descriptor(full((M, N), 0, tc), (bm, bn)), M=M, N=N, K=K, BM=bm, BN=bn,
         BK=bk, WS=ws, **more)


matmul_case("fp16", "fp16", "fp16", 64, 64, 64)
matmul_case("fp16_128x128x64", "fp16", "fp16", 128, 128, 64, warps=8, stages=4)
matmul_case("bf16", "bf16", "fp32", 128, 64, 32, stages=2)
matmul_case("fp8", "fp8e4nv", "fp16", 128, 64, 64, tol=3e-2)
matmul_case("tf32", "fp32", "fp32", 64, 32, 32)
matmul_case("specialised", "fp16", "fp16", 64, 128, 64, True, stages=3)
matmul_case("specialised_big", "fp16", "fp16", 128, 128, 64, True, sm=(SM100,), stages=3)
matmul_case("specialised_8warps", "fp16", "fp16", 128, 128, 64, True, sm=HOPPER, warps=8)


@triton.jit
def matmul_specialised_pointers(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        acc = tl.dot(a.load([i, k]), b.load([j, k]).T, acc)
    tl.store(c + (i + tl.arange(0, BM))[:, None] * N + (j + tl.arange(0, BN))[None, :], acc)


# Triton 3.6 splits the tile of `a` between two consumers but still tells the host to make the map of the whole one.
case(matmul_specialised_pointers, (2, 1), product, tol=1e-2, sm=HOPPER, faults="copies a box of 16384 bytes",
     a=Descriptor(rand((M, K), "fp16"), (128, 64)), b=Descriptor(rand((N, K), "fp16"), (128, 64)), c=full((M, N)), N=N,
     K=K, BM=128, BN=128, BK=64)


@triton.jit
def matmul_persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
                      FLATTEN: tl.constexpr, WS: tl.constexpr):
    grid_m, grid_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), grid_m * grid_n, tl.num_programs(0), flatten=FLATTEN, warp_specialize=WS):
        width = GROUP * grid_n
        first = tile // width * GROUP
        size = min(grid_m - first, GROUP)
        i, j = (first + tile % width % size) * BM, tile % width // size * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([i, k * BK]), b.load([j, k * BK]).T, acc)
        c.store([i, j], acc.to(c.dtype))


def persistent_case(tag, bm, bn, bk, flatten, ws, sm=HOPPER, **more):
    case(matmul_persistent, (3,), product, tag=tag, tol=1e-2, sm=sm, a=Descriptor(rand((M, K), "fp16"), (bm, bk)),
         b=Descriptor(rand((N, K), "fp16"), (bn, bk)), c=Descriptor(full((M, N), 0, "fp16"), (bm, bn)), M=M, N=N, K=K,
         BM=bm, BN=bn, BK=bk, GROUP=2, FLATTEN=flatten, WS=ws, **more)


persistent_case("plain", 64, 64, 64, False, False)
persistent_case("flat", 128, 64, 64, True, False, stages=4)
persistent_case("8warps", 128, 128, 64, False, False, warps=8)
persistent_case("specialised", 64, 64, 64, False, True, sm=(SM90,), stages=2)
persistent_case("flat_specialised", 128, 64, 64, True, True, sm=(SM100,))


@triton.jit
def matmul_device_made(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUB: tl.constexpr):
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN // 2 if SUB else BN])
    grid_n = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * grid_n, tl.num_programs(0), flatten=True):
        i, j = tile // grid_n * BM, tile % grid_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(da.load([i, k * BK]), db.load([j, k * BK]).T, acc)
        if SUB:
            left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
            dc.store([i, j], left.to(tl.float16))
            dc.store([i, j + BN // 2], right.to(tl.float16))
        else:
            dc.store([i, j], acc.to(tl.float16))


for sub in [False, True]:
    case(matmul_device_made, (2,), product, tag="halves" if sub else "whole", tol=1e-2, a=rand((M, K), "fp16"),
         b=rand((N, K), "fp16"), c=full((M, N), 0, "fp16"), M=M, N=N, K=K, BM=64, BN=64, BK=32, SUB=sub)


@triton.jit
def gather_rows(x, index, z, R: tl.constexpr, C: tl.constexpr):
    v = x.gather(tl.load(index + tl.arange(0, R)), 16)
    tl.store(z + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :], v)


@triton.jit
def scatter_rows(x, index, z, R: tl.constexpr, C: tl.constexpr):
    v = tl.load(x + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    z.scatter(v, tl.load(index + tl.arange(0, R)), 16)


def scatter_ref(x, index, z, **_):
    z = z.copy()
    z[index, 16:48] = x
    return {"z": z}


ROWS = given([3, 9, 31, 0, 17, 5, 22, 8], "i32")
case(gather_rows, (1,), lambda x, index, **_: {"z": x[index, 16:48]}, sm=(SM100,), x=Descriptor(rand((32, 64)), (1, 32)),
     index=ROWS, z=full((8, 32)), R=8, C=32)
case(scatter_rows, (1,), scatter_ref, sm=(SM100,), x=rand((8, 32)), index=ROWS, z=Descriptor(full((32, 64)), (1, 32)), R=8,
     C=32)


@triton.jit
def dot_scaled_blocks(a, sa, b, sb, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FA: tl.constexpr,
                      FB: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr):
    rm, rn, rs = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    x = tl.load(a + rm[:, None] * (K // PA) + tl.arange(0, K // PA)[None, :])
    y = tl.load(b + rn[:, None] * (K // PB) + tl.arange(0, K // PB)[None, :]).T
    ex = tl.load(sa + rm[:, None] * (K // 32) + rs[None, :])
    ey = tl.load(sb + rn[:, None] * (K // 32) + rs[None, :])
    tl.store(c + rm[:, None] * N + rn[None, :], tl.dot_scaled(x, ex, FA, y, ey, FB))


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def unpack(codes):
    return np.stack([E2M1[codes & 15], E2M1[codes >> 4]], -1).reshape(codes.shape[0], -1)


def scaled_ref(a, sa, b, sb, PA, PB, **_):
    x, y = unpack(a) if PA == 2 else a, unpack(b) if PB == 2 else b
    sx, sy = (np.repeat(2.0 ** (s.astype(np.float64) - 127), 32, 1) for s in (sa, sb))
    return {"c": (x * sx) @ (y * sy).T}


for fa, fb in [("e2m1", "e2m1"), ("e4m3", "e2m1"), ("e4m3", "e4m3"), ("e5m2", "e4m3")]:
    spec = {"e2m1": lambda n: ints((n, 64), "u8", 0, 256), "e4m3": lambda n: rand((n, 128), "fp8e4nv"),
            "e5m2": lambda n: rand((n, 128), "fp8e5")}
    pa, pb = (2 if f == "e2m1" else 1 for f in (fa, fb))
    case(dot_scaled_blocks, (1,), scaled_ref, tag=f"{fa}_{fb}", tol=5e-2, sm=(SM100,), a=spec[fa](128),
         sa=ints((128, 4), "u8", 126, 129), b=spec[fb](128), sb=ints((128, 4), "u8", 126, 129), c=full((128, 128)), M=128,
         N=128, K=128, FA=fa, FB=fb, PA=pa, PB=pb)
