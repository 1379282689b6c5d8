"""Machine code for kernels that still need NVSHMEM, and NVSHMEM's device functions for the linker."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, byref, c_uint32, c_void_p
from typing import Any

from . import _gpu_lib, _lib, _link

lib = _lib.lib


def wants_nvshmem(externs: Sequence[str]) -> list[str]:
    """Those of a module's open names that NVSHMEM's headers define."""
    return [name for name in externs if name.startswith(("nvshmem_", "nvshmemx_"))]


def libraries(ctx: _lib.Context, wants: Sequence[str], arch: str, transport: int) -> list[c_void_p]:
    """NVSHMEM's device functions as modules; the caller's to free."""
    modules, count = POINTER(c_void_p)(), c_uint32()
    names = _lib.strings(wants)
    ctx.check(
        lib().its_asm_nvshmem(ctx.handle, arch.encode(), transport, names, len(wants), byref(modules), byref(count))
    )
    result = [c_void_p(modules[i]) for i in range(count.value)]
    lib().its_free(ctx.handle, modules)
    return result


def assemble(name: str, ptx: str, arch: str, options: Sequence[str] = ()) -> tuple[bytes, dict[str, Any]]:
    """The machine code of a linked module, and what there is to say about it."""
    with _lib.context() as ctx:
        module = _link.parse(ctx, name, ptx.encode())
        result = POINTER(_gpu_lib.AsmResult)()
        try:
            given = _gpu_lib.AsmOptions(
                arch=arch.encode(), options=_lib.strings(options), n_options=len(options), line_info=True
            )
            ctx.check(lib().its_assemble(ctx.handle, module, byref(given), byref(result)))
            return _take(result.contents)
        finally:
            lib().its_asm_free(result)
            lib().its_module_free(module)


def _take(result: _gpu_lib.AsmResult) -> tuple[bytes, dict[str, Any]]:
    text = _lib.text_of
    about = {
        "tool": text(result.tool),
        "version": text(result.version),
        "library": text(result.library),
        "functions": [
            {
                "name": text(f.name),
                "entry": bool(f.entry),
                "registers": f.registers,
                "stack": f.stack,
                "spilled": f.spill_stores,
                "shared": f.shared,
            }
            for f in result.funcs[: result.n_funcs]
        ],
        "advice": [
            {"code": text(a.code), "function": text(a.function), "text": text(a.text)}
            for a in result.advice[: result.n_advice]
        ],
    }
    return ctypes.string_at(result.cubin, result.cubin_size), about


def ptx_version(arch: str) -> tuple[int, int]:
    """The newest PTX that this machine's ptxas takes."""
    with _lib.context() as ctx:
        major, minor = c_uint32(), c_uint32()
        ctx.check(lib().its_asm_ptx_version(ctx.handle, arch.encode(), byref(major), byref(minor)))
        return major.value, minor.value


def version() -> str | None:
    """Of the NVSHMEM on this machine, "3.4.5"; None if there is none."""
    found = _version()
    return ".".join(map(str, found)) if found is not None else None


def _version() -> list[int] | None:
    with _lib.context() as ctx:
        numbers = (c_uint32 * 3)()
        return list(numbers) if lib().its_asm_nvshmem_version(ctx.handle, numbers) == 0 else None


def version_text() -> bytes:
    """NVSHMEM's device library holds its version in a variable, and so does a module that does without that library."""
    values = ", ".join(str(b) for n in _version() or (0, 0, 0) for b in n.to_bytes(4, "little"))
    return f"\n.visible .const .align 4 .b8 nvshmemi_device_lib_version_d[12] = {{{values}}};\n".encode()
