"""Matrix products: every operand type, pipelining depth, schedule and epilogue."""

import numpy as np
import triton
import triton.language as tl
from cases import SM90, SM100, case, full, given, ints, rand

M, N, K = 96, 80, 112


@triton.jit
def matmul(a, b, c, M, N, K, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           ACC: tl.constexpr, PREC: tl.constexpr):
    pid = tl.program_id(0)
    grid_n = tl.cdiv(N, BN)
    rm, rn = (pid // grid_n) * BM + tl.arange(0, BM), (pid % grid_n) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + (rm[:, None] % M) * sam + rk[None, :] * sak
    pb = b + rk[:, None] * sbk + (rn[None, :] % N) * sbn
    acc = tl.zeros((BM, BN), ACC)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(pa, mask=rk[None, :] < K - k * BK, other=0.0)
        y = tl.load(pb, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc, input_precision=PREC, out_dtype=ACC)
        pa += BK * sak
        pb += BK * sbk
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(c.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


def product(a, b, **_):
    wide = np.int64 if a.dtype.kind in "iu" else np.float64
    return {"c": a.astype(wide) @ b.astype(wide)}


def gemm(tag, ta, tc, acc=tl.float32, prec="tf32", tol=1e-2, bm=64, bn=64, bk=32, trans=False, sm=None, **more):
    make = ints if ta[0] in "iu" else rand
    b = make((N, K), ta) if trans else make((K, N), ta)
    ref = (lambda a, b, **_: product(a, b.T)) if trans else product
    case(matmul, (-(-M // bm) * -(-N // bn),), ref, tag=tag, tol=tol, **({"sm": sm} if sm else {}), a=make((M, K), ta),
         b=b, c=full((M, N), 0, tc), M=M, N=N, K=K, sam=K, sak=1, sbk=1 if trans else N, sbn=K if trans else 1, BM=bm,
         BN=bn, BK=bk, ACC=acc, PREC=prec, **more)


for s in [1, 2, 3, 4, 5]:
    gemm(f"fp16_stages{s}", "fp16", "fp16", stages=s)
for w in [1, 2, 8]:
    gemm(f"fp16_warps{w}", "fp16", "fp32", warps=w)
gemm("fp16_acc16", "fp16", "fp16", acc=tl.float16, tol=0.1)
gemm("fp16_small", "fp16", "fp32", bm=16, bn=16, bk=16, warps=1)
gemm("fp16_128x128x64", "fp16", "fp16", bm=128, bn=128, bk=64, warps=8, stages=3)
gemm("fp16_transposed", "fp16", "fp32", trans=True)
gemm("bf16", "bf16", "bf16", tol=5e-2)
gemm("bf16_transposed", "bf16", "fp32", trans=True, stages=4)
gemm("tf32", "fp32", "fp32")
gemm("tf32_transposed", "fp32", "fp32", trans=True)
gemm("tf32x3", "fp32", "fp32", prec="tf32x3", tol=1e-4)
gemm("ieee", "fp32", "fp32", prec="ieee", tol=1e-4, bm=32, bn=32)
gemm("bf16x3", "fp32", "fp32", prec="bf16x3", tol=1e-3)
gemm("fp64", "fp64", "fp64", acc=tl.float64, prec="ieee", tol=1e-10, bm=32, bn=32, bk=16)
gemm("int8", "i8", "i32", acc=tl.int32, bk=64)
gemm("int8_transposed", "i8", "i32", acc=tl.int32, trans=True)
gemm("fp8e5", "fp8e5", "fp32", tol=1e-2)
gemm("fp8e4nv", "fp8e4nv", "fp16", tol=3e-2, sm=(SM90, SM100), bm=64, bk=64)
gemm("fp8e4nv_transposed", "fp8e4nv", "fp32", trans=True, sm=(SM90, SM100), bk=64)


@triton.jit
def matmul_blocks(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn = tl.program_id(0), tl.program_id(1)
    pa = tl.make_block_ptr(a, (M, K), (K, 1), (pm * BM, 0), (BM, BK), (1, 0))
    pb = tl.make_block_ptr(b, (K, N), (N, 1), (0, pn * BN), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc += tl.dot(tl.load(pa, boundary_check=(0, 1), padding_option="zero"),
                      tl.load(pb, boundary_check=(0, 1), padding_option="zero"))
        pa = tl.advance(pa, (0, BK))
        pb = tl.advance(pb, (BK, 0))
    pc = tl.make_block_ptr(c, (M, N), (N, 1), (pm * BM, pn * BN), (BM, BN), (1, 0))
    tl.store(pc, acc.to(tl.float16), boundary_check=(0, 1))


case(matmul_blocks, (2, 3), product, tol=1e-2, a=rand((M, K), "fp16"), b=rand((K, N), "fp16"), c=full((M, N), 0, "fp16"),
     M=M, N=N, K=K, BM=64, BN=32, BK=32)


@triton.jit
def activation(x, KIND: tl.constexpr):
    if KIND == "relu":
        return tl.maximum(x, 0.0)
    return x * tl.sigmoid(1.702 * x)


@triton.jit
def matmul_epilogue(a, b, bias, c, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, KIND: tl.constexpr):
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, K)
    x = tl.dot(tl.load(a + rm[:, None] * K + rk[None, :]), tl.load(b + rk[:, None] * BN + rn[None, :]))
    x = activation(x + tl.load(bias + rn)[None, :], KIND)
    tl.store(c + rm[:, None] * BN + rn[None, :], x)


def epilogue_ref(a, b, bias, KIND, **_):
    x = a.astype(np.float32) @ b.astype(np.float32) + bias
    return {"c": np.maximum(x, 0) if KIND == "relu" else x / (1 + np.exp(-1.702 * x))}


for kind in ["relu", "gelu"]:
    case(matmul_epilogue, (1,), epilogue_ref, tag=kind, tol=1e-2, a=rand((64, 64), "fp16"), b=rand((64, 32), "fp16"),
         bias=rand(32), c=full((64, 32)), K=64, BM=64, BN=32, KIND=kind)


@triton.jit
def matmul_batched(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, G: tl.constexpr):
    g, i, j, k = tl.arange(0, G), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + g[:, None, None] * M * K + i[None, :, None] * K + k[None, None, :])
    y = tl.load(b + g[:, None, None] * K * N + k[None, :, None] * N + j[None, None, :])
    tl.store(c + g[:, None, None] * M * N + i[None, :, None] * N + j[None, None, :], tl.dot(x, y))


case(matmul_batched, (1,), product, tol=1e-2, a=rand((4, 32, 32), "fp16"), b=rand((4, 32, 16), "fp16"),
     c=full((4, 32, 16)), M=32, N=16, K=32, G=4)


@triton.jit
def matmul_split_k(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    rm, rn = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.program_id(2) * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT)):
        live = rk < K - k * BK * SPLIT
        x = tl.load(a + rm[:, None] * K + (rk + k * BK * SPLIT)[None, :], mask=(rm[:, None] < M) & live[None, :], other=0.0)
        y = tl.load(b + (rk + k * BK * SPLIT)[:, None] * N + rn[None, :], mask=live[:, None] & (rn[None, :] < N), other=0.0)
        acc += tl.dot(x, y)
    tl.atomic_add(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N), sem="relaxed")


case(matmul_split_k, (3, 3, 2), product, tol=1e-2, a=rand((M, K), "fp16"), b=rand((K, N), "fp16"), c=full((M, N)), M=M,
     N=N, K=K, BM=32, BN=32, BK=16, SPLIT=2)


@triton.jit
def matmul_persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    grid_m, grid_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), grid_m * grid_n, tl.num_programs(0), flatten=True):
        width = GROUP * grid_n
        first = tile // width * GROUP
        size = min(grid_m - first, GROUP)
        pm, pn = first + tile % width % size, tile % width // size
        rm, rn = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            rk = k * BK + tl.arange(0, BK)
            x = tl.load(a + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
            y = tl.load(b + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
            acc = tl.dot(x, y, acc)
        tl.store(c + rm[:, None] * N + rn[None, :], acc.to(c.dtype.element_ty),
                 mask=(rm[:, None] < M) & (rn[None, :] < N))


case(matmul_persistent, (3,), product, tol=1e-2, a=rand((M, K), "fp16"), b=rand((K, N), "fp16"),
     c=full((M, N), 0, "fp16"), M=M, N=N, K=K, BM=32, BN=32, BK=32, GROUP=2)


@triton.jit
def matmul_grouped(a, b, c, sizes, groups, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr):
    tile, start, done = tl.program_id(0), 0, 0
    rn, rk = tl.arange(0, N), tl.arange(0, K)
    for g in range(groups):
        rows = tl.load(sizes + g)
        tiles = tl.cdiv(rows, BM)
        while tile >= done and tile < done + tiles:
            rm = (tile - done) * BM + tl.arange(0, BM)
            x = tl.load(a + (start + rm)[:, None] * K + rk[None, :], mask=(rm < rows)[:, None], other=0.0)
            y = tl.load(b + g * K * N + rk[:, None] * N + rn[None, :])
            tl.store(c + (start + rm)[:, None] * N + rn[None, :], tl.dot(x, y), mask=(rm < rows)[:, None])
            tile += tl.num_programs(0)
        done += tiles
        start += rows


def grouped_ref(a, b, sizes, **_):
    parts = np.split(a.astype(np.float64), np.cumsum(sizes)[:-1])
    return {"c": np.concatenate([p @ w for p, w in zip(parts, b.astype(np.float64))])}


case(matmul_grouped, (4,), grouped_ref, tol=1e-2, a=rand((90, 32), "fp16"), b=rand((3, 32, 32), "fp16"),
     c=full((90, 32)), sizes=given([40, 17, 33], "i32"), groups=3, N=32, K=32, BM=16)


@triton.jit
def matmul_dequant(a, q, scale, c, K: tl.constexpr, N: tl.constexpr, M: tl.constexpr):
    rm, rn, rh = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 2)
    packed = tl.load(q + rh[:, None] * N + rn[None, :])
    low, high = ((packed & 15) - 8).to(tl.float16), (((packed >> 4) & 15) - 8).to(tl.float16)
    w = tl.join(low, high).permute(0, 2, 1).reshape(K, N)
    x = tl.load(a + rm[:, None] * K + tl.arange(0, K)[None, :])
    tl.store(c + rm[:, None] * N + rn[None, :], tl.dot(x, w) * tl.load(scale + rn)[None, :])


def dequant_ref(a, q, scale, **_):
    q = q.astype(np.int32) & 255
    w = np.stack([(q & 15) - 8, (q >> 4) - 8], 1).reshape(-1, q.shape[1])
    return {"c": a.astype(np.float64) @ w * scale}


case(matmul_dequant, (1,), dequant_ref, tol=2e-2, a=rand((32, 64), "fp16"), q=ints((32, 32), "i8", -128, 128),
     scale=rand(32), c=full((32, 32)), K=64, N=32, M=32)


@triton.jit
def dot_scaled(a, sa, b, sb, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rm, rn, rk, rs = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K), tl.arange(0, K // 32)
    x = tl.load(a + rm[:, None] * K + rk[None, :])
    y = tl.load(b + rk[:, None] * N + rn[None, :])
    ex = tl.load(sa + rm[:, None] * (K // 32) + rs[None, :])
    ey = tl.load(sb + rn[:, None] * (K // 32) + rs[None, :])
    tl.store(c + rm[:, None] * N + rn[None, :], tl.dot_scaled(x, ex, "e5m2", y, ey, "e5m2"))


def scaled_ref(a, sa, b, sb, **_):
    sx, sy = (np.repeat(2.0 ** (s.astype(np.float64) - 127), 32, 1) for s in (sa, sb))
    return {"c": (a * sx) @ (b * sy.T)}


case(dot_scaled, (1,), scaled_ref, tol=5e-2, a=rand((128, 64), "fp8e5"), sa=ints((128, 2), "u8", 126, 129),
     b=rand((64, 64), "fp8e5"), sb=ints((64, 2), "u8", 126, 129), c=full((128, 64)), M=128, N=64, K=64)


@triton.jit
def chained_dots(a, b, c, z, S: tl.constexpr):
    o = tl.arange(0, S)[:, None] * S + tl.arange(0, S)[None, :]
    t = tl.dot(tl.load(a + o), tl.load(b + o)).to(tl.float16)
    tl.store(z + o, tl.dot(t, tl.load(c + o)))


case(chained_dots, (1,), lambda a, b, c, **_: {"z": a.astype(np.float64) @ b @ c}, tol=5e-2, a=rand((64, 64), "fp16"),
     b=rand((64, 64), "fp16"), c=rand((64, 64), "fp16"), z=full((64, 64)), S=64)


@triton.jit
def convolution(x, w, z, W, C: tl.constexpr, O: tl.constexpr, B: tl.constexpr):
    """One-dimensional, three taps, as a sum of matrix products."""
    t = tl.program_id(0) * B + tl.arange(0, B)
    rc, ro = tl.arange(0, C), tl.arange(0, O)
    acc = tl.zeros((B, O), tl.float32)
    for tap in tl.static_range(3):
        at = t + tap - 1
        v = tl.load(x + at[:, None] * C + rc[None, :], mask=((at >= 0) & (at < W))[:, None], other=0.0)
        acc += tl.dot(v, tl.load(w + tap * C * O + rc[:, None] * O + ro[None, :]))
    tl.store(z + t[:, None] * O + ro[None, :], acc, mask=(t < W)[:, None])


def convolution_ref(x, w, W, **_):
    p = np.pad(x.astype(np.float64), ((1, 1), (0, 0)))
    return {"z": sum(p[i : i + W] @ w[i] for i in range(3))}


case(convolution, (4,), convolution_ref, tol=1e-2, x=rand((100, 32), "fp16"), w=rand((3, 32, 16), "fp16"),
     z=full((100, 16)), W=100, C=32, O=16, B=32)
