"""CUB's block and warp collectives."""

import numpy as np
from cases import count, full, ints, rand
from cuda_cases import case


def sort(keys, values):
    order = np.argsort(keys, kind="stable")
    return {"keys": keys[order], "values": values[order]}


case("sort", sort, block=128, keys=ints(512, "u32", 0, 1 << 32), values=count(512))
case("sort", sort, tag="few_keys", block=128, keys=ints(512, "u32", 0, 5), values=count(512))
case("reduce_scan", lambda out, x, f: {"out": [*(np.cumsum(x) - x), x.max() + x.sum()], "f": [*f[:256], f[:256].sum()]}, block=256,
     tol=1e-5, out=full(257, 0, "i32"), x=ints(256), f=rand(257))
case("warps", lambda out, x: {"out": [*np.cumsum(x.reshape(4, 16), 1).ravel(), *x.reshape(2, 32).sum(1)]}, block=64, tol=1e-12,
     out=full(66, 0, "fp64"), x=rand(64, "fp64"))
case("histogram", lambda out, x: {"out": np.bincount(x, minlength=256)}, block=128, out=full(256, 0, "u32"), x=ints(512, "u8", 0, 256))
