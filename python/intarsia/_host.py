"""
Host files: C or C++ against the real names of NVSHMEM's host API and the CUDA runtime, compiled here and loaded.

In the simulator those names come from include/sim and libintarsia_simhost.so; on GPUs, see _gpu_host.py.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import c_char_p, c_void_p
from pathlib import Path
from typing import Any

from . import _compile, _lib, _runtime, _units
from ._errors import Error


class HostFunction:
    """A C function. Integers, floats (as double), texts, arrays and None can be passed; `restype` is as in ctypes."""

    def __init__(self, function: Any) -> None:
        self._function = function
        function.restype = ctypes.c_int

    @property
    def restype(self) -> Any:
        return self._function.restype

    @restype.setter
    def restype(self, value: Any) -> None:
        self._function.restype = value

    def __call__(self, *args: Any) -> Any:
        """What went wrong in a call that can't return it, such as a barrier, is raised; what could be is a warning."""
        backend = _runtime.current()
        if backend.name == "cuda":
            return self._function(*(_argument(a, i) for i, a in enumerate(args)))
        backend = _attach()
        given = [_argument(a, i) for i, a in enumerate(args)]
        with backend.alone():
            backend.announce()
            result = self._function(*given)
            backend.check(_names().its_simhost_check())
            backend.context.tell_warnings()
        return result


def _argument(value: Any, index: int) -> Any:
    """In a form that C takes whatever the width of the parameter: integers fill a register or a stack slot."""
    if value is None:
        return c_void_p(None)
    host_array = hasattr(value, "ctypes") and hasattr(value, "dtype")  # NumPy's, which need not be installed
    if hasattr(value, "item") and hasattr(value, "dtype") and not host_array and not hasattr(value, "data_ptr"):
        value = value.item()  # a number of NumPy's
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise Error(f"argument {index + 1} is {value}, which has more than 64 bits")
        return ctypes.c_uint64(value) if value >= 1 << 63 else ctypes.c_int64(value)
    if isinstance(value, float):
        return ctypes.c_double(value)
    if isinstance(value, str):
        return c_char_p(value.encode())
    if isinstance(value, bytes):
        return c_char_p(value)
    if hasattr(value, "data_ptr"):
        return c_void_p(int(value.data_ptr()))
    if host_array:
        if not value.flags.c_contiguous:
            raise Error(f"argument {index + 1} is an array with gaps, or in another order: numpy.ascontiguousarray(it)")
        return c_void_p(value.ctypes.data)
    if isinstance(value, (ctypes._SimpleCData, ctypes.Structure, ctypes.Array, ctypes._Pointer)):
        return value
    raise TypeError(f"argument {index + 1} is a {type(value).__name__}, which C can't take")


class HostLibrary:
    """A loaded host file, whose functions are attributes."""

    def __init__(self, path: str, handle: ctypes.CDLL) -> None:
        self._path, self._handle = path, handle

    def __getattr__(self, name: str) -> HostFunction:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            function = HostFunction(getattr(self._handle, name))
        except AttributeError:
            hint = '; a C++ function needs extern "C"' if not self._path.endswith(".c") else ""
            raise Error(f"{self._path} defines no function {name} that is visible outside of it{hint}") from None
        setattr(self, name, function)
        return function


def load_host(path: str | os.PathLike[str], *, options: Sequence[str] = ()) -> HostLibrary:
    """
    Compiles a host file, with $CC or $CXX or what the machine has, and loads it. A relative path is relative to the
    caller's file. The names of NVSHMEM and CUDA in it belong to the open backend.
    """
    found = _units.beside(path, _units.caller(1))
    _units.check_exists(found)
    if _runtime.current().name == "cuda":
        from . import _gpu, _gpu_host

        _gpu.need_nvshmem(_runtime.current())
        return HostLibrary(found, _gpu_host.load(found, tuple(options)))
    _attach()
    return HostLibrary(found, _build(found, tuple(options), Path(_names()._name)))


# -- the names of NVSHMEM and CUDA -----------------------------------------------------------------------------------

_loaded: ctypes.CDLL | None = None
_attached: _runtime.Backend | None = None


def _names() -> ctypes.CDLL:
    """The library of names, loaded so that host files see what is in it."""
    global _loaded
    if _loaded is None:
        path = _lib.find("libintarsia_simhost.so", "INTARSIA_SIMHOST_LIBRARY")
        ctypes.CDLL(str(_lib.lib().path), mode=ctypes.RTLD_GLOBAL)
        _loaded = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        _loaded.its_simhost_attach.restype, _loaded.its_simhost_attach.argtypes = ctypes.c_int, [c_void_p]
        _loaded.its_simhost_check.restype, _loaded.its_simhost_check.argtypes = ctypes.c_int, []
    return _loaded


def _attach() -> _runtime.Backend:
    """Tells the library of names which backend they mean."""
    global _attached
    backend = _runtime.current()
    if _attached is not backend:
        backend.check(_names().its_simhost_attach(ctypes.cast(backend.handle, c_void_p)))
        _attached = backend
    return backend


def detach() -> None:
    """Called before the backend is closed."""
    global _attached
    if _attached is not None:
        _names().its_simhost_attach(None)
        _attached = None


# -- compiling -------------------------------------------------------------------------------------------------------


def _build(path: str, options: tuple[str, ...], simhost: Path) -> ctypes.CDLL:
    """The shared object, from the cache if this content was compiled before."""
    compiler, language = _compile.compiler_of(path)
    flags = ["-x", language, "-fPIC", "-g", "-O1", f"-I{_lib.include('sim')}", *options]
    if language == "c":
        flags.append("-Werror=implicit-function-declaration")
    text = _compile.run([*compiler, *flags, "-E", path], path)
    version = _compile.run([*compiler, "--version"], path)
    libraries = [simhost, _lib.lib().path]
    parts = [text, version, "\0".join(options).encode(), *(library.read_bytes() for library in libraries)]
    command = [*compiler, *flags, path, "-x", "none", *map(str, libraries), "-shared", "-Wl,-z,defs", "-o"]
    return _compile.loaded(f"{Path(path).stem}.so", parts, lambda out: [*command, out], path)
