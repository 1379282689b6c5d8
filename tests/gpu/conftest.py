"""
Tests that need a GPU. Everywhere else they are skipped, with the reason; tests/GPU.md tells where they ran last.

Each test runs a program as a user would, in processes of its own, on one GPU or several: PEs share what there is.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
sys.path.insert(0, str(ROOT / "python"))


def _missing() -> str | None:
    try:
        from intarsia import _gpu

        if not _gpu.count():
            return "there is no GPU on this machine"
        import torch
    except ImportError as error:
        return f"{error.name} is not installed"
    except Exception as error:
        return f"Intarsia is not built: {error}"
    return None if torch.cuda.is_available() else "torch sees no GPU"


_reason = _missing()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs a GPU")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).resolve().parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.gpu)
            if _reason:
                item.add_marker(pytest.mark.skip(reason=_reason))


def program() -> str:
    """The command line program."""
    given = os.environ.get("INTARSIA_PROGRAM")
    return given or str(ROOT / "build" / "release" / "bin" / "intarsia")


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run() -> Run:
    def start(command: Sequence[str], *, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "INTARSIA_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "python"), **environment}
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env, check=False)
        print(done.stdout[-6000:], done.stderr[-6000:])
        return done

    return start


@pytest.fixture
def pes(run: Run) -> Run:
    """Runs a program on several PEs with `intarsia run`."""

    def start(n: int, script: str | Path, *args: str, **rest: str) -> subprocess.CompletedProcess[str]:
        path = script if Path(script).is_absolute() else PROGRAMS / script
        return run([program(), "run", "-n", str(n), str(path), *args], **rest)

    return start


@pytest.fixture
def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
