"""
Device files as compiled units.

A unit is a source with its dialect, options and template instances. It is compiled for an architecture when somebody
needs it, and again when its source or one of the files it includes has changed. Its id, 16 hex digits, depends on the
contents alone: it is what a region call in a kernel names, and what Triton's cache key holds.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from ctypes import POINTER, byref, c_void_p
from dataclasses import dataclass
from pathlib import Path

from . import _lib
from ._errors import Error, warn

_Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True)
class Signature:
    """
    PTX types of a function, ".b64" or ".b8[12]"; `result` is None if it returns nothing. `whole` says of each parameter
    whether the function reads it as an integer.
    """

    params: tuple[str, ...]
    result: str | None
    whole: tuple[bool, ...]

    @staticmethod
    def parse(text: str) -> Signature:
        params, _, result = text.partition(" -> ")
        types = params[1:-1].split(", ") if params != "()" else []
        bits = [re.sub(r"^\.[us]", ".b", t) for t in (*types, result)]
        return Signature(tuple(bits[:-1]), bits[-1] or None, tuple(t[1] in "us" for t in types))

    def __str__(self) -> str:
        return f"({', '.join(self.params)})" + (f" -> {self.result}" if self.result else "")


class Compiled:
    """One result of its_cc. The C object and its context live as long as this."""

    def __init__(self, source: Source, arch: str) -> None:
        self._lock = threading.Lock()
        self._signatures: dict[str, Signature] = {}
        self._ctx = _lib.Context()
        try:
            self._unit = source._compile(self._ctx, arch)
        except BaseException:
            self._ctx.close()
            raise
        weakref.finalize(self, _release, self._ctx, self._unit)
        unit = self._unit.contents
        self.arch, self.path = arch, source.path
        self.id: str = unit.id.decode()
        self.ptx: bytes = ctypes.string_at(unit.ptx, unit.ptx_size)
        self.log = _lib.text_of(unit.log)
        self.depends = tuple(os.fsdecode(unit.depends[i]) for i in range(unit.n_depends))
        if self.log and not unit.cached:  # what was said once needs no repeating by every process
            warn(self.log.strip())
        self._ctx.tell_warnings()
        funcs = [unit.funcs[i] for i in range(unit.n_funcs)]
        self.functions = tuple(_lib.text_of(f.spelling) for f in funcs)

    @property
    def c_unit(self) -> ctypes._Pointer[_lib.Unit]:
        """The its_unit, for functions of the library; it lives as long as this."""
        return self._unit

    def find(self, name: str) -> str:
        """The PTX name of the function called or spelled `name`; if there is none, an Error lists those there are."""
        found = POINTER(_lib.UnitFunc)()
        with self._lock:
            self._ctx.check(_lib.lib().its_unit_find(self._ctx.handle, self._unit, name.encode(), byref(found)))
            return _lib.text_of(found.contents.name)

    def signature(self, ptx_name: str) -> Signature:
        with self._lock:
            if ptx_name not in self._signatures:
                text = c_void_p()
                self._ctx.check(
                    _lib.lib().its_unit_signature(self._ctx.handle, self._unit, ptx_name.encode(), byref(text))
                )
                self._signatures[ptx_name] = Signature.parse(self._ctx.take_text(text.value))
            return self._signatures[ptx_name]


def _release(ctx: _lib.Context, unit: object) -> None:
    _lib.lib().its_unit_free(unit)
    ctx.close()


@dataclass(frozen=True)
class Linking:
    """What linking is told about a unit; see its_link_region and its_link_options."""

    deferred: tuple[str, ...] = ()
    budget: int | None = None
    barrier_map: str | None = None


class Source:
    """What is compiled: a file or a text, how, and what came out for each architecture so far."""

    def __init__(
        self,
        path: str,
        text: str | None = None,
        dialect: str = "cuda",
        options: Sequence[str] = (),
        linking: Linking | None = None,
        instances: Sequence[str] = (),
    ) -> None:
        self.path, self.text, self.dialect = path, text, dialect
        self.options, self.linking = tuple(options), linking or Linking()
        self.instances = tuple(instances)
        self._lock = threading.RLock()
        self._compiled: dict[str, Compiled] = {}
        self._stamp: _Stamp = ()
        self.on_change: Callable[[], None] | None = None

    def add_instance(self, spelling: str) -> None:
        """Asks for a template instantiation; what was compiled without it is dropped."""
        with self._lock:
            if spelling not in self.instances:
                self.instances += (spelling,)
                self._compiled.clear()

    def compiled(self, arch: str) -> Compiled:
        """For `arch`, from what was compiled before if `refresh` has not found a change since."""
        with self._lock:
            if arch not in self._compiled:
                result = Compiled(self, arch)
                self._compiled[arch] = result
                self._stamp = _stamp(
                    {*result.depends, *(p for p, *_ in self._stamp), *(() if self.text is not None else (self.path,))}
                )
            return self._compiled[arch]

    def id(self, arch: str) -> str:
        """The unit's id. `arch` says what to compile for if nothing is compiled yet."""
        with self._lock:
            for result in self._compiled.values():
                return result.id
            return self.compiled(arch).id

    def refresh(self) -> bool:
        """Whether a file that was read has changed; then everything compiled is dropped."""
        with self._lock:
            if not self._compiled or _stamp({p for p, *_ in self._stamp}) == self._stamp:
                return False
            self._compiled.clear()
            self._stamp = ()
            if self.on_change is not None:
                self.on_change()
            return True

    def _compile(self, ctx: _lib.Context, arch: str) -> ctypes._Pointer[_lib.Unit]:
        given = _lib.CcInput(
            dialect=self.dialect.encode(),
            path=os.fsencode(self.path),
            source=self.text.encode() if self.text is not None else None,
            arch=arch.encode(),
            options=_lib.strings(self.options),
            n_options=len(self.options),
            instances=_lib.strings(self.instances),
            n_instances=len(self.instances),
        )
        unit = POINTER(_lib.Unit)()
        ctx.check(_lib.lib().its_cc(ctx.handle, byref(given), byref(unit)))
        return unit


def _stamp(paths: set[str]) -> _Stamp:
    """What tells that a file is another one than it was, cheap enough for every launch."""
    result = []
    for path in sorted(paths):
        try:
            s = os.stat(path)
            result.append((path, s.st_mtime_ns, s.st_size, s.st_ino))
        except OSError:
            result.append((path, 0, 0, 0))
    return tuple(result)


def beside(path: str | os.PathLike[str], caller: str) -> str:
    """`path` as seen from the file of the caller, so that a program finds its files from any directory."""
    given = Path(path)
    if given.is_absolute():
        return str(given)
    folder = Path(caller).resolve().parent if os.path.isfile(caller) else Path.cwd()
    return str(folder / given)


def caller(depth: int) -> str:
    """The file of the function `depth` calls above the one that asks."""
    frame = inspect.currentframe()
    for _ in range(depth + 1):
        frame = frame.f_back if frame is not None else None
    return frame.f_code.co_filename if frame is not None else ""


def call_site() -> str:
    """\"file:line\" of the innermost call that is not Intarsia's own."""
    own = str(Path(__file__).parent) + os.sep
    frame = inspect.currentframe()
    while frame is not None and (frame.f_code.co_filename.startswith(own) or "contextlib" in frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


def check_exists(path: str) -> None:
    if os.path.isdir(path):
        raise Error(f"{path} is a folder; name the file in it")
    if not os.path.exists(path):
        raise Error(f"{path} doesn't exist; paths are relative to the file that names them")
