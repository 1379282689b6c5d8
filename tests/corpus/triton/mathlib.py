"""Math functions: those of the language, and libdevice's."""

import math

import numpy as np
import triton
import triton.language as tl
from cases import case, full, ints, rand
from triton.language.extra import libdevice

N = 256


@triton.jit
def unary(x, z, F: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o)
    if F == "exp":
        r = tl.exp(v)
    elif F == "exp2":
        r = tl.exp2(v)
    elif F == "log":
        r = tl.log(v)
    elif F == "log2":
        r = tl.log2(v)
    elif F == "sin":
        r = tl.sin(v)
    elif F == "cos":
        r = tl.cos(v)
    elif F == "sqrt":
        r = tl.sqrt(v)
    elif F == "sqrt_rn":
        r = tl.sqrt_rn(v)
    elif F == "rsqrt":
        r = tl.rsqrt(v)
    elif F == "erf":
        r = tl.erf(v)
    elif F == "floor":
        r = tl.floor(v)
    elif F == "ceil":
        r = tl.ceil(v)
    elif F == "abs":
        r = tl.abs(v)
    elif F == "sigmoid":
        r = tl.sigmoid(v)
    elif F == "divide":
        r = 1.0 / v
    elif F == "div_rn":
        r = tl.div_rn(v, v + 3.0)
    elif F == "fdiv":
        r = tl.fdiv(v, v + 3.0)
    elif F == "remainder":
        r = (v * 7.0) % 1.5
    tl.store(z + o, r)


def each(f):
    return np.vectorize(f, otypes=[np.float64])


UNARY = {"exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt,
         "sqrt_rn": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v), "erf": each(math.erf), "floor": np.floor, "ceil": np.ceil,
         "abs": np.abs, "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "divide": lambda v: 1 / v,
         "div_rn": lambda v: v / (v + 3), "fdiv": lambda v: v / (v + 3), "remainder": lambda v: np.fmod(v * 7, 1.5)}
for name, f in UNARY.items():
    low = 0.1 if name in ("log", "log2", "sqrt", "sqrt_rn", "rsqrt", "divide", "remainder") else -2.5
    tol = 1e-3 if name == "remainder" else 1e-5
    case(unary, (1,), lambda x, f=f, **_: {"z": f(x.astype(np.float64))}, tag=name, tol=tol, x=rand(N, "fp32", low, 9.7),
         z=full(N), F=name, B=N)
for name in ["exp", "log", "sin", "sqrt", "erf", "rsqrt", "floor"]:
    case(unary, (1,), lambda x, f=UNARY[name], **_: {"z": f(x)}, tag=f"{name}_fp64", tol=1e-12,
         x=rand(N, "fp64", 0.1, 9.7), z=full(N, 0, "fp64"), F=name, B=N)


@triton.jit
def device_unary(x, z, F: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o)
    if F == "tan":
        r = libdevice.tan(v)
    elif F == "asin":
        r = libdevice.asin(v)
    elif F == "acos":
        r = libdevice.acos(v)
    elif F == "atan":
        r = libdevice.atan(v)
    elif F == "sinh":
        r = libdevice.sinh(v)
    elif F == "cosh":
        r = libdevice.cosh(v)
    elif F == "tanh":
        r = libdevice.tanh(v)
    elif F == "asinh":
        r = libdevice.asinh(v)
    elif F == "atanh":
        r = libdevice.atanh(v)
    elif F == "expm1":
        r = libdevice.expm1(v)
    elif F == "log1p":
        r = libdevice.log1p(v)
    elif F == "log10":
        r = libdevice.log10(v)
    elif F == "cbrt":
        r = libdevice.cbrt(v)
    elif F == "lgamma":
        r = libdevice.lgamma(v)
    elif F == "tgamma":
        r = libdevice.tgamma(v)
    elif F == "erfc":
        r = libdevice.erfc(v)
    elif F == "erfinv":
        r = libdevice.erfinv(v)
    elif F == "rint":
        r = libdevice.rint(v)
    elif F == "round":
        r = libdevice.round(v)
    elif F == "trunc":
        r = libdevice.trunc(v)
    elif F == "j0":
        r = libdevice.j0(v)
    elif F == "fast_expf":
        r = libdevice.fast_expf(v)
    elif F == "fast_tanhf":
        r = libdevice.fast_tanhf(v)
    tl.store(z + o, r)


def erfinv(v):
    low, high = -6.0, 6.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < v else (low, middle)
    return low


def bessel_j0(v):
    return sum((-1.0) ** k * (v / 2) ** (2 * k) / math.factorial(k) ** 2 for k in range(20))


DEVICE = {"tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
          "tanh": np.tanh, "asinh": np.arcsinh, "atanh": np.arctanh, "expm1": np.expm1, "log1p": np.log1p,
          "log10": np.log10, "cbrt": np.cbrt, "lgamma": each(math.lgamma), "tgamma": each(math.gamma),
          "erfc": each(math.erfc), "erfinv": each(erfinv), "rint": np.rint, "round": lambda v: np.sign(v) * np.floor(
              np.abs(v) + 0.5), "trunc": np.trunc, "j0": each(bessel_j0), "fast_expf": np.exp}
for name, f in DEVICE.items():
    low = 0.05 if name in ("log10", "lgamma", "tgamma") else -0.95
    case(device_unary, (1,), lambda x, f=f, **_: {"z": f(x.astype(np.float64))}, tag=name, tol=2e-5,
         x=rand(N, "fp32", low, 0.95), z=full(N), F=name, B=N)
for name in ["tan", "acos", "expm1", "lgamma", "cbrt"]:
    case(device_unary, (1,), lambda x, f=DEVICE[name], **_: {"z": f(x)}, tag=f"{name}_fp64", tol=1e-12,
         x=rand(N, "fp64", 0.05, 0.95), z=full(N, 0, "fp64"), F=name, B=N)


@triton.jit
def device_binary(x, y, z, F: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    v, w = tl.load(x + o), tl.load(y + o)
    if F == "pow":
        r = libdevice.pow(v, w)
    elif F == "atan2":
        r = libdevice.atan2(v, w)
    elif F == "fmod":
        r = libdevice.fmod(v, w)
    elif F == "hypot":
        r = libdevice.hypot(v, w)
    elif F == "copysign":
        r = libdevice.copysign(v, -w)
    elif F == "nextafter":
        r = libdevice.nextafter(v, w)
    elif F == "div_rz":
        r = libdevice.div_rz(v, w)
    tl.store(z + o, r)


BINARY = {"pow": np.power, "atan2": np.arctan2, "fmod": np.fmod, "hypot": np.hypot,
          "copysign": lambda v, w: np.copysign(v, -w), "nextafter": lambda v, w: v, "div_rz": np.divide}
for name, f in BINARY.items():
    for t in ["fp32", "fp64"]:
        case(device_binary, (1,), lambda x, y, f=f, **_: {"z": f(x.astype(np.float64), y)}, tag=f"{name}_{t}", tol=1e-5,
             x=rand(N, t, 0.1, 3), y=rand(N, t, 0.2, 3), z=full(N, 0, t), F=name, B=N)


@triton.jit
def device_integers(x, z, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o)
    tl.store(z + o, libdevice.popc(v))
    tl.store(z + n + o, libdevice.clz(v))
    tl.store(z + 2 * n + o, libdevice.brev(v))
    tl.store(z + 3 * n + o, libdevice.ffs(v))
    tl.store(z + 4 * n + o, libdevice.mulhi(v, v))
    tl.store(z + 5 * n + o, libdevice.float_as_int(libdevice.int2float_rn(v)))


def integers_ref(x, **_):
    u = [int(v) & 0xFFFFFFFF for v in x]
    rows = [[v.bit_count() for v in u], [32 - v.bit_length() for v in u], [int(f"{v:032b}"[::-1], 2) for v in u],
            [(v & -v).bit_length() for v in u]]
    rows += [((x.astype(np.int64) * x) >> 32).tolist(), x.astype(np.float32).view(np.int32).tolist()]
    return {"z": np.array(rows, np.int64).astype(np.int32)}


case(device_integers, (1,), integers_ref, x=ints(N, "i32", -(1 << 31), 1 << 31), z=full((6, N), 0, "i32"), n=N, B=N)


@triton.jit
def device_tests(x, z, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.log(tl.load(x + o))
    tl.store(z + o, libdevice.isnan(v).to(tl.int32))
    tl.store(z + n + o, libdevice.isinf(v).to(tl.int32))
    tl.store(z + 2 * n + o, libdevice.signbit(v).to(tl.int32))
    tl.store(z + 3 * n + o, libdevice.ilogb(tl.load(x + o) + 1.5))


def tests_ref(x, **_):
    with np.errstate(all="ignore"):
        v = np.log(x)
    return {"z": np.stack([np.isnan(v), np.isinf(v), np.where(x < 0, 0, v < 0), np.floor(np.log2(np.abs(x + 1.5)))])}


def tests_check(before, after):
    want = tests_ref(**before)["z"].astype(np.int32)
    got = after["z"].copy()
    got[2][before["x"] < 0] = 0  # the sign of a NaN is nobody's business
    return None if (got == want).all() else f"z is {got[got != want][0]}, expected {want[got != want][0]}"


case(device_tests, (1,), check=tests_check, x=ints(N, "fp32", -3, 10), z=full((4, N), 0, "i32"), n=N, B=N)
