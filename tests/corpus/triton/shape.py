"""Layout changes: transposes, reshapes, joins, splits, broadcasts, slices through shared memory."""

import numpy as np
import triton
import triton.language as tl
from cases import case, full, ints, rand


@triton.jit
def transpose(x, z, M: tl.constexpr, K: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    tl.store(z + tl.arange(0, K)[:, None] * M + tl.arange(0, M)[None, :], v.T)


for t, w in [("fp32", 4), ("fp16", 8), ("i8", 2), ("fp64", 1), ("i64", 4)]:
    make = ints if t[0] == "i" else rand
    case(transpose, (1,), lambda x, **_: {"z": x.T}, tag=t, x=make((64, 32), t), z=full((32, 64), 0, t), M=64, K=32,
         warps=w)


@triton.jit
def permute3(x, z, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    v = tl.load(x + a[:, None, None] * B * C + b[None, :, None] * C + c[None, None, :])
    tl.store(z + c[:, None, None] * A * B + a[None, :, None] * B + b[None, None, :], tl.permute(v, 2, 0, 1))


case(permute3, (1,), lambda x, **_: {"z": x.transpose(2, 0, 1)}, x=rand((4, 8, 32)), z=full((32, 4, 8)), A=4, B=8, C=32)


@triton.jit
def join_split(x, y, z, B: tl.constexpr):
    o = tl.arange(0, B)
    a, b = tl.split(tl.join(tl.load(x + o), tl.load(y + o)) * 2.0)
    tl.store(z + o, a)
    tl.store(z + B + o, b)


case(join_split, (1,), lambda x, y, **_: {"z": np.concatenate([x, y]) * 2}, x=rand(256), y=rand(256), z=full(512), B=256)


@triton.jit
def interleave(x, y, z, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(z + tl.arange(0, 2 * B), tl.interleave(tl.load(x + o), tl.load(y + o)))


for t in ["fp32", "fp16"]:
    case(interleave, (1,), lambda x, y, **_: {"z": np.stack([x, y], 1).reshape(-1)}, tag=t, x=rand(128, t),
         y=rand(128, t), z=full(256, 0, t), B=128)


@triton.jit
def concatenate(x, y, z, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.cat(tl.load(x + o), tl.load(y + o), can_reorder=True)
    tl.store(z, tl.sum(v, 0))
    tl.store(z + 1, tl.max(v, 0))


case(concatenate, (1,), lambda x, y, **_: {"z": np.array([x.sum() + y.sum(), max(x.max(), y.max())])}, x=ints(128),
     y=ints(128), z=full(2, 0, "i32"), B=128)


@triton.jit
def reshape_sum(x, z, M: tl.constexpr, K: tl.constexpr, G: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    v = tl.sum(tl.reshape(v, (M, K // G, G)), 2)
    tl.store(z + tl.arange(0, M)[:, None] * (K // G) + tl.arange(0, K // G)[None, :], v)


case(reshape_sum, (1,), lambda x, **_: {"z": x.reshape(16, 8, 8).sum(2)}, x=ints((16, 64)), z=full((16, 8), 0, "i32"),
     M=16, K=64, G=8)


@triton.jit
def ravel_reduce(x, z, M: tl.constexpr, K: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    tl.store(z, tl.sum(tl.ravel(v), 0))
    tl.store(z + 1, tl.sum(tl.ravel(tl.trans(v)) * tl.arange(0, M * K), 0))


case(ravel_reduce, (1,), lambda x, **_: {"z": np.array([x.sum(), (x.T.reshape(-1) * np.arange(x.size)).sum()])},
     x=ints((16, 32)), z=full(2, 0, "i32"), M=16, K=32)


@triton.jit
def broadcast_three(x, y, w, z, A: tl.constexpr, B: tl.constexpr):
    a, b = tl.arange(0, A), tl.arange(0, B)
    v = tl.load(x + a)[:, None] + tl.load(y + b)[None, :]
    v, u = tl.broadcast(v, tl.load(w) + tl.zeros((1, 1), tl.float32))
    tl.store(z + a[:, None] * B + b[None, :], v * u)


case(broadcast_three, (1,), lambda x, y, w, **_: {"z": (x[:, None] + y) * w}, x=rand(16), y=rand(32), w=rand(1),
     z=full((16, 32)), A=16, B=32)


@triton.jit
def softmax_columns(x, z, M: tl.constexpr, K: tl.constexpr):
    """Layouts that disagree: a reduction by columns between row-wise accesses."""
    o = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    v = tl.load(x + o)
    e = tl.exp(v - tl.max(v, 0)[None, :])
    tl.store(z + o, e / tl.sum(e, 0)[None, :] + tl.sum(v, 1)[:, None])


def columns_ref(x, **_):
    e = np.exp(x - x.max(0))
    return {"z": e / e.sum(0) + x.sum(1, keepdims=True)}


case(softmax_columns, (1,), columns_ref, tol=1e-4, x=rand((64, 32)), z=full((64, 32)), M=64, K=32)


@triton.jit
def swizzled(z, M: tl.constexpr, K: tl.constexpr):
    i, j = tl.swizzle2d(tl.program_id(0) // K, tl.program_id(0) % K, M, K, 2)
    tl.store(z + i * K + j, tl.program_id(0))


def swizzled_check(before, after):
    return None if sorted(after["z"].reshape(-1)) == list(range(24)) else "not a permutation"


case(swizzled, (24,), check=swizzled_check, z=full((4, 6), -1, "i32"), M=4, K=6, warps=1)


@triton.jit
def pooling(x, z, M: tl.constexpr, K: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    v = tl.max(tl.max(tl.reshape(v, (M // 2, 2, K // 2, 2)), 3), 1)
    tl.store(z + tl.arange(0, M // 2)[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :], v)


case(pooling, (1,), lambda x, **_: {"z": x.reshape(16, 2, 16, 2).max((1, 3))}, x=rand((32, 32)), z=full((16, 16)), M=32,
     K=32)
