"""State spaces, initialisers, addresses, wide accesses, the stack and the heap."""

import numpy as np
from cases import full, given, ints, rand
from cuda_cases import case

TABLE = [[1, 2, 3, 4], [5, 0, 0, 0], [9, 10, 0, 0]]
FLOATS = [1.5, -0.0, 1e-40]
TEXT = b'a "quoted" \\ text\n\t\xff'
BIG = 0xFEDCBA9876543210


def low(v):
    return (v + 2**31) % 2**32 - 2**31


def spaces(out, counted, i):
    local = [TABLE[k % 3][k % 4] + 42 for k in range(17)]
    weight = 0.5 if i == 0 else 0.25 if i == 1 else 0.0
    each = (local[i % 17] + 0 + int(weight + FLOATS[i % 5]) + TEXT[i & 7] + [-1, 2, -3, 0, 0, 0, 0][i % 7] + (i % 3 != 1)
            + TABLE[1][2] + low(BIG >> i) + 0 + ord("x"))
    ticket = 100 * 1000 + 101
    return {"out": np.full(64, low(each)), "counted": [5, 5 + 7, 1, 3 + 2 + ord("f"), ticket, 63]}


for i in (0, 10, 6):
    case("spaces", spaces, tag=f"at{i}", block=64, shared=256, out=full(64, 0, "i32"), counted=given([5, 7, 0, 0, 0, 0], "i32"), i=i)


def wide(a, b, c, d, e, f, moved=True):
    first = np.concatenate([b[:, 1:2], b[:, 1:]], 1) if moved else b
    e, f = e.copy(), f.copy()
    e[:, 0] += e[:, 1]
    f[:, 1] = f[:, 0]
    return {"a": np.concatenate([first, b, b if moved else a[64:]]), "c": c[:, ::-1], "d": d[:, ::-1], "e": e, "f": f}


ARRAYS = {"a": ints((96, 4)), "b": ints((32, 4)), "c": rand((32, 2), "fp64"), "d": ints((32, 4), "u8", 0, 256), "e": ints((32, 2), "i16"),
          "f": ints((32, 2), "i64")}
case("wide", wide, but="clang*", block=32, **ARRAYS)
case("wide", lambda **v: wide(**v, moved=False), builds="clang*", tag="clang", block=32, **ARRAYS)

for tag, g, value in [("shared", [1.0, 2.0], 12), ("local", [-1.0, 2.0], 3)]:
    case("addresses", lambda out, g, value=value: {"out": [0, 0, 15, value, 0, 13]}, tag=tag, out=full(6, 99, "u64"), g=given(g, "fp32"))


def stack(out, n):
    return {"out": [sum((i * t + 128) % 256 - 128 for i in range(0, n, 3)) for t in range(40)]}


case("stack", stack, block=40, out=full(40, 0, "i32"), n=100)
case("heap", lambda out, x, n: {"out": [x[t : t + 4].sum() + (n - 5) * 0x01010101 + n for t in range(32)]}, block=32,
     out=full(32, 0, "i32"), x=ints(40), n=20)
case("freed_twice", lambda out: {"out": out}, tag="not", out=full(3, 0, "i32"))
case("freed_twice", faults="free", tag="twice", out=given([1, 0, 0], "i32"))
case("freed_twice", faults="freed", tag="used", out=given([0, 1, 0], "i32"))
