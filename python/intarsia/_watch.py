"""
Noticing, within one process, that a device file has changed under a kernel that was compiled before.

Triton keeps compiled kernels per argument types and asks for a kernel's hash only once. A listener, which Triton calls
for every kernel that it compiles or takes from its cache on disk, gives those with regions a pre-run hook. The hook
looks at the files' times at every launch, which takes a microsecond a file. When one has changed, everything that
Triton keeps in this process is dropped: what did not depend on the file comes back from the cache on disk.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import triton
from triton.runtime.jit import JITFunction

from ._units import Source

_previous_listener: Any = None
_installed = False
_sources: dict[str, Source] = {}


class _Look:
    """The pre-run hook of one kernel."""

    def __init__(self) -> None:
        self.sources: set[Source] = set()

    def __call__(self, *_args: Any, **_kwargs: Any) -> None:
        for source in self.sources:
            source.refresh()


def install() -> None:
    global _previous_listener, _installed
    if not _installed:
        _installed = True
        _previous_listener = triton.knobs.compilation.listener
        triton.knobs.compilation.listener = _listener


def known(unit_id: str, source: Source) -> None:
    """Remembers which source has an id: of a kernel from the cache only the ids of its units are known."""
    _sources[unit_id] = source


def _listener(**kwargs: Any) -> None:
    if _previous_listener is not None:
        _previous_listener(**kwargs)
    fn = getattr(kwargs["src"], "fn", None)
    ids: Iterable[str] = (kwargs["metadata"].get("intarsia") or {}).get("units", ())
    sources = {_sources[i] for i in ids if i in _sources}
    if isinstance(fn, JITFunction) and sources:
        look = next((hook for hook in fn.pre_run_hooks if isinstance(hook, _Look)), None)
        if look is None:
            look = _Look()
            fn.add_pre_run_hook(look)
        look.sources |= sources


def forget() -> None:
    """Makes Triton ask again for the hash of every function, and look again for every kernel."""
    for fn in [o for o in gc.get_objects() if issubclass(type(o), JITFunction)]:
        fn.hash = None
        fn.device_caches.clear()
