"""Branches, calls of every kind, printing, and what ends a kernel: asserts and traps."""

import numpy as np
from cases import full, given, ints, rand
from cuda_cases import case

case("virtual_calls", lambda out, n: {"out": np.full(3, (1.5 * n) ** 2 if n & 1 else 3.14159 * 9)}, tag="square", block=3, tol=1e-6,
     out=full(3), n=3)
case("virtual_calls", lambda out, n: {"out": np.full(3, 3.14159 * 9)}, tag="circle", block=3, tol=1e-6, out=full(3), n=4)
case("heap_objects", lambda out, **_: {"out": [4.0 if t & 1 else 3.14159 for t in range(40)]}, block=40, tol=1e-6,
     list=full(2, 0, "u64"), out=full(40))

for op, f in enumerate([lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b]):
    case("function_pointers", lambda out, op, a, b, f=f: {"out": [f(a, b) + a + b, a - b if op else a * b]}, tag=f"op{op}",
         out=full(2, 0, "i32"), op=op, a=1234, b=-77)


def switches(out, n):
    want = out.copy()
    for t, (kind, a, b, _) in enumerate(out):
        quotient = int(b / (n | 1))
        known = {0: n * 3, 1: n - a, 2: (n ^ 0x55) + quotient, 3: quotient, 4: (n & 0xFFFFFFFF).bit_count(), 6: n << 3, 12: -1}
        if kind == 5:
            want[t, 3] = 1
        elif kind != 7:
            want[t, 0] = known.get(kind, 99)
    return {"out": want}


KINDS = [(t % 15 if t % 15 != 13 else 3, t * 7, -1000 * t, -5) for t in range(64)]
case("switches", switches, block=64, out=given(KINDS, "i32"), n=21)
case("switches", faults="trap", tag="trap", block=64, out=given([(13 if t == 40 else 0, 0, 0, 0) for t in range(64)], "i32"), n=21)

case("prints", prints=lambda n, f: f"plain\n{n} {f:f} {'yes' if n else 'no'} x {n << 40} %\n", tag="yes", n=-12, f=1.25)
case("prints", prints="plain\n" * 3 + "0 -0.500000 no x 0 %\n" * 3, tag="no", block=3, n=0, f=-0.5)


def format_lines(n, d, u):
    as_hex = float.hex(d).replace("0x1.8000000000000p", "0x1.8p")
    lines = [("[%5d|%-5d|%05d|%+d|% d|%i|%u]\n", (n, n, n, n, n, -n, n)),
             ("[%x|%X|0x%x|%o|0%o|%08x|%s]\n", (n, n, n, n, n, n, f"{n:03d}")),
             ("[%d|%u|%x|%d|%d|%u]\n", (-u, u, u, u, n, u)),
             ("[%f|%.2f|%10.3f|%-10.1f|%+.0f|%e|%.3E|%g|%G|%s]\n", (d, d, d, d, d, d, d, d, d, as_hex)),
             ("[%*d|%-*d|%.*f|%s|%10s|%-10s|%.2s|%c%c]\n", (7, n, 7, n, 2, d, "text", "right", "left", "cut", n % 26 + 97, "Z"))]
    return [line % values for line, values in lines]


def formats(out, **values):
    r = 0
    for arguments in (7, 7, 6, 10):  # a GPU's printf gives how many it printed
        r = r * 100 + arguments
    return {"out": [(r + 2**31) % 2**32 - 2**31, 0]}


case("formats", prints=lambda out, **v: "".join(format_lines(**v)), out=full(2, -1, "i32"), n=1234, d=1.5, u=1 << 40)
case("lambdas", lambda out, x, n: {"out": [*(x[:n] * x[0]), 2 * (x[0] + 1) + 2 * (x[0] + 3)]}, block=32, tol=1e-6, out=full(101),
     x=rand(100), n=100)
case("_Z9templatedIdLi3EEvPT_S0_", lambda out, x: {"out": [x, x + 1, x + 2]}, out=full(3, 0, "fp64"), x=np.float64(0.1))
case("_Z9templatedIhLi5EEvPT_S0_", lambda out, x: {"out": [(x + i) & 255 for i in range(5)]}, out=full(5, 0, "u8"), x=253)


def chain(out, x):
    for n in (5, 4, 3, 2, 1):
        x = x * n + 1
    return {"out": [x]}


case("chain", chain, out=full(1, 0, "i32"), x=11)
case("varargs", lambda out, a: {"out": [a + 17]}, out=full(1, 0, "i32"), a=1000)
case("asserts", lambda out, n: {"out": [100 // n]}, out=full(1, 0, "i32"), n=7)
case("asserts", faults="n must be positive", tag="fails", out=full(1, 0, "i32"), n=-7)
case("classes", lambda c, n: {"c": [*c[:n], c[:n].sum()]}, c=ints(20, low=1), n=19)
case("classes", lambda c, n: {"c": c}, tag="zero", c=given([5, -5, 77], "i32"), n=2)
case("gotos", lambda out, n: {"out": [out[0], 3, *out[2:]]}, tag="found", out=given([3, 2, 1, -7, 9], "i32"), n=5)
case("gotos", lambda out, n: {"out": [-1, n, *out[2:]]}, tag="none", out=given([3, 2, 1, 7, 9], "i32"), n=5)
