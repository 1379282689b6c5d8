"""Attention forward passes, flash style: causal or not, several head sizes and types, decoding by splits, backward."""

import numpy as np
import triton
import triton.language as tl
from cases import SM90, SM100, Descriptor, case, full, rand

T, H = 128, 2


@triton.jit
def flash(q, k, v, z, lse, T, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    start, head = tl.program_id(0) * BM, tl.program_id(1)
    rm, rd, base = start + tl.arange(0, BM), tl.arange(0, D), head.to(tl.int64) * T * D
    x = tl.load(q + base + rm[:, None] * D + rd[None, :], mask=rm[:, None] < T, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    last = min(T, start + BM) if CAUSAL else T
    for n in range(0, last, BN):
        rn = n + tl.arange(0, BN)
        y = tl.load(k + base + rn[None, :] * D + rd[:, None], mask=rn[None, :] < T, other=0.0)
        s = tl.dot(x, y) * (scale * 1.44269504)
        live = (rn[None, :] < T) & (rm[:, None] >= rn[None, :]) if CAUSAL else rn[None, :] < T
        s = tl.where(live, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        w = tl.load(v + base + rn[:, None] * D + rd[None, :], mask=rn[:, None] < T, other=0.0)
        acc = acc * fade[:, None] + tl.dot(p.to(w.dtype), w)
        top = new
    tl.store(z + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(z.dtype.element_ty),
             mask=rm[:, None] < T)
    tl.store(lse + head * T + rm, top + tl.log2(total), mask=rm < T)


def attention(q, k, v, scale, causal):
    q, k, v = (t.astype(np.float64) for t in (q, k, v))
    s = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v, np.log2(np.exp(s).sum(-1))


def flash_ref(q, k, v, scale, CAUSAL, **_):
    z, lse = attention(q, k, v, scale, CAUSAL)
    return {"z": z, "lse": lse}


def flash_case(tag, t, length, d, bm, bn, causal, **more):
    case(flash, (-(-length // bm), H), flash_ref, tag=tag, tol=2e-2, q=rand((H, length, d), t), k=rand((H, length, d), t),
         v=rand((H, length, d), t), z=full((H, length, d), 0, t), lse=full((H, length)), T=length, scale=0.25, BM=bm,
         BN=bn, D=d, CAUSAL=causal, **more)


flash_case("fp16", "fp16", T, 64, 64, 32, False)
flash_case("fp16_causal", "fp16", T, 64, 64, 64, True, stages=2)
flash_case("fp16_ragged", "fp16", 100, 32, 32, 32, True, warps=2)
flash_case("bf16", "bf16", T, 128, 64, 32, False, stages=4)
flash_case("bf16_causal", "bf16", T, 64, 128, 64, True, warps=8)
flash_case("tf32", "fp32", 64, 32, 32, 32, False)


@triton.jit
def flash_tma(q, k, v, z, T, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, WS: tl.constexpr):
    start = tl.program_id(0) * BM
    x = q.load([start, 0])
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in tl.range(0, T, BN, warp_specialize=WS):
        s = tl.dot(x, k.load([n, 0]).T) * (scale * 1.44269504)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), v.load([n, 0]), acc * fade[:, None])
        top = new
    z.store([start, 0], (acc / total[:, None]).to(tl.float16))


def flash_tma_ref(q, k, v, scale, **_):
    return {"z": attention(q, k, v, scale, False)[0]}


for tag, ws, sm in [("plain", False, (SM90, SM100)), ("specialised", True, (SM90, SM100))]:
    case(flash_tma, (T // 64,), flash_tma_ref, tag=tag, tol=2e-2, sm=sm,
         q=Descriptor(rand((T, 64), "fp16"), (64, 64)), k=Descriptor(rand((T, 64), "fp16"), (64, 64)),
         v=Descriptor(rand((T, 64), "fp16"), (64, 64)), z=Descriptor(full((T, 64), 0, "fp16"), (64, 64)), T=T, scale=0.125,
         BM=64, BN=64, D=64, WS=ws)


@triton.jit
def decode_split(q, k, v, part, stat, T, scale, SPLIT: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    s_id, rd = tl.program_id(0), tl.arange(0, D)
    x = tl.load(q + rd)
    size = tl.cdiv(T, SPLIT)
    top, total = -float("inf"), 0.0
    acc = tl.zeros((D,), tl.float32)
    for n in range(s_id * size, min(T, (s_id + 1) * size), BN):
        rn = n + tl.arange(0, BN)
        live = rn < min(T, (s_id + 1) * size)
        s = tl.sum(tl.load(k + rn[:, None] * D + rd[None, :], mask=live[:, None], other=0.0) * x[None, :], 1) * scale
        s = tl.where(live, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 0))
        p = tl.exp(s - new)
        total = total * tl.exp(top - new) + tl.sum(p, 0)
        w = tl.load(v + rn[:, None] * D + rd[None, :], mask=live[:, None], other=0.0)
        acc = acc * tl.exp(top - new) + tl.sum(p[:, None] * w, 0)
        top = new
    tl.store(part + s_id * D + rd, acc)
    tl.store(stat + s_id * 2, top)
    tl.store(stat + s_id * 2 + 1, total)


def decode_ref(q, k, v, scale, SPLIT, **_):
    parts, stats = [], []
    for ks, vs in zip(np.array_split(k, SPLIT), np.array_split(v, SPLIT)):
        s = ks.astype(np.float64) @ q * scale
        p = np.exp(s - s.max())
        parts.append(p @ vs)
        stats.append([s.max(), p.sum()])
    return {"part": np.array(parts), "stat": np.array(stats)}


case(decode_split, (4,), decode_ref, tol=1e-4, q=rand(64), k=rand((T, 64)), v=rand((T, 64)), part=full((4, 64)),
     stat=full((4, 2)), T=T, scale=0.125, SPLIT=4, BN=16, D=64)


@triton.jit
def flash_backward(q, k, v, dz, lse, delta, dq, dk, dv, scale, T: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    rn, rd = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D)
    y, w = tl.load(k + rn[:, None] * D + rd[None, :]), tl.load(v + rn[:, None] * D + rd[None, :])
    gk, gv = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
    for m in range(0, T, BN):
        rm = m + tl.arange(0, BN)
        x, g = tl.load(q + rm[:, None] * D + rd[None, :]), tl.load(dz + rm[:, None] * D + rd[None, :])
        p = tl.exp(tl.dot(x, tl.trans(y)) * scale - tl.load(lse + rm)[:, None])
        gv += tl.dot(tl.trans(p.to(tl.float16)), g)
        ds = (p * (tl.dot(g, tl.trans(w)) - tl.load(delta + rm)[:, None]) * scale).to(tl.float16)
        gk += tl.dot(tl.trans(ds), x)
        tl.atomic_add(dq + rm[:, None] * D + rd[None, :], tl.dot(ds, y))
    tl.store(dk + rn[:, None] * D + rd[None, :], gk)
    tl.store(dv + rn[:, None] * D + rd[None, :], gv)


def backward_ref(q, k, v, dz, lse, delta, scale, **_):
    q, k, v, dz = (t.astype(np.float64) for t in (q, k, v, dz))
    p = np.exp(q @ k.T * scale - lse[:, None])
    ds = p * (dz @ v.T - delta[:, None]) * scale
    return {"dq": ds @ k, "dk": ds.T @ q, "dv": p.T @ dz}


case(flash_backward, (2,), backward_ref, tol=3e-2, q=rand((64, 32), "fp16"), k=rand((64, 32), "fp16"),
     v=rand((64, 32), "fp16"), dz=rand((64, 32), "fp16"), lse=rand(64, "fp32", 3, 4), delta=rand(64), dq=full((64, 32)),
     dk=full((64, 32)), dv=full((64, 32)), scale=0.2, T=64, D=32, BN=32)
