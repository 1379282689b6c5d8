"""Element types by name, those that NumPy lacks included."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._errors import Error


class DType:
    """An element type that NumPy doesn't have. `str(dtype)` is its name, which is what Triton reads."""

    def __init__(self, name: str, itemsize: int) -> None:
        self.name, self.itemsize = name, itemsize

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"intarsia.{self.name}"

    def __eq__(self, other: object) -> bool:
        return str(other).rpartition(".")[2] == self.name

    def __hash__(self) -> int:
        return hash(self.name)


bfloat16 = DType("bfloat16", 2)
float8_e5m2 = DType("float8_e5m2", 1)
float8_e4m3fn = DType("float8_e4m3fn", 1)

_OURS = {d.name: d for d in (bfloat16, float8_e5m2, float8_e4m3fn)}
_SHORT = {"fp16": "float16", "fp32": "float32", "fp64": "float64", "bf16": "bfloat16", "int1": "bool"}
_NUMPY = frozenset(  # what Triton has as well
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
)


def resolve(dtype: Any) -> np.dtype[Any] | DType:
    """From a name, a NumPy type, a torch type, a Triton type or one of ours."""
    if isinstance(dtype, DType):
        return dtype
    name = str(dtype).rpartition(".")[2]
    name = _SHORT.get(name, name)
    if name in _OURS:
        return _OURS[name]
    try:
        found = np.dtype(name if name in _NUMPY else dtype)
    except TypeError:
        raise Error(f"{dtype!r} is no element type") from None
    if found.name not in _NUMPY:
        raise Error(f"kernels have no element type {found.name}")
    return found


def host_type(dtype: np.dtype[Any] | DType) -> np.dtype[Any]:
    """In what NumPy holds the values: bfloat16 as float32, what it can't convert as bytes."""
    if isinstance(dtype, DType):
        return np.dtype("float32") if dtype == bfloat16 else np.dtype("uint8")
    return dtype


def to_device(values: np.ndarray[Any, Any], dtype: np.dtype[Any] | DType) -> np.ndarray[Any, Any]:
    """The bits of host values as they lie in device memory."""
    if dtype != bfloat16:
        with np.errstate(invalid="ignore", over="ignore"):
            host = np.ascontiguousarray(values, host_type(dtype))
        if host.dtype.kind in "iub" and values.dtype != host.dtype:
            _check_kept(values, host, dtype)
        return host
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16  # to nearest, ties to even
    quiet = (bits >> 16) | 0x40
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, quiet, rounded).astype(np.uint16)


def _check_kept(values: np.ndarray[Any, Any], host: np.ndarray[Any, Any], dtype: np.dtype[Any] | DType) -> None:
    """Whole numbers that don't fit, and fractions, would become something else without a word."""
    changed = np.asarray(values != host.reshape(values.shape))
    if changed.any():
        raise Error(f"{np.asarray(values)[changed][0]} is no {dtype}: convert the values first, with astype()")


def from_device(bits: np.ndarray[Any, Any], dtype: np.dtype[Any] | DType) -> np.ndarray[Any, Any]:
    """Host values from what lay in device memory."""
    if dtype == bfloat16:
        return (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return bits.view(host_type(dtype))
