"""Inlining must not change what a module computes: random modules full of calls, run on the simulator both ways.

The simulator executes calls as the PTX manual defines them. A GPU is the oracle for inlined modules only: on an H200
they compute what the simulator says, but for some of these modules ptxas 13.0 makes calls that do not, for instance by
widening an 8-bit piece in a 16-bit register as if that had 32 bits.
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
from pathlib import Path

import pytest
import random_modules

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("INTARSIA_TEST_PROGRAM", ROOT / "build" / "release" / "bin" / "intarsia")).resolve()
THREADS = 64
SEEDS = int(os.environ.get("INTARSIA_TEST_SEEDS", "24"))


@pytest.fixture
def words(tmp_path):
    rng = random.Random(1)
    path = tmp_path / "words"
    path.write_bytes(struct.pack(f"<{THREADS}I", *(rng.getrandbits(32) if i % 3 else i for i in range(THREADS))))
    return path


def simulate(module: Path, words: Path, *options: str) -> bytes:
    out = module.with_suffix(".out")
    command = [PROGRAM, "sim", *options, module, "--block", str(THREADS), "--arg", f"buf:{words}",
               "--arg", f"out:{4 * THREADS}:{out}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out.read_bytes()


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_inlined_computes_the_same(seed, tmp_path, words):
    module = tmp_path / "module.ptx"
    module.write_text(random_modules.make_module(seed))
    called = simulate(module, words, "--no-inline")
    assert any(called)
    assert simulate(module, words) == called
    assert simulate(module, words, "--budget", "60") == called
    linked = tmp_path / "linked.ptx"
    done = subprocess.run([PROGRAM, "link", module, "-o", linked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert simulate(linked, words, "--no-inline") == called


def test_modules_differ():
    assert len({random_modules.make_module(seed) for seed in range(20)}) == 20
