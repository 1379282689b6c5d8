"""
The backend on GPUs, and what stock Triton needs so that its kernels hold regions that call NVSHMEM.

Triton compiles, loads and launches as ever. Between compiling and loading, a kernel whose regions need NVSHMEM is
assembled with NVSHMEM's device library; after loading, NVSHMEM is told of it. Which kernels these are is read off the
code, never off a name.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import sys
from ctypes import POINTER, byref, c_bool, c_void_p
from pathlib import Path
from typing import Any

from . import _gpu_asm, _gpu_lib, _gpu_world, _lib, _link, _runtime, _triton
from ._errors import Error

_transport = _gpu_lib.TRANSPORT_ALL
_wait_limit_ns = 0


def count() -> int:
    """How many GPUs there are; none without a driver."""
    with _lib.context() as ctx:
        return int(_lib.lib().its_cuda_device_count(ctx.handle))


# -- opening ---------------------------------------------------------------------------------------------------------


def open_backend(transport: str | None = None, wait_limit: float | None = None) -> Any:
    """This process's PE, as its launcher says; collective if there are several."""
    global _transport, _wait_limit_ns
    _transport = _transport_of(transport)
    _wait_limit_ns = _wait_limit_of(wait_limit)
    place = _gpu_world.find()
    devices = count()
    device = place.local % devices if devices else 0
    _settle_environment(place)
    _use_in_torch(device)
    unique_id = _gpu_world.exchange(place, _make_unique_id) if place.n_pes > 1 else None
    options = _gpu_lib.CudaOptions(
        pe=place.pe,
        n_pes=place.n_pes,
        device=device,
        unique_id=ctypes.cast(ctypes.create_string_buffer(unique_id), ctypes.c_char_p) if unique_id else None,
        peers_only=_transport == _gpu_lib.TRANSPORT_P2P,
        wait_limit_ns=_wait_limit_ns,
    )
    handle = POINTER(_lib.BackendHead)()
    ctx = _lib.Context()  # the backend's; it lives until the process ends
    ctx.check(_lib.lib().its_cuda_open(ctx.handle, byref(options), byref(handle)))
    _install()
    return handle


def _transport_of(given: str | None) -> int:
    name = given or os.environ.get("INTARSIA_TRANSPORT") or "all"
    names = {"all": _gpu_lib.TRANSPORT_ALL, "p2p": _gpu_lib.TRANSPORT_P2P}
    if name not in names:
        raise Error(f"there is no transport {name!r}; there are 'all' and 'p2p'")
    return names[name]


def _wait_limit_of(given: float | None) -> int:
    """In nanoseconds; 0 if there is none."""
    text: Any = os.environ.get("INTARSIA_WAIT_LIMIT") if given is None else given
    if text is None or text == "":
        return 0
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 1e-6 <= seconds <= 1e9:
        raise Error(f"a limit for waits is a number of seconds, not {text!r}; without one they may take any time")
    return round(seconds * 1e9)


def limits_waits() -> bool:
    """Whether kernels that are compiled now look at the time while they wait."""
    return _wait_limit_ns > 0 and is_active()


def _settle_environment(place: _gpu_world.Place) -> None:
    """On one node: sockets on the loopback interface, and no network transports, unless the user has said otherwise."""
    if not place.one_node:
        return
    defaults = {
        "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME": "lo",
        "NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY": "AF_INET",
        "NVSHMEM_REMOTE_TRANSPORT": "none",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    if os.environ.get("INTARSIA_VERBOSE"):
        told = ", ".join(f"{name}={os.environ[name]}" for name in defaults)
        print(f"intarsia: PE {place.pe} of {place.n_pes} ({place.launcher}): {told}", file=sys.stderr)


def _use_in_torch(device: int) -> None:
    """Stock Triton launches on torch's current GPU: that must be ours."""
    if "torch" not in sys.modules and not _triton.installed():
        return
    try:
        import torch
    except ImportError:
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(device)


def _make_unique_id() -> bytes:
    with _lib.context() as ctx:
        data = ctypes.create_string_buffer(_gpu_lib.UNIQUE_ID_SIZE)
        ctx.check(_lib.lib().its_cuda_unique_id(ctx.handle, data))
        return data.raw


def abandon(backend: _runtime.Backend) -> None:
    """Something has failed here: closing must not wait for the others."""
    if not backend.closed:
        _lib.lib().its_cuda_abandon(backend.handle)


def check_waits(backend: _runtime.Backend) -> None:
    """Raises the report of a wait that took too long, also if the kernel's end was another library's error."""
    backend.check(_lib.lib().its_cuda_check_waits(backend.handle))


def need_nvshmem(backend: _runtime.Backend) -> None:
    backend.check(_lib.lib().its_cuda_need_nvshmem(backend.handle))


# -- kernels of Triton -----------------------------------------------------------------------------------------------

_installed = False


def _install() -> None:
    global _installed
    if _installed or not _triton.installed():
        return
    from triton import knobs

    from . import _hook

    _installed = True
    _hook.install()
    knobs.runtime.kernel_load_end_hook.add(_loaded)


def is_active() -> bool:
    """Whether kernels that are compiled now are for a real GPU."""
    from . import _driver

    return not _driver.is_active()


@functools.cache
def _nvshmem_version() -> str:
    return _gpu_asm.version() or "none"


def key() -> str:
    """What machine code depends on besides its PTX: how peers are reached, which NVSHMEM, whether waits end."""
    if not is_active():
        return "sim"
    transport = "p2p" if _transport == _gpu_lib.TRANSPORT_P2P else "all"
    return f"{transport}-{_nvshmem_version()}{'-limited' if limits_waits() else ''}"


def make_binary(stage: Any, options: Any, src: str, metadata: dict[str, Any]) -> bytes:
    """The stage behind the linked PTX: Triton's own if nothing is left to link, else ours."""
    from . import _hook

    about = metadata.get("intarsia")
    if about is None or not about["report"].get("externs"):
        if about is not None:
            about["nvshmem"] = "nvshmemi_device_state_d" in src
        return stage(src, metadata)  # type: ignore[no-any-return]
    flags = [] if options.enable_fp_fusion else ["--fmad=false"]
    code, said = _gpu_asm.assemble(f"{metadata['name']}.ptx", src, _hook.arch_of(options), flags)
    about["assembled"] = said
    about["nvshmem"] = bool(said["library"])
    return code


def libraries(wants: list[str], arch: str) -> Any:
    """For _link.link: what gives the NVSHMEM functions among `wants`."""
    names = _gpu_asm.wants_nvshmem(wants)
    if not names:
        return None
    return lambda ctx: _gpu_asm.libraries(ctx, names, arch, _transport)


def load_text(backend: _runtime.Backend, name: str, ptx: bytes) -> c_void_p:
    """Links PTX with what it needs of NVSHMEM's functions, assembles it and loads it."""
    arch = f"sm_{backend.capability}" + ("a" if backend.capability >= 90 else "")
    version = _gpu_asm.ptx_version(arch)
    limit = limits_waits()
    with _link.link(name, ptx, _link.no_units, keep_externs=True, version=version, limit_waits=limit) as linked:
        load = libraries([e["name"] for e in linked.report.get("externs", [])], arch)
        if load is None:
            return backend.load(linked.module)
    text = prepare(ptx)
    with _link.link(
        name, text, _link.no_units, load_libraries=load, keep_externs=True, version=version, limit_waits=limit
    ) as linked:
        return backend.load(linked.module)


def prepare(text: bytes) -> bytes:
    """A kernel that will hold NVSHMEM's state itself also has to say of which version that state is."""
    return text + _gpu_asm.version_text() if _transport == _gpu_lib.TRANSPORT_P2P else text


def _loaded(module: Any, _function: Any, name: Any, metadata_group: Any, _hash: Any) -> None:
    """Triton has loaded a kernel."""
    if not is_active():
        return
    if not _runtime.is_open():
        if _told_to_hold_nvshmem(metadata_group):
            raise Error(f"{name} uses NVSHMEM, which is not initialised: call intarsia.init() before the first launch")
        return
    backend = _runtime.current()
    if backend.name == "cuda":
        backend.check(_lib.lib().its_cuda_adopt(backend.handle, c_void_p(module), None))


def _told_to_hold_nvshmem(group: Any) -> bool:
    for file, path in (group or {}).items():
        if file.endswith(".json"):
            with contextlib.suppress(OSError, ValueError):
                return bool(json.loads(Path(path).read_text()).get("intarsia", {}).get("nvshmem"))
    return False


def adopt(backend: _runtime.Backend, module: int) -> bool:
    """Tells NVSHMEM of a CUmodule that somebody has loaded; whether it holds NVSHMEM's state."""
    holds = c_bool()
    backend.check(_lib.lib().its_cuda_adopt(backend.handle, c_void_p(module), byref(holds)))
    return bool(holds.value)
