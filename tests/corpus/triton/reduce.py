"""Reductions over one or two axes, with built-in and own combine functions."""

import numpy as np
import triton
import triton.language as tl
from cases import case, full, ints, rand

M, K = 16, 128


@triton.jit
def reduce_rows(x, z, M: tl.constexpr, K: tl.constexpr, OP: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, K)
    v = tl.load(x + i[:, None] * K + j[None, :])
    if OP == "sum":
        r = tl.sum(v, 1)
    elif OP == "max":
        r = tl.max(v, 1)
    elif OP == "min":
        r = tl.min(v, 1)
    elif OP == "argmax":
        r = tl.argmax(v, 1)
    elif OP == "argmin":
        r = tl.argmin(v, 1)
    else:
        r = tl.xor_sum(v, 1)
    tl.store(z + i, r)


for op, np_op in [("sum", np.sum), ("max", np.max), ("min", np.min), ("argmax", np.argmax), ("argmin", np.argmin)]:
    out = "i32" if op.startswith("arg") else "fp32"
    case(reduce_rows, (1,), lambda x, np_op=np_op, **_: {"z": np_op(x, axis=1)}, tag=op, tol=1e-4, x=rand((M, K)),
         z=full(M, 0, out), M=M, K=K, OP=op)
for t in ["fp16", "bf16", "fp64"]:
    case(reduce_rows, (1,), lambda x, **_: {"z": x.max(1)}, tag=f"max_{t}", x=rand((M, K), t), z=full(M, 0, t), M=M,
         K=K, OP="max", warps=2)
for t in ["i32", "i64", "i8"]:
    case(reduce_rows, (1,), lambda x, **_: {"z": np.bitwise_xor.reduce(x, axis=1)}, tag=f"xor_{t}", x=ints((M, K), t),
         z=full(M, 0, t), M=M, K=K, OP="xor")
case(reduce_rows, (1,), lambda x, **_: {"z": x.sum(1)}, tag="sum_i32_8warps", x=ints((M, K)), z=full(M, 0, "i32"), M=M,
     K=K, OP="sum", warps=8)
case(reduce_rows, (1,), lambda x, **_: {"z": x.sum(1)}, tag="sum_i32_1warp", x=ints((M, K)), z=full(M, 0, "i32"), M=M,
     K=K, OP="sum", warps=1)


@triton.jit
def reduce_columns(x, z, M: tl.constexpr, K: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, K)
    tl.store(z + j, tl.sum(tl.load(x + i[:, None] * K + j[None, :]), 0))


case(reduce_columns, (1,), lambda x, **_: {"z": x.sum(0)}, tol=1e-4, x=rand((64, 32)), z=full(32), M=64, K=32)


@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    d = mean_b - mean_a
    f = n_b / n
    return mean_a + d * f, m2_a + m2_b + d * d * n_a * f, n


@triton.jit
def variance(x, z, K: tl.constexpr):
    j = tl.arange(0, K)
    v = tl.load(x + tl.program_id(0) * K + j)
    mean, m2, n = tl.reduce((v, tl.zeros_like(v), tl.zeros_like(v) + 1.0), 0, welford)
    tl.store(z + tl.program_id(0) * 2, mean)
    tl.store(z + tl.program_id(0) * 2 + 1, m2 / n)


case(variance, (M,), lambda x, **_: {"z": np.stack([x.mean(1), x.var(1)], 1)}, tol=1e-4, x=rand((M, K)),
     z=full((M, 2)), K=K)


@triton.jit
def reduce_all(x, z, n, B: tl.constexpr):
    acc = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        o = start + tl.arange(0, B)
        acc += tl.load(x + o, mask=o < n, other=0.0)
    tl.store(z, tl.sum(acc))


case(reduce_all, (1,), lambda x, **_: {"z": x.sum().reshape(1)}, tol=1e-3, x=rand(5000), z=full(1), n=5000, B=1024)


@triton.jit
def reduce_3d(x, z, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    v = tl.load(x + a[:, None, None] * B * C + b[None, :, None] * C + c[None, None, :])
    tl.store(z + a[:, None] * C + c[None, :], tl.max(v, 1))


case(reduce_3d, (1,), lambda x, **_: {"z": x.max(1)}, x=rand((4, 16, 32)), z=full((4, 32)), A=4, B=16, C=32)


@triton.jit
def dot_product(x, y, z, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    p = tl.load(x + o, mask=o < n, other=0.0) * tl.load(y + o, mask=o < n, other=0.0)
    tl.atomic_add(z, tl.sum(p))


case(dot_product, (8,), lambda x, y, **_: {"z": np.dot(x, y).reshape(1)}, tol=1e-3, x=rand(2000), y=rand(2000),
     z=full(1), n=2000, B=256)


@triton.jit
def any_all(x, z, K: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * K + tl.arange(0, K))
    some = tl.reduce_or((v > 98).to(tl.int32), 0)
    big = tl.sum((v > 50).to(tl.int32))
    tl.store(z + tl.program_id(0) * 2, some)
    tl.store(z + tl.program_id(0) * 2 + 1, big)


case(any_all, (8,), lambda x, **_: {"z": np.stack([(x > 98).any(1), (x > 50).sum(1)], 1)}, x=ints((8, 64)),
     z=full((8, 2), 0, "i32"), K=64, warps=2)
