"""
Arrays in the memory of the open backend.

They are addresses with a shape and an element type, nothing more: computing is what kernels are for. They go into a
Triton launch as they are, and to the host by copies: `a.numpy()`, `a.copy_from(values)`.
"""

from __future__ import annotations

import math
import operator
import warnings
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import _dtypes, _gpu_tensors, _lib, _runtime
from ._errors import Error, Warning

Shape = int | Sequence[int]
_MOST_BYTES = 2**63 - 1  # what C can be asked for


def _shape_of(shape: Shape) -> tuple[int, ...]:
    try:
        lengths = tuple(operator.index(n) for n in (shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        raise Error(f"a shape is one or more whole numbers, not {shape!r}") from None
    if any(n < 0 for n in lengths):
        raise Error(f"a shape can't be negative: {lengths}")
    return lengths


class Array:
    """Contiguous elements in device or symmetric memory, or a view of memory that somebody else owns."""

    def __init__(self, address: int, shape: Shape, dtype: Any, owner: _Memory | None = None) -> None:
        self.shape = _shape_of(shape)
        self.dtype = _dtypes.resolve(dtype)
        self._address, self._memory = int(address), owner
        self._backend = _runtime.current()

    # -- what launches need ------------------------------------------------------------------------------------------

    def data_ptr(self) -> int:
        if self._memory is not None:
            self._memory.check_alive()
        return self._address

    def element_size(self) -> int:
        return int(self.dtype.itemsize)

    def stride(self, axis: int | None = None) -> Any:
        """In elements, as torch counts."""
        strides = tuple(math.prod(self.shape[i + 1 :]) for i in range(len(self.shape)))
        return strides if axis is None else strides[axis]

    # -- size --------------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.element_size()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def symmetric(self) -> bool:
        return self._memory is not None and self._memory.kind == _lib.MEMORY_SYMMETRIC

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        where = "symmetric" if self.symmetric else "device"
        if self._memory is not None and self._memory.freed:
            where = "freed"
        return f"<intarsia {where} array {self.shape} {self.dtype} at {self._address:#x}>"

    # -- copies ------------------------------------------------------------------------------------------------------

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host, taken when everything launched before is done. bfloat16 comes as float32."""
        item = self.element_size()
        bits = np.empty(self.size * item, np.uint8)
        if bits.size:
            self._backend.copy(_lib.COPY_FROM_DEVICE, self.data_ptr(), bits.ctypes.data, bits.size)
        return _dtypes.from_device(bits, self.dtype).reshape(self.shape)

    def copy_from(self, values: Any) -> Array:
        """Copies host values, or another array of the same type and shape, in; returns itself."""
        if isinstance(values, Array):
            if values.dtype != self.dtype or values.shape != self.shape:
                raise Error(f"a copy from {values!r} to {self!r} would change type or shape")
            if self.nbytes:
                self._backend.copy(_lib.COPY_DEVICE, self.data_ptr(), values.data_ptr(), self.nbytes)
            return self
        host = np.asarray(values)
        try:
            host = np.broadcast_to(host, self.shape)
        except ValueError:
            raise Error(f"values of the shape {host.shape} don't fill {self!r}") from None
        bits = _dtypes.to_device(host, self.dtype)
        if bits.size:
            self._backend.copy(_lib.COPY_TO_DEVICE, self.data_ptr(), bits.ctypes.data, self.nbytes)
        return self

    def zero_(self) -> Array:
        if self.nbytes:
            self._backend.fill(self.data_ptr(), 0, self.nbytes)
        return self

    # -- for other libraries -----------------------------------------------------------------------------------------

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """On a GPU: how CuPy, Numba and torch see the memory without a copy. They keep this array alive."""
        if self._backend.name != "cuda":
            raise AttributeError("memory of the simulator is no CUDA memory; numpy() copies it")
        return _gpu_tensors.interface(self)

    def torch(self) -> Any:
        """On a GPU: a torch tensor on the same memory. `free` takes the memory from under it."""
        return _gpu_tensors.to_torch(self)

    def __dlpack__(self, **options: Any) -> Any:
        return self.torch().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.torch().__dlpack_device__()  # type: ignore[no-any-return]

    # -- views and peers ---------------------------------------------------------------------------------------------

    def view(self, shape: Shape | None = None, dtype: Any = None, offset: int = 0) -> Array:
        """The memory from element `offset` on, with another shape or element type."""
        new = Array(0, self.shape if shape is None else shape, self.dtype if dtype is None else dtype, self._memory)
        start = _runtime.whole(offset, "offset of a view") * self.element_size()
        if start < 0 or start + new.nbytes > self.nbytes:
            raise Error(f"a view of {new.nbytes} bytes from element {offset} on goes beyond {self!r}")
        new._address = self.data_ptr() + start
        return new

    def peer(self, pe: int) -> Array:
        """The same symmetric array as PE `pe` has it, at the address by which this PE reaches it."""
        new = Array(self._backend.peer(self.data_ptr(), pe), self.shape, self.dtype)
        new._memory = self._memory
        return new

    def free(self) -> None:
        """Gives the memory back. Collective if it is symmetric."""
        if self._memory is None or self._memory.address != self._address:
            raise Error(f"{self!r} is a view; free the array that the memory was made as")
        self._memory.free()


class _Memory:
    """An allocation. Device memory goes with its last array; symmetric memory only by `free`, which is collective."""

    def __init__(self, kind: int, size: int) -> None:
        self.backend, self.kind = _runtime.current(), kind
        self.address = self.backend.alloc(kind, max(size, 1))
        self._finalizer = weakref.finalize(self, _forgotten, self.backend, kind, self.address, size)
        self._finalizer.atexit = False

    @property
    def freed(self) -> bool:
        return not self._finalizer.alive

    def check_alive(self) -> None:
        if self.freed:
            raise Error(f"the array at {self.address:#x} was freed")
        if self.backend.closed:
            raise Error(f"the array at {self.address:#x} went when the backend was closed")

    def free(self) -> None:
        self.check_alive()
        self._finalizer.detach()
        self.backend.free(self.kind, self.address)


def _forgotten(backend: _runtime.Backend, kind: int, address: int, size: int) -> None:
    if backend.closed:
        return
    if kind == _lib.MEMORY_DEVICE:
        with backend.unseen():  # after a fault everything fails
            backend.free(kind, address)
    else:
        warnings.warn(
            f"a symmetric array of {size} bytes was dropped without free(): freeing is collective, so the memory stays",
            Warning,
            stacklevel=2,
        )


# -- making them -----------------------------------------------------------------------------------------------------


def _make(kind: int, shape: Shape, dtype: Any) -> Array:
    array = Array(0, shape, dtype)
    if array.nbytes > _MOST_BYTES:
        raise Error(f"an array of {array.nbytes} bytes is larger than memory can be")
    array._memory = _Memory(kind, array.nbytes)
    array._address = array._memory.address
    return array


def empty(shape: Shape, dtype: Any = "float32") -> Array:
    """Device memory that nobody has written yet."""
    return _make(_lib.MEMORY_DEVICE, shape, dtype)


def zeros(shape: Shape, dtype: Any = "float32") -> Array:
    return empty(shape, dtype).zero_()


def array(values: Any, dtype: Any = None) -> Array:
    """A copy of host values in device memory."""
    host = np.asarray(values)
    return empty(host.shape, host.dtype if dtype is None else dtype).copy_from(host)


def symmetric(shape: Shape, dtype: Any = "float32") -> Array:
    """Zeros in symmetric memory, at the same place on every PE. Collective, and so is `free`, which must be called."""
    new = _make(_lib.MEMORY_SYMMETRIC, shape, dtype).zero_()
    _runtime.barrier()
    return new


def from_address(address: int, shape: Shape, dtype: Any) -> Array:
    """A view of memory that somebody else owns, such as what a host file has allocated."""
    if not address:
        raise Error("a null address is no array; did the allocation fail?")
    return Array(address, shape, dtype)
