"""Cooperative groups of all sizes, in branches and in loops."""

import numpy as np
from cases import full, given, ints
from cuda_cases import case


def of_size(x, size):
    tiles = x.reshape(-1, size)
    rank = np.arange(size)
    before = np.cumsum(tiles, 1) - tiles
    up = tiles[:, np.maximum(rank - 1, 0)]
    parts = [tiles.sum(1, keepdims=True) * 3 + np.bitwise_and.reduce(tiles, axis=1, keepdims=True) * 5, before * 7,
             np.maximum.accumulate(tiles, 1) * 11, tiles[:, -1:] * 13, up * 17, tiles[:, rank ^ size // 2] * 19,
             np.arange(len(tiles))[:, None] * 23, len(tiles) * 29, rank * 31]
    return sum(np.broadcast_to(p, tiles.shape) for p in parts).ravel()


def sizes(out, x):
    t = np.arange(64)
    where = t % 8 + t // 8 % 2 * 100 + t // 16 * 10000 + 64 * 100000
    return {"out": np.concatenate([*(of_size(x, s) for s in (1, 2, 4, 8, 16, 32)), where])}


case("sizes", sizes, block=(8, 2, 4), out=full(7 * 64, 0, "i32"), x=ints(64))

PAIR = np.dtype([("a", "f4"), ("b", "i4"), ("c", "f8")])
PAIRS = np.array([(i * 0.5, 100 - i, i * i / 4) for i in range(48)], PAIR)


def shuffled(before, after):
    got, t = after["p"].view(PAIR), np.arange(48)
    theirs = PAIRS[t // 16 * 16 + (t % 16 + 5) % 16]
    down = PAIRS[np.where(t % 16 + 4 < 16, t + 4, t)]
    good = (got["a"] == theirs["a"] + PAIRS["a"]) & (got["b"] == theirs["b"]) & (got["c"] == down["c"])
    return None if good.all() else f"p[{int(np.argmin(good))}] is {got[np.argmin(good)]}"


case("shuffled_structures", check=shuffled, block=48, p=given(PAIRS.view("u1"), "u8"))


def in_branches(out, counters, x):
    out = out.reshape(4, 64).copy()
    total = 0
    for first in (0, 32):
        lanes = np.arange(first, first + 32)
        v = x[lanes]
        fours = lanes[v % 4 == 0]
        total += len(fours)
        for rank, t in enumerate(fours):
            out[0, t] = rank + v[v % 4 == 0].sum() * 100
        for half in (fours[x[fours] % 8 == 0], fours[x[fours] % 8 != 0]):
            for rank, t in enumerate(half):
                out[1, t] = len(half) * 100 + rank + 1
        for k in range(3):
            here = lanes[(v % 4 != 0) & (v % 4 > k)]
            for t in here:
                out[0, t] = out[0, t] * 40 + len(here)
                out[1, t] = out[1, t] * 40 + (x[here] % 3 == x[t] % 3).sum()
        same = (v > 1000).all() or not (v > 1000).any()
        out[2, lanes] = same + same * 10 + (v < 1000).all() * 100 + (v == x[0]).any() * 1000 + (v & 1).sum() * 10000
        for label in range(5):
            for rank, t in enumerate(lanes[v % 5 == label]):
                out[3, t] = (v % 5 == label).sum() * 1000 + rank
    return {"out": out.ravel(), "counters": counters + total}


case("in_branches", in_branches, block=64, out=full(256, 0, "i32"), counters=full(1, 0, "i32"), x=ints(64, low=0, high=60))
case("two_halves", lambda out, x: {"out": 2 * x[::-1] + x + 1}, block=96, out=full(96, 0, "i32"), x=ints(96))
case("updates", lambda sum, most, out, x: {"sum": sum + x.sum() + 192, "most": [max(most[0], x.max() + 100)], "out": [6, 192]}, grid=3, block=64,
     sum=full(1, 7, "i32"), most=full(1, 0, "u32"), out=full(2, 0, "i32"), x=ints(192))
