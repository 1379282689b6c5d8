"""Row-wise kernels of neural networks: softmax, norms, losses, random numbers."""

import numpy as np
import triton
import triton.language as tl
from cases import case, full, ints, rand

M, K = 8, 200


@triton.jit
def softmax(x, z, n, stride, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * stride + o, mask=o < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(z + tl.program_id(0) * stride + o, e / tl.sum(e, 0), mask=o < n)


def softmax_of(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


for t in ["fp32", "fp16", "bf16"]:
    case(softmax, (M,), lambda x, **_: {"z": softmax_of(x.astype(np.float32))}, tag=t, tol=5e-3, x=rand((M, K), t, -4, 4),
         z=full((M, K), 0, t), n=K, stride=K, B=256)


@triton.jit
def softmax_persistent(x, z, rows, n, B: tl.constexpr, STAGES: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        o = tl.arange(0, B)
        v = tl.load(x + row * n + o, mask=o < n, other=-float("inf"))
        e = tl.exp(v - tl.max(v, 0))
        tl.store(z + row * n + o, e / tl.sum(e, 0), mask=o < n)


for s in [1, 2, 4]:
    case(softmax_persistent, (3,), lambda x, **_: {"z": softmax_of(x)}, tag=f"stages{s}", x=rand((M, K)),
         z=full((M, K)), rows=M, n=K, B=256, STAGES=s, stages=s)


@triton.jit
def softmax_two_pass(x, z, n, B: tl.constexpr):
    top = tl.full((B,), -float("inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    row = tl.program_id(0) * n
    for k in range(0, n, B):
        o = k + tl.arange(0, B)
        v = tl.load(x + row + o, mask=o < n, other=-float("inf"))
        new = tl.maximum(top, v)
        total = total * tl.exp(top - tl.where(new == -float("inf"), 0.0, new)) + tl.where(o < n, tl.exp(v - new), 0.0)
        top = new
    peak = tl.max(top, 0)
    s = tl.sum(total * tl.exp(top - peak), 0)
    for k in range(0, n, B):
        o = k + tl.arange(0, B)
        tl.store(z + row + o, tl.exp(tl.load(x + row + o, mask=o < n) - peak) / s, mask=o < n)


case(softmax_two_pass, (M,), lambda x, **_: {"z": softmax_of(x)}, x=rand((M, K)), z=full((M, K)), n=K, B=64, warps=2)


@triton.jit
def layer_norm(x, w, b, z, mean, rstd, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, B)
    m = o < n
    v = tl.load(x + row * n + o, mask=m, other=0.0).to(tl.float32)
    mu = tl.sum(v, 0) / n
    d = tl.where(m, v - mu, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(mean + row, mu)
    tl.store(rstd + row, r)
    tl.store(z + row * n + o, d * r * tl.load(w + o, mask=m) + tl.load(b + o, mask=m), mask=m)


def layer_norm_ref(x, w, b, eps, **_):
    mu, r = x.mean(1), 1 / np.sqrt(x.var(1) + eps)
    return {"mean": mu, "rstd": r, "z": (x - mu[:, None]) * r[:, None] * w + b}


case(layer_norm, (M,), layer_norm_ref, tol=1e-4, x=rand((M, K)), w=rand(K), b=rand(K), z=full((M, K)), mean=full(M),
     rstd=full(M), n=K, eps=1e-5, B=256)


@triton.jit
def layer_norm_backward(dy, x, w, mean, rstd, dx, dw, n, B: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, B)
    m = o < n
    r = tl.load(rstd + row)
    g = tl.load(dy + row * n + o, mask=m, other=0.0)
    h = (tl.load(x + row * n + o, mask=m, other=0.0) - tl.load(mean + row)) * r
    h = tl.where(m, h, 0.0)
    gw = g * tl.load(w + o, mask=m, other=0.0)
    c1 = tl.sum(h * gw, 0) / n
    c2 = tl.sum(gw, 0) / n
    tl.store(dx + row * n + o, (gw - (h * c1 + c2)) * r, mask=m)
    tl.atomic_add(dw + o, g * h, mask=m)


def layer_norm_backward_ref(dy, x, w, mean, rstd, **_):
    h = (x - mean[:, None]) * rstd[:, None]
    gw = dy * w
    c1, c2 = (h * gw).mean(1, keepdims=True), gw.mean(1, keepdims=True)
    return {"dx": (gw - (h * c1 + c2)) * rstd[:, None], "dw": (dy * h).sum(0)}


case(layer_norm_backward, (M,), layer_norm_backward_ref, tol=1e-4, dy=rand((M, K)), x=rand((M, K)), w=rand(K),
     mean=rand(M), rstd=rand(M, "fp32", 1, 2), dx=full((M, K)), dw=full(K), n=K, B=256, warps=8)


@triton.jit
def rms_norm(x, w, z, n, eps, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * n + o, mask=o < n, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(v * v, 0) / n + eps)
    tl.store(z + tl.program_id(0) * n + o, v * r * tl.load(w + o, mask=o < n), mask=o < n)


for t in ["fp16", "bf16"]:
    case(rms_norm, (M,), lambda x, w, eps, **_: {"z": x / np.sqrt((x.astype(np.float32)**2).mean(1, keepdims=True) + eps)
                                                 * w}, tag=t, tol=2e-2, x=rand((M, K), t), w=rand(K, t),
         z=full((M, K), 0, t), n=K, eps=1e-5, B=256)


@triton.jit
def cross_entropy(x, label, loss, n, B: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, B)
    v = tl.load(x + row * n + o, mask=o < n, other=-float("inf"))
    top = tl.max(v, 0)
    lse = top + tl.log(tl.sum(tl.exp(v - top), 0))
    tl.store(loss + row, lse - tl.load(x + row * n + tl.load(label + row)))


case(cross_entropy, (M,), lambda x, label, **_: {"loss": np.log(np.exp(x).sum(1)) - x[np.arange(M), label]}, tol=1e-4,
     x=rand((M, K)), label=ints(M, "i64", 0, K), loss=full(M), n=K, B=256)


@triton.jit
def dropout(x, z, n, p, seed, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    keep = tl.rand(seed, o) > p
    tl.store(z + o, tl.where(keep, tl.load(x + o, mask=o < n) / (1 - p), 0.0), mask=o < n)


PHILOX = (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85)


def philox(seed, offsets, rounds=10):
    """Philox 4x32 with the key (seed, 0) and the counter (offset, 0, 0, 0)."""
    a, b, ka, kb = PHILOX
    c = [offsets.astype(np.uint64)] + [np.zeros_like(offsets, np.uint64)] * 3
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(rounds):
        p0, p1 = c[0] * a, c[2] * b
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = (k0 + ka) & 0xFFFFFFFF, (k1 + kb) & 0xFFFFFFFF
    return [v.astype(np.uint32) for v in c]


def uniform(bits):
    x = bits.view(np.int32).astype(np.int64)
    return (np.where(x < 0, -x - 1, x) * 4.6566127342e-10).astype(np.float32)


def dropout_ref(x, p, seed, **_):
    return {"z": np.where(uniform(philox(seed, np.arange(x.size))[0]) > p, x / (1 - p), 0)}


case(dropout, (4,), dropout_ref, tol=1e-4, x=rand(1000), z=full(1000), n=1000, p=0.3, seed=123, B=256)


@triton.jit
def random_bits(z, seed, B: tl.constexpr):
    o = tl.arange(0, B)
    a, b, c, d = tl.randint4x(seed, o)
    tl.store(z + o, a)
    tl.store(z + B + o, b)
    tl.store(z + 2 * B + o, c)
    tl.store(z + 3 * B + o, d)


case(random_bits, (1,), lambda seed, **_: {"z": np.concatenate(philox(seed, np.arange(256))).view(np.int32)},
     z=full(1024, 0, "i32"), seed=98765, B=256)


@triton.jit
def random_normal(z, seed, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(z + o, tl.randn(seed, o))


def looks_normal(before, after):
    z = after["z"]
    fine = abs(z.mean()) < 0.1 and abs(z.std() - 1) < 0.1 and np.isfinite(z).all()
    return None if fine else f"mean {z.mean()}, deviation {z.std()}"


case(random_normal, (4,), check=looks_normal, z=full(2048), seed=7, B=512)


@triton.jit
def rotary(x, cos, sin, z, H: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, H)
    a, b = tl.load(x + row * 2 * H + o), tl.load(x + row * 2 * H + H + o)
    c, s = tl.load(cos + row * H + o), tl.load(sin + row * H + o)
    tl.store(z + row * 2 * H + o, a * c - b * s)
    tl.store(z + row * 2 * H + H + o, b * c + a * s)


def rotary_ref(x, cos, sin, **_):
    a, b = np.split(x, 2, 1)
    return {"z": np.concatenate([a * cos - b * sin, b * cos + a * sin], 1)}


case(rotary, (M,), rotary_ref, x=rand((M, 128)), cos=rand((M, 64)), sin=rand((M, 64)), z=full((M, 128)), H=64, warps=1)
