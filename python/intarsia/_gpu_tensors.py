"""
Arrays on GPUs as other libraries see them: one address, no copy.

Nothing here frees memory, least of all symmetric memory, which is freed by all PEs together and by nobody's destructor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _dtypes
from ._errors import Error

if TYPE_CHECKING:
    from ._arrays import Array

# Types that the interface has no name for travel as integers of their size.
_AS_INTEGER = {"bfloat16": "<i2", "float8_e5m2": "|u1", "float8_e4m3fn": "|u1"}


def interface(array: Array) -> dict[str, Any]:
    """Version 3 of the CUDA array interface."""
    name = str(array.dtype)
    typestr = _AS_INTEGER[name] if isinstance(array.dtype, _dtypes.DType) else array.dtype.str
    return {"shape": array.shape, "typestr": typestr, "data": (array.data_ptr(), False), "version": 3, "strides": None}


def to_torch(array: Array) -> Any:
    if array._backend.name != "cuda":
        raise Error("torch tensors on the same memory are for GPUs; in the simulator numpy() copies")
    try:
        import torch
    except ImportError:
        raise Error("torch is not installed") from None
    if array.size == 0:
        dtype = getattr(torch, str(array.dtype))
        return torch.empty(array.shape, dtype=dtype, device="cuda")
    tensor = torch.as_tensor(array, device="cuda")
    if isinstance(array.dtype, _dtypes.DType):
        tensor = tensor.view(getattr(torch, array.dtype.name))
    if tensor.data_ptr() != array.data_ptr():
        raise Error(f"torch copied {array!r} instead of sharing it; is its current GPU another one?")
    return tensor
