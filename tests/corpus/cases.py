"""The table of Triton cases: what a kernel is called with, and what must come out.

A family file (triton/NAME.py) holds kernels and calls `case` once per way to launch one. The same entry serves three
uses: compiling to PTX with no GPU (`compile_ptx`), launching through any Triton driver that takes objects with
`data_ptr()` and `dtype` (`Case.arguments`), and checking the outcome against NumPy (`Case.check`).

Arguments that are arrays are written as specifications (`rand((64, 64), "fp16")`) and made when they are needed, from a
seed that depends on the case's name only. Types that NumPy lacks (bf16, fp8) are kept as bits beside their values.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

TARGETS = {"sm_80": 80, "sm_90a": 90, "sm_100a": 100}
SM80, SM90, SM100 = TARGETS
HERE = Path(__file__).resolve().parent

# -- types -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DType:
    """An element type: Triton's name for it, the name a tensor library would give, and how NumPy stores it."""

    short: str
    long: str
    store: str
    mini: tuple[int, int, bool] | None = None  # exponent bits, mantissa bits, has infinities: kept as bits

    def __str__(self) -> str:
        return self.long

    @property
    def itemsize(self) -> int:
        return np.dtype(self.store).itemsize

    @property
    def is_floating_point(self) -> bool:
        return self.mini is not None or np.dtype(self.store).kind == "f"

    def decode(self, raw: np.ndarray) -> np.ndarray:
        """Stored bits to values."""
        if self.mini is None:
            return raw
        if self.short == "bf16":
            return (raw.astype(np.uint32) << 16).view(np.float32)
        return mini_table(*self.mini)[raw]

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Values to stored bits, rounded to nearest even."""
        if self.mini is None:
            return np.asarray(values).astype(self.store)
        if self.short == "bf16":
            bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
            return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return mini_encode(np.asarray(values, np.float64), *self.mini)

    def round(self, values: np.ndarray) -> np.ndarray:
        """Values as this type can hold them."""
        return self.decode(self.encode(values))


def mini_table(exponent_bits: int, mantissa_bits: int, infinities: bool) -> np.ndarray:
    """The values of the 256 encodings of an 8-bit float."""
    bias = (1 << (exponent_bits - 1)) - 1
    out = np.empty(256, np.float32)
    for code in range(256):
        e, m = (code & 0x7F) >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        top = e == (1 << exponent_bits) - 1
        scale = 2.0 ** (max(e, 1) - bias - mantissa_bits)
        value = (m + ((1 << mantissa_bits) if e else 0)) * scale
        if top and infinities:
            value = np.inf if m == 0 else np.nan
        elif top and m == (1 << mantissa_bits) - 1:
            value = np.nan
        out[code] = -value if code & 0x80 else value
    return out


def mini_encode(values: np.ndarray, exponent_bits: int, mantissa_bits: int, infinities: bool) -> np.ndarray:
    """Nearest 8-bit float, ties to the even encoding; finite values beyond the range saturate."""
    table = mini_table(exponent_bits, mantissa_bits, infinities)[:128].astype(np.float64)
    finite = table[np.isfinite(table)]
    size = np.minimum(np.abs(values), finite[-1])
    high = np.clip(np.searchsorted(finite, size), 0, len(finite) - 1)
    low = np.maximum(high - 1, 0)
    below, above = size - finite[low], finite[high] - size
    code = np.where((below < above) | ((below == above) & (low % 2 == 0)), low, high)
    code = np.where(np.isnan(values), 0x7F, code)
    return (code | np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)


DTYPES = {
    d.short: d
    for d in [
        DType("fp64", "float64", "f8"),
        DType("fp32", "float32", "f4"),
        DType("fp16", "float16", "f2"),
        DType("bf16", "bfloat16", "u2", (8, 7, True)),
        DType("fp8e4nv", "float8_e4m3fn", "u1", (4, 3, False)),
        DType("fp8e5", "float8_e5m2", "u1", (5, 2, True)),
        DType("i1", "bool", "?"),
        DType("i8", "int8", "i1"),
        DType("i16", "int16", "i2"),
        DType("i32", "int32", "i4"),
        DType("i64", "int64", "i8"),
        DType("u8", "uint8", "u1"),
        DType("u16", "uint16", "u2"),
        DType("u32", "uint32", "u4"),
        DType("u64", "uint64", "u8"),
    ]
}

# -- arrays ------------------------------------------------------------------------------------------------------------


class Array:
    """An array in host memory as a Triton launcher sees one. `raw` holds the bits, aligned to 128 bytes."""

    def __init__(self, values: np.ndarray, dtype: DType):
        bits = dtype.encode(values)
        space = np.zeros(bits.nbytes + 128, np.uint8)
        start = -space.ctypes.data % 128
        self.raw = space[start : start + bits.nbytes].view(dtype.store).reshape(bits.shape)
        self.raw[...] = bits
        self.dtype = dtype

    @property
    def shape(self) -> list[int]:
        return list(self.raw.shape)

    def stride(self) -> list[int]:
        return [s // self.raw.itemsize for s in self.raw.strides]

    def data_ptr(self) -> int:
        return self.raw.ctypes.data

    def values(self) -> np.ndarray:
        return self.dtype.decode(self.raw)


@dataclass(frozen=True)
class Spec:
    """How to make an array: `make(rng)` gives its values."""

    make: Callable[[np.random.Generator], np.ndarray]
    dtype: str

    def build(self, rng: np.random.Generator) -> Array:
        return Array(self.make(rng), DTYPES[self.dtype])


@dataclass(frozen=True)
class Descriptor:
    """A tensor descriptor over an array, made on the host."""

    base: Spec
    block: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)


def rand(shape, dtype: str = "fp32", low: float = -1.0, high: float = 1.0) -> Spec:
    """Floats spread evenly over [low, high)."""
    return Spec(lambda rng: rng.uniform(low, high, shape), dtype)


def ints(shape, dtype: str = "i32", low: int = -100, high: int = 100) -> Spec:
    """Integers in [low, high)."""
    return Spec(lambda rng: rng.integers(low, high, shape), dtype)


def full(shape, value: float = 0, dtype: str = "fp32") -> Spec:
    return Spec(lambda rng: np.full(shape, value), dtype)


def count(n: int, dtype: str = "i32") -> Spec:
    return Spec(lambda rng: np.arange(n), dtype)


def permutation(n: int, dtype: str = "i32") -> Spec:
    return Spec(lambda rng: rng.permutation(n), dtype)


def given(values, dtype: str) -> Spec:
    return Spec(lambda rng: np.array(values), dtype)


# -- cases -------------------------------------------------------------------------------------------------------------

Reference = Callable[..., dict[str, np.ndarray]]


@dataclass
class Case:
    """One way to launch one kernel. `reference(**values)` gives the expected values of every array it names."""

    name: str
    kernel: Any
    args: dict[str, Any]
    grid: tuple[int, ...]
    options: dict[str, Any]
    targets: tuple[str, ...]
    reference: Reference | None
    check_with: Callable[[dict[str, np.ndarray], dict[str, np.ndarray]], str | None] | None
    tolerance: float
    faults: str | None
    source: Path

    def arguments(self, wrap: Callable[[Array], Any] = lambda a: a) -> tuple[dict[str, Any], dict[str, Array]]:
        """Fresh arguments by name, and the arrays among them. `wrap` makes of an array what the launcher wants."""
        seed = int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:8], "little")
        rng = np.random.default_rng(seed)
        args: dict[str, Any] = {}
        arrays: dict[str, Array] = {}
        for name, value in self.args.items():
            if isinstance(value, Spec):
                arrays[name] = value.build(rng)
                value = wrap(arrays[name])
            elif isinstance(value, Descriptor):
                arrays[name] = value.base.build(rng)
                value = self._descriptor(value, wrap(arrays[name]))
            args[name] = value
        return args, arrays

    def _descriptor(self, value: Descriptor, base: Any) -> Any:
        from triton.tools.tensor_descriptor import TensorDescriptor

        if not self.is_gluon:
            return TensorDescriptor.from_tensor(base, list(value.block), **value.options)
        from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor

        return GluonDescriptor.from_tensor(base, list(value.block), **value.options)

    @property
    def is_gluon(self) -> bool:
        return bool(getattr(self.kernel, "is_gluon", lambda: False)())

    def check(self, before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> str | None:
        """What is wrong with the outcome, or None. Both map argument names to values."""
        if self.check_with is not None:
            return self.check_with(before, after)
        assert self.reference is not None
        scalars = {k: v for k, v in self.args.items() if not isinstance(v, (Spec, Descriptor))}
        expected = self.reference(**scalars, **before)
        for name, want in expected.items():
            fault = compare(after[name], np.asarray(want), self.tolerance)
            if fault:
                return f"{name}{fault}"
        return None


def compare(got: np.ndarray, want: np.ndarray, tolerance: float) -> str | None:
    """The first difference as text, or None. Integers must be equal; floats within `tolerance`, absolute or relative."""
    if got.shape != want.shape:
        return f" has shape {got.shape}, expected {want.shape}"
    if got.dtype.kind == "f":
        g, w = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(invalid="ignore"):
            close = np.abs(g - w) <= tolerance * np.maximum(1, np.abs(w))
        bad = ~(close | (g == w) | (np.isnan(g) & np.isnan(w)))
    else:
        bad = got != want.astype(got.dtype)
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{list(at)} is {got[at]!r}, expected {want[at]!r} ({int(bad.sum())} of {bad.size} differ)"


CASES: list[Case] = []


def case(
    kernel: Any,
    grid: tuple[int, ...] = (1,),
    ref: Reference | None = None,
    *,
    tag: str = "",
    tol: float = 1e-5,
    sm: tuple[str, ...] = (SM80, SM90, SM100),
    warps: int = 4,
    stages: int = 3,
    check: Callable | None = None,
    faults: str | None = None,
    options: dict[str, Any] | None = None,
    **args: Any,
) -> None:
    """Registers a case. `faults` says what a launch is expected to report instead of an outcome."""
    if ref is None and check is None and faults is None:
        raise ValueError(f"case of {kernel.__name__} has nothing to be checked against")
    source = Path(sys._getframe(1).f_globals["__file__"])
    name = f"{source.stem}.{kernel.__name__}" + (f"_{tag}" if tag else "")
    if any(c.name == name for c in CASES):
        raise ValueError(f"two cases are called {name}; give one a tag")
    launch = {"num_warps": warps, "num_stages": stages, **(options or {})}
    CASES.append(Case(name, kernel, args, grid, launch, sm, ref, check, tol, faults, source))


def families() -> list[Path]:
    return sorted((HERE / "triton").glob("*.py"))


def import_file(name: str, path: Path) -> None:
    """Runs the file as the module of that name, once."""
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def load(paths: list[Path] | None = None) -> list[Case]:
    """Imports family files (all of them by default) and returns the cases registered so far."""
    sys.modules.setdefault("cases", sys.modules[__name__])
    for path in paths if paths is not None else families():
        import_file(f"corpus_triton_{path.stem}", path)
    return CASES


# -- compiling without a GPU -------------------------------------------------------------------------------------------


class CompileOnlyDriver:
    """Tells stock Triton which target to compile for; launches nothing. Devices are numbered by capability."""

    def __init__(self, capability: int):
        from triton.backends.compiler import GPUTarget

        self.target = GPUTarget("cuda", capability, 32)
        self.utils = self
        self.launcher_cls = None

    @staticmethod
    def is_active() -> bool:
        return True

    def get_current_device(self) -> int:
        return self.target.arch

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self):
        return self.target

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 232448, "max_num_regs": 65536, "multiprocessor_count": 4, "warpSize": 32}


def no_cubin(*args: Any) -> Any:
    """Stages hook: the last stage hands the PTX on, so that neither ptxas nor a driver is needed."""
    if not args:
        return "corpus-no-cubin", "corpus-no-cubin"
    args[1]["cubin"] = lambda ptx, metadata: ptx.encode()
    return None


def compile_ptx(entry: Case, target: str) -> tuple[str, dict[str, Any]]:
    """PTX of a case for a target, and the launch facts that Triton found out (shared memory, warps, entry name)."""
    import triton
    from triton import knobs

    before = triton.runtime.driver._active
    args, _ = entry.arguments()
    with knobs.compilation.scope(), knobs.runtime.scope():
        knobs.compilation.always_compile = True
        knobs.runtime.add_stages_inspection_hook = no_cubin
        triton.runtime.driver.set_active(CompileOnlyDriver(TARGETS[target]))
        try:
            kernel = entry.kernel.run(grid=entry.grid, warmup=True, **args, **entry.options)
        finally:
            triton.runtime.driver._active = before
    facts = kernel.metadata._asdict()
    keep = ("name", "num_warps", "num_ctas", "shared", "tmem_size", "global_scratch_size")
    return kernel.asm["ptx"], {k: facts[k] for k in keep if facts.get(k) is not None}


def use_private_cache(folder: Path) -> None:
    """Must run before Triton is imported: keeps its cache inside `folder`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["TRITON_CACHE_DIR"] = str(folder)
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
