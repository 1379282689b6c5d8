"""Atomics of many threads: the results that don't depend on the order, and what locks protect."""

import numpy as np
from cases import full, given
from cuda_cases import case

T = np.arange(192)


def sums(i, u, w, f, d, s, c):
    i, u, w, f, d, s, c = (a.copy() for a in (i, u, w, f, d, s, c))
    np.add.at(i, T % 4, T)
    i[4] -= 3 * 192
    u[0] |= 0xFFFFFFFF
    u[1] &= 0xFFFFFF00
    u[2] ^= np.bitwise_xor.reduce(T).astype("u4")
    w[0], w[1], w[2] = 191 << 33, ~np.uint64(191 << 40), w[2] + np.uint64(192 << 31)
    f[:2] += 24
    f[2] = 191
    d += 96
    np.add.at(s, T % 3, T.astype("i2"))
    np.add.at(c, T % 7, np.uint8(1))
    return {"i": i, "u": u, "w": w, "f": f, "d": d, "s": s, "c": c}


case("sums", sums, grid=3, block=64, i=given([5, -6, 7, 1 << 30, 100], "i32"), u=given([3, 0xFFFF, 77], "u32"),
     w=given(np.array([1, (1 << 64) - 1, 5], "u8"), "u64"), f=given([1.5, -1, 3], "fp32"), d=given([2.5], "fp64"), s=given([30000, -5, 0, 9], "i16"),
     c=given([250, 0, 1, 2, 3, 4, 5, 6], "u8"))
case("locked", lambda out, lock, rounds: {"out": [192 * rounds, 96 * rounds], "lock": [0]}, grid=3, block=64, out=full(2, 0, "i32"),
     lock=full(1, 0, "i32"), rounds=3)


def tickets(before, after):
    if sorted(after["order"]) != list(range(96)):
        return f"not every thread was served once: {after['order']}"
    return None if after["next"][0] == after["serving"][0] == 96 else f"{after['next']}, {after['serving']}"


case("tickets", check=tickets, grid=2, block=48, order=full(96, -1, "i32"), next=full(1, 0, "u32"), serving=full(1, 0, "u32"))


def flags(data, flag, n):
    rows = [np.full(n, 1)]
    for _ in range(6):
        rows.append(rows[-1] * 2 + np.arange(n))
    return {"data": np.array(rows[1:]), "flag": np.ones(6)}


case("flags", flags, grid=6, block=64, data=full((6, 64), 0, "i32"), flag=full(6, 0, "i32"), n=64)
case("semaphores", lambda out: {"out": np.ones(20)}, block=20, out=full(20, 0, "i32"))


def old_ones(before, after):
    t = np.arange(64)
    got = after["got"]
    want = {"s": [before["s"][0] + t.sum(), before["s"][1]], "u": [64 % 10, None], "f": [before["f"][0] + 64, 3.5], "d": [before["d"][0] + 128],
            "w": [(1 << 64) - 1 - 63, 23]}
    for name, values in want.items():
        for k, v in enumerate(values):
            if v is not None and after[name][k] != v:
                return f"{name}[{k}] is {after[name][k]}, expected {v}"
    if sorted(got[:64]) != sorted(t % 10) or not set(got[64:128]) <= set(range(7)):
        return f"atomicInc or atomicDec gave {got[:128]}"
    counted, value = [], 3
    for _ in t:
        counted.append(value)
        value = 5 if value == 0 or value > 5 else value - 1
    if sorted(got[64:128]) != sorted(counted) or after["u"][1] != value:
        return f"atomicDec gave {got[64:128]}"
    shared = [t[t % 4 == k].sum() for k in range(4)]
    return None if got[128] == 5 and (got[132:136] == shared).all() else f"{got[128:]}, expected 5 and {shared}"


case("old_ones", check=old_ones, block=64, s=given([500, 9], "u16"), u=given([0, 3], "u32"), f=given([0.5, 2.5], "fp32"), d=given([1.5], "fp64"),
     w=given(np.array([(1 << 64) - 1, 0], "u8"), "u64"), got=full(136, 0, "i32"))
case("vectors", lambda f2, f4, old: {"f2": f2 + np.array([64, 32]), "f4": np.array([1, 2, 3, 4]) * 64, "old": [0, 0, 0, 0]}, block=64,
     f2=given([0.5, 1], "fp32"), f4=full(4), old=full(4, -1))
case("wide_ones", lambda p, out: {"p": np.array([7, (1 << 64) - 1], "u8"), "out": [p[0] + np.uint64(40), p[1] + np.uint64(780)]}, block=40,
     p=given(np.array([(1 << 64) - 3, 5], "u8"), "u64"), out=full(2, 0, "u64"))
