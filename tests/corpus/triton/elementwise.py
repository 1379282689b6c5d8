"""Elementwise kernels: every number type, masks, broadcasts, conversions, 64-bit indices."""

import numpy as np
import triton
import triton.language as tl
from cases import DTYPES, SM80, SM90, SM100, case, full, ints, rand

N = 1000


@triton.jit
def add(x, y, z, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < n
    tl.store(z + o, tl.load(x + o, mask=m) + tl.load(y + o, mask=m), mask=m)


for i, t in enumerate(["fp32", "fp16", "bf16", "fp64"]):
    case(add, (4,), lambda x, y, **_: {"z": x + y}, tag=t, tol=1e-2 if t == "bf16" else 1e-3, warps=1 << i,
         x=rand(N, t), y=rand(N, t), z=full(N, 0, t), n=N, B=256)
for t in ["i8", "i16", "i32", "i64", "u8", "u32"]:
    case(add, (4,), lambda x, y, **_: {"z": x + y}, tag=t, warps=8,
         x=ints(N, t, 0, 60), y=ints(N, t, 0, 60), z=full(N, 0, t), n=N, B=256)


@triton.jit
def int_mix(x, y, z, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < n
    a = tl.load(x + o, mask=m, other=7)
    b = tl.load(y + o, mask=m, other=3)
    r = (a // b) * 3 + (a % b) - (a >> 2) + (a << 1)
    r = (r ^ b) | (a & 0x55)
    r = tl.where(a > b, r, -r)
    tl.store(z + o, tl.maximum(tl.minimum(r, 1000), ~b), mask=m)


def int_mix_ref(x, y, **_):
    q = np.trunc(x / y).astype(x.dtype)
    r = q * 3 + (x - q * y) - (x >> 2) + (x << 1)
    r = (r ^ y) | (x & 0x55)
    r = np.where(x > y, r, -r)
    return {"z": np.maximum(np.minimum(r, 1000), ~y)}


for t in ["i32", "i64"]:
    case(int_mix, (4,), int_mix_ref, tag=t, x=ints(N, t, -500, 500), y=ints(N, t, 1, 90), z=full(N, 0, t), n=N, B=256)


@triton.jit
def unsigned_mix(x, y, z, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < n
    a = tl.load(x + o, mask=m, other=1)
    b = tl.load(y + o, mask=m, other=1)
    tl.store(z + o, tl.umulhi(a, b) + a // b + a % b + (a >> 3), mask=m)


case(unsigned_mix, (4,), lambda x, y, **_: {"z": ((x.astype(np.uint64) * y) >> 32).astype(np.uint32) + x // y + x % y
                                            + (x >> 3)},
     x=ints(N, "u32", 0, 1 << 32), y=ints(N, "u32", 1, 1 << 32), z=full(N, 0, "u32"), n=N, B=256)


@triton.jit
def fused(x, bias, z, n, scale, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < n
    v = tl.load(x + o, mask=m, other=0.0).to(tl.float32)
    v = tl.fma(v, scale, tl.load(bias + o % 16))
    v = v * tl.sigmoid(v) + tl.maximum(v, 0.0)
    tl.store(z + o, v.to(z.dtype.element_ty), mask=m)


def fused_ref(x, bias, scale, **_):
    v = x.astype(np.float32) * np.float32(scale) + bias[np.arange(N) % 16]
    return {"z": v / (1 + np.exp(-v)) + np.maximum(v, 0)}


for t in ["fp32", "fp16", "bf16"]:
    case(fused, (2,), fused_ref, tag=t, tol=2e-2, x=rand(N, t), bias=rand(16), z=full(N, 0, t), n=N, scale=1.5, B=512)


@triton.jit
def cast(x, z, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < n
    tl.store(z + o, tl.load(x + o, mask=m).to(z.dtype.element_ty), mask=m)


def cast_ref(to):
    d = DTYPES[to]
    return lambda x, **_: {"z": d.round(np.trunc(x) if not d.is_floating_point else x)}


def to_fp8e5(before, after):
    """To nearest; below sm_89 Triton takes the larger one of two that are as near."""
    even, up = (DTYPES["fp8e5"].round(before["x"].astype(np.float64) * f) for f in (1.0, 1.0001))
    bad = (after["z"] != even) & (after["z"] != up)
    return f"{before['x'][bad][0]} became {after['z'][bad][0]}" if bad.any() else None


FLOATS = ["fp64", "fp32", "fp16", "bf16", "fp8e5"]
for a in FLOATS:
    for b in FLOATS + ["i32"]:
        if a != b and (a, b) not in [("fp64", "fp8e5"), ("fp8e5", "fp64"), ("fp8e5", "i32")]:
            case(cast, (4,), None if b == "fp8e5" else cast_ref(b), tag=f"{a}_{b}", tol=0, sm=(SM80, SM90),
                 check=to_fp8e5 if b == "fp8e5" else None, x=rand(N, a, -40, 40), z=full(N, 0, b), n=N, B=256)
for a, b in [("fp32", "fp8e4nv"), ("fp8e4nv", "fp32"), ("fp16", "fp8e4nv"), ("fp8e4nv", "fp16"), ("bf16", "fp8e4nv"),
             ("fp8e4nv", "bf16")]:
    case(cast, (4,), cast_ref(b), tag=f"{a}_{b}", tol=0, sm=(SM90, SM100), x=rand(N, a, -40, 40), z=full(N, 0, b), n=N,
         B=256)
for a, b in [("i32", "fp32"), ("i64", "fp64"), ("u8", "fp16"), ("i32", "bf16"), ("i64", "fp32"), ("i8", "i64"),
             ("i64", "i8"), ("i32", "i1"), ("i1", "fp32"), ("u32", "fp64")]:
    low, high = (0, 2) if a == "i1" else (0, 100) if a[0] == "u" or b == "i8" else (-100, 100)
    ref = (lambda x, **_: {"z": x != 0}) if b == "i1" else (lambda x, **_: {"z": x.astype(np.float64)})
    case(cast, (4,), ref, tag=f"{a}_{b}", tol=0, x=ints(N, a, low, high), z=full(N, 0, b), n=N, B=256)


@triton.jit
def round_mode(x, z, n, MODE: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o, mask=o < n, other=0.0)
    tl.store(z + o, v.to(z.dtype.element_ty, fp_downcast_rounding=MODE), mask=o < n)


def toward_zero(x, **_):
    bits = x.astype(np.float32).view(np.uint32) & 0xFFFF0000
    return {"z": bits.view(np.float32)}


case(round_mode, (1,), toward_zero, tag="rtz_bf16", tol=0, x=rand(N), z=full(N, 0, "bf16"), n=N, MODE="rtz", B=1024)
case(round_mode, (1,), lambda x, **_: {"z": x.astype(np.float16)}, tag="rtne_fp16", tol=0, x=rand(N),
     z=full(N, 0, "fp16"), n=N, MODE="rtne", B=1024)


@triton.jit
def bitcast(x, z, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o, mask=o < n, other=0.0).to(tl.int32, bitcast=True)
    tl.store(z + o, (v & 0x7FFFFFFF) ^ 0x3F800000, mask=o < n)


case(bitcast, (1,), lambda x, **_: {"z": (x.view(np.int32) & 0x7FFFFFFF) ^ 0x3F800000}, x=rand(N), z=full(N, 0, "i32"),
     n=N, B=1024)


@triton.jit
def outer(x, y, z, M: tl.constexpr, K: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, K)
    tl.store(z + i[:, None] * K + j[None, :], tl.load(x + i)[:, None] * tl.load(y + j)[None, :])


case(outer, (1,), lambda x, y, **_: {"z": np.outer(x, y)}, x=rand(32), y=rand(64), z=full((32, 64)), M=32, K=64)


@triton.jit
def wide_index(x, z, n, step, B: tl.constexpr):
    o = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    far = o * step % n
    tl.store(z + o, tl.load(x + far), mask=o < n)


case(wide_index, (4,), lambda x, **_: {"z": x[np.arange(N) * ((1 << 33) + 7) % N]}, x=rand(N), z=full(N), n=N,
     step=(1 << 33) + 7, B=256)


@triton.jit
def three_axes(z, X: tl.constexpr, Y: tl.constexpr):
    p = tl.program_id(0) + X * (tl.program_id(1) + Y * tl.program_id(2))
    tl.store(z + p, p * 1000 + tl.num_programs(0) * 100 + tl.num_programs(1) * 10 + tl.num_programs(2))


case(three_axes, (3, 4, 2), lambda **_: {"z": np.arange(24) * 1000 + 342}, z=full(24, 0, "i32"), X=3, Y=4, warps=1)


@triton.jit
def clamp_nan(x, z, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o, mask=o < n, other=float("nan"))
    v = tl.where(v > 0.5, float("inf"), v)
    v = tl.clamp(v, -0.25, 2.0) + tl.maximum(v, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(z + o, tl.where(v == float("inf"), -1.0, v), mask=o < n)


case(clamp_nan, (1,), lambda x, **_: {"z": np.where(x > 0.5, -1, np.clip(x, -0.25, 2) + np.maximum(x, 0))}, x=rand(N),
     z=full(N), n=N, B=1024)


@triton.jit
def vector_hints(x, z, n, B: tl.constexpr):
    o = tl.max_contiguous(tl.multiple_of(tl.program_id(0) * B + tl.arange(0, B), B), B)
    v = tl.load(x + o, cache_modifier=".cg")
    w = tl.load(x + o, cache_modifier=".ca") + tl.load(x + o, eviction_policy="evict_last")
    u = tl.load(x + o, volatile=True) + tl.load(x + o, eviction_policy="evict_first")
    tl.store(z + o, v + w + u, cache_modifier=".cs")
    tl.store(z + n + o, v, cache_modifier=".wt")


case(vector_hints, (2,), lambda x, **_: {"z": np.concatenate([x * 5, x])}, x=rand(1024), z=full(2048), n=1024, B=512)
