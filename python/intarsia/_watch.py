"""
Noticing, within one process, that a device file has changed under a kernel that was compiled before.

Triton keeps compiled kernels per argument types and asks for a kernel's hash once. Three of its own means help:
  - the globals that a kernel depends on are compared at every launch. Each region puts a mark among them, through all
    functions on the way, so that a kernel can be asked which units are in it;
  - a listener hears of every kernel that was compiled, and gives those with marks a pre-run hook;
  - the pre-run hook looks at the files' times and drops what Triton keeps for the kernels that depend on a changed one.
Should somebody else's listener have taken the place of ours, the comparison of the globals still refuses the launch.
"""

from __future__ import annotations

import gc
from typing import Any

import triton
from triton.runtime.jit import JITCallable, JITFunction

from ._errors import Error
from ._units import Source

_previous_listener: Any = None
_installed = False


class _Mark:
    """Stands in a kernel's globals for one unit. Triton calls `get` at every launch, and compares."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def get(self, _name: str, _default: object = None) -> _Mark:
        if self.source.refresh():
            raise Error(f"{self.source.path} has changed since the kernel was compiled; launch again")
        return self


def mark(source: Source) -> dict[tuple[str, int], tuple[_Mark, _Mark]]:
    """What a region has as `used_global_vals`: Triton hands it on to every kernel that uses the region."""
    found: _Mark | None = getattr(source, "_mark", None)
    if found is None:
        found = source._mark = _Mark(source)  # type: ignore[attr-defined]
    return {(source.path, id(found)): (found, found)}


def _sources_of(fn: Any) -> list[Source]:
    return [value.source for value, _ in fn.used_global_vals.values() if isinstance(value, _Mark)]


class _Look:
    """The pre-run hook of one kernel."""

    def __init__(self, fn: Any) -> None:
        self._fn = fn

    def __call__(self, *_args: Any, **_kwargs: Any) -> None:
        for source in _sources_of(self._fn):
            source.refresh()


def install() -> None:
    global _previous_listener, _installed
    if not _installed:
        _installed = True
        _previous_listener = triton.knobs.compilation.listener
        triton.knobs.compilation.listener = _listener


def _listener(**kwargs: Any) -> None:
    if _previous_listener is not None:
        _previous_listener(**kwargs)
    fn = getattr(kwargs["src"], "fn", None)
    if isinstance(fn, JITFunction) and _sources_of(fn) and not any(isinstance(h, _Look) for h in fn.pre_run_hooks):
        fn.add_pre_run_hook(_Look(fn))


def forget(source: Source) -> None:
    """Drops what Triton keeps of every function that depends on the unit. Only Python's collector can list them."""
    for fn in [o for o in gc.get_objects() if issubclass(type(o), JITCallable)]:
        if isinstance(fn, JITFunction) and source in _sources_of(fn):
            fn.hash = None
            fn.device_caches.clear()
