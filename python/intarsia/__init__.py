"""
Intarsia inlays raw CUDA code into Triton kernels.

    shift = intarsia.load("shift-device.cu")              # device functions, plain CUDA C++

    @triton.jit
    def kernel(x):
        intarsia.call(shift.put_right, [x])               # inlined into the kernel

In kernels: `call`, `after`; `distributed_barrier`, `signal`, `signal_wait`, `comm_rank` and others on a `Comm`. Around
them: `load`, `dialect`, `prepare`, `Comm`, `flagcx`. Running: `init`, `my_pe`, `n_pes`, `barrier`,
`synchronize`, `finalize`, `load_host`, `module`. Memory: `empty`, `zeros`, `array`, `symmetric`, `from_address`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._errors import Diagnostic, Error, Place, Warning
from ._runtime import barrier, finalize, init, my_pe, n_pes, synchronize

if TYPE_CHECKING:
    from ._arrays import Array, array, empty, from_address, symmetric, zeros
    from ._barriers import (
        comm_local_rank,
        comm_local_size,
        comm_rank,
        comm_size,
        distributed_barrier,
        peer_ptr,
        signal,
        signal_wait,
    )
    from ._comm import Comm
    from ._dtypes import bfloat16, float8_e4m3fn, float8_e5m2
    from ._flagcx import flagcx
    from ._frontend import dialect, load, prepare
    from ._host import HostLibrary, load_host
    from ._language import Region, Unit, after, call
    from ._modules import Module, module

__version__ = "0.1.0"

__all__ = [
    "Array", "Comm", "Diagnostic", "Error", "HostLibrary", "Module", "Place", "Region", "Unit", "Warning", "after",
    "array", "barrier", "bfloat16", "call", "comm_local_rank", "comm_local_size", "comm_rank", "comm_size", "dialect",
    "distributed_barrier", "empty", "finalize", "flagcx", "float8_e4m3fn", "float8_e5m2", "from_address", "init",
    "load", "load_host", "module", "my_pe", "n_pes", "peer_ptr", "prepare", "signal", "signal_wait", "symmetric",
    "synchronize", "zeros",
]  # fmt: skip

# What needs Triton or NumPy is imported when it is asked for: without them the rest works, and says what is missing.
_LAZY = {
    "_arrays": ("Array", "array", "empty", "from_address", "symmetric", "zeros"),
    "_barriers": (
        *("comm_local_rank", "comm_local_size", "comm_rank", "comm_size"),
        *("distributed_barrier", "peer_ptr", "signal", "signal_wait"),
    ),
    "_comm": ("Comm",),
    "_dtypes": ("bfloat16", "float8_e4m3fn", "float8_e5m2"),
    "_flagcx": ("flagcx",),
    "_frontend": ("dialect", "load", "prepare"),
    "_host": ("HostLibrary", "load_host"),
    "_language": ("Region", "Unit", "after", "call"),
    "_modules": ("Module", "module"),
}
_HOME = {name: home for home, names in _LAZY.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'intarsia' has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise Error("NumPy is not installed; run `pip install numpy`") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
