"""
The stage hook: where regions enter a kernel.

Triton calls it before it compiles a kernel. It wraps the stage that makes PTX: what comes out is linked with the units
that its region calls name. Hooks of other people stay in place and run first; a hook that is installed later must call
ours, as ours does. For the simulator the stage behind it, which would run ptxas, hands the PTX on as it is.
"""

from __future__ import annotations

import functools
import hashlib
import threading
import uuid
from typing import Any

import triton
from triton.backends.nvidia.compiler import get_ptx_version_from_options

from . import _lib, _link, _watch
from ._errors import Error
from ._units import Compiled, Linking, Source

_MARKS = ("intarsia.call", "intarsia.device_intra_barrier")  # what linking replaces

_previous: Any = None
_state = threading.local()


# -- architectures ---------------------------------------------------------------------------------------------------


def _arch(capability: int) -> str:
    """The architecture that Triton gives to ptxas for a compute capability."""
    return f"sm_{capability}a" if capability >= 90 else f"sm_{capability}"


def arch_of(options: Any) -> str:
    if options.backend_name != "cuda":
        raise Error(f"regions are CUDA code, and this kernel is compiled for {options.backend_name}")
    return _arch(int(options.arch.removeprefix("sm")))


def current_arch() -> str:
    """What a kernel that is launched now would be compiled for; some architecture if there is no device."""
    if given := triton.knobs.runtime.override_arch:
        return _arch(int(given.removeprefix("sm")))
    try:
        return _arch(int(triton.runtime.driver.active.get_current_target().arch))
    except Exception:
        return "sm_80"


# -- keys ------------------------------------------------------------------------------------------------------------


@functools.cache
def toolchain_key() -> str:
    """What the result of linking depends on besides kernel and units: the library itself."""
    return hashlib.blake2b(_lib.lib().path.read_bytes(), digest_size=8).hexdigest()


def unit_key(source: Source) -> str:
    """
    For Triton's cache: what stands for the contents of a unit.

    Triton asks while it hashes a kernel and does not expect an exception there. After an error the key is one that was
    never used and never will be; the error comes again when the kernel's code is generated.
    """
    try:
        source.refresh()
        unit_id = source.id(current_arch())
        _watch.known(unit_id, source)
        from . import _gpu

        return f"{unit_id}.{source.linking}.{toolchain_key()}.{_gpu.key()}"
    except Error:
        return uuid.uuid4().hex


# -- the hook --------------------------------------------------------------------------------------------------------


class _Compilation:
    """One run of Triton's compiler, from the hook to the linked PTX."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.units: dict[str, tuple[Compiled, Linking]] = {}
        self.barriers: list[list[Any]] = []  # of each the argument that is its communicator, and its index; or None
        self.failure: Error | None = None

    def after_codegen(self, stage: Any, src: Any, metadata: dict[str, Any]) -> Any:
        """The first stage. Triton would wrap an exception of a region call into its own, so it is raised here."""
        if self.failure is not None:
            _watch.forget()  # the kernel's hash was made without knowing the unit
            raise self.failure
        return stage(src, metadata)

    def link(self, stage: Any, src: Any, metadata: dict[str, Any]) -> str:
        from . import _gpu

        ptx: str = stage(src, metadata)
        limit = _gpu.limits_waits()
        if not limit and not any(mark in ptx for mark in _MARKS):
            return ptx
        name, version, text = f"{metadata['name']}.ptx", _ptxas_version(self.options), ptx.encode()
        with _link.link(name, text, self._find, version=version, limit_waits=limit) as linked:
            metadata["intarsia"] = {"units": sorted(self.units), "report": linked.report, "barriers": self.barriers}
            text, load = self._device_libraries(text, linked.report)
            if load is None:
                return linked.ptx
        with _link.link(
            name, text, self._find, version=version, load_libraries=load, keep_externs=True, limit_waits=limit
        ) as linked:
            metadata["intarsia"]["report"] = linked.report
            return linked.ptx

    def _device_libraries(self, text: bytes, report: dict[str, Any]) -> tuple[bytes, Any]:
        """On a GPU: NVSHMEM's functions that a kernel calls. The simulator provides its own when a kernel is loaded."""
        from . import _driver, _gpu

        wants = [] if _driver.is_active() else [e["name"] for e in report.get("externs", [])]
        load = _gpu.libraries(wants, arch_of(self.options)) if wants else None
        return (_gpu.prepare(text) if load is not None else text), load

    def add(self, unit: Compiled, source: Source) -> None:
        """What a region call was made for, so that linking uses that and not a file that changed in between."""
        self.units[unit.id] = (unit, source.linking)
        _watch.known(unit.id, source)

    def _find(self, unit_id: str) -> tuple[Compiled, Linking]:
        return self.units[unit_id] if unit_id in self.units else _link.no_units(unit_id)


def _ptxas_version(options: Any) -> tuple[int, int]:
    """The newest PTX that Triton's ptxas takes: the version that Triton itself writes."""
    arch = int(options.arch.removeprefix("sm"))
    major, minor = divmod(int(get_ptx_version_from_options(options, arch)), 10)
    return major, minor


def install() -> None:
    """Puts the hook in front of the one that is there."""
    global _previous
    if _previous is None:
        _previous = triton.knobs.runtime.add_stages_inspection_hook or _nothing
        triton.knobs.runtime.add_stages_inspection_hook = _hook
        _watch.install()


def _nothing(*_args: Any) -> tuple[str, str]:
    return "", ""


def _hook(*args: Any) -> tuple[str, str] | None:
    """Called without arguments by Triton versions that ask a hook for its part of the cache key."""
    if not args:
        from . import _gpu

        key, digest = _previous()
        ours = f"intarsia-{toolchain_key()}-{_gpu.key()}"
        return f"{key}{ours}", f"{digest}{ours}"
    _previous(*args)
    _backend, stages, options = args[:3]
    if "ptx" in stages:
        run = _state.run = _Compilation(options)
        first = next(iter(stages))
        stages[first] = functools.partial(run.after_codegen, stages[first])
        stages["ptx"] = functools.partial(run.link, stages["ptx"])
        stages["cubin"] = functools.partial(_make_binary, stages["cubin"], options)
    return None


def compilation(options: Any) -> _Compilation:
    """The one that a region call is being emitted for."""
    run: _Compilation | None = getattr(_state, "run", None)
    if run is None or run.options is not options:
        raise Error(
            "another stage hook took the place of Intarsia's without calling it; "
            "a hook must call the one that it finds in triton.knobs.runtime.add_stages_inspection_hook"
        )
    return run


def _make_binary(stage: Any, options: Any, src: Any, metadata: dict[str, Any]) -> bytes:
    from . import _driver, _gpu

    if _driver.is_active():
        return src.encode() if isinstance(src, str) else src
    return _gpu.make_binary(stage, options, src, metadata)
