"""The backend that this process runs kernels on: one processing element (PE) of a world."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import operator
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from ctypes import POINTER, byref, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from . import _lib, _triton, _units
from ._errors import Error

_LONGEST_SITE = 200
_MOST = 2**32 - 1


# Whether SIGINT has come. Python takes note of a signal at once, but acts only when it gets to run again; a callback in
# Python would act too early, inside of itself.
ctypes.pythonapi.PyOS_InterruptOccurred.restype = ctypes.c_int
_INTERRUPTED = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.pythonapi.PyOS_InterruptOccurred)
# How many threads there are, for the same reason by what is written in C: threading.active_count() but for those that
# are being started, by a thread that is not in a call.
_COUNT = ctypes.CFUNCTYPE(ctypes.c_int)(threading._active.__len__)  # type: ignore[attr-defined]


def whole(value: Any, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise Error(f"the {what} is a whole number, not {value!r}") from None


class Backend:
    """An its_backend. Every method that fails raises Error with what the backend had to say."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._fault: Error | None = None
        self.fault_told = False  # whether it was raised where the program sees it
        self._ops = handle.contents.ops.contents
        self._ctx = _lib.Context(handle.contents.ctx)
        self.name = _lib.text_of(self._ops.name)
        pe, n_pes = c_uint32(), c_uint32()
        self._ops.identity(handle, byref(pe), byref(n_pes))
        self.pe, self.n_pes = pe.value, n_pes.value
        self.info = _lib.DeviceInfo()
        self._call("device_info", byref(self.info))
        if self.name == "sim":
            self.check(_lib.lib().its_sim_host_interrupt(handle, ctypes.cast(_INTERRUPTED, c_void_p)))
            self.check(_lib.lib().its_sim_host_count(handle, ctypes.cast(_COUNT, c_void_p)))

    def _call(self, operation: str, *args: Any) -> None:
        with self.alone():
            self._call_alone(operation, *args)

    def _call_alone(self, operation: str, *args: Any) -> None:
        if self._handle is None:
            raise Error("the backend was closed by intarsia.finalize()")
        self.announce()
        self.check(getattr(self._ops, operation)(self._handle, *args))

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """
        Around a call and the reading of what it has to say: other threads' calls come before or after it, or while it
        waits. A call that the collector of garbage makes in between waits alone. GPUs have no such lock.
        """
        if self.name != "sim" or self._handle is None:
            yield
            return
        handle = self._handle
        _lib.lib().its_sim_host_lock(handle)
        try:
            yield
        finally:
            _lib.lib().its_sim_host_unlock(handle)

    def announce(self) -> None:
        """
        Before a call that may wait: how many threads there are that could do something for others meanwhile. A thread
        that begins later is begun by one of them, and those that end are noticed by who waits.
        """
        if self.name == "sim":
            _lib.lib().its_sim_host_threads(self._handle, threading.active_count())

    def check(self, status: int) -> None:
        """After a fault every call fails; the first error, which says what happened, may have gone unseen."""
        if status == 0:
            return
        error = self._ctx.error(status)
        if status == _lib.ERR_INTERRUPTED:
            # For the program's handler, which most likely raises this very exception.
            signal.raise_signal(signal.SIGINT)
            raise KeyboardInterrupt(str(error))
        if status == _lib.ERR_FAULT:
            self._fault = self._fault or error
            self.fault_told = True
            raise Error(str(self._fault), self._fault.diagnostics, self._fault.status)
        raise error

    @contextlib.contextmanager
    def unseen(self) -> Iterator[None]:
        """For what is called behind the program's back: what fails is not raised, and a fault has yet to be told."""
        told = self.fault_told
        with contextlib.suppress(Error):
            yield
        self.fault_told = told

    @property
    def handle(self) -> Any:
        return self._handle

    @property
    def c_handle(self) -> c_void_p:
        """For functions of the library that take an its_backend."""
        if self._handle is None:
            raise Error("the backend was closed by intarsia.finalize()")
        return ctypes.cast(self._handle, c_void_p)

    @property
    def context(self) -> _lib.Context:
        return self._ctx

    @property
    def closed(self) -> bool:
        return self._handle is None

    @property
    def capability(self) -> int:
        return int(self.info.compute_major * 10 + self.info.compute_minor)

    def close(self) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            self._ops.close(handle)

    def alloc(self, kind: int, size: int, align: int = 0) -> int:
        address = c_uint64()
        with self.alone(), self._told_where():
            self._call_alone("alloc", kind, size, align, byref(address))
        return address.value

    def free(self, kind: int, address: int) -> None:
        with self.alone(), self._told_where():
            self._call_alone("free", kind, address)

    def collective(self, function: str, *args: Any) -> None:
        """A function of the library that makes such calls by itself."""
        with self.alone(), self._told_where():
            self.announce()
            self.check(getattr(_lib.lib(), function)(*args))

    @contextlib.contextmanager
    def _told_where(self) -> Iterator[None]:
        """For calls that PEs must make alike: a message about them says at which line of the program each was made."""
        site = _units.call_site()[-_LONGEST_SITE:].encode()  # alive until the call is over
        if self._handle is not None:
            self._handle.contents.site = site
        try:
            yield
        finally:
            if self._handle is not None:
                self._handle.contents.site = None

    def peer(self, address: int, pe: int) -> int:
        mapped = c_uint64()
        number = whole(pe, "number of a PE")
        if not 0 <= number < self.n_pes:  # before C sees it, where every number has 32 bits
            raise Error(f"there is no PE {number} among {self.n_pes}: PEs are numbered from 0")
        self._call("peer", address, number, byref(mapped))
        return mapped.value

    def copy(self, kind: int, device: int, other: int, size: int, stream: int = 0) -> None:
        self._call("copy", kind, device, other, size, stream)

    def fill(self, address: int, value: int, size: int, stream: int = 0) -> None:
        self._call("fill", address, value, size, stream)

    def load(self, module: c_void_p) -> c_void_p:
        """Loads an its_module that lives in any context."""
        loaded = c_void_p()
        self._call("load", module, byref(loaded))
        return loaded

    def function(self, loaded: c_void_p, name: str) -> Function:
        handle = c_void_p()
        self._call("function", loaded, name.encode(), byref(handle))
        info = _lib.FunctionInfo()
        self._call("function_info", handle, byref(info))
        sizes = tuple(info.param_sizes[i] for i in range(info.n_params))
        return Function(self, handle, name, sizes, int(info.shared), int(info.max_threads))

    def variable(self, loaded: c_void_p, name: str) -> tuple[int, int]:
        address, size = c_uint64(), c_size_t()
        self._call("variable", loaded, name.encode(), byref(address), byref(size))
        return address.value, size.value

    def wait(self, stream: int | None = None) -> None:
        if stream is None:
            self._call("wait")
        else:
            self._call("stream_wait", stream)

    def barrier(self) -> None:
        self._call("barrier")


class Function:
    """A kernel that is loaded. `launch` takes its parameters as bytes, one for each."""

    def __init__(
        self, backend: Backend, handle: c_void_p, name: str, sizes: tuple[int, ...], shared: int, threads: int
    ) -> None:
        self._backend, self._handle = backend, handle
        self.name, self.param_sizes, self.shared, self.max_threads = name, sizes, shared, threads

    def launch(
        self, grid: Sequence[int], block: Sequence[int], shared: int, params: Sequence[bytes], stream: int = 0
    ) -> None:
        buffers = [ctypes.create_string_buffer(p, len(p)) for p in params]
        pointers = (c_void_p * len(buffers))(*(ctypes.addressof(b) for b in buffers))
        given = _lib.Launch(  # what has more than 32 bits is too large as well, and must not become small
            grid=(c_uint32 * 3)(*(min(n, _MOST) for n in grid)),
            block=(c_uint32 * 3)(*(min(n, _MOST) for n in block)),
            shared=min(shared, _MOST),
            stream=stream,
            params=ctypes.cast(pointers, POINTER(c_void_p)),
            n_params=len(buffers),
        )
        self._backend._call("launch", self._handle, byref(given))


_current: Backend | None = None
_atexit = False


def init(
    backend: str | None = None,
    arch: str | None = None,
    transport: str | None = None,
    wait_limit: float | None = None,
) -> None:
    """
    Opens the backend: "sim" or "cuda", or what INTARSIA_BACKEND says, which `intarsia run` sets; else GPUs if there are
    any. Without a launcher it is a world of one PE; the simulator's is for the architecture `arch` or INTARSIA_SIM_ARCH
    ("sm_80" if not given). On GPUs `transport="p2p"` promises that every peer is reached by loads and stores: kernels
    then hold no call. With a `wait_limit` in seconds, or INTARSIA_WAIT_LIMIT, a kernel on a GPU that waits longer for
    memory to change ends with a report; the simulator finds deadlocks without. A second call does nothing, unless it
    asks for something else.
    """
    global _current, _atexit
    name = backend or os.environ.get("INTARSIA_BACKEND") or _default_backend()
    if _current is not None:
        if name != _current.name:
            raise Error(f"the {_current.name} backend is open; call intarsia.finalize() before opening {name}")
        if arch is not None and _capability(arch) != _current.capability:
            raise Error(f"the backend is open for sm_{_current.capability}; call intarsia.finalize() before {arch}")
        return
    if name == "sim":
        _current = Backend(_open_simulator(arch or os.environ.get("INTARSIA_SIM_ARCH")))
    elif name == "cuda":
        from . import _gpu

        _current = Backend(_gpu.open_backend(transport, wait_limit))
        if arch is not None and _capability(arch) != _current.capability:
            raise Error(f"this GPU is sm_{_current.capability}, the program asks for {arch}")
    else:
        raise Error(f"there is no backend called {name!r}; there are 'sim' and 'cuda'")
    if not _atexit:
        _atexit = True
        atexit.register(_at_exit)
    if name == "sim" and _triton.installed():
        from . import _driver

        _driver.activate()


def _default_backend() -> str:
    from . import _gpu

    return "sim" if os.environ.get("INTARSIA_SIM_FD") or not _gpu.count() else "cuda"


def _capability(arch: str) -> int:
    digits = arch.removeprefix("sm_").rstrip("af")
    if not digits.isdigit():
        raise Error(f"{arch!r} is no architecture; write it as 'sm_80' or 'sm_90'")
    return int(digits)


def _open_simulator(arch: str | None) -> Any:
    handle = POINTER(_lib.BackendHead)()
    ctx = _lib.Context()  # the backend's; it lives until the process ends
    if os.environ.get("INTARSIA_SIM_FD") or arch is None:
        ctx.check(_lib.lib().its_sim_open_env(ctx.handle, byref(handle)))
        found = Backend(handle).capability
        if arch is not None and found != _capability(arch):
            raise Error(f"this world is for sm_{found}, the program asks for {arch}; give `intarsia run` the same one")
        return handle
    capability = _capability(arch)
    options = _lib.SimOptions(n_pes=1, compute_major=capability // 10, compute_minor=capability % 10)
    ctx.check(_lib.lib().its_sim_open(ctx.handle, -1, 0, byref(options), byref(handle)))
    return handle


def current() -> Backend:
    """The open backend; opens the default one if there is none."""
    if _current is None:
        init()
    assert _current is not None
    return _current


def is_open() -> bool:
    return _current is not None


def my_pe() -> int:
    """The number of this PE, from 0."""
    return current().pe


def n_pes() -> int:
    """How many PEs there are."""
    return current().n_pes


def barrier() -> None:
    """Waits for everything that was launched here, then for all PEs. Collective."""
    current().barrier()


def synchronize() -> None:
    """Waits for everything that was launched here. A fault in a kernel is raised here at the latest."""
    current().wait()


def finalize() -> None:
    """Waits for everything that was launched here and closes the backend."""
    global _current
    if _current is None:
        return
    try:
        _current.wait()
    finally:
        _close()


def _close() -> None:
    global _current
    if _current is not None:
        for user, leave in (("intarsia._driver", "deactivate"), ("intarsia._host", "detach")):
            if user in sys.modules:
                getattr(sys.modules[user], leave)()
        _current.close()
        _current = None


def _at_exit() -> None:
    """
    A fault that nobody has waited for must not pass as success; one that the program has caught is its own affair.
    After an exception there is nothing to wait for.
    """
    if _current is None:
        return
    told = _current.fault_told
    if hasattr(sys, "last_value"):
        if _current.name == "cuda":
            _tell_of_waits(_current)
            _leave()
        _close()
        return
    try:
        finalize()
    except Error as error:
        if not told:
            print(error, file=sys.stderr)
            _leave()


def _tell_of_waits(backend: Backend) -> None:
    """What torch says of a kernel that has waited too long is no more than that it failed."""
    from . import _gpu

    if isinstance(sys.last_value, Error):
        return
    try:
        _gpu.check_waits(backend)
    except Error as error:
        print(error, file=sys.stderr)


def _leave() -> None:
    """Ends the process as it is: closing would wait for other PEs, and theirs is a wait that nobody ends."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
