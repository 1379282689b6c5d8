"""Cooperative groups."""

import numpy as np
from cases import full, given, ints, rand
from cuda_cases import case


def tiles(out, x):
    want = []
    for v in x.astype("i8").reshape(-1, 32):
        fours = v.reshape(8, 4)
        ballot = sum(1 << int(i) for i in np.flatnonzero(v & 1))
        v = v + v[np.arange(32) ^ 1] + fours[:, [2, 3, 2, 3]].ravel() + (v > 3).any() + (ballot - (ballot >> 31 << 32))
        v = v.astype("i4")
        fours = v.reshape(8, 4)
        want.append(v.sum(dtype="i4") + fours.max(1).repeat(4) + np.cumsum(v, dtype="i4") - v
                    + np.bitwise_xor.accumulate(fours, axis=1).ravel())
    return {"out": np.concatenate(want).astype("i4")}


case("tiles", tiles, tag="small", block=64, out=full(64, 0, "i32"), x=ints(64, low=0, high=4))
case("tiles", tiles, tag="wraps", block=64, out=full(64, 0, "i32"), x=ints(64, low=-(1 << 31), high=1 << 31))


def coalesced(out, counter):
    out = out.copy()
    rank = np.arange(11)
    out[rank * 3] = counter[0] + rank
    for label in (0, 1):
        out[64 + (rank * 3)[rank % 2 == label]] = counter[0] + label
    return {"out": out, "counter": counter + 11}


case("coalesced", coalesced, block=32, out=full(128, -1, "i32"), counter=given([1000], "i32"))
case("whole_grid", lambda out, n: {"out": [*range(n), n - 1]}, grid=5, block=64, out=full(1001, 0, "i32"), n=1000)


def grid_rounds(out, other, rounds):
    for _ in range(rounds):
        out = out + np.roll(out, -1)
    return {"out": out, "other": out}


case("grid_rounds", grid_rounds, grid=6, block=96, out=ints(576), other=full(576, 0, "i32"), rounds=5)


def large_tiles(out, x):
    halves, twos = x.reshape(2, 128), x.reshape(4, 64)
    t = np.arange(256)
    last = halves[t // 128, 77] + (twos == 5).any(1)[t // 64] * 1000 + t // 128 * 10000 + t % 64 * 100000
    return {"out": np.concatenate([halves.sum(1)[t // 128], twos.max(1)[t // 64], np.cumsum(halves, 1).ravel(), last])}


case("large_tiles", large_tiles, block=256, out=full(1024, 0, "i32"), x=ints(256))
case("copies", lambda out, x, n: {"out": x[np.arange(n) ^ 1] + x[np.arange(n) % 16]}, block=64, shared=(64 + 64) * 4, out=full(64),
     x=rand(64), n=64)
case("clusters", lambda out: {"out": [rank * 10 + 40 * (1 + rank) + 4 for rank in (0, 1) for t in range(40)]}, grid=6, block=40,
     out=full(80, 0, "i32"))
