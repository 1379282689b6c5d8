"""Device code without any CUDA header."""

import numpy as np
from cases import full, given, ints, rand
from cuda_cases import case

PAIR = np.dtype([("a", "i4"), ("b", "f8")], align=True)
BIG = np.dtype([("c", "i1", 3), ("s", "i2"), ("p", PAIR, 4)], align=True)
VALUE = np.array([((1, 2, 3), 4, [(10 * i, i + 0.5) for i in range(4)])], BIG)


def structs(before, after):
    b, p = after["b"].view(BIG), after["p"].view(PAIR)
    want = VALUE[0].copy()
    want["p"]["a"][1] += 1
    want["s"] = 1
    for name in ("c", "s"):
        if (b[name][1] != want[name]).any():
            return f"b[1].{name} is {b[name][1]}, expected {want[name]}"
    if (b["p"]["a"][1] != want["p"]["a"]).any() or (b["p"]["b"][1] != want["p"]["b"]).any():
        return f"b[1].p is {b['p'][1]}, expected {want['p']}"
    return None if (p[1]["a"], p[1]["b"]) == (1, 7.25) else f"p[1] is {p[1]}"


case("structs", check=structs, b=full(2 * BIG.itemsize, 0, "u8"), p=given(np.array([(0, 0.0), (0, 0.0), (9, 7.25)], PAIR).view("u1"), "u8"),
     by_value=VALUE.tobytes(), i=1)


def recursive(n):
    return 1 if n < 2 else n * recursive(n - 1) + recursive(n - 2)


def calls(out, n):
    f = n + 3 if n & 1 else n - 3
    return {"out": [f + recursive(n) + (2 * n if n & 2 else 3 * n) + (n < 7) + 1, n * n + 1 + b"hello\n"[n & 3]]}


for n in (1, 4, 7, 10):
    case("calls", calls, tag=f"n{n}", out=full(2, 0, "i32"), n=n)


def memory(out, x, n):
    tile = [1.5, 2.5, -3.0][n % 20 % 3] * n
    v = x[:-1] * x[1:] + x[:-1, ::-1]
    tail = np.array([256 * n, 256 * n, n], "i4").view("f4")
    return {"out": np.concatenate([tile + v[:, 0] + v[:, 3], tail])}


case("memory", memory, block=256, tol=1e-6, out=full(259), x=rand((257, 4)), n=23)


def control(out, n):
    out = out.copy()
    r = {0: 1, 1: out[4], 2: out[1] * 7, 3: -n + 5, 4: 5, 9: int(out[2] / out[3])}.get(n, 8)
    if n == 5:
        return {"out": out}
    for i in range(n):
        if out[i] == 77:
            continue
        if out[i] < 0:
            break
        r += out[i] % (i + 1)
    out[0] = 3 if r == 3 else r
    return {"out": out}


for n in (0, 1, 2, 3, 4, 5, 7, 9, 11):
    case("control", control, tag=f"n{n}", out=given([5, 77, 30, 7, 12, 13, 8, 77, 21, -1, 4, 4], "i32"), n=n)
case("control", faults="trap", tag="trap", out=ints(12), n=6)
