"""`intarsia link --assemble`: machine code, what is told of it, and --strict."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("INTARSIA_TEST_PROGRAM", str(ROOT / "build" / "release" / "bin" / "intarsia"))

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
PLAIN = HEAD + ".visible .entry k(.param .u64 p) { .reg .b64 %d<2>; ld.param.u64 %d1, [p]; st.u64 [%d1], %d1; ret; }\n"
# Without .maxnreg or .minnctapersm the assembler does not know the registers, and ignores the request.
IGNORED = HEAD + ".visible .entry k() { setmaxnreg.dec.sync.aligned.u32 40; ret; }\n"


def link(tmp_path: Path, text: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    source = tmp_path / "k.ptx"
    source.write_text(text)
    command = [PROGRAM, "link", str(source), "-o", str(tmp_path / "out.ptx"), "--assemble", str(tmp_path / "k.cubin")]
    (tmp_path / "k.cubin").unlink(missing_ok=True)
    env = {**os.environ, **environment}
    return subprocess.run([*command, *options], capture_output=True, text=True, env=env, timeout=120, check=False)


@pytest.fixture(autouse=True)
def ptxas(tmp_path):
    done = link(tmp_path, PLAIN)
    if "ptxas is not on this machine" in done.stderr:
        pytest.skip("there is no ptxas on this machine")


def test_machine_code(tmp_path):
    done = link(tmp_path, PLAIN, "--strict")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "k.cubin").read_bytes().startswith(b"\x7fELF")
    assert "kernel k:" in done.stdout and "registers" in done.stdout


def test_strict(tmp_path):
    loose = link(tmp_path, IGNORED)
    assert loose.returncode == 0, loose.stderr
    assert "setmaxnreg" in loose.stdout
    # The kernel does that by itself: test_assembling.py has what calls do.
    strict = link(tmp_path, IGNORED, "--strict")
    assert strict.returncode == 0 and strict.stdout == loose.stdout


def test_strict_needs_assemble(tmp_path):
    source = tmp_path / "k.ptx"
    source.write_text(PLAIN)
    done = subprocess.run([PROGRAM, "link", str(source), "--strict"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "add --assemble FILE" in done.stderr


def test_no_ptxas(tmp_path):
    done = link(tmp_path, PLAIN, INTARSIA_PTXAS="none")
    assert done.returncode == 1 and "INTARSIA_PTXAS is set to 'none'" in done.stderr


PUTS = (
    HEAD + ".extern .func nvshmem_int_p(.param .b64 d, .param .b32 v, .param .b32 pe);\n"
    ".visible .entry k(.param .u64 p) { .reg .b64 %d<2>; .reg .b32 %r<2>; ld.param.u64 %d1, [p]; mov.u32 %r1, 1;\n"
    "call nvshmem_int_p, (%d1, %r1, %r1); ret; }\n"
)


def test_nvshmem_functions_are_found(tmp_path):
    """From the headers: a PE that is reached by loads and stores costs no call. The rest is the device library's."""
    done = link(tmp_path, PUTS, "--report", "text", INTARSIA_CACHE_DIR=str(tmp_path / "cache"))
    if "NVSHMEM's host library" in done.stderr and "not on this machine" in done.stderr:
        pytest.skip("there is no NVSHMEM on this machine")
    assert done.returncode == 0, done.stderr
    assert "k calls nvshmem_int_p" not in done.stdout
    assert "libnvshmem_device.a" in done.stdout
    assert (tmp_path / "k.cubin").read_bytes().startswith(b"\x7fELF")


def test_without_nvshmem_its_functions_are_named(tmp_path):
    done = link(tmp_path, PUTS, INTARSIA_NVSHMEM="none")
    assert done.returncode != 0
    assert "INTARSIA_NVSHMEM is set to 'none'" in done.stderr
    assert not (tmp_path / "k.cubin").exists()
