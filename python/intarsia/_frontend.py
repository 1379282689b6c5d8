"""`load` and `dialect`: from device files to functions that kernels can call."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

from . import _units
from ._errors import Error
from ._language import Region, Unit, in_interpreter, is_type

_DIALECTS = ("cuda", "ptx")
# Externs of these names may stay open when a region is linked: the backend that runs the kernel provides them.
_DEFERRED = ("nvshmem",)


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    source: str | None = None,
    options: Sequence[str] = (),
    dialect: str = "cuda",
    deferred: Sequence[str] = _DEFERRED,
    budget: int | None = None,
    barrier_map: str | None = None,
) -> Unit:
    """
    A device file, whose functions are attributes of the result. A relative path is relative to the caller's file.

    `options` are the compiler's: "-DNAME=1", "-Idir". With `source`, the text itself, `path` is only what diagnostics
    call it. The file is compiled when a kernel that uses it is, and again when it or a header has changed.

    For linking: `deferred` are prefixes of names that the backend will provide; functions of more than `budget`
    instructions that are called more than once stay calls; `barrier_map`, such as "0=2:128", is for regions that were
    made for one partition of a warp-specialised kernel.
    """
    linking = _units.Linking(tuple(deferred), budget, barrier_map)
    return Unit(_source(path, source, options, dialect, linking, _units.caller(1)))


def prepare(*kernels: Any) -> None:
    """
    Loads kernels before any of them runs; each is what `kernel.warmup(..., grid=(1,))` returns. On a GPU loading may
    wait for kernels that run: if one of those waits for what the new kernel will send, neither ever ends.
    """
    from triton.compiler import CompiledKernel

    for kernel in kernels:
        if not isinstance(kernel, CompiledKernel):
            raise Error(f"{kernel!r} is no compiled kernel; kernel.warmup(..., grid=(1,)) returns one")
        kernel[(1, 1, 1)]  # what Triton calls a launch loads, and launches when it is called in its turn


def dialect(
    name: str = "cuda",
    *,
    file: str | os.PathLike[str] | None = None,
    source: str | None = None,
    extern_func_name: str | None = None,
    library: str | None = None,
    compiler: str | None = None,
    deferred: Sequence[str] = _DEFERRED,
    options: Sequence[str] = (),
    budget: int | None = None,
    barrier_map: str | None = None,
) -> Callable[[Callable[..., Any]], Region]:
    """
    Declares a device function by a Python function without a body, whose parameters give the number of arguments and
    whose annotated result, if any, gives the type that kernels see:

        @intarsia.dialect("cuda", file="scale-device.cu")
        def scale(x, n) -> tl.float32: ...
    """
    if compiler not in (None, "nvrtc"):
        raise Error(f"there is no compiler called {compiler!r} yet; the one there is is 'nvrtc'")
    if library not in (None, "nvshmem"):
        raise Error(f"there is no device library called {library!r}; the one there is is 'nvshmem'")
    linking = _units.Linking(tuple(deferred), budget, barrier_map)
    unit = _source(file, source, options, name, linking, _units.caller(1))

    def declare(stub: Callable[..., Any]) -> Region:
        signature = inspect.signature(stub)
        if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in signature.parameters.values()):
            raise Error(f"{stub.__name__} has parameters that a device function can't have: *args, ** or keyword-only")
        result = inspect.get_annotations(stub, eval_str=True).get("return")
        if result is not None and not is_type(result):
            raise Error(f"the result of {stub.__name__} is annotated with {result!r}, which is no type of Triton's")
        return Region(unit, extern_func_name or stub.__name__, len(signature.parameters), result, stub.__doc__)

    return declare


def _source(
    path: str | os.PathLike[str] | None,
    text: str | None,
    options: Sequence[str],
    dialect: str,
    linking: _units.Linking,
    caller: str,
) -> _units.Source:
    if in_interpreter():
        raise Error("regions can't run in Triton's interpreter; unset TRITON_INTERPRET, the simulator runs them")
    if isinstance(options, str):
        raise Error("options is a list of texts, not one text")
    for option in options:
        if not isinstance(option, str):
            raise Error(f"options is a list of texts, and {option!r} is none")
    if dialect not in _DIALECTS and not os.path.exists(dialect):
        raise Error(f"there is no dialect called {dialect!r}; there are {' and '.join(_DIALECTS)}")
    if text is not None:
        return _units.Source(os.fspath(path or "source.cu"), text, dialect, options, linking)
    if path is None:
        raise Error("a device file needs a path, or its text as source=")
    found = _units.beside(path, caller)
    _units.check_exists(found)
    return _units.Source(found, None, dialect, options, linking)

