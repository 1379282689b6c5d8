"""Tests of the Python package. They run in one process with caches of their own; what needs a process gets one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("INTARSIA_TEST_PROGRAM", ROOT / "build" / "release" / "bin" / "intarsia"))

# Before anything is imported: nothing of the user's caches is read or written, and no GPU is looked for.
_CACHES = tempfile.TemporaryDirectory(prefix="intarsia-tests-")
os.environ["INTARSIA_CACHE_DIR"] = f"{_CACHES.name}/intarsia"
os.environ["TRITON_CACHE_DIR"] = f"{_CACHES.name}/triton"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
for name in ("INTARSIA_BACKEND", "INTARSIA_SIM_FD", "INTARSIA_SIM_ARCH", "INTARSIA_PE"):
    os.environ.pop(name, None)


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def simulator() -> Iterator[Any]:
    """The package with a world of one PE open, closed after the test whatever became of it."""
    import intarsia
    from intarsia import _runtime

    intarsia.init()
    yield intarsia
    _runtime._close()


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script in a process of its own: python("print(1)", NAME="value")."""

    def run(
        script: str | Path, *arguments: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        if isinstance(script, str):
            path = tmp_path / "script.py"
            path.write_text(script)
            script = path
        return subprocess.run(
            [sys.executable, str(script), *arguments],
            capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "python"), **(env or {})},
        )  # fmt: skip

    return run


@pytest.fixture
def launch(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script on several PEs: launch(4, path)."""

    def run(
        n: int, script: str | Path, *arguments: str, options: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        assert PROGRAM.exists(), f"{PROGRAM} is not built: run make"
        if isinstance(script, str):
            path = tmp_path / "script.py"
            path.write_text(script)
            script = path
        return subprocess.run(
            [str(PROGRAM), "run", "--sim", *options, "-n", str(n), str(script), *arguments],
            capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "INTARSIA_PYTHON": sys.executable},
        )  # fmt: skip

    return run
