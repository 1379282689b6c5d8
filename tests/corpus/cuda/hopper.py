"""Bulk copies, wgmma, clusters and what else came with sm_90."""

import numpy as np
from cases import full, given, rand
from cuda_cases import case

case("bulk", lambda out, x, bytes: {"out": 4 * x}, block=1024, out=full(1024), x=rand(1024), bytes=4096)
case("tensors", refuses="im2col", block=32, map=bytes(128), x=0, y=0)


def wgmma(out, a, b, scale):
    a, b = (m.view("f2").reshape(-1, 16).astype("f8") for m in (a, b))
    d = (5 if scale else 0) - a @ b.T + b.sum(1)
    lane = np.arange(128)
    row, column = lane // 32 * 16 + lane % 32 // 4, lane % 4 * 2
    return {"out": np.stack([d[row, column], d[row, column + 1], d[row + 8, column], d[row + 8, column + 1]], 1)}


A, B = (np.random.default_rng(n).uniform(-1, 1, 16 * n).astype("f2").view("u4") for n in (64, 8))
for scale in (0, 1):
    case("wgmma", wgmma, tag=f"scale{scale}", block=128, tol=1e-5, out=full((128, 4)), a=given(A, "u32"), b=given(B, "u32"), scale=scale)
case("registers", lambda out: {"out": [0] * 128 + [1] * 128}, block=256, out=full(256, 0, "i32"))


# clang 22 passes over __cluster_dims__.
def cluster(out):
    rows = [[r + 32, r, r * 100 + 7, (r + 1) % 4 * 11] for r in range(4)]
    return {"out": np.array(rows)}


case("cluster", cluster, but="clang*", grid=4, block=32, out=full((4, 4), 0, "u32"))
case("multicast", refuses="multimem", p=full(8), q=full(1, 0, "u64"))
ROWS = np.where(np.arange(32) // 4 % 2 == 0, 0x00090009, 0)
case("matrices", lambda out: {"out": [*ROWS, *[7] * 96]}, block=32, out=full(128, 0, "u32"))
