"""Plain kernels: by value, by pointer, called, recursive; integers and conversions."""

import numpy as np
from cases import compare, full, given, rand
from cuda_cases import case

PAIR = np.dtype([("a", "i4"), ("b", "f4")])
HOLES = np.dtype([("c", "i1"), ("d", "f8"), ("s", "i2")], align=True)
LARGE = np.dtype([("v", "f4", 24), ("h", HOLES)], align=True)


def raw(*records, dtype):
    return given(np.array(list(records), dtype).view("u1"), "u8")


case("axpy", lambda y, x, a, n: {"y": np.where(np.arange(500) < n, y + a * x, y)}, grid=2, block=64, tol=1e-6,
     y=rand(500), x=rand(500), a=1.5, n=401)


def structs(p, h, l, by_value, i):
    p, h, l = p.view(PAIR).copy(), h.view(HOLES).copy(), l.view(LARGE).copy()
    p[i] = (p[i]["a"] + 1, p[i]["b"] * 2)
    h[i] = (np.int8(h[i]["s"] & 0x7F), -h[i]["d"], h[i]["c"])
    l[i] = np.frombuffer(by_value, LARGE)[0]
    l[i]["v"][i & 15] += np.float32(l[i]["h"]["d"])
    l[i]["h"]["s"] += 1
    return {"p": p, "h": h, "l": l}


def same_fields(reference, **kinds):
    """Structures are compared field by field: nobody says what is in their padding."""
    def check(before, after):
        for name, want in reference(**before).items():
            got = after[name].view(kinds[name])
            for path in want.dtype.names:
                if got[path].dtype.names:
                    fault = next((f"{name}.{path}.{k}" for k in got[path].dtype.names if (got[path][k] != want[path][k]).any()), None)
                else:
                    fault = compare(got[path], want[path], 0)
                if fault:
                    return f"{name}.{path}{fault}"
        return None
    return check


LARGE_VALUE = np.array((np.arange(24) * 0.5, (7, -2.25, 41)), LARGE).tobytes()
case("structs", check=same_fields(lambda p, h, l: structs(p, h, l, LARGE_VALUE, 1), p=PAIR, h=HOLES, l=LARGE),
     p=raw((1, 2.5), (3, 4.5), dtype=PAIR), h=raw((1, 2.0, 3), (-4, 5.0, 60), dtype=HOLES),
     l=full(2 * LARGE.itemsize, 0, "u8"), by_value=LARGE_VALUE, i=1)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


case("recursion", lambda out, n: {"out": [fib(n + t % 3) + (n % 2 == 0) for t in range(40)]}, block=40, out=full(40, 0, "i32"), n=8)


def early_exits(out, x, n):
    f, want = np.float32, out.copy()
    for i in range(n):
        v = x[i]
        if v < 0:
            want[i] = v * f(0.25) + f(0.75)
            continue
        for _ in range(16):
            if v > 100:
                break
            v = f(v * f(0.25) + v * v * f(0.75))
        while v > 1:
            v *= f(0.5)
        want[i] = v
    return {"out": want}


case("early_exits", early_exits, block=64, tol=2e-3, out=full(64, -7), x=rand(64, "fp32", -2, 4), n=50)
case("bounded", lambda out: {"out": [[int(np.int8(t & 0xFF if t & 0x80 == 0 else t - 256) < 7 and b > 9) for t in range(256)] for b in range(12)]},
     grid=12, block=256, out=full((12, 256), 5, "i32"))
case("limited", lambda out, x: {"out": np.full(32, x / 3.0 + 1e-300)}, block=32, out=full(32, 0, "fp64"), x=2.718281828459045)


def signed(v, bits):
    v &= (1 << bits) - 1
    return v - (1 << bits) if v >> (bits - 1) else v


def integers(out, a, b, c, s):
    u32, as_signed = (1 << 32) - 1, signed(b, 32)
    bytes_of = [(b >> 8 * i) & 255 for i in range(4)]
    words = [c >> 8 * i & 255 for i in range(4)]
    mulhi = (c * as_signed >> 32) + (b * 77 >> 32) + signed(c, 24) * signed(s, 24) + abs(c - 3) + b
    bits = 32 - (c & u32).bit_length() + (a & -a).bit_length() + a.bit_count()
    brev = int(f"{b:032b}"[::-1], 2)
    funnel = ((c & u32) << 32 | b) << 5 >> 32
    dp4a = sum(signed(x, 8) * signed(y, 8) for x, y in zip(bytes_of, words)) + 1
    want = [a // b + a % (b | 1) + (a >> (b & 63)) + (c << (b & 31)), (mulhi + bits) & u32,
            (brev + b + funnel + abs(b - 1) + 2 + (c + 3 + 1 >> 1)) & u32,
            min(c, 5) + max(s, 7) + abs(c) + signed(a * a >> 64, 64) + dp4a]
    return {"out": [signed(w, 64) for w in want]}


for tag, a, b, c, s in [("small", 1000003, 17, 9, 4), ("large", 0xFEDCBA9876543210, 0x89ABCDEF, -123456789, -30000)]:
    case("integers", integers, tag=tag, out=full(4, 0, "i64"), a=a, b=b, c=c, s=s)


def conversions(d, f, i, u, l, x, y):
    rz = np.float32(u)
    rz = np.nextafter(rz, np.float32(0)) if float(rz) > u else rz
    parts = [np.float32(int(x)), np.float32(int(y)), np.float32(np.ceil(x)), np.float32(np.floor(y))]
    bytes_of = [np.float32(int(x) & 255), np.float32(signed(int(y), 16)), np.float32(np.float32(x).view(np.int32))]
    return {"d": [i, u, l, np.float32(x)],
            "f": [np.float32(y), np.float32(l), np.int32(i).view(np.float32), rz,
                  parts[0] + parts[1] + parts[2] + parts[3], bytes_of[0] + bytes_of[1] + bytes_of[2]]}


case("conversions", conversions, d=full(4, 0, "fp64"), f=full(6), i=-123456789, u=4294967167, l=-(1 << 53) - 1, x=100.625, y=2500.75)
