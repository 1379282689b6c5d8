"""
Host files on GPUs: against the real headers and libraries of NVSHMEM and the CUDA runtime.

    NAME-host.c     the C compiler; NVSHMEM's host API only
    NAME-host.cc    the C++ compiler, likewise
    NAME-host.cu    nvcc, with kernels and NVSHMEM's device functions, linked for the device

Every name is checked when the library is linked, and the run path says where NVSHMEM lies, so that nothing has to be
looked for when it is loaded.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import _compile, _gpu, _lib, _runtime
from ._errors import Error


@dataclass(frozen=True)
class _Tools:
    nvshmem: Path  # the directory with include/ and lib/
    host_library: Path
    cuda_include: Path
    cudart: Path
    nvcc: str | None


def _find() -> _Tools:
    library = _nvshmem_library()
    include, cudart, nvcc = _cuda()
    return _Tools(library.parent.parent, library, include, cudart, nvcc)


def _site_packages() -> list[Path]:
    _lib.lib()  # sets the variable
    return [Path(p) for p in os.environ.get("INTARSIA_SITE_PACKAGES", "").split(os.pathsep) if p]


def _nvshmem_library() -> Path:
    """The same file that the library itself loads."""
    names = ("libnvshmem_host.so", "libnvshmem_host.so.3")
    given = os.environ.get("INTARSIA_NVSHMEM")
    if given and Path(given).is_file():
        return Path(given).resolve()
    folders = [Path(given)] if given else [site / "nvidia" / "nvshmem" / "lib" for site in _site_packages()]
    for folder in folders:
        for name in names:
            if (folder / name).is_file():
                return folder / name
    if given:
        raise Error(f"INTARSIA_NVSHMEM names {given}, which is neither {names[1]} nor the directory that it is in")
    raise Error("NVSHMEM is not on this machine: run `pip install nvidia-nvshmem-cu13`, or set INTARSIA_NVSHMEM")


def _cuda() -> tuple[Path, Path, str | None]:
    """Headers, the CUDA runtime and nvcc: a toolkit, else wheels."""
    nvcc = shutil.which("nvcc")
    roots = [Path(p) for p in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda") if p]
    if nvcc:
        roots.append(Path(nvcc).resolve().parent.parent)
    roots += [site / "nvidia" / name for site in _site_packages() for name in ("cu13", "cuda_runtime")]
    for root in roots:
        if not (root / "include" / "cuda_runtime.h").is_file():
            continue
        for folder in ("lib64", "lib"):
            found = sorted((root / folder).glob("libcudart.so*"))
            if found:
                own = root / "bin" / "nvcc"
                return root / "include", found[0], str(own) if own.is_file() else nvcc
    raise Error("the CUDA runtime's headers and library are not on this machine: install a CUDA toolkit")


# -- compiling -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Recipe:
    compiler: list[str]  # with every flag that says how to compile
    linking: list[str]  # behind the file
    beside: list[Path]  # further files


def build(path: str, options: tuple[str, ...]) -> ctypes.CDLL:
    """The shared object, from the cache if this content was compiled before."""
    tools = _find()
    recipe = _for_nvcc(tools, options) if path.endswith(".cu") else _for_cc(path, tools, options)
    text = _compile.run([*recipe.compiler, "-E", path], path)
    version = _compile.run([recipe.compiler[0], "--version"], path)
    flags = "\0".join([*recipe.compiler, *recipe.linking]).encode()
    parts = [text, version, flags, *(file.read_bytes() for file in recipe.beside)]
    command = [*recipe.compiler, path, *map(str, recipe.beside), *recipe.linking, "-shared", "-o"]
    return _compile.loaded(f"{Path(path).stem}.so", parts, lambda out: [*command, out], path)


def _for_cc(path: str, tools: _Tools, options: tuple[str, ...]) -> _Recipe:
    compiler, language = _compile.compiler_of(path)
    includes = [f"-I{tools.nvshmem / 'include'}", f"-I{tools.cuda_include}"]
    if language == "c":
        includes = ["-Werror=implicit-function-declaration", f"-I{_lib.include('gpu/c/nvshmem.h').parent}", *includes]
    else:  # NVSHMEM's own header brings its device code along, which is C++17 and wants <cuda/std/tuple>
        includes = ["-std=c++17", *includes, f"-I{tools.cuda_include / 'cccl'}"]
    run_path = [f"-Wl,-rpath,{folder}" for folder in _folders(tools)]
    linking = ["-x", "none", str(tools.host_library), str(tools.cudart), "-Wl,-z,defs", *run_path]
    return _Recipe([*compiler, "-x", language, "-fPIC", "-g", "-O1", *includes, *options], linking, [])


def _for_nvcc(tools: _Tools, options: tuple[str, ...]) -> _Recipe:
    if tools.nvcc is None:
        raise Error("a host file in .cu needs nvcc, which is not on this machine; one in .c or .cc does not")
    compiler = [tools.nvcc, f"-arch=sm_{_runtime.current().capability}", "-rdc=true", "-std=c++17", "-O1"]
    compiler += ["-Xcompiler", "-fPIC", f"-I{tools.nvshmem / 'include'}", *options]
    linking = [f"-L{tools.nvshmem / 'lib'}", f"-l:{tools.host_library.name}", "-lnvshmem_device", "-lcuda"]
    linking += ["-cudart", "shared", "-Xlinker", "-z,defs"]
    for folder in _folders(tools):
        linking += ["-Xlinker", f"-rpath,{folder}"]
    return _Recipe(compiler, linking, [_lib.include("gpu/cuda/intarsia_module.cu")])


def load(path: str, options: tuple[str, ...]) -> ctypes.CDLL:
    """The host file, compiled and loaded; NVSHMEM knows of its device code."""
    backend = _runtime.current()
    library = build(path, options)
    if path.endswith(".cu"):
        module = ctypes.c_void_p()
        error = library.intarsia_host_module(ctypes.byref(module))
        if error or module.value is None:
            raise Error(f"the device code of {path} can't be loaded (error {error} of CUDA)")
        _gpu.adopt(backend, module.value)
    return library


def _folders(tools: _Tools) -> list[str]:
    return sorted({str(tools.host_library.parent), str(tools.cudart.parent)})
