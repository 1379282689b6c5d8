"""
The driver object by which stock Triton launches on the simulator: kernel[grid](...) needs no GPU and no torch.

Triton compiles for the compute capability of the simulated device. What it takes for a binary is PTX text, which is
linked with the simulator's NVSHMEM functions when it is loaded. These "binaries" have names of their own in Triton's
cache.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import _allocation, driver
from triton.runtime.cache import FileCacheManager

from . import _arrays, _comm, _hook, _lib, _modules, _runtime, _triton, _watch
from ._errors import Error

_triton.require()

_N_LAUNCH_EXTRAS = 4  # packed metadata, launch metadata, enter hook, exit hook

# -- one argument, as bytes ------------------------------------------------------------------------------------------

_FORMATS = {
    "i1": "<b", "i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q",
    "u1": "<B", "u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q",
    "fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d",
}  # fmt: skip


# Types of elements that the host numbers otherwise than the device.
_HOST_TYPES = {8: 10, 9: 8, 10: 9}


def _pack(kind: str, value: Any, name: str) -> bytes:
    if kind == "tensor map":
        return bytes(value)
    if kind.startswith("*"):
        return struct.pack("<Q", _address(value, name))
    if kind == "bf16":
        return struct.pack("<f", value)[2:]
    try:
        return struct.pack(_FORMATS[kind], value)
    except KeyError:
        raise Error(f"argument {name} is of type {kind}, which the simulator can't pass yet") from None
    except (struct.error, OverflowError, TypeError):
        raise Error(f"argument {name} is {value!r}, which is no {kind}") from None


def _address(value: Any, name: str) -> int:
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    address = int(value.data_ptr())
    if not isinstance(value, _arrays.Array) and address:
        _check_in_device_memory(value, address, name)
    return address


def _check_in_device_memory(value: Any, address: int, name: str) -> None:
    """For arrays that are not ours: a torch tensor on the CPU has a data_ptr too."""
    backend = _runtime.current()
    byte = ctypes.create_string_buffer(1)
    try:
        backend.copy(_lib.COPY_FROM_DEVICE, address, ctypes.addressof(byte), 1)
    except Error as error:
        what = f"{type(value).__module__}.{type(value).__qualname__}"
        raise Error(
            f"argument {name}, a {what}, is not in device memory of the simulator; "
            f"copy it: intarsia.array(x.numpy())\n{error}"
        ) from None


def _flatten(
    kind: Any, value: Any, name: str, out: list[tuple[str, Any, str]], tensors: Iterator[dict[str, Any]]
) -> None:
    """
    Lays out tuples and tensor descriptors as the kernel's parameters have them. For the latter `tensors` has what
    Triton found out of each; it is empty if the kernel was compiled for a target without TMA.
    """
    if isinstance(kind, tuple):
        for i, (k, v) in enumerate(zip(kind, value)):
            _flatten(k, v, f"{name}[{i}]", out, tensors)
    elif kind == "constexpr":
        pass
    elif kind.startswith("tensordesc"):
        facts = next(tensors, None)
        if facts is None:
            _flatten_descriptor(kind, value, name, out)
        else:
            _flatten_tensor_map(facts, value, name, out)
    else:
        out.append((kind, value, name))


def _flatten_descriptor(kind: str, value: Any, name: str, out: list[tuple[str, Any, str]]) -> None:
    found = re.match(r"tensordesc<([^\[>]*)\[", kind)
    element = found.group(1) if found else "i8"
    out.append((f"*{element}", value.base, name))
    out.extend(("i64", n, name) for n in (*value.shape, *value.strides))
    out.append(("i1", value.padding == "nan", name))
    out.extend(("i32", n, name) for n in value.shape)
    out.extend(("i64", n, name) for n in value.strides)


def _flatten_tensor_map(facts: dict[str, Any], value: Any, name: str, out: list[tuple[str, Any, str]]) -> None:
    shape, strides = list(value.shape), list(value.strides)
    inner = [*shape[:-1], 2 * shape[-1]] if facts["fp4_padded"] else shape
    rank, size = len(shape), facts["elem_size"]
    tensor = _lib.SimTensor(
        address=_address(value.base, name),
        rank=rank,
        type=_HOST_TYPES.get(facts["elem_type"], facts["elem_type"]),
        swizzle=facts["swizzle"],
        fill=value.padding == "nan",
    )
    tensor.dims[:rank] = inner[::-1]
    tensor.strides[: rank - 1] = [size * n for n in strides[-2::-1]]
    tensor.box[:rank] = facts["block_size"][::-1]
    tensor.steps[:rank] = [1] * rank
    image = ctypes.create_string_buffer(128)
    try:
        backend = _runtime.current()
        with backend.alone():
            context = backend.context
            context.check(_lib.lib().its_sim_tensor_encode(context.handle, ctypes.byref(tensor), image))
    except Error as error:
        raise Error(f"argument {name}: {error}") from None
    out.append(("tensor map", image.raw, name))
    out.extend(("i32", n, name) for n in shape)
    out.extend(("i64", n, name) for n in strides)


# -- the objects that Triton asks for --------------------------------------------------------------------------------


class _Launcher:
    def __init__(self, src: Any, metadata: Any) -> None:
        self._names = list(src.fn.arg_names) if hasattr(src, "fn") else []
        self._kinds = list(src.signature.values())
        self._metadata = metadata
        self._barriers = (getattr(metadata, "intarsia", None) or {}).get("barriers", ())
        self._cluster = getattr(metadata, "num_ctas", 1)
        self._tensors = list(getattr(metadata, "tensordesc_meta", None) or [])

    def __call__(self, x: int, y: int, z: int, stream: int, function: _runtime.Function, *args: Any) -> None:
        extras, values = args[:_N_LAUNCH_EXTRAS], args[_N_LAUNCH_EXTRAS:]
        _packed, launch_metadata, enter, leave = extras
        if enter is not None:
            enter(launch_metadata)
        if x * y * z > 0:
            flat: list[tuple[str, Any, str]] = []
            tensors = iter(self._tensors)
            for i, (kind, value) in enumerate(zip(self._kinds, values)):
                _flatten(kind, value, self._names[i] if i < len(self._names) else str(i), flat, tensors)
            params = [_pack(*item) for item in flat]
            params += self._scratch(x * y * z * self._cluster, stream)
            self._check_barriers(values, (x, y, z))
            block = (32 * self._metadata.num_warps, 1, 1)
            function.launch((x * self._cluster, y, z), block, self._metadata.shared, params, stream)
        if leave is not None:
            leave(launch_metadata)

    def _check_barriers(self, values: tuple[Any, ...], grid: tuple[int, int, int]) -> None:
        """A barrier whose index is a constant or the program's number must be there."""
        given = dict(zip(self._names, values))
        for name, index in self._barriers:
            comm = given.get(name)
            if isinstance(comm, _comm.Comm):
                n_programs = grid[0] * grid[1] * grid[2]
                comm.check_launch(self._metadata.name, n_programs - 1 if index is None else index, grid)

    def _scratch(self, n_ctas: int, stream: int) -> list[bytes]:
        """The two pointers that every kernel of Triton has behind its own parameters."""
        m = self._metadata
        wanted = (
            (m.global_scratch_size, m.global_scratch_align, _allocation._allocator),
            (m.profile_scratch_size, m.profile_scratch_align, _allocation._profile_allocator),
        )
        result = []
        for size, align, allocator in wanted:
            buffer = allocator.get()(n_ctas * size, align, stream) if size > 0 else None
            result.append(struct.pack("<Q", _address(buffer, "scratch")))
        return result


class _Utils:
    """What Triton loads kernels by."""

    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: object
    ) -> tuple[Any, _runtime.Function, int, int, int]:
        module = _modules.load_text(f"{name}.ptx", bytes(kernel))
        function = module.function(name)
        return module, function, 0, 0, function.max_threads

    def get_device_properties(self, device: object) -> dict[str, int]:
        info = _runtime.current().info
        return {
            "max_shared_mem": info.max_shared,
            "max_num_regs": info.max_regs,
            "multiprocessor_count": info.multiprocessors,
            "warpSize": info.warp_size,
            "sm_clock_rate": 1,
            "mem_clock_rate": 1,
            "mem_bus_width": 1,
        }

    def unload_module(self, module: object) -> None:
        pass


class SimDriver(DriverBase):  # type: ignore[misc]
    """Set as Triton's active driver while the simulator is open."""

    def __init__(self) -> None:
        self.utils = _Utils()
        self.launcher_cls = _Launcher

    @staticmethod
    def is_active() -> bool:
        return is_active()

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", _runtime.current().capability, 32)

    def get_current_device(self) -> str:
        # Keys Triton's caches within the process: neither a GPU's number, nor what was loaded before finalize().
        return f"sim{_opened}"

    def set_current_device(self, device: object) -> None:
        pass

    def get_current_stream(self, device: object) -> int:
        return 0

    def get_active_torch_device(self) -> str:
        return "cpu"

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_device_interface(self) -> Any:
        raise Error("the simulator has no clock worth measuring with; benchmarks need a GPU")

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """For @triton.autotune: nothing is run or measured, all configurations are equal, the first one is taken."""
        return lambda _call, quantiles=(0.5, 0.2, 0.8), **_options: [0.0 for _ in quantiles]


class _SimCacheManager(FileCacheManager):  # type: ignore[misc]
    """Triton's cache, with the simulator's kernels under names of their own."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key if override or dump else f"sim-{key}", override, dump)


_before: tuple[Any, Any] | None = None
_opened = 0  # how often the simulator was


def activate() -> None:
    """Makes Triton compile for and launch on the open backend."""
    global _before, _opened
    if _before is None:
        _opened += 1
        _before = (driver._active, knobs.cache.manager_class)
        driver.set_active(SimDriver())
        knobs.cache.manager_class = _SimCacheManager
        _watch.forget()  # hashes of kernels tell what they are compiled for
        _hook.install()


def deactivate() -> None:
    global _before
    if _before is not None:
        active, manager = _before
        driver.set_active(active)
        knobs.cache.manager_class = manager
        _watch.forget()
        _before = None


def is_active() -> bool:
    return isinstance(driver._active, SimDriver)
