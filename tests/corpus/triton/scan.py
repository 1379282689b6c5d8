"""Scans, sorting, top-k and histograms."""

import numpy as np
import triton
import triton.language as tl
from cases import case, full, ints, rand


@triton.jit
def cumulative(x, z, M: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr, OP: tl.constexpr):
    o = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    v = tl.load(x + o)
    r = tl.cumsum(v, AXIS, reverse=REVERSE) if OP == "sum" else tl.cumprod(v, AXIS, reverse=REVERSE)
    tl.store(z + o, r)


case(cumulative, (1,), lambda x, **_: {"z": np.cumsum(x, 1)}, tag="sum", tol=1e-4, x=rand((8, 128)), z=full((8, 128)),
     M=8, K=128, AXIS=1, REVERSE=False, OP="sum")
case(cumulative, (1,), lambda x, **_: {"z": np.cumsum(x[::-1], 0)[::-1]}, tag="sum_columns_reverse", x=ints((64, 16)),
     z=full((64, 16), 0, "i32"), M=64, K=16, AXIS=0, REVERSE=True, OP="sum")
case(cumulative, (1,), lambda x, **_: {"z": np.cumprod(x, 1)}, tag="prod", tol=1e-4, x=rand((8, 64), "fp32", 0.9, 1.1),
     z=full((8, 64)), M=8, K=64, AXIS=1, REVERSE=False, OP="prod", warps=2)
case(cumulative, (1,), lambda x, **_: {"z": np.cumsum(x, 1)}, tag="sum_i64", x=ints((4, 256), "i64"),
     z=full((4, 256), 0, "i64"), M=4, K=256, AXIS=1, REVERSE=False, OP="sum", warps=8)


@triton.jit
def linear_step(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def recurrence(a, b, z, K: tl.constexpr):
    o = tl.program_id(0) * K + tl.arange(0, K)
    _, h = tl.associative_scan((tl.load(a + o), tl.load(b + o)), 0, linear_step)
    tl.store(z + o, h)


def recurrence_ref(a, b, **_):
    h, out = np.zeros(a.shape[0]), np.empty(a.shape)
    for t in range(a.shape[1]):
        h = h * a[:, t] + b[:, t]
        out[:, t] = h
    return {"z": out}


case(recurrence, (4,), recurrence_ref, tol=1e-4, a=rand((4, 256)), b=rand((4, 256)), z=full((4, 256)), K=256)


@triton.jit
def running_max(a, b):
    return tl.maximum(a, b)


@triton.jit
def scan_max(x, z, M: tl.constexpr, K: tl.constexpr):
    o = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(z + o, tl.associative_scan(tl.load(x + o), 1, running_max))


case(scan_max, (1,), lambda x, **_: {"z": np.maximum.accumulate(x, 1)}, x=ints((16, 64)), z=full((16, 64), 0, "i32"),
     M=16, K=64)


@triton.jit
def sort_rows(x, z, M: tl.constexpr, K: tl.constexpr, DOWN: tl.constexpr):
    o = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(z + o, tl.sort(tl.load(x + o), 1, descending=DOWN))


case(sort_rows, (1,), lambda x, **_: {"z": np.sort(x, 1)}, tag="fp32", x=rand((8, 128)), z=full((8, 128)), M=8, K=128,
     DOWN=False)
case(sort_rows, (1,), lambda x, **_: {"z": np.sort(x, 1)[:, ::-1]}, tag="i32_down", x=ints((4, 64)),
     z=full((4, 64), 0, "i32"), M=4, K=64, DOWN=True, warps=2)


@triton.jit
def top_k(x, z, M: tl.constexpr, K: tl.constexpr, TOP: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    tl.store(z + tl.arange(0, M)[:, None] * TOP + tl.arange(0, TOP)[None, :], tl.topk(v, TOP))


case(top_k, (1,), lambda x, **_: {"z": np.sort(x, 1)[:, ::-1][:, :8]}, x=rand((4, 64)), z=full((4, 8)), M=4, K=64,
     TOP=8)


@triton.jit
def flip_rows(x, z, M: tl.constexpr, K: tl.constexpr):
    o = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(z + o, tl.flip(tl.load(x + o), 1))


case(flip_rows, (1,), lambda x, **_: {"z": x[:, ::-1]}, x=rand((8, 32)), z=full((8, 32)), M=8, K=32)


@triton.jit
def histogram(x, z, n, B: tl.constexpr, BINS: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    h = tl.histogram(tl.load(x + o, mask=o < n), BINS, mask=o < n)
    tl.atomic_add(z + tl.arange(0, BINS), h)


case(histogram, (4,), lambda x, **_: {"z": np.bincount(x, minlength=64)}, x=ints(900, "i32", 0, 64),
     z=full(64, 0, "i32"), n=900, B=256, BINS=64)
