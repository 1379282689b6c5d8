"""Small floating-point types: arithmetic to the bit where it is rounded, functions within two units of the last place."""

import numpy as np
from cases import DTYPES, full, given, mini_table
from cuda_cases import case, ulps

N = 96
F16 = np.float16


def fraction(n, low, high, seed):
    return np.random.default_rng(seed).uniform(low, high, n)


def values(seed):
    """Random ones, whole ones and what is not a number like others."""
    x = np.concatenate([fraction(N - 32, -4, 4, seed), np.random.default_rng(seed + 9).integers(-3, 4, 20) / 2, [0.0, -0.0, 1.0, -1.0]])
    return np.concatenate([x, [np.inf, -np.inf, np.nan, 6e-8, 65504.0, -3e-6, 2.0, 0.5]])


X, Y = values(1), values(2)[::-1].copy()


def rows_within(bounds, unit=1):
    """A check of results in rows, each with an own bound in units of the last place (of a type with fewer digits)."""
    def check_of(reference, out):
        def check(before, after):
            want = reference(**before)
            assert len(want) == len(bounds) == len(after[out])
            for k, (w, bound) in enumerate(zip(want, bounds)):
                got = after[out][k]
                far = ulps(got, np.asarray(w)) / unit
                if (far > bound).any():
                    i = int(np.argmax(far))
                    at = ", ".join(f"{name}[{i}] = {v[i]!r}" for name, v in before.items() if v.ndim == 1 and len(v) > i)
                    return f"row {k}: {far[i]:.2f} ulp off where {at}: {got[i]!r}, expected {w[i]!r}"
            return None
        return check
    return check_of


def saturated(x):
    return np.where(np.isnan(x), 0, np.clip(x, 0, 1))


def relu(x):
    return np.where(np.isnan(x), np.nan, np.maximum(x, 0))


def one_nan(f, a, b):
    """min and max of IEEE 754-2008: a number wins over a NaN."""
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, f(a, b)))


def half_math(out, x, y):
    with np.errstate(all="ignore"):
        a, b = x.astype("f8"), y.astype("f8")
        p = abs(a)
        exact = [a + b, a - b, a * b, a / b, a * b + a, saturated(a * b + a), relu(a * b + a), saturated(a + b), saturated(a - b),
                 saturated(a * b), p, -a, one_nan(np.minimum, a, b), one_nan(np.maximum, a, b), np.minimum(a, b), np.maximum(a, b),
                 np.floor(a), np.ceil(a), np.trunc(a), np.rint(a)]
        near = [np.sqrt(p), 1 / b, 1 / np.sqrt(p), np.exp(b), np.exp2(b), 10**b, np.log(p), np.log2(p), np.log10(p), np.sin(a), np.cos(a),
                np.tanh(a)]
        return [*(e.astype(F16) for e in exact), *near, x[np.arange(N) ^ 1], x]


HALF_BOUNDS = [0] * 20 + [1.5] * 12 + [0, 0]
ARGS = {"x": given(X, "fp16"), "y": given(Y, "fp16")}
case("half_math", check=rows_within(HALF_BOUNDS)(half_math, "out"), block=N, out=full((34, N), 0, "fp16"), **ARGS)


def half2_math(out, x, y):
    with np.errstate(all="ignore"):
        a, b = x.astype("f8"), y.astype("f8")
        first, second = a[:, 0] + 1j * a[:, 1], b[:, 0] + 1j * b[:, 1]
        c = first.real * second.real + first.real
        d = first.real * second.imag + first.imag  # the complex product is added in two steps, each rounded
        real = (c.astype(F16) - first.imag * second.imag).astype(F16)
        imaginary = (d.astype(F16) + first.imag * second.real).astype(F16)
        down = x[np.minimum(np.arange(N) + 3, np.arange(N) // 32 * 32 + 31)]
        down = np.where((np.arange(N) % 32 + 3 < 32)[:, None], down, x)
        rows = [a + b, a * b, a * b + a, saturated(a * b), relu(a * b + a), one_nan(np.maximum, a, b), np.minimum(a, b), a[:, ::-1],
                np.stack([a[:, 0], b[:, 0]], 1), np.stack([a[:, 1], b[:, 1]], 1), np.stack([real, imaginary], 1), np.floor(a), 1 / b,
                np.exp2(b), a > b, (a != b) | np.isnan(a) | np.isnan(b), down]
        return [r.astype("f8") if k in (12, 13) else r.astype(F16) for k, r in enumerate(rows)]


def pairs_within(bounds):
    inner = rows_within(bounds)

    def check_of(reference):
        def check(before, after):
            flat = {"out": after["out"].reshape(len(bounds), -1)}
            return inner(lambda **v: [np.asarray(r).reshape(-1) for r in reference(**v)], "out")(before, flat)
        return check
    return check_of


MILD = {"x": given(np.concatenate([fraction(2 * N - 8, -4, 4, 5), [1, -1, 0, -0.0, 2, 3, np.nan, 1]]).reshape(N, 2), "fp16"),
        "y": given(np.concatenate([fraction(2 * N - 8, -4, 4, 6), [1, -1, 0, 0, 2, -3, 1, np.nan]]).reshape(N, 2), "fp16")}
case("half2_math", check=pairs_within([0] * 12 + [1.5, 1.5] + [0] * 3)(half2_math), block=N, out=full((17, N, 2), 0, "fp16"), **MILD)


def cut(x, low, high, unknown):
    return np.where(np.isnan(x), unknown, np.clip(x, low, high)).astype("i8")


def half_tests(out, x, y):
    a, b = x.astype("f8"), y.astype("f8")
    unordered = np.isnan(a) | np.isnan(b)
    i32 = (-(2**31), 2**31 - 1)
    rows = [a == b, a != b, a < b, a <= b, a > b, a >= b, (a == b) | unordered, (a != b) | unordered, (a < b) | unordered,
            (a >= b) | unordered, np.isnan(a), np.isinf(a) * np.sign(np.where(np.isnan(a), 0, a)), cut(np.rint(a), *i32, 0), cut(np.trunc(a), *i32, 0),
            cut(np.ceil(a), *i32, 0), cut(np.floor(a), *i32, 0), cut(np.trunc(a), 0, 2**32 - 1, 0), cut(np.rint(a), -(2**15), 2**15 - 1, 0),
            cut(np.trunc(a), 0, 2**16 - 1, 0), cut(np.rint(a), -(2.0**63), 2.0**62, -(2**63)), x.view("u2"), cut(np.trunc(a), -128, 127, 0)]
    rows[1] = (a != b) & ~unordered
    rows[19] = np.where(np.isposinf(a), -1, rows[19])  # the low half of the largest 64-bit number
    return {"out": np.array([np.asarray(r).astype("i8") for r in rows]).astype("u4").view("i4")}


case("half_tests", half_tests, block=N, out=full((22, N), 0, "i32"), **ARGS)


def towards(x, kind, mode):
    """x, or the number of the small type that lies in the given direction of it."""
    with np.errstate(all="ignore"):
        near = x.astype(kind)
        back = near.astype("f8")
        low = np.where(back > x, np.nextafter(near, kind(-np.inf)), near).astype(kind)
        high = np.where(back < x, np.nextafter(near, kind(np.inf)), near).astype(kind)
    inward = np.where(x > 0, low, high)
    return {"rn": near, "rd": low, "ru": high, "rz": inward}[mode]


def to_half(out, x, d, n):
    f, i = x.astype("f8"), n.astype("f8")
    rows = [towards(f, F16, m) for m in ("rn", "rz", "ru", "rd")] + [towards(d, F16, "rn")]
    rows += [towards(i, F16, m) for m in ("rn", "rz", "ru", "rd")]
    rows += [towards(n.view("u4").astype("f8"), F16, "rn"), towards(n.astype("i2").astype("f8"), F16, "rn"),
             towards(n.astype("u2").astype("f8"), F16, "rd"), towards(i * 3, F16, "rn"), n.astype("u2").view(F16), towards(-f, F16, "rn")]
    return {"out": np.array(rows, F16)}


FLOATS = np.concatenate([fraction(40, -70000, 70000, 3), fraction(40, -1e-4, 1e-4, 4), [1 + 2.0**-11, 1 + 3 * 2.0**-11, 65519.0, 65520.0, 1e-9, -1e-9,
                                                                                      np.inf, -np.inf, np.nan, 0.0, -0.0, 2.0**-25, 3e5, -3e5, 1.0, 2.0]])
NUMBERS = np.concatenate([np.random.default_rng(8).integers(-70000, 70000, 80), [2049, 2051, -2049, 65519, 65520, 70000, -70000, 0, 1, -1, 2**31 - 1, -(2**31), 5, 6, 7, 8]])
case("to_half", to_half, block=N, out=full((15, N), 0, "fp16"), x=given(FLOATS, "fp32"), d=given(np.pi * FLOATS / 3, "fp64"), n=given(NUMBERS, "i32"))
case("half_sums", lambda h, h2, b, b2: {"h": h + 48, "h2": [96, 144], "b": b + 48, "b2": [96, 48]}, block=96, h=given([0.5, 100], "fp16"),
     h2=full(2, 0, "fp16"), b=given([0.5, 100], "bf16"), b2=full(2, 0, "bf16"))

# -- bfloat16 ------------------------------------------------------------------------------------------------------------

B16 = DTYPES["bf16"]


def bfloat_math(out, x, y):
    i = np.arange(N)
    with np.errstate(all="ignore"):
        a, b = x.astype("f8"), y.astype("f8")
        p = abs(a)
        inverse = (np.float32(1) / (i + 3).astype("f4")).astype("f4")
        cut = (inverse.view("u4") & 0xFFFF0000).view("f4")
        above = np.where(cut == inverse, cut, ((inverse.view("u4") & 0xFFFF0000) + 0x10000).view("f4"))
        exact = [a + b, a - b, a * b, a / b, a * b + a, -a, p, one_nan(np.maximum, a, b), one_nan(np.minimum, a, b), np.floor(a), np.ceil(a)]
        near = [np.sqrt(p), 1 / np.sqrt(p), np.exp(b), np.exp2(b), np.log(p), np.log2(p), np.sin(a)]
        rest = [a * b + a, a * b + b, one_nan(np.minimum, a, b), one_nan(np.minimum, a, b), cut, above, 1 / (i + 3.0), i * 12345.0]
        return [*map(B16.round, exact), *near, *map(B16.round, rest)]


BARGS = {"x": given(X, "bf16"), "y": given(Y, "bf16")}
case("bfloat_math", check=rows_within([0] * 11 + [1.5] * 7 + [0] * 8, unit=65536)(bfloat_math, "out"), block=N,
     out=full((26, N), 0, "bf16"), **BARGS)


def bfloat_tests(out, x, y):
    a, b = x.astype("f8"), y.astype("f8")
    i32 = (-(2**31), 2**31 - 1)
    rows = [a < b, a == b, (a >= b) | np.isnan(a) | np.isnan(b), np.isnan(a), *(cut(f(a), *i32, 0) for f in (np.rint, np.trunc, np.ceil, np.floor)),
            cut(np.rint(a), -(2**15), 2**15 - 1, 0), np.where(np.isposinf(a), -1, cut(np.trunc(a), 0, 2.0**62, 0)), B16.encode(x)]
    return {"out": np.array([np.asarray(r).astype("i8") for r in rows]).astype("u4").view("i4")}


FINITE = {"x": given(np.where(np.isnan(X), 77.5, X), "bf16"), "y": given(Y, "bf16")}
case("bfloat_tests", bfloat_tests, block=N, out=full((11, N), 0, "i32"), **FINITE)

# -- smaller ones --------------------------------------------------------------------------------------------------------

TINY = {"e4m3": mini_table(4, 3, False), "e5m2": mini_table(5, 2, True)}


def small_table(exponent_bits, mantissa_bits):
    """All non-negative values of a type without infinities and NaNs."""
    bias = (1 << (exponent_bits - 1)) - 1
    codes = np.arange(1 << (exponent_bits + mantissa_bits))
    e, m = codes >> mantissa_bits, codes & ((1 << mantissa_bits) - 1)
    return (m + np.where(e > 0, 1 << mantissa_bits, 0)) * 2.0 ** (np.maximum(e, 1) - bias - mantissa_bits)


def nearest(x, table, sign, unknown, beyond=None):
    """Codes of the nearest values, ties to the even code; `beyond` is the code of what overflows, else it saturates."""
    finite = table[np.isfinite(table)]
    size = np.minimum(abs(np.where(np.isnan(x), 0, x)), finite[-1] * 4)
    step = finite[-1] - finite[-2]
    code = np.array([min(range(len(finite)), key=lambda c: (abs(finite[c] - s), c % 2)) for s in size])
    if beyond is not None:
        code = np.where(size >= finite[-1] + step / 2 + (1e-9 if len(finite) % 2 else 0), beyond, code)
    return np.where(np.isnan(x), unknown, code | np.where(np.signbit(x), sign, 0)).astype("u1")


def to_fp8(out, x):
    e4, e5 = TINY["e4m3"][:128].astype("f8"), TINY["e5m2"][:128].astype("f8")
    f, h, b = x.astype("f8"), x.astype(F16).astype("f8"), B16.round(x).astype("f8")
    a4, a5 = nearest(f, e4, 0x80, 0x7F), nearest(f, e5, 0x80, 0x7F)
    n4, n5 = nearest(f, e4, 0x80, 0x7F, 0x7F), nearest(f, e5, 0x80, 0x7F, 0x7C)
    return {"out": np.array([a4, n4, a5, n5, a4, nearest(h, e4, 0x80, 0x7F), nearest(h, e5, 0x80, 0x7F), a4, a5, nearest(-f, e4, 0x80, 0x7F),
                             nearest(-f, e5, 0x80, 0x7F), nearest(b, e5, 0x80, 0x7F)])}


EIGHT = np.concatenate([fraction(32, -500, 500, 11), fraction(24, -4, 4, 12), fraction(8, -60000, 60000, 13), fraction(16, -0.02, 0.02, 14), 17 + np.arange(8) * 2.0,
                        [448.0, 464.0, 57344.0, 61440.0, 1e9, -1e9, np.inf, -np.inf]])
case("to_fp8", to_fp8, block=N, out=full((12, N), 0, "u8"), x=given(EIGHT, "fp32"))


def from_fp8(out, x):
    e4, e5 = TINY["e4m3"][x], TINY["e5m2"][x]
    whole = cut(np.trunc(e4.astype("f8")), -(2**31), 2**31 - 1, 0)
    return {"out": np.array([e4, e5, e5, np.full(256, 1.0), e4, whole])}


case("from_fp8", from_fp8, block=256, out=full((6, 256)), x=given(np.arange(256), "u8"))


def to_micro(out, x):
    a, b = x[:, 0].astype("f8"), x[:, 1].astype("f8")
    four = small_table(2, 1)
    low, high = nearest(a, four, 8, 7), nearest(b, four, 8, 7)
    return {"out": np.array([nearest(a, small_table(2, 3), 32, 31), nearest(a, small_table(3, 2), 32, 31), low | high << 4, high])}


MICRO = np.concatenate([fraction(64, -8, 8, 21), fraction(64, -40, 40, 22), fraction(48, -1, 1, 23), [0, -0.0, 0.25, -0.25, 0.75, 1.25, 2.5, 3.5, 5, -5, 28, 30, 7.5, 7.75, 1e9, -1e9]])
case("to_micro", to_micro, block=N, out=full((4, N), 0, "u8"), x=given(MICRO.reshape(N, 2), "fp32"))


def from_micro(out, x):
    def of(table, codes, sign):
        return np.where(codes & sign, -1, 1) * table[codes & (sign - 1)]
    return {"out": np.array([of(small_table(2, 3), x & 63, 32), of(small_table(3, 2), x & 63, 32), of(small_table(2, 1), x & 15, 8),
                             of(small_table(2, 1), x >> 4, 8)])}


case("from_micro", from_micro, block=256, out=full((4, 256)), x=given(np.arange(256), "u8"))
