"""Classes, tables of functions and recursion, in lanes that part."""

from math import comb

import numpy as np
from cases import full, given, ints
from cuda_cases import case


def virtual_bases(out, n):
    want = []
    for t in range(64):
        kind = (t + n) % 3
        want.append([t + 2 * t, t, (t + 1 + 2 * t) * 1000 + 3 * t + (3 * t - n) * 7][kind])
    return {"out": want}


case("virtual_bases", virtual_bases, block=64, out=full(64, 0, "i32"), n=5)


def members_by_pointer(out, program, n):
    want = []
    for t in range(48):
        s = 0
        for word in program[:n]:
            x, step = int(word) >> 2, (int(word) + t) & 3
            s = [s + x, s * x, s ^ x, s * 2 - x if t & 1 else s - x][step]
            s = (s + 2**31) % 2**32 - 2**31
        want.append(s)
    return {"out": want}


case("members_by_pointer", members_by_pointer, block=48, out=full(48, 0, "i32"), program=ints(20, low=-50, high=50), n=20)


def tables(out, rounds):
    x = np.arange(64)
    for i in range(rounds):
        k = (x + i) % 8 + 1
        x = (x * k + k) & 0xFFFF
    return {"out": x}


case("tables", tables, block=64, out=full(64, 0, "i32"), rounds=10)


def ackermann(m, n):
    return n + 1 if m == 0 else ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))


def recursion(out, rows, n):
    want = [[ackermann(t % 3, t % 5), comb(t % 8 + 7 - t % 5, t % 8)] for t in range(40)]
    return {"out": np.ravel(want), "rows": np.sort(rows, 1)}


case("recursion", recursion, block=40, out=full(80, 0, "i32"), rows=ints((40, 30)), n=30)


def endless(out, n):
    total = int(out[3])
    for k in range(1, n + 1):
        total += int(out[(2 * k) & 15])
    return {"out": [*out[:16], total]}


case("endless", endless, tag="to_an_end", out=given([*range(10, 26), 0], "i32"), n=5)
case("endless", faults="stack", out=full(17, 1, "i32"), n=1 << 28)
