"""Clusters and distributed shared memory."""

import numpy as np
from cases import full, ints, rand
from cuda_cases import case

case("histogram", lambda out, x, n: {"out": 2 * np.bincount(x[:n] & 255, minlength=256)}, grid=8, block=96, shared=256, out=full(256, 0, "i32"),
     x=ints(2000, low=0, high=1000), n=1999)


def sums(out, x):
    parts = x.reshape(4, 32).sum(1) @ np.array([1, 2, 3, 4])
    return {"out": [parts + r % 2 * 1000 + r // 2 * 10000 for r in range(4)]}


case("sums", sums, grid=(2, 2), block=32, tol=1e-12, out=full(4, 0, "fp64"), x=rand(128, "fp64"))
for rounds in (1, 8, 11):
    case("ring", lambda out, rounds: {"out": [[(r - rounds) % 8 * 100 + t + rounds for t in range(32)] for r in range(8)]}, tag=f"rounds{rounds}",
         grid=8, block=32, out=full((8, 32), 0, "i32"), rounds=rounds)
case("remote_barrier", lambda out, x: {"out": 2 * x}, grid=2, block=64, out=full(128, 0, "i32"), x=ints(128))
case("multicast", lambda out, x: {"out": np.concatenate([x, x, np.full(64, -1), x])}, grid=4, block=64, out=full(256, 0, "i32"), x=ints(64))
case("sent", lambda out: {"out": [(1 - r) * 1000 + 63 - t for r in range(2) for t in range(64)]}, grid=2, block=64, out=full(128, 0, "i32"))
case("added", lambda out: {"out": 5 + 10 * np.arange(64)}, grid=4, block=64, out=full(64, 0, "i32"))
