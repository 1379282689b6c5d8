"""The math library, within the error bounds of the CUDA programming guide; rounding modes, to the bit."""

import ctypes
import ctypes.util
import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from cases import compare, full, given
from cuda_cases import case, ulps, within

N = 512
WIDE = np.longdouble
LIBM = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")


def from_libm(name, arguments=1):
    """The function for 80-bit floats, rounded to double."""
    f = getattr(LIBM, name + "l")
    f.restype, f.argtypes = ctypes.c_longdouble, [ctypes.c_longdouble] * arguments
    return lambda *arrays: np.array([f(*map(float, v)) for v in zip(*arrays, strict=True)])


def erf_wide(x):
    """A sum whose terms all have one sign, so that nothing cancels."""
    x = x.astype(WIDE)
    term = total = x
    for n in range(1, 200):
        term = term * 2 * x * x / (2 * n + 1)
        total = total + term
    return 2 / np.sqrt(4 * np.arctan(WIDE(1))) * np.exp(-x * x) * total


def erfinv(x):
    y = np.array([NormalDist().inv_cdf((float(v) + 1) / 2) / math.sqrt(2) for v in x], WIDE)
    for _ in range(4):
        y = y - (erf_wide(y) - x) / (2 / np.sqrt(4 * np.arctan(WIDE(1))) * np.exp(-y * y))
    return y


def sin_of_pi(x, shift):
    """sin(pi (x + shift)), with the angle brought into half a turn exactly."""
    x = x.astype(WIDE) + WIDE(shift)
    turns = np.rint(x)
    return np.sin(4 * np.arctan(WIDE(1)) * (x - turns)) * np.where(turns % 2 == 0, 1, -1)


def half_away(x):
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


# name: from, to, allowed ulps in single and in double precision, reference unless it is libm's
ONE = {
    "sin": (-1e5, 1e5, 2, 2), "cos": (-1e5, 1e5, 2, 2), "tan": (-1e5, 1e5, 4, 2), "asin": (-1, 1, 2, 2), "acos": (-1, 1, 2, 2),
    "atan": (-20, 20, 2, 2), "sinh": (-80, 80, 3, 2), "cosh": (-80, 80, 2, 1), "tanh": (-9, 9, 2, 1), "asinh": (-99, 99, 3, 3),
    "acosh": (1, 99, 4, 3), "atanh": (-0.99, 0.99, 3, 2), "exp": (-80, 80, 2, 1), "exp2": (-100, 100, 2, 1),
    "exp10": (-30, 30, 2, 1), "expm1": (-20, 80, 1, 1), "log": (1e-6, 1e6, 1, 1), "log2": (1e-6, 1e6, 1, 1),
    "log10": (1e-6, 1e6, 3, 1), "log1p": (-0.999, 1e3, 1, 1), "sqrt": (0, 1e6, 0, 0), "cbrt": (-1e3, 1e3, 1, 1),
    "rsqrt": (1e-4, 1e6, 2, 1, lambda x: 1 / np.sqrt(x.astype(WIDE))), "erf": (-5, 5, 2, 2), "erfc": (-5, 9, 4, 5),
    "erfinv": (-0.999, 0.999, 3, 5, erfinv), "tgamma": (-20.3, 34, 11, 10), "lgamma": (3, 1e3, 6, 4), "j0": (-1.9, 1.9, 9, 7),
    "y1": (0.1, 1.9, 9, 7), "floor": (-99, 99, 0, 0), "ceil": (-99, 99, 0, 0), "trunc": (-99, 99, 0, 0),
    "round": (-99, 99, 0, 0, half_away), "rint": (-99, 99, 0, 0), "fabs": (-99, 99, 0, 0),
    "sinpi": (-99, 99, 1, 2, lambda x: sin_of_pi(x, 0)), "cospi": (-99, 99, 1, 2, lambda x: sin_of_pi(x, 0.5)),
    "normcdf": (-1, 5, 5, 5, lambda x: (1 + erf_wide(x.astype(WIDE) / np.sqrt(WIDE(2)))) / 2),
}
TWO = {
    "pow": (0.01, 20, 8, 2), "atan2": (-9, 9, 3, 2), "fmod": (-99, 99, 0, 0), "remainder": (-99, 99, 0, 0), "hypot": (-1e3, 1e3, 3, 2),
    "fmin": (-9, 9, 0, 0), "fmax": (-9, 9, 0, 0), "copysign": (-9, 9, 0, 0), "fdim": (-9, 9, 0, 0, lambda x, y: np.where(np.isnan(x - y) & (x != y), np.nan, np.where(x > y, x - y, 0))),
    "nextafter": (-9, 9, 0, 0, np.nextafter),
}
# -use_fast_math makes these of approximate instructions, good to some bits of single precision in a narrow range.
FAST = {"sin": (-3, 3), "cos": (-3, 3), "tan": (-1.2, 1.2), "exp": (-3, 3), "exp10": (-2, 2), "log": (0.1, 9), "log2": (0.1, 9),
        "log10": (0.1, 9), "pow": (0.1, 3), "sqrt": (0, 9), "rsqrt": (0.1, 9)}
ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1e-40, -1e-310]
UNKNOWN_SIGN = ("tgamma", "lgamma", "y1", "j0", "fmin", "fmax", "remainder", "fmod", "sinpi", "cospi")


def points(low, high, dtype, seed):
    """Spread evenly, near the ends, and at halves."""
    rng = np.random.default_rng(seed)
    even = rng.uniform(low, high, N - 32)
    halves = np.clip(np.arange(-16, 16) / 2, low, high)
    return np.concatenate([even, halves]).astype(dtype)


def bounded(name, allowed, reference, out):
    """A check of a kernel that writes over its first argument."""
    def check(before, after):
        inputs = list(before.values())
        with np.errstate(all="ignore"):
            want = reference(*inputs)
        if allowed == 0:
            want = np.asarray(want).astype(after[out].dtype)
        return within(allowed, after[out], want, *inputs)
    return check


def signs_too(check, name, reference, out):
    def both(before, after):
        with np.errstate(all="ignore"):
            want = np.asarray(reference(*before.values()))
        got = after[out]
        wrong = (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))
        if wrong.any() and name not in UNKNOWN_SIGN:
            return f"[{int(np.argmax(wrong))}] is a zero of the other sign"
        return check(before, after)
    return both


def close(tolerance, reference, out):
    def check(before, after):
        return compare(after[out], reference(*before.values()), tolerance)
    return check


def cases_of(name, low, high, single, double, reference=None, arguments=1):
    reference = reference or from_libm(name, arguments)
    names = ("x", "y")[:arguments]
    for suffix, kind, dtype, allowed in [("f", "fp32", np.float32, single), ("d", "fp64", np.float64, double)]:
        exact = 0 if allowed == 0 else 1  # the reference is rounded, too
        check = bounded(name, allowed + exact, reference, "x")
        args = {n: given(points(low, high, dtype, i), kind) for i, n in enumerate(names)}
        fast = suffix == "f"
        case(f"{name}_{suffix}", check=check, block=N, but="*math_[fn]*" if fast else "", **args)
        if fast:  # single precision without denormals, with divisions that are not rounded, or with less exact functions
            ends = FAST.get(name, (low, high))
            args = {n: given(points(*ends, dtype, i), kind) for i, n in enumerate(names)}
            rough = 1e-3 if name in ("tgamma", "lgamma") else 1e-4
            case(f"{name}_{suffix}", check=close(rough, reference, "x"), block=N, builds="*math_[fn]*", tag="rough", **args)
        odd = np.array(ODD, dtype)
        if arguments == 1:
            args = {"x": given(odd, kind)}
        else:
            args = {"x": given(np.repeat(odd, len(odd)), kind), "y": given(np.tile(odd, len(odd)), kind)}
        if name not in ("j0", "y1", "erfinv", "normcdf", "lgamma"):
            odd_check = signs_too(check, name, reference, "x")
            case(f"{name}_{suffix}", check=odd_check, block=len(odd) ** arguments, tag="odd", but="*math_[fn]*" if fast else "", **args)


for name, row in ONE.items():
    cases_of(name, *row)
for name, row in TWO.items():
    cases_of(name, *row, arguments=2)

# -- rounding modes ------------------------------------------------------------------------------------------------------


def neighbours(exact, dtype):
    """The numbers of the type on either side of a fraction; equal if it is one itself."""
    near = dtype(float(exact)) if dtype is np.float64 else dtype(exact.numerator / exact.denominator)
    while Fraction(float(near)) > exact:
        near = np.nextafter(near, dtype(-np.inf))
    above = np.nextafter(near, dtype(np.inf))
    while Fraction(float(above)) <= exact:
        near, above = above, np.nextafter(above, dtype(np.inf))
    return (near, near) if Fraction(float(near)) == exact else (near, above)


def four(exact, dtype):
    """A fraction rounded to nearest even, to zero, up and down."""
    low, high = neighbours(exact, dtype)
    below, above = exact - Fraction(float(low)), Fraction(float(high)) - exact
    bits = "i4" if dtype is np.float32 else "i8"
    even = low if int(low.view(bits)) % 2 == 0 else high
    nearest = low if below < above else high if above < below else even
    return [nearest, low if exact > 0 else high, high, low]


def root(exact, dtype):
    """The square root, cut after so many binary digits that only an exact one can be taken for another."""
    scale = 1 << 400
    whole = math.isqrt(exact.numerator * scale * scale // exact.denominator)
    rest = 0 if whole * whole == exact.numerator * scale * scale // exact.denominator and exact.denominator & (exact.denominator - 1) == 0 else 1
    return Fraction(2 * whole + rest, 2 * scale)


def rounded_of(x, dtype):
    rows = []
    for a, b, c in x:
        a, b, c = (Fraction(float(v)) for v in (a, b, c))
        exact = [a + b, a - b, a * b, a * b + c, a / b, root(abs(c), dtype), 1 / b]
        row = [v for e in exact for v in four(e, dtype)]
        rows.append(row + ([four(1 / root(abs(c), dtype), dtype)[0]] if dtype is np.float32 else []))
    return np.array(rows, dtype).T


def triples(dtype, seed):
    """Random ones, ones whose sums and products lie halfway, and ones that cancel."""
    rng = np.random.default_rng(seed)
    some = rng.uniform(-1, 1, (64, 3)) * np.exp2(rng.integers(-20, 20, (64, 3)))
    bits = np.finfo(dtype).nmant
    half = [[1.0, 2.0 ** -(bits + 1), 3.0], [1 + 2.0**-bits, 2.0 ** -(bits + 1), 2.0], [-1.0, -(2.0 ** -(bits + 1)), 4.0],
            [1 + 2.0**-bits, 1 - 2.0**-bits, -1.0], [3.0, -3.0, 9.0], [-1.5, 1 + 2.0**-bits, 0.25], [1.0, -3.0, 2.0], [7.0, 49.0, 1e30]]
    return np.concatenate([some, half]).astype(dtype)


for kernel, kind, dtype, rows in [("rounded", "fp32", np.float32, 29), ("rounded_double", "fp64", np.float64, 28)]:
    case(kernel, lambda out, x, dtype=dtype: {"out": rounded_of(x, dtype)}, block=72, out=full((rows, 72), 0, kind),
         x=given(triples(dtype, 7), kind))


def approximate(out, x):
    a, b = x[:-1].astype("f8"), x[1:].astype("f8")
    return {"out": np.array([a / b, np.clip(a - 2, 0, 1), np.sin(a), np.cos(a), np.exp(a), np.log(a), np.log2(a), np.log10(a), a**b, 10**b,
                             np.tan(a - 1.5)])}


case("approximate", approximate, block=128, tol=3e-5, out=full((11, 128)), x=given(np.random.default_rng(3).uniform(0.3, 2.8, 129), "fp32"))

# -- numbers taken apart -------------------------------------------------------------------------------------------------

F = [0.75, 0, -37.5, 1.25, -9.75, 0, 3.5, 2.5]
D = [0.3, 0, 1e-300, -12.625, 1e10, 37.0, 7.0, -3.5]


def parts(f, d, n):
    n = n.copy()
    low, high = d[:1].view("u4")
    mantissa, n[0] = math.frexp(f[2])
    d_mantissa, n[2] = math.frexp(d[2])
    part, whole = math.modf(f[4])
    f1 = math.sin(f[0]) * 10 + math.cos(f[0]) + mantissa + math.ldexp(f[3], int(n[1])) + part + f[6] * 8
    remainder = math.remainder(d[5], d[6])
    d_part, d_whole = math.modf(d[3])
    d1 = (math.sin(math.pi * d[0]) + math.cos(math.pi * d[0]) + d_mantissa + d_part + d_whole + math.floor(math.log2(d[4])) + remainder)
    n[3] = round((d[5] - remainder) / d[6])
    n[4] = 4 + 8 + math.floor(math.log2(f[3])) + round(f[4])
    n[5] = -4 + 2 + int(np.int32(high)) + int(np.int32(low))
    return {"f": [f[0], f1, *f[2:5], whole, *f[6:]], "d": [d[0], d1, *d[2:]], "n": n}


case("parts", parts, tol=2e-6, f=given(F, "fp32"), d=given(D, "fp64"), n=given([0, 3, 0, 0, 0, 0], "i32"))
assert ulps(np.float32([1.0]), np.array([1.0 + 2.0**-23]))[0] == 1
