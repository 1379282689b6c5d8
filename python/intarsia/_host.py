"""
Host files: C or C++ against the real names of NVSHMEM's host API and the CUDA runtime, compiled here and loaded.

In the simulator those names come from include/sim and libintarsia_simhost.so. The result is cached by content: the
preprocessed source, the compiler's version, the options and the library that provides the names.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_void_p
from pathlib import Path
from typing import Any

from . import _lib, _runtime, _units
from ._errors import Error

_LANGUAGES = {
    ".c": ("CC", ("cc", "gcc", "clang"), "c"),
    ".cc": ("CXX", ("c++", "g++", "clang++"), "c++"),
    ".cpp": ("CXX", ("c++", "g++", "clang++"), "c++"),
    ".cxx": ("CXX", ("c++", "g++", "clang++"), "c++"),
    ".cu": ("CXX", ("c++", "g++", "clang++"), "c++"),
}


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
        backend.announce()
        result = self._function(*(_argument(a, i) for i, a in enumerate(args)))
        backend.check(_names().its_simhost_check())
        backend.context.tell_warnings()
        return result


def _argument(value: Any, index: int) -> Any:
    """In a form that C takes whatever the width of the parameter: integers fill a register or a stack slot."""
    if value is None:
        return c_void_p(None)
    if isinstance(value, int):
        return ctypes.c_uint64(value) if value >= 1 << 63 else ctypes.c_int64(value)
    if isinstance(value, float):
        return ctypes.c_double(value)
    if isinstance(value, str):
        return c_char_p(value.encode())
    if isinstance(value, bytes):
        return c_char_p(value)
    if hasattr(value, "data_ptr"):
        return c_void_p(int(value.data_ptr()))
    if hasattr(value, "ctypes") and hasattr(value, "dtype"):  # a NumPy array, in host memory
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
    built = _build(found, tuple(options), Path(_names()._name))
    return HostLibrary(found, ctypes.CDLL(str(built)))


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


def _headers() -> Path:
    places = (_lib._PACKAGE / "include" / "sim", _lib._TREE / "include" / "sim")
    for place in places:
        if (place / "nvshmem.h").is_file():
            return place
    raise Error(f"the simulator's headers for host files were not found in {places[-1]}")


# -- compiling -------------------------------------------------------------------------------------------------------


def _build(path: str, options: tuple[str, ...], simhost: Path) -> Path:
    """The shared object, from the cache if this content was compiled before."""
    compiler, language = _compiler(path)
    flags = ["-x", language, "-fPIC", "-g", "-O1", f"-I{_headers()}", *options]
    if language == "c":
        flags.append("-Werror=implicit-function-declaration")
    text = _run([*compiler, *flags, "-E", path], path)
    version = _run([*compiler, "--version"], path)
    key = hashlib.blake2b(digest_size=8)
    for part in (text, version, "\0".join(options).encode(), simhost.read_bytes(), _lib.lib().path.read_bytes()):
        key.update(len(part).to_bytes(8, "little") + part)
    folder = _cache_folder()
    built = folder / key.hexdigest() / f"{Path(path).stem}.so"
    if not built.is_file():
        _link(path, [*compiler, *flags], simhost, built)
    return built


def _link(path: str, command: list[str], simhost: Path, built: Path) -> None:
    libraries = ["-x", "none", str(simhost), str(_lib.lib().path)]
    _in_place(built, lambda out: [*command, path, *libraries, "-shared", "-Wl,-z,defs", "-o", out], path)


def _in_place(built: Path, command: Callable[[str], list[str]], path: str) -> None:
    """Compiles aside and renames into place, so that another process sees all of it or nothing."""
    aside = Path(tempfile.mkdtemp(prefix=".new-", dir=built.parent.parent))
    try:
        _run(command(str(aside / built.name)), path)
        try:
            aside.rename(built.parent)
        except OSError:  # another process was first
            if not built.is_file():
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _compiler(path: str) -> tuple[list[str], str]:
    suffix = Path(path).suffix
    if suffix not in _LANGUAGES:
        raise Error(f"{path} is no host file by its name: one ends in {', '.join(_LANGUAGES)}")
    variable, names, language = _LANGUAGES[suffix]
    if given := os.environ.get(variable):
        words = shlex.split(given)
        if not words or shutil.which(words[0]) is None:
            raise Error(f"{variable} names {given}, which is no program")
        return words, language
    for name in names:
        if shutil.which(name):
            return [name], language
    raise Error(f"there is no compiler for {path}: install one of {', '.join(names)}, or set {variable}")


def _run(command: list[str], path: str) -> bytes:
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
    if done.returncode != 0:
        raise Error(_explain(path, done.stderr.decode(errors="replace").strip(), command))
    return done.stdout


def _explain(path: str, said: str, command: list[str]) -> str:
    missing = sorted({line.partition("undefined reference to `")[2].rstrip("'") for line in said.splitlines()} - {""})
    if missing:
        return f"{path} uses what nothing here provides: {', '.join(missing)}\n{said}"
    return f"{path} does not compile:\n{said or ' '.join(command)}"


def _cache_folder() -> Path:
    """Where compiled host files are kept: beside the units, so that `intarsia cache` counts and clears them too."""
    with _lib.context() as ctx:
        info = _lib.CacheInfo()
        ctx.check(_lib.lib().its_cache_query(ctx.handle, byref(info)))
        folder = Path(ctx.take_text(info.directory)) / "host"
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
