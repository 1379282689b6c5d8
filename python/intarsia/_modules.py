"""Bare PTX: a file or a text is linked, loaded into the open backend, and its kernels are launched by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from ctypes import byref, c_void_p
from typing import Any

import numpy as np

from . import _lib, _link, _runtime
from ._arrays import Array
from ._errors import Error


class Module:
    """A loaded module. It stays loaded until the backend is closed."""

    def __init__(self, backend: _runtime.Backend, loaded: c_void_p, name: str) -> None:
        self._backend, self._loaded, self.name = backend, loaded, name

    def entry(self, name: str) -> Entry:
        return Entry(self.function(name))

    def function(self, name: str) -> _runtime.Function:
        return self._backend.function(self._loaded, name)

    def variable(self, name: str, dtype: Any = "uint8") -> Array:
        """A .global or .const variable as an array."""
        address, size = self._backend.variable(self._loaded, name)
        whole = Array(address, size, "uint8")
        item = Array(address, 1, dtype).element_size()
        return whole.view(size // item, dtype)


class Entry:
    """A kernel: `entry[grid, block](a, b, 3)`, or with dynamic shared memory `entry[grid, block, bytes](...)`."""

    def __init__(self, function: _runtime.Function) -> None:
        self._function = function

    @property
    def param_sizes(self) -> tuple[int, ...]:
        return self._function.param_sizes

    def __getitem__(self, shape: Any) -> Any:
        if not isinstance(shape, tuple) or len(shape) not in (2, 3) or any(isinstance(s, float) for s in shape):
            raise Error(f"a launch of {self._function.name} is written {self._function.name}[grid, block](...)")
        grid, block = _three(shape[0], "grid"), _three(shape[1], "block")
        shared = _runtime.whole(shape[2], "size of shared memory") if len(shape) == 3 else 0
        if shared < 0:
            raise Error(f"the size of shared memory can't be negative: {shared}")

        def launch(*args: Any, stream: int = 0) -> None:
            self._function.launch(grid, block, shared, self._params(args), stream)

        return launch

    def _params(self, args: Sequence[Any]) -> list[bytes]:
        name, sizes = self._function.name, self._function.param_sizes
        if len(args) != len(sizes):
            raise Error(f"{name} takes {len(sizes)} parameters, {len(args)} were given")
        params = []
        for i, (arg, size) in enumerate(zip(args, sizes)):
            try:
                params.append(_bytes_of(arg, size))
            except ValueError as error:
                raise Error(f"parameter {i + 1} of {name} has {size} bytes, {error} was given") from None
        return params


def _three(value: Any, what: str) -> tuple[int, int, int]:
    given = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
    if not 1 <= len(given) <= 3 or any(int(n) < 1 for n in given):
        raise Error(f"the {what} is one to three positive numbers, not {value!r}")
    x, y, z = (*(int(n) for n in given), 1, 1)[:3]
    return x, y, z


def _bytes_of(arg: Any, size: int) -> bytes:
    """One parameter as bytes. Python's own numbers fit the parameter; everything else has a size of its own."""
    if isinstance(arg, bytes):
        data, what = arg, f"a structure of {len(arg)} bytes"
    elif hasattr(arg, "data_ptr"):
        data, what = int(arg.data_ptr()).to_bytes(8, "little"), "an array, whose address has 8 bytes,"
    elif isinstance(arg, np.generic) or (isinstance(arg, np.ndarray) and arg.ndim == 0):
        data, what = np.asarray(arg).tobytes(), f"a {arg.dtype}"
    elif isinstance(arg, (bool, int)):
        try:
            return int(arg).to_bytes(size, "little", signed=arg < 0)
        except OverflowError:
            raise ValueError(f"{arg}, which has more,") from None
    elif isinstance(arg, float):
        if size not in (4, 8):
            raise ValueError("a float")
        return np.array(arg, f"<f{size}").tobytes()
    elif isinstance(arg, np.ndarray):
        raise ValueError("an array on the host (copy it to the device: intarsia.array)")
    else:
        raise ValueError(f"a {type(arg).__name__}")
    if len(data) != size:
        raise ValueError(what)
    return data


# -- loading ---------------------------------------------------------------------------------------------------------


def module(path_or_text: str | os.PathLike[str]) -> Module:
    """Links and loads a PTX file, or a text that holds PTX, in the current backend."""
    text = os.fspath(path_or_text)
    if "\n" in text:
        return load_text("module.ptx", text.encode())
    try:
        with open(text, "rb") as file:
            return load_text(text, file.read())
    except OSError as error:
        raise Error(f"{text} can't be read: {error.strerror}") from None


def load_text(name: str, ptx: bytes) -> Module:
    """Links what is open, with the backend's NVSHMEM functions if they are called, and loads the result."""
    backend = _runtime.current()
    if backend.name == "cuda":
        from . import _gpu

        return Module(backend, _gpu.load_text(backend, name, ptx), name)
    with _link.link(name, ptx, _link.no_units, keep_externs=True) as linked:
        wants = [e["name"] for e in linked.report.get("externs", [])]
        if not wants:
            return Module(backend, backend.load(linked.module), name)
    with _link.link(name, ptx, _link.no_units, load_libraries=_device_libraries(wants, backend)) as linked:
        return Module(backend, backend.load(linked.module), name)


def _device_libraries(externs: Sequence[str], backend: _runtime.Backend) -> Any:
    if not any(name.startswith("nvshmem") for name in externs):
        return None
    arch = f"sm_{backend.capability}"

    def load(ctx: _lib.Context) -> list[c_void_p]:
        library = c_void_p()
        ctx.check(_lib.lib().its_sim_nvshmem_library(ctx.handle, arch.encode(), byref(library)))
        return [library]

    return load
