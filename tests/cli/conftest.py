"""Runs the program as a user would. INTARSIA_TEST_PROGRAM names it; `make test` takes one built with sanitizers."""

import importlib.util
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
    """That of the toolkit, or of the wheel: Triton's own is older than the PTX of our NVRTC."""
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    wheels = importlib.util.find_spec("nvidia")
    roots += [Path(folder) / "cu13" for folder in wheels.submodule_search_locations] if wheels else []
    found = [Path(root) / "bin" / "ptxas" for root in roots if root and (Path(root) / "bin" / "ptxas").exists()]
    assert found, "no ptxas: run make setup"
    return found[0]
