"""Loads and stores, arrays with dynamic indices, and wrong accesses, which must be reported."""

import numpy as np
from cases import full, given, ints, rand
from cuda_cases import case

PRIMES = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53])
NAME = np.frombuffer(b"intarsia", "i1")


def caches(out, x, n):
    i = np.arange(64)
    return {"out": np.array([x[i], x[i + 1], x[i + 2], x[i + 4], x[i], x[i * 7 % n], PRIMES[x[i] & 15], np.full(64, 7), np.full(64, -7), NAME[i & 7],
                             x[i] * 2, x[i + 1] * 3, np.full(64, 5)])}


case("caches", caches, block=64, out=full((13, 64), 0, "i32"), x=ints(70), n=70)


def widths(f, d, l, c, s, b, u, three):
    l, u, three = l.copy(), u.copy(), three.copy()
    l[:, 0] ^= l[:, 1]
    u[:, 2] += u[:, 0]
    three[:, 1] = three[:, 0] + three[:, 2]
    turned = np.stack([-c[:, 0], c[:, 1] + 1, c[:, 2] >> 1, c[:, 3] * 3], 1)
    return {"f": f[:, ::-1], "d": np.stack([d[:, 0] + d[:, 1], d[:, 0] - d[:, 1]], 1), "l": l, "c": turned.astype("i1"), "s": s * s,
            "b": b << 1 | b >> 7, "u": u, "three": three}


case("widths", widths, block=50, f=rand((50, 4)), d=rand((50, 2), "fp64"), l=ints((50, 2), "i64"), c=ints((50, 4), "i8"), s=ints(50, "i16"),
     b=ints(50, "u8", 0, 256), u=ints((50, 4), "u16", 0, 65536), three=rand((50, 3)))

ROW = np.dtype([("tag", "i1"), ("values", "i2", 3), ("weight", "f8"), ("rest", "f4", 5)], align=True)
RNG = np.random.default_rng(4)
ROWS = np.zeros(128, ROW)
for field in ("tag", "values", "weight", "rest"):
    ROWS[field] = RNG.integers(-50, 50, ROWS[field].shape)


def structures(before, after):
    rows, order = before["rows"].view(ROW).reshape(-1, 4).copy(), before["order"].reshape(-1, 4)
    for row, at in zip(rows, order):
        for k in range(4):
            r = row[at[k] & 3]
            r["values"][k % 3] += k
            r["rest"][(k + 3) % 5] *= 2
            r["tag"] += 1
    got = after["rows"].view(ROW).reshape(-1, 4)
    for name in ROW.names:
        if (got[name] != rows[name][:, ::-1]).any():
            return f"rows.{name} differs"
    return None


case("structures", check=structures, block=32, rows=given(ROWS.view("u1"), "u8"), order=ints(128), n=3)


def dynamic_index(out, steps, n):
    rows = np.sort(steps.reshape(64, n), 1).astype("i8")
    sums = np.zeros(64, "i8")
    for k in range(n):
        sums = (sums * 3 + rows[:, k] * (k + 1) + 2**31) % 2**32 - 2**31
    turned = np.zeros(64, "i8")
    turned[np.arange(64) * 37 % 64] = sums
    return {"out": turned}


case("dynamic_index", dynamic_index, block=64, out=full(64, 0, "i32"), steps=ints(64 * 20), n=20)
case("wrong", lambda out, **_: {"out": [1, *out[1:]]}, tag="not", out=full(32, 0, "i32"), kind=0, n=0)
for tag, kind, n, report, block in [
    ("end", 1, 32, "right past the end of a 128-byte allocation", 1), ("alignment", 2, 2, "no multiple of 4", 1), ("null", 3, 5, "address 0x0", 1),
    ("shared", 4, 9, "shared address", 1), ("stack", 5, 9, "local", 1), ("variable", 7, 4, "'hidden'", 1),
    ("number", 8, 4096, "address 0x1000", 1), ("trap", 9, 0, "thread (5, 0, 0) reaches a trap", 8), ("for_ever", 10, 0, "deadlock", 1),
    ("barriers", 11, 0, "barrier 0", 96), ("call", 12, 64, "is no function", 1), ("lanes", 13, 1, "not in the member mask", 32)]:
    case("wrong", faults=report, tag=tag, block=block, out=full(32, 0, "i32"), kind=kind, n=n)
case("wrong", faults="may only be read: it is in the 64-byte constant variable 'primes'", tag="constant", out=full(32, 0, "i32"), kind=6, n=9)
