"""Sorts and other algorithms of blocks, warps and the whole device."""

import numpy as np
from cases import count, full, given, ints, rand
from cuda_cases import case

for grid, n in [(1, 300), (5, 3000), (8, 777)]:
    case("device_radix_sort", lambda keys, n, **_: {"keys": np.concatenate([np.sort(keys[:n]), keys[n:]])}, tag=f"{grid}x{n}", grid=grid, block=128,
         keys=ints(n + 7, "u32", 0, 1 << 32), other=full(n + 7, 0, "u32"), counts=full(128, 0, "i32"), n=n)


def merge_sorts(keys, values, warps):
    order = np.argsort(keys, kind="stable")
    return {"keys": keys[order], "values": values[order], "warps": np.sort(warps.reshape(2, 96), 1).ravel()}


KEYS = np.random.default_rng(1).integers(-20, 20, 320) / 4
case("merge_sorts", merge_sorts, block=64, keys=given(KEYS, "fp64"), values=count(320), warps=ints(192, "i64", -(1 << 60), 1 << 60))


def radix_sorts(floats, shorts, longs):
    order = np.argsort(longs >> np.uint64(8) & np.uint64(0xFFFF), kind="stable")
    return {"floats": np.sort(floats)[::-1], "shorts": np.sort(shorts), "longs": longs[order]}


case("radix_sorts", radix_sorts, block=128, floats=rand(384, "fp32", -100, 100), shorts=ints(256, "i16", -32768, 32768),
     longs=ints(256, "u64", 0, 1 << 62))


def neighbours(out, x):
    blocks = x.reshape(96, 4)
    shifted = np.arange(96)
    shifted[:91] = blocks[5:, 0]
    return {"out": np.concatenate([[1], x[1:] != x[:-1], x[:1], np.diff(x), x.reshape(4, 96).T.ravel(), shifted])}


case("neighbours", neighbours, block=96, out=full(1248, 0, "i32"), x=ints(384, low=0, high=3))


def structures(out, x):
    scanned = np.stack([np.minimum.accumulate(x), np.maximum.accumulate(x), np.cumsum(x)], 1)
    parts = x.reshape(10, 16)
    rows = np.stack([parts.min(1), parts.max(1), parts.sum(1)], 1)
    heads = []
    for k in range(10):
        starts = [i for i in range(1, 16) if (16 * k + i) % 5 == 0]
        first = parts[k, : starts[0]]
        heads.append([first.min(), first.max(), first.sum()])
    return {"out": np.concatenate([scanned, scanned[-1:], rows, heads])}


case("structures", structures, block=160, out=full((181, 3), 0, "i32"), x=ints(160))
