"""Pipelines and barriers of the CUDA C++ library."""

import numpy as np
from cases import full, ints, rand
from cuda_cases import case


def four_stages(out, x, n):
    tiles = x.reshape(-1, 64, 4).astype("f8") @ np.array([1, 2, 3, 4])
    return {"out": sum(np.roll(tiles[i], -i) for i in range(n))}


for n in (1, 3, 9):
    case("four_stages", four_stages, tag=f"n{n}", block=64, tol=1e-5, out=full(64), x=rand((9 * 64, 4)), n=n)


def specialised(out, x, n):
    total = np.zeros(96, "i4")
    for row in x.reshape(-1, 96)[:n]:
        total = total * 3 + row[::-1]
    return {"out": total}


for n in (2, 7):
    case("specialised", specialised, tag=f"n{n}", block=128, out=full(96, 0, "i32"), x=ints(7 * 96), n=n)


def split_arrivals(out, x):
    v = x[::-1] + 3 * x
    return {"out": np.concatenate([v[:64][::-1], v[64:]])}


case("split_arrivals", split_arrivals, block=128, out=full(128, 0, "i32"), x=ints(128))
case("completes", lambda out: {"out": np.full(40, 10303)}, block=40, out=full(40, 0, "i32"))


def bytes_too(out, x, n):
    return {"out": (x.reshape(-1, 256)[:n].astype("f8") * np.arange(1, n + 1)[:, None]).sum(0)}


for n in (1, 5, 8):
    case("bytes_too", bytes_too, tag=f"n{n}", block=256, tol=1e-5, out=full(256), x=rand(8 * 256), n=n)
case("ptx_names", lambda out, x: {"out": np.maximum(out, 2 * x + 1)}, block=128, out=ints(128), x=ints(128))
