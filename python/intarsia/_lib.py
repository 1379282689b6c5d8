"""
The C library: where it is, what its functions take, how its statuses become exceptions.

One table lists every function that Python calls. A function is looked up when it is first used, so that a library that
is older than this package says which function it lacks. Contexts are cheap: every job makes its own, which keeps them
within one thread; a backend keeps one for as long as it is open.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, c_bool, c_char, c_char_p, c_int, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from ._errors import Diagnostic, Error, Place, warn

_PACKAGE = Path(__file__).resolve().parent
_TREE = _PACKAGE.parent.parent

# -- structures of include/intarsia/*.h ------------------------------------------------------------------------------


class DiagPlace(ctypes.Structure):
    _fields_ = [
        ("file", c_char_p),
        ("line", c_uint32),
        ("column", c_uint32),
        ("text", c_char_p),
        ("label", c_char_p),
    ]


class Diag(ctypes.Structure):
    _fields_ = [
        ("severity", c_int),
        ("message", c_char_p),
        ("hint", c_char_p),
        ("n_places", c_uint32),
        ("places", POINTER(DiagPlace)),
    ]


class CcInput(ctypes.Structure):
    _fields_ = [
        ("dialect", c_char_p),
        ("path", c_char_p),
        ("source", c_char_p),
        ("arch", c_char_p),
        ("options", POINTER(c_char_p)),
        ("n_options", c_uint32),
        ("instances", POINTER(c_char_p)),
        ("n_instances", c_uint32),
        ("no_cache", c_bool),
    ]


class SimTensor(ctypes.Structure):
    _fields_ = [
        ("address", c_uint64),
        ("dims", c_uint64 * 5),
        ("strides", c_uint64 * 4),
        ("box", c_uint32 * 5),
        ("steps", c_uint32 * 5),
        ("rank", c_uint32),
        ("type", c_uint32),
        ("interleave", c_uint32),
        ("swizzle", c_uint32),
        ("fill", c_uint32),
    ]


class UnitFunc(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("spelling", c_char_p)]


class Unit(ctypes.Structure):
    _fields_ = [
        ("id", c_char * 17),
        ("path", c_char_p),
        ("arch", c_char_p),
        ("ptx", POINTER(c_char)),
        ("ptx_size", c_size_t),
        ("n_funcs", c_uint32),
        ("funcs", POINTER(UnitFunc)),
        ("n_depends", c_uint32),
        ("depends", POINTER(c_char_p)),
        ("log", c_char_p),
        ("cached", c_bool),
    ]


class LinkRegion(ctypes.Structure):
    _fields_ = [
        ("unit", c_char_p),
        ("module", c_void_p),
        ("budget", c_uint32),
        ("barrier_map", c_char_p),
    ]


class LinkOptions(ctypes.Structure):
    _fields_ = [
        ("keep_externs", c_bool),
        ("no_inline", c_bool),
        ("strip_prints", c_bool),
        ("trap_asserts", c_bool),
        ("budget", c_uint32),
        ("deferred", POINTER(c_char_p)),
        ("n_deferred", c_uint32),
        ("version_major", c_uint32),
        ("version_minor", c_uint32),
        ("limit_waits", c_bool),
        ("leave_out", c_uint32),
        ("own_window", c_bool),
    ]


class LinkInput(ctypes.Structure):
    _fields_ = [
        ("main", c_void_p),
        ("regions", POINTER(LinkRegion)),
        ("n_regions", c_uint32),
        ("libraries", POINTER(c_void_p)),
        ("n_libraries", c_uint32),
        ("options", LinkOptions),
    ]


class Launch(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint32 * 3),
        ("block", c_uint32 * 3),
        ("shared", c_uint32),
        ("stream", c_uint64),
        ("params", POINTER(c_void_p)),
        ("n_params", c_uint32),
    ]


class FunctionInfo(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("n_params", c_uint32),
        ("param_sizes", POINTER(c_uint32)),
        ("shared", c_uint32),
        ("max_threads", c_uint32),
    ]


class DeviceInfo(ctypes.Structure):
    _fields_ = [
        ("name", c_char * 64),
        ("compute_major", c_uint32),
        ("compute_minor", c_uint32),
        ("multiprocessors", c_uint32),
        ("warp_size", c_uint32),
        ("max_shared", c_uint32),
        ("max_regs", c_uint32),
        ("max_threads", c_uint32),
    ]


class SimOptions(ctypes.Structure):
    _fields_ = [
        ("n_pes", c_uint32),
        ("heap_size", c_size_t),
        ("multiprocessors", c_uint32),
        ("compute_major", c_uint32),
        ("compute_minor", c_uint32),
        ("find_races", c_bool),
    ]


class CacheInfo(ctypes.Structure):
    _fields_ = [("directory", c_void_p), ("entries", c_uint64), ("bytes", c_uint64)]


_BACKEND_OPS: list[tuple[str, Any, list[Any]]] = [
    ("close", None, [c_void_p]),
    ("identity", None, [c_void_p, POINTER(c_uint32), POINTER(c_uint32)]),
    ("device_info", c_int, [c_void_p, POINTER(DeviceInfo)]),
    ("alloc", c_int, [c_void_p, c_int, c_size_t, c_size_t, POINTER(c_uint64)]),
    ("free", c_int, [c_void_p, c_int, c_uint64]),
    ("peer", c_int, [c_void_p, c_uint64, c_uint32, POINTER(c_uint64)]),
    ("copy", c_int, [c_void_p, c_int, c_uint64, c_uint64, c_size_t, c_uint64]),
    ("fill", c_int, [c_void_p, c_uint64, c_uint8, c_size_t, c_uint64]),
    ("load", c_int, [c_void_p, c_void_p, POINTER(c_void_p)]),
    ("unload", None, [c_void_p, c_void_p]),
    ("function", c_int, [c_void_p, c_void_p, c_char_p, POINTER(c_void_p)]),
    ("function_info", c_int, [c_void_p, c_void_p, POINTER(FunctionInfo)]),
    ("variable", c_int, [c_void_p, c_void_p, c_char_p, POINTER(c_uint64), POINTER(c_size_t)]),
    ("launch", c_int, [c_void_p, c_void_p, POINTER(Launch)]),
    ("stream_new", c_int, [c_void_p, POINTER(c_uint64)]),
    ("stream_free", c_int, [c_void_p, c_uint64]),
    ("stream_wait", c_int, [c_void_p, c_uint64]),
    ("wait", c_int, [c_void_p]),
    ("barrier", c_int, [c_void_p]),
]


class BackendOps(ctypes.Structure):
    _fields_ = [("name", c_char_p)] + [
        (name, ctypes.CFUNCTYPE(result, *arguments)) for name, result, arguments in _BACKEND_OPS
    ]


class BackendHead(ctypes.Structure):
    """`struct its_backend`; behind it lies what is the backend's own."""

    _fields_ = [("ops", POINTER(BackendOps)), ("ctx", c_void_p), ("site", c_char_p)]


ERR_FAULT, ERR_INTERRUPTED = 6, 7
MEMORY_DEVICE, MEMORY_SYMMETRIC = 0, 1
COPY_TO_DEVICE, COPY_FROM_DEVICE, COPY_DEVICE = 0, 1, 2

# -- functions: name, result, arguments. Texts that the caller frees are void pointers. ------------------------------

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "its_version": (c_char_p, []),
    "its_status_text": (c_char_p, [c_int]),
    "its_context_new": (c_void_p, [c_void_p]),
    "its_context_free": (None, [c_void_p]),
    "its_free": (None, [c_void_p, c_void_p]),
    "its_diag_count": (c_size_t, [c_void_p]),
    "its_diag_get": (POINTER(Diag), [c_void_p, c_size_t]),
    "its_diag_clear": (None, [c_void_p]),
    "its_diag_render": (c_void_p, [c_void_p, c_bool]),
    "its_ptx_parse": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t, POINTER(c_void_p)]),
    "its_ptx_parse_file": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "its_ptx_print": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "its_ptx_verify": (c_int, [c_void_p]),
    "its_module_free": (None, [c_void_p]),
    "its_link": (c_int, [c_void_p, POINTER(LinkInput), POINTER(c_void_p)]),
    "its_link_units": (c_int, [c_void_p, POINTER(POINTER(c_char_p)), POINTER(c_uint32)]),
    "its_linked_module": (c_void_p, [c_void_p]),
    "its_linked_report": (c_void_p, [c_void_p]),
    "its_linked_free": (None, [c_void_p]),
    "its_report_text": (c_void_p, [c_void_p, c_void_p]),
    "its_report_json": (c_void_p, [c_void_p, c_void_p]),
    "its_cc": (c_int, [c_void_p, POINTER(CcInput), POINTER(POINTER(Unit))]),
    "its_unit_free": (None, [POINTER(Unit)]),
    "its_unit_find": (c_int, [c_void_p, POINTER(Unit), c_char_p, POINTER(POINTER(UnitFunc))]),
    "its_unit_signature": (c_int, [c_void_p, POINTER(Unit), c_char_p, POINTER(c_void_p)]),
    "its_cc_builtin": (c_char_p, [c_char_p]),
    "its_barrier_name": (c_char_p, [c_int, c_uint32]),
    "its_barrier_refusal": (c_char_p, [c_int, c_char_p]),
    "its_cache_query": (c_int, [c_void_p, POINTER(CacheInfo)]),
    "its_sim_open": (c_int, [c_void_p, c_int, c_uint32, POINTER(SimOptions), POINTER(POINTER(BackendHead))]),
    "its_sim_host_threads": (c_int, [POINTER(BackendHead), c_uint32]),
    "its_sim_host_count": (c_int, [POINTER(BackendHead), c_void_p]),
    "its_sim_host_lock": (c_int, [POINTER(BackendHead)]),
    "its_sim_host_unlock": (c_int, [POINTER(BackendHead)]),
    "its_sim_host_interrupt": (c_int, [POINTER(BackendHead), c_void_p]),
    "its_sim_open_env": (c_int, [c_void_p, POINTER(POINTER(BackendHead))]),
    "its_sim_tensor_encode": (c_int, [c_void_p, POINTER(SimTensor), c_void_p]),
    "its_sim_nvshmem_library": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
}

# -- finding and loading ---------------------------------------------------------------------------------------------


def candidates(name: str) -> Iterator[Path]:
    """Where a library of ours may be: in the package (a wheel), in the source tree's build folders, or in a prefix, as
    lib/NAME beside lib/intarsia/python/intarsia."""
    yield _PACKAGE / "lib" / name
    yield _PACKAGE / name
    for preset in ("release", "dev"):
        yield _TREE / "build" / preset / "lib" / name
    yield _TREE.parent / name


def find(name: str, variable: str) -> Path:
    """The path of a shared library of ours; `variable` names the environment variable that overrides the search."""
    if given := os.environ.get(variable):
        if not Path(given).is_file():
            raise Error(f"{variable} names {given}, which is not a file")
        return Path(given)
    for path in candidates(name):
        if path.is_file():
            return path
    raise Error(f"{name} was not found; build it with `make` in {_TREE}, or set {variable} to its path")


def include(name: str) -> Path:
    """A file or folder of ours below include/, with which host files are compiled."""
    places = [root / "include" / name for root in (_PACKAGE, _TREE)]
    for place in places:
        if place.exists():
            return place
    raise Error(f"{places[-1]}, with which host files are compiled, is not there")


class Library:
    """libintarsia.so with its functions as attributes, typed as the table says."""

    def __init__(self) -> None:
        self.path = find("libintarsia.so", "INTARSIA_LIBRARY")
        # Where the library looks for NVRTC's wheel; see docs/dialects.md. Only Python knows its own directories.
        folders = [path for path in sys.path if any(os.path.isdir(os.path.join(path, d)) for d in ("nvidia", "triton"))]
        os.environ.setdefault("INTARSIA_SITE_PACKAGES", os.pathsep.join(folders))
        try:
            self._handle = ctypes.CDLL(str(self.path))
        except OSError as error:
            raise Error(f"{self.path} can't be loaded: {error}") from None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _SIGNATURES:
            raise AttributeError(name)
        try:
            function = self._handle[name]  # one of our own, that no other thread sees before it has its types
        except AttributeError:
            raise Error(f"{self.path} has no {name}: it is older than this package; build it again") from None
        function.restype, function.argtypes = _SIGNATURES[name]
        setattr(self, name, function)
        return function


_library: Library | None = None


def lib() -> Library:
    global _library
    if _library is None:
        _library = Library()
    return _library


# -- contexts --------------------------------------------------------------------------------------------------------

_SEVERITIES = ("note", "warning", "error")


def text_of(data: bytes | None) -> str:
    return data.decode(errors="replace") if data else ""


_said: set[str] = set()  # warnings


class Context:
    """An its_context. `check` turns a failed status into an Error that holds the context's diagnostics."""

    def __init__(self, handle: int | None = None) -> None:
        self._owned = handle is None
        self.handle = handle if handle is not None else lib().its_context_new(None)
        if not self.handle:
            raise MemoryError("no memory for a context")

    def close(self) -> None:
        if self._owned and self.handle:
            lib().its_context_free(self.handle)
        self.handle = None

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self._diagnostic(i) for i in range(lib().its_diag_count(self.handle)))

    def _diagnostic(self, index: int) -> Diagnostic:
        diag = lib().its_diag_get(self.handle, index).contents
        places = tuple(
            Place(
                text_of(p.file) if p.file is not None else None,
                p.line,
                p.column,
                text_of(p.text),
                text_of(p.label),
            )
            for p in diag.places[: diag.n_places]
        )
        hint = text_of(diag.hint) if diag.hint is not None else None
        return Diagnostic(_SEVERITIES[diag.severity], text_of(diag.message), hint, places)

    def render(self) -> str:
        return self.take_text(lib().its_diag_render(self.handle, False)).rstrip("\n")

    def clear(self) -> None:
        lib().its_diag_clear(self.handle)

    def error(self, status: int) -> Error:
        """The exception for a failed call; takes the diagnostics out of the context."""
        what = text_of(lib().its_status_text(status))
        error = Error(self.render() or what, self.diagnostics(), what)
        self.clear()
        return error

    def check(self, status: int) -> None:
        if status != 0:
            raise self.error(status)

    def tell_warnings(self) -> None:
        """Passes what a call that succeeded had to say to Python's warnings, each text once."""
        if lib().its_diag_count(self.handle):
            text = self.render().removeprefix("warning: ").removeprefix("error: ")
            self.clear()
            if text not in _said:
                _said.add(text)
                warn(text)

    def take_text(self, pointer: int | None) -> str:
        """A text that the library returned to be freed with its_free."""
        if not pointer:
            raise MemoryError("no memory for a text")
        try:
            return text_of(ctypes.string_at(pointer))
        finally:
            lib().its_free(self.handle, pointer)


@contextmanager
def context() -> Iterator[Context]:
    ctx = Context()
    try:
        yield ctx
    finally:
        ctx.close()


def strings(values: Sequence[str]) -> Any:
    """A C array of the texts; NULL if there are none."""
    return (c_char_p * len(values))(*(v.encode() for v in values)) if values else None
