"""Where the compilers and assemblers of this machine are. Everything here may be absent; callers say so by name."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path


def package_dir(name: str) -> Path | None:
    """The folder of an installed Python package, without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places else None


@cache
def cuda_roots() -> list[Path]:
    """Toolkits, the preferred one first: CUDA_HOME, the one whose nvcc is on PATH, the usual place, the wheels."""
    found = [Path(v) for k in ("CUDA_HOME", "CUDA_PATH") if (v := os.environ.get(k))]
    if nvcc := shutil.which("nvcc"):
        found.append(Path(nvcc).resolve().parent.parent)
    found.append(Path("/usr/local/cuda"))
    if wheels := package_dir("nvidia"):
        found += sorted(p for p in wheels.iterdir() if p.name in ("cu13", "cuda_nvrtc", "cuda_runtime", "cuda_nvcc"))
    return [p for p in dict.fromkeys(found) if p.is_dir()]


def in_toolkit(*relative: str) -> Path | None:
    return next((root / r for root in cuda_roots() for r in relative if (root / r).exists()), None)


@cache
def nvcc() -> Path | None:
    return in_toolkit("bin/nvcc")


@cache
def cuda_includes() -> list[Path]:
    """Folders for #include of CUDA and of the C++ core libraries that come with it."""
    first = in_toolkit("include")
    return [p for p in (first, first / "cccl") if p.is_dir()] if first else []


@cache
def nvshmem_include() -> Path | None:
    """Headers of the NVSHMEM wheel."""
    root = package_dir("nvidia.nvshmem")
    return root / "include" if root and (root / "include/nvshmem.h").exists() else None


@cache
def llvm_programs(stem: str) -> dict[str, Path]:
    """Installed `clang` or `llc` by version, such as {"14": ..., "22": ...}."""
    found: dict[str, Path] = {}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for path in sorted(Path(folder).glob(f"{stem}-[0-9]*")) if Path(folder).is_dir() else []:
            if match := re.fullmatch(rf"{stem}-(\d+)", path.name):
                found.setdefault(match[1], path)
    if not found and (plain := shutil.which(stem)):
        major = re.search(r"version (\d+)", version_of(Path(plain)))
        found[major[1] if major else "0"] = Path(plain)
    return found


@cache
def version_of(program: Path) -> str:
    out = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return " ".join(out.split())


# -- NVRTC -------------------------------------------------------------------------------------------------------------


@cache
def nvrtc() -> ctypes.CDLL | None:
    folders = [root / d for root in cuda_roots() for d in ("lib64", "lib")]
    names = [str(p) for d in folders if d.is_dir() for p in sorted(d.glob("libnvrtc.so*"), reverse=True)]
    for name in [*names, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def nvrtc_version() -> str:
    library = nvrtc()
    assert library is not None
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"NVRTC {major.value}.{minor.value}"


def nvrtc_compile(source: str, name: str, options: list[str]) -> str:
    """PTX of a source; RuntimeError with the compiler's log if it is refused."""
    library = nvrtc()
    assert library is not None
    program = ctypes.c_void_p()

    def must(status: int) -> None:
        if status:
            library.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise RuntimeError(library.nvrtcGetErrorString(status).decode())

    def text(size_of: str, get: str) -> str:
        size = ctypes.c_size_t()
        must(getattr(library, size_of)(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        must(getattr(library, get)(program, buffer))
        return buffer.value.decode()

    must(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None))
    try:
        array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        if library.nvrtcCompileProgram(program, len(options), array):
            raise RuntimeError(text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog"))
        return text("nvrtcGetPTXSize", "nvrtcGetPTX")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


# -- assemblers --------------------------------------------------------------------------------------------------------

# The newest PTX ISA that each release of ptxas reads.
PTX_OF_RELEASE = {(12, 4): (8, 4), (12, 5): (8, 5), (12, 6): (8, 5), (12, 8): (8, 7), (12, 9): (8, 8), (13, 0): (9, 0),
                  (13, 1): (9, 1), (13, 2): (9, 2)}


@cache
def assemblers() -> list[tuple[tuple[int, int], Path]]:
    """Every ptxas found with the newest PTX ISA it reads, oldest first."""
    places = [root / "bin/ptxas" for root in cuda_roots()]
    if triton := package_dir("triton"):
        places += [triton / "backends/nvidia/bin" / n for n in ("ptxas", "ptxas-blackwell")]
    found = {}
    for path in places:
        if path.exists() and (release := re.search(r"release (\d+)\.(\d+)", version_of(path))):
            number = (int(release[1]), int(release[2]))
            found.setdefault(PTX_OF_RELEASE.get(number, (number[0] - 4, number[1])), path)
    return sorted(found.items())


def assembler_for(ptx: str) -> Path | None:
    """The oldest ptxas that reads this text's .version: the one its producer meant."""
    match = re.search(r"^\s*\.version\s+(\d+)\.(\d+)", ptx, re.M)
    need = (int(match[1]), int(match[2])) if match else (0, 0)
    blackwell = re.search(r"^\s*\.target\s+sm_1\d\d", ptx, re.M) is not None
    return next((path for ptx_isa, path in assemblers() if ptx_isa >= max(need, (8, 8) if blackwell else (0, 0))), None)
