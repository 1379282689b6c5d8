"""Runs the program as a user would. INTARSIA_TEST_PROGRAM names it; `make test` takes one built with sanitizers."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("INTARSIA_TEST_PROGRAM", ROOT / "build" / "release" / "bin" / "intarsia")).resolve()


@dataclass
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def program():
    assert PROGRAM.exists(), f"{PROGRAM} is not built: run make"
    return PROGRAM


@pytest.fixture
def environment(tmp_path):
    """What the program sees: a cache of its own, no colours, nothing left over from an outer run."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INTARSIA_")}
    return {**kept, "INTARSIA_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
def intarsia(program, environment, tmp_path):
    """Calls the program in an empty folder: intarsia("cc", "x.cu", stdin="...") -> Done."""
    here = tmp_path / "here"
    here.mkdir(exist_ok=True)

    def call(*arguments, stdin="", timeout=120, cwd=here, **variables):
        done = subprocess.run([program, *map(str, arguments)], input=stdin, capture_output=True, errors="replace",
                              cwd=cwd, timeout=timeout, check=False, env={**environment, **variables})
        assert "Sanitizer" not in done.stderr and "runtime error:" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    call.folder = here
    return call


@pytest.fixture(scope="session")
def ptxas():
    """Triton brings one."""
    import triton

    path = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    assert path.exists()
    return path
