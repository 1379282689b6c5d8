"""Communicators, as the host makes them: what barriers and signals in kernels work on."""

from __future__ import annotations

import ctypes
import os
import warnings
import weakref
from collections.abc import Sequence
from ctypes import POINTER, byref, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np

from . import _arrays, _lib, _runtime
from ._errors import Error, Warning


class CommOptions(ctypes.Structure):
    _fields_ = [("n_barriers", c_uint32), ("n_signals", c_uint32), ("team", POINTER(c_uint32)), ("n_team", c_uint32)]


class CommInfo(ctypes.Structure):
    _fields_ = [
        ("device", c_uint64),
        ("n_barriers", c_uint32),
        ("n_signals", c_uint32),
        ("rank", c_uint32),
        ("size", c_uint32),
        ("local_rank", c_uint32),
        ("local_size", c_uint32),
        ("pes", POINTER(c_uint32)),
    ]


_lib._SIGNATURES.update(
    {
        "its_comm_new": (ctypes.c_int, [c_void_p, POINTER(CommOptions), POINTER(c_void_p)]),
        "its_comm_free": (ctypes.c_int, [c_void_p]),
        "its_comm_query": (POINTER(CommInfo), [c_void_p]),
        "its_comm_peer": (ctypes.c_int, [c_void_p, c_uint64, c_uint32, POINTER(c_uint64)]),
        "its_comm_check_index": (ctypes.c_int, [c_void_p, ctypes.c_char_p, c_uint64, POINTER(c_uint32)]),
    }
)

_NO_RANK = 0xFFFFFFFF


class Comm:
    """
    Barriers and signals of a team of PEs, all of them if `team` is not given. Collective, for every PE of the world,
    also those that are not in the team; so is `free`, which must be called. Pass it to a kernel like an array.
    """

    def __init__(self, n_barriers: int = 1, team: Sequence[int] | None = None, n_signals: int = 0) -> None:
        self._backend = _runtime.current()
        self._handle = c_void_p()
        pes = None if team is None else (c_uint32 * len(team))(*(_number(pe, "PE") for pe in team))
        options = CommOptions(
            _number(n_barriers, "number of barriers"), _number(n_signals, "number of signals"), pes, len(pes or ())
        )
        self._backend.collective("its_comm_new", self._backend.c_handle, byref(options), byref(self._handle))
        info = _lib.lib().its_comm_query(self._handle).contents
        self.n_barriers, self.n_signals = int(info.n_barriers), int(info.n_signals)
        self.size, self.local_size = int(info.size), int(info.local_size)
        self.team = tuple(int(info.pes[i]) for i in range(info.size))
        self._rank, self._local_rank, self._address = int(info.rank), int(info.local_rank), int(info.device)
        self._finalizer = weakref.finalize(self, _forgotten, self._backend)
        self._finalizer.atexit = False

    # -- what launches need ------------------------------------------------------------------------------------------

    dtype = np.dtype("int64")  # of what kernels see a pointer to

    def data_ptr(self) -> int:
        self._check_alive()
        if not self.member:
            raise Error(f"PE {self._backend.pe} is no member of the team {self.team}, so its kernels can't use {self}")
        return self._address

    def element_size(self) -> int:
        return 8

    # -- asking ------------------------------------------------------------------------------------------------------

    @property
    def member(self) -> bool:
        """Whether this PE is in the team."""
        return self._rank != _NO_RANK

    @property
    def rank(self) -> int:
        """Of this PE in the team."""
        return self._check_member(self._rank)

    @property
    def local_rank(self) -> int:
        """Of this PE among the members that are reached by loads and stores."""
        return self._check_member(self._local_rank)

    def peer(self, array: _arrays.Array, rank: int) -> _arrays.Array:
        """A symmetric array as the member of rank `rank` has it, at the address by which this PE reaches it."""
        self._check_alive()
        mapped = c_uint64()
        number = _number(rank, "rank")
        with self._backend.alone():
            self._backend.check(_lib.lib().its_comm_peer(self._handle, array.data_ptr(), number, byref(mapped)))
        return array.peer(self.team[rank])

    def __repr__(self) -> str:
        freed = "" if self._finalizer.alive else "freed "
        counts = f"{self.n_barriers} barriers, {self.n_signals} signals"
        return f"<intarsia {freed}communicator of PEs {self.team}, {counts}>"

    # -- the end -----------------------------------------------------------------------------------------------------

    def free(self) -> None:
        """Gives the memory back. Collective."""
        self._check_alive()
        self._finalizer.detach()
        self._backend.collective("its_comm_free", self._handle)

    def check_launch(self, kernel: str, most: int, grid: Sequence[int]) -> None:
        """A launch whose largest index is `most` must not go beyond what there is."""
        with self._backend.alone():
            self._backend.check(
                _lib.lib().its_comm_check_index(self._handle, kernel.encode(), most, (c_uint32 * 3)(*grid))
            )

    def _check_alive(self) -> None:
        if not self._finalizer.alive:
            raise Error(f"the communicator of PEs {self.team} was freed")
        if self._backend.closed:
            raise Error(f"the communicator of PEs {self.team} went when the backend was closed")

    def _check_member(self, rank: int) -> int:
        if not self.member:
            raise Error(f"PE {self._backend.pe} is no member of the team {self.team} and has no rank in it")
        return rank


def _number(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 1 << 32:
        raise Error(f"{value!r} is no {what}")
    return int(value)


def _forgotten(backend: _runtime.Backend) -> None:
    if not backend.closed:
        warnings.warn(
            "a communicator was dropped without free(): freeing is collective, so its memory stays",
            Warning,
            stacklevel=2,
        )


def why_no_multicast() -> str:
    """Why barriers of our own don't use multicast memory here."""
    if not _runtime.is_open() or _runtime.current().name == "sim":
        return "the simulator has no multicast memory"
    if os.environ.get("NVSHMEM_DISABLE_NVLS", "0") not in ("", "0", "false", "no", "n"):
        return "multicast memory is switched off, by NVSHMEM_DISABLE_NVLS"
    return "the barriers of the provider 'intarsia' write each peer's slot by itself; flagcx may have multicast ones"
