"""What Python calls of include/intarsia/asm.h and rt.h: structures and functions, added to the table of _lib."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

from . import _lib

UNIQUE_ID_SIZE = 128
TRANSPORT_ALL, TRANSPORT_P2P = 0, 1


class AsmOptions(ctypes.Structure):
    _fields_ = [
        ("arch", c_char_p),
        ("options", POINTER(c_char_p)),
        ("n_options", c_uint32),
        ("line_info", c_bool),
    ]


class AsmFunc(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("entry", c_bool),
        ("registers", c_uint32),
        ("barriers", c_uint32),
        ("stack", c_uint64),
        ("spill_stores", c_uint64),
        ("spill_loads", c_uint64),
        ("shared", c_uint64),
    ]


class AsmAdvice(ctypes.Structure):
    _fields_ = [
        ("code", c_char_p),
        ("function", c_char_p),
        ("text", c_char_p),
        ("serialised", c_bool),
        ("no_setmaxnreg", c_bool),
    ]


class AsmResult(ctypes.Structure):
    _fields_ = [
        ("cubin", c_void_p),
        ("cubin_size", c_size_t),
        ("tool", c_char_p),
        ("path", c_char_p),
        ("version", c_char_p),
        ("library", c_char_p),
        ("n_funcs", c_uint32),
        ("funcs", POINTER(AsmFunc)),
        ("n_advice", c_uint32),
        ("advice", POINTER(AsmAdvice)),
        ("log", c_char_p),
    ]


class CudaOptions(ctypes.Structure):
    _fields_ = [
        ("pe", c_uint32),
        ("n_pes", c_uint32),
        ("device", c_int32),
        ("unique_id", c_char_p),
        ("peers_only", c_bool),
        ("wait_limit_ns", c_uint64),
    ]


_lib._SIGNATURES.update(
    {
        "its_assemble": (c_int, [c_void_p, c_void_p, POINTER(AsmOptions), POINTER(POINTER(AsmResult))]),
        "its_asm_free": (None, [POINTER(AsmResult)]),
        "its_asm_text": (c_void_p, [c_void_p, POINTER(AsmResult), POINTER(AsmResult)]),
        "its_asm_nvshmem": (
            c_int,
            [c_void_p, c_char_p, c_int, POINTER(c_char_p), c_uint32, POINTER(POINTER(c_void_p)), POINTER(c_uint32)],
        ),
        "its_asm_ptx_version": (c_int, [c_void_p, c_char_p, POINTER(c_uint32), POINTER(c_uint32)]),
        "its_asm_nvshmem_version": (c_int, [c_void_p, POINTER(c_uint32)]),
        "its_cuda_open": (c_int, [c_void_p, POINTER(CudaOptions), POINTER(POINTER(_lib.BackendHead))]),
        "its_cuda_unique_id": (c_int, [c_void_p, c_void_p]),
        "its_cuda_device_count": (c_uint32, [c_void_p]),
        "its_cuda_need_nvshmem": (c_int, [c_void_p]),
        "its_cuda_adopt": (c_int, [c_void_p, c_void_p, POINTER(c_bool)]),
        "its_cuda_forget": (None, [c_void_p, c_void_p]),
        "its_cuda_check_waits": (c_int, [c_void_p]),
        "its_cuda_abandon": (None, [c_void_p]),
    }
)
