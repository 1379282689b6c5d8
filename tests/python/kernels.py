"""Compiling kernels for a target without a device, and looking at what came out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

ARCHS = (80, 90)


def build(kernel: Any, signature: dict[str, str], arch: int = 80, constants: Any = None, **options: Any) -> Any:
    """Through all of Triton's stages, ptxas included. Pointers are aligned to 16 bytes, as PyTorch's are."""
    aligned = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(signature.values()) if kind.startswith("*")}
    source = ASTSource(kernel, signature, constexprs=constants or {}, attrs=aligned)
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)


def mnemonics(ptx: str, *patterns: str) -> list[str]:
    """The parts of the text that match one of the patterns, in order."""
    return re.findall("|".join(patterns), ptx)


def assemble(ptx: str, tmp_path: Path, arch: int) -> str:
    """What Triton's own ptxas says of the text; asserts that it takes it."""
    source = tmp_path / "kernel.ptx"
    source.write_text(ptx)
    ptxas = triton.knobs.nvidia.ptxas.path
    target = f"sm_{arch}a" if arch >= 90 else f"sm_{arch}"
    done = subprocess.run(
        [ptxas, "-v", f"--gpu-name={target}", source, "-o", tmp_path / "kernel.cubin"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def machine_code(cubin: bytes, tmp_path: Path) -> str:
    path = tmp_path / "code.cubin"
    path.write_bytes(cubin)
    tool = triton.knobs.nvidia.nvdisasm.path
    return subprocess.run([tool, "-c", path], capture_output=True, text=True, check=True).stdout
