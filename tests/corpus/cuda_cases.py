"""The table of CUDA cases: how a kernel of cuda/NAME.cu is launched, and what must come out.

`cuda/NAME.py` calls `case` once per way to launch a kernel of `cuda/NAME.cu`. A case runs on every build of that source
which has the kernel: each compiler, level of debug information and target of the corpus. Arrays are written as in the
Triton cases (`cases.py`).
"""

from __future__ import annotations

import fnmatch
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import cases

FOLDER = cases.HERE / "cuda"
Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class Build:
    """What one producer made of a source: a file of the corpus."""

    file: str
    target: str
    path: Path

    @property
    def kernels(self) -> frozenset[str]:
        return kernels_of(self.path)


@cache
def kernels_of(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"^\s*(?:\.\w+\s+)*\.entry\s+([\w$]+)", path.read_text(errors="replace"), re.M))


@dataclass
class CudaCase(cases.Case):
    """
    One way to launch one kernel. Instead of an outcome, `faults` says what a launch must report, and `refuses` what the
    simulator must say that it doesn't have. `prints` is what the kernel must print, or a function of the values before.
    """

    block: tuple[int, ...] = (1,)
    shared: int = 0
    prints: str | Callable[..., str] | None = None
    refuses: str | None = None
    builds: str = "*"
    but: str = ""

    def fits(self, build: Build) -> bool:
        return (
            fnmatch.fnmatch(build.file, self.builds)
            and not (self.but and fnmatch.fnmatch(build.file, self.but))
            and self.kernel in build.kernels
        )

    def check_all(self, before: Values, after: Values, printed: str) -> str | None:
        """What is wrong with the outcome and with what was printed, or None."""
        if self.prints is not None:
            scalars = {k: v for k, v in self.args.items() if not isinstance(v, cases.Spec)}
            want = self.prints if isinstance(self.prints, str) else self.prints(**scalars, **before)
            if printed != want:
                return f"printed {printed!r}, expected {want!r}"
        elif printed:
            return f"printed {printed!r}, expected nothing"
        return self.check(before, after) if self.reference or self.check_with else None


CASES: list[CudaCase] = []


def case(
    kernel: str,
    ref: cases.Reference | None = None,
    *,
    grid: int | tuple[int, ...] = 1,
    block: int | tuple[int, ...] = 1,
    shared: int = 0,
    tag: str = "",
    tol: float = 0,
    check: Callable[[Values, Values], str | None] | None = None,
    prints: str | Callable[..., str] | None = None,
    faults: str | None = None,
    refuses: str | None = None,
    builds: str = "*",
    but: str = "",
    **args: Any,
) -> None:
    """
    Registers a case. Arguments come by name, in the kernel's order: arrays as specifications, numbers, and bytes for
    structures by value. `builds` and `but` are patterns of files (`nvcc/math_fast.*`) that it is for, and not for.
    """
    if not (ref or check or prints is not None or faults or refuses):
        raise ValueError(f"case of {kernel} has nothing to be checked against")
    source = Path(sys._getframe(1).f_globals["__file__"]).with_suffix(".cu")
    name = f"cuda/{source.stem}.{kernel}" + (f"_{tag}" if tag else "")
    if any(c.name == name for c in CASES):
        raise ValueError(f"two cases are called {name}; give one a tag")
    shape = [s if isinstance(s, tuple) else (s,) for s in (grid, block)]
    CASES.append(CudaCase(name, kernel, args, shape[0], {}, (), ref, check, tol, faults, source, shape[1], shared, prints,
                          refuses, builds, but))


def load(stems: list[str] | None = None) -> list[CudaCase]:
    """Imports the tables of these sources (all of them by default) and returns the cases registered so far."""
    sys.modules.setdefault("cuda_cases", sys.modules[__name__])
    for path in sorted(FOLDER.glob("*.py")):
        if stems is None or path.stem in stems:
            cases.import_file(f"corpus_cuda_{path.stem}", path)
    return CASES


# -- checks ------------------------------------------------------------------------------------------------------------


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """
    How far `got` is from `want`, in units of the last place that `got`'s type has at `want`; infinite where one is a NaN
    and the other not. `want` may have more digits than `got`. An infinity is as far as the number that comes next.
    """
    info = np.finfo(got.dtype)
    wide = np.asarray(want, np.longdouble)
    g = np.where(np.isinf(got), np.copysign(np.longdouble(2) * info.max, got), got.astype(np.longdouble))
    w = np.where(np.abs(wide) > info.max, np.copysign(np.longdouble(2) * info.max, wide), wide)
    exponent = np.floor(np.log2(np.maximum(np.abs(w), np.longdouble(info.tiny))))
    unit = np.exp2(np.minimum(exponent, info.maxexp - 1) - info.nmant)
    with np.errstate(invalid="ignore"):
        far = np.abs(g - w) / unit
    far = np.where(np.isnan(got) & np.isnan(wide), 0, far)
    return np.where(np.isnan(got) != np.isnan(wide), np.inf, far)


def within(bound: float, got: np.ndarray, want: np.ndarray, *inputs: np.ndarray) -> str | None:
    """None if no element is more than `bound` ulp off; else the worst one, with what it was computed from."""
    far = ulps(got, want)
    if not (far > bound).any():
        return None
    i = int(np.argmax(far))
    at = ", ".join(repr(x.flat[i]) for x in inputs)
    return f"{far.flat[i]:.2f} ulp off at [{i}] ({at}): {got.flat[i]!r}, expected {want.flat[i]!r}; at most {bound} are allowed"
