"""
Who the processing elements on GPUs are, and how they find each other: which launcher started this process, its rank,
and the way by which rank 0 tells NVSHMEM's unique id to the others.

    torchrun         RANK, WORLD_SIZE          torch's store, or a socket at MASTER_ADDR
    intarsia run     INTARSIA_PE, ..._N_PES    a file in memory that all PEs have inherited
    mpirun           OMPI_COMM_WORLD_RANK...   mpi4py if it is there, a socket at MASTER_ADDR, or a file (one node)
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._errors import Error
from ._gpu_lib import UNIQUE_ID_SIZE

_PATIENCE_S = 120.0
_MPI = (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"), ("PMIX_RANK", "PMIX_SIZE"))
_MPI_LOCAL = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK")
_MPI_LOCAL_SIZE = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE")


@dataclass(frozen=True)
class Place:
    launcher: str  # "none", "intarsia", "torch", "mpi"
    pe: int
    n_pes: int
    local: int
    n_local: int

    @property
    def one_node(self) -> bool:
        return self.n_local == self.n_pes


def find() -> Place:
    """From what the launcher has set; a process that nobody launched is alone."""
    if "INTARSIA_PE" in os.environ:
        pe, n_pes = _number("INTARSIA_PE"), _number("INTARSIA_N_PES")
        return Place("intarsia", pe, n_pes, pe, n_pes)
    dist = _torch_distributed()
    if dist is not None and dist.is_initialized():
        pe, n_pes = dist.get_rank(), dist.get_world_size()
        local = _number("LOCAL_RANK", pe)
        return Place("torch", pe, n_pes, local, _number("LOCAL_WORLD_SIZE", n_pes))
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        pe, n_pes = _number("RANK"), _number("WORLD_SIZE")
        return Place("torch", pe, n_pes, _number("LOCAL_RANK", pe), _number("LOCAL_WORLD_SIZE", n_pes))
    for rank, size in _MPI:
        if rank in os.environ and size in os.environ:
            pe, n_pes = _number(rank), _number(size)
            return Place("mpi", pe, n_pes, _first(_MPI_LOCAL, pe), _first(_MPI_LOCAL_SIZE, n_pes))
    return Place("none", 0, 1, 0, 1)


def _number(name: str, default: int | None = None) -> int:
    given = os.environ.get(name)
    if given is None and default is not None:
        return default
    try:
        return int(given or "")
    except ValueError:
        raise Error(f"{name} is {given!r}, which is no number; the launcher of this process sets it") from None


def _first(names: tuple[str, ...], default: int) -> int:
    return next((_number(name) for name in names if name in os.environ), default)


# -- exchanging the unique id ----------------------------------------------------------------------------------------


def exchange(place: Place, make: Callable[[], bytes]) -> bytes:
    """Rank 0 makes the unique id; every PE returns it. Collective."""
    if place.launcher == "intarsia":
        return _by_descriptor(place, make)
    dist = _torch_distributed()
    if dist is not None and dist.is_initialized() and "MASTER_ADDR" not in os.environ:
        box = [make() if place.pe == 0 else None]
        dist.broadcast_object_list(box, src=0)
        return _checked(box[0])
    if place.launcher == "mpi" and (by_mpi := _by_mpi4py(place, make)) is not None:
        return by_mpi
    if "MASTER_ADDR" in os.environ:
        return _by_socket(place, make)
    if place.one_node:
        return _by_file(place, make)
    raise Error("the PEs are on several nodes and can't find each other: set MASTER_ADDR and MASTER_PORT")


def _checked(data: object) -> bytes:
    if not isinstance(data, bytes) or len(data) != UNIQUE_ID_SIZE:
        raise Error("PE 0 ended before it told the others where to meet")
    return data


def _wait(what: str, attempt: Callable[[], bytes | None]) -> bytes:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        found = attempt()
        if found is not None:
            return _checked(found)
        time.sleep(0.002)
    raise Error(f"PE 0 did not tell its address within {_PATIENCE_S:.0f} s ({what})")


def _by_descriptor(place: Place, make: Callable[[], bytes]) -> bytes:
    """A file without a name that `intarsia run` has opened: first the id, then one byte that says that it is there."""
    fd = _number("INTARSIA_RENDEZVOUS_FD")
    if place.pe == 0:
        data = make()
        os.pwrite(fd, data, 0)
        os.pwrite(fd, b"\1", UNIQUE_ID_SIZE)
        return data

    def attempt() -> bytes | None:
        return os.pread(fd, UNIQUE_ID_SIZE, 0) if os.pread(fd, 1, UNIQUE_ID_SIZE) == b"\1" else None

    return _wait("through the launcher", attempt)


def _by_socket(place: Place, make: Callable[[], bytes]) -> bytes:
    """At MASTER_ADDR, one port above MASTER_PORT, which torch itself uses."""
    host, port = os.environ["MASTER_ADDR"], _number("MASTER_PORT", 29500) + 1
    if place.pe == 0:
        return _serve(host, port, place.n_pes - 1, make())

    def attempt() -> bytes | None:
        try:
            with socket.create_connection((host, port), timeout=5) as peer:
                peer.sendall(place.pe.to_bytes(4, "little"))
                return _receive(peer, UNIQUE_ID_SIZE)
        except OSError:
            return None

    return _wait(f"at {host}:{port}", attempt)


def _serve(host: str, port: int, n_others: int, data: bytes) -> bytes:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server(("", port), family=family, backlog=max(n_others, 1))
    except OSError as error:
        raise Error(f"PE 0 can't listen at port {port}: {error.strerror}; MASTER_PORT moves it") from None
    with listener:
        listener.settimeout(_PATIENCE_S)
        told: set[bytes] = set()
        while len(told) < n_others:
            try:
                peer, _address = listener.accept()
            except TimeoutError:
                raise Error(f"{n_others - len(told)} of {n_others} other PEs did not come to port {port}") from None
            with peer, contextlib.suppress(OSError):
                peer.settimeout(5)
                who = _receive(peer, 4)
                peer.sendall(data)
                if who:
                    told.add(who)
    return data


def _receive(peer: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        part = peer.recv(size - len(data))
        if not part:
            return None
        data += part
    return data


def _by_mpi4py(place: Place, make: Callable[[], bytes]) -> bytes | None:
    try:
        from mpi4py import MPI
    except Exception:  # not there, or its MPI is another one than the launcher's
        return None
    if MPI.COMM_WORLD.Get_size() != place.n_pes:
        return None
    return _checked(MPI.COMM_WORLD.bcast(make() if place.pe == 0 else None, root=0))


def _by_file(place: Place, make: Callable[[], bytes]) -> bytes:
    """For processes of one launcher on one node: a private file named after the job."""
    job = os.environ.get("PMIX_NAMESPACE") or os.environ.get("PMI_JOBID") or f"parent-{os.getppid()}"
    name = "".join(c if c.isalnum() else "-" for c in job)
    folder = Path(tempfile.gettempdir()) / f"intarsia-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise Error(f"{folder} can be written by others; remove it")
    path = folder / f"meet-{name}"
    if place.pe == 0:
        data = make()
        aside = path.with_suffix(f".{os.getpid()}")
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        aside.replace(path)
        return data

    started = _started(os.getppid())

    def attempt() -> bytes | None:
        try:
            return path.read_bytes() if path.stat().st_mtime >= started else None
        except FileNotFoundError:
            return None

    return _wait(f"in {path}", attempt)


def _started(pid: int) -> float:
    """When a process began: a file from before that is of an earlier job."""
    try:
        return os.stat(f"/proc/{pid}").st_mtime - 1
    except OSError:
        return 0.0


def _torch_distributed() -> Any:
    """torch.distributed if the program has imported it; it is not imported for this."""
    module = sys.modules.get("torch.distributed")
    return module if module is not None and module.is_available() else None
