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


def _run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True, text=True, timeout=300, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), **environment},
    )  # fmt: skip


def _path_of(script: str | Path, folder: Path) -> str:
    """The script's path; a text is written down first."""
    if isinstance(script, str):
        path = folder / "script.py"
        path.write_text(script)
        script = path
    return str(script)


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script in a process of its own: python("print(1)", env={"NAME": "value"})."""

    def run(
        script: str | Path, *arguments: str, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return _run([sys.executable, _path_of(script, tmp_path), *arguments], tmp_path, **(env or {}))

    return run


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Begins to run a text on several PEs: start(4, text, "--grace", "1")."""

    def run(n: int, text: str, *options: str) -> subprocess.Popen[str]:
        script = tmp_path / "script.py"
        script.write_text(text)
        return subprocess.Popen(
            [str(PROGRAM), "run", "--sim", *options, "-n", str(n), str(script)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "INTARSIA_PYTHON": sys.executable},
        )  # fmt: skip

    return run


@pytest.fixture
def launch(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script on several PEs: launch(4, path)."""

    def run(
        n: int, script: str | Path, *arguments: str, options: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        assert PROGRAM.exists(), f"{PROGRAM} is not built: run make"
        command = [str(PROGRAM), "run", "--sim", *options, "-n", str(n), _path_of(script, tmp_path), *arguments]
        return _run(command, tmp_path, INTARSIA_PYTHON=sys.executable)

    return run
