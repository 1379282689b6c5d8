"""Warp intrinsics, barriers, atomics and orders."""

import numpy as np
from cases import full, given, ints, rand
from cuda_cases import case

LANES = np.arange(32)


def shuffles(i, f, d, l):
    up = np.where(LANES % 16 >= 2, LANES - 2, LANES)
    down = np.minimum(LANES + 1, 31)
    l = l.copy()
    l[:16] = l[LANES[:16] // 8 * 8]
    return {"i": i[LANES ^ 3] + i[up], "f": f[down] + f[LANES ^ 8], "d": d[LANES ^ 1], "l": l}


case("shuffles", shuffles, block=32, i=ints(32), f=rand(32), d=rand(32, "fp64"), l=ints(32, "i64", -(1 << 60), 1 << 60))


def mask(lanes):
    return int(sum(1 << int(i) for i in lanes))


def votes(out, p, q):
    ballot = mask(LANES[p > LANES]) + bool(p) + (p == 3)
    groups = [mask(LANES[(LANES & p) == (t & p)]) for t in LANES]
    exclusive_or = int(np.bitwise_xor.reduce(LANES))
    want = [[(ballot + g) & 0xFFFFFFFF for g in groups], [0xFFFFFFFF + 1 + 32 & 0xFFFFFFFF] * 32, [496 + 31 + exclusive_or] * 32, [31] * 32]
    return {"out": np.concatenate(want)}


for p in (3, 0, 21):
    case("votes", votes, tag=f"p{p}", block=32, out=full(128, 0, "u32"), p=p, q=77)


def barriers(out):
    t = np.arange(96)
    return {"out": np.concatenate([32 * 100 + 1 + np.where(t < 64, 0, 10 * 1000), np.full(96, 7 + 256)])}


case("barriers", barriers, block=96, out=full(192, 0, "i32"))


def atomics(i, u, w, f, d, l):
    i, u, w, f, d, l = (a.copy() for a in (i, u, w, f, d, l))
    i[1] = i[0] + (i[0] + 3) + (i[0] + 1) + 7 - 5 + 5
    i[0] = 5
    old = u[0]
    increased = 0 if old >= 10 else old + 1
    decreased = 10 if increased == 0 or increased > 10 else increased - 1
    u[1] = old + increased + decreased + (decreased & 0xF0) + (decreased & 0xF0 | 1)
    u[0] = (decreased & 0xF0 | 1) ^ 3
    w[1], w[0] = w[0] + (w[0] + np.uint64(1)) + np.uint64(5) + np.uint64(6), 9
    l[1], l[0] = l[0], min(l[0], -1)
    f[1], f[0] = f[0] + (f[0] + np.float32(1.5)), 2
    d[1], d[0] = d[0], d[0] + 0.5
    i[2] += 128
    i[3] += 128
    u[4] += 128
    i[5] = max(i[5], 63)
    w[3] = 1 if w[3] == 0 else w[3]
    return {"i": i, "u": u, "w": w, "f": f, "d": d, "l": l}


for tag, u, w in [("low", [7, 0, 0, 0, 5], [100, 0, 0, 0]), ("high", [0xFFFFFFF0, 0, 0, 0, 0xFFFFFFFF], [1 << 62, 0, 0, 9])]:
    case("atomics", atomics, tag=tag, grid=2, block=64, tol=1e-6, i=ints(6), u=given(u, "u32"), w=given(w, "u64"),
         f=given([0.25, 0], "fp32"), d=given([1e300, 0], "fp64"), l=given([-5, 0], "i64"))


def orders(p, q, h):
    p, q, h = p.copy(), q.copy(), h.copy()
    p[1] = p[0] + p[0]
    p[2] = p[0] if p[0] else p[2]
    q[0], q[1] = q[0] + q[1], q[0]
    h[0], h[1] = (2 if h[0] == 1 else h[0]), h[0]
    return {"p": p, "q": q, "h": h}


case("orders", orders, tag="set", p=given([21, 0, 9], "i32"), q=given([5, 1 << 40], "u64"), h=given([1, 0], "u16"))
case("orders", orders, tag="zero", p=given([0, 7, 9], "i32"), q=given([5, 6], "u64"), h=given([3, 0], "u16"))
case("reduce_block", lambda x, out, n: {"out": out + 3 * x[:n].astype("f8").sum()}, grid=3, block=256, tol=1e-5, x=rand(5000),
     out=rand(1), n=4567)
