"""Triton's cache and edited device files: in the same process, in another one, headers, through helpers."""

from __future__ import annotations

import os

import pytest

# The kernel goes through two helpers. What it computes shows which version of the device file is in it.
SCRIPT = """
import os, sys
import numpy as np
import triton, triton.language as tl
import intarsia

unit = intarsia.load("f.cu")

@triton.jit
def inner(x):
    return unit.f(x)

@triton.jit
def outer(x):
    return inner(x)

@triton.jit
def kernel(p, x):
    tl.store(p, outer(x))

compiled = []
triton.knobs.compilation.listener, ours = (
    lambda **k: (compiled.append(not k["cache_hit"]), ours(**k)), triton.knobs.compilation.listener)

def run():
    compiled.clear()
    out = intarsia.empty(1, "int32")
    try:
        kernel[(1,)](out, 1)
        print(out.numpy()[0], "compiled" if any(compiled) else "cached" if compiled else "known")
    except intarsia.Error as error:
        print("error", str(error).splitlines()[0].rpartition("error: ")[2])

def edit(name, text):
    with open(name, "w") as file:
        file.write(text)

intarsia.init()
"""

FILE = '#include "value.h"\nextern "C" __device__ int f(int x) { return x + VALUE; }\n'


@pytest.fixture
def files(tmp_path):
    (tmp_path / "f.cu").write_text(FILE)
    (tmp_path / "value.h").write_text("#define VALUE 10\n")
    return tmp_path


@pytest.fixture
def own_caches(tmp_path):
    return {"TRITON_CACHE_DIR": str(tmp_path / "triton"), "INTARSIA_CACHE_DIR": str(tmp_path / "intarsia")}


def lines(done):
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_an_edit_between_two_processes(python, files, own_caches):
    script = SCRIPT + "run()\nrun()\n"
    assert lines(python(script, env=own_caches)) == ["11 compiled", "11 known"]
    assert lines(python(script, env=own_caches)) == ["11 cached", "11 known"]
    (files / "value.h").write_text("#define VALUE 20\n")
    assert lines(python(script, env=own_caches)) == ["21 compiled", "21 known"]
    (files / "f.cu").write_text(FILE.replace("x +", "2 * x +"))
    assert lines(python(script, env=own_caches)) == ["22 compiled", "22 known"]
    (files / "value.h").write_text("#define VALUE 10\n")
    (files / "f.cu").write_text(FILE)
    assert lines(python(script, env=own_caches)) == ["11 cached", "11 known"]


def test_edits_within_a_process(python, files, own_caches):
    script = SCRIPT + """
run()
edit("value.h", "#define VALUE 30\\n"); run(); run()
edit("f.cu", 'extern "C" __device__ int f(int x) { return x * 7 }'); run()
edit("f.cu", 'extern "C" __device__ int g(int x) { return x * 7; }'); run()
edit("f.cu", 'extern "C" __device__ int f(int x) { return x * 7; }'); run(); run()
"""  # fmt: skip
    assert lines(python(script, env=own_caches)) == [
        "11 compiled",
        "31 compiled",
        "31 known",
        'error expected a ";"',
        "error '{}' defines no function 'f'; it defines: g".format(files / "f.cu"),
        "7 compiled",
        "7 known",
    ]


def test_edits_of_a_kernel_from_the_cache(python, files, own_caches):
    lines(python(SCRIPT + "run()\n", env=own_caches))
    script = SCRIPT + 'run()\nedit("value.h", "#define VALUE 50\\n")\nrun()\n'
    assert lines(python(script, env=own_caches)) == ["11 cached", "51 compiled"]


def test_options_count(python, files, own_caches):
    script = SCRIPT.replace('load("f.cu")', 'load("f.cu", options=[f"-DVALUE={sys.argv[1]}"])') + "run()\n"
    (files / "value.h").write_text("")
    assert lines(python(script, "5", env=own_caches)) == ["6 compiled"]
    assert lines(python(script, "6", env=own_caches)) == ["7 compiled"]
    assert lines(python(script, "5", env=own_caches)) == ["6 cached"]


def test_the_simulators_binaries_stay_apart(python, files, own_caches):
    """A GPU of the same architecture must not be handed the simulator's PTX as a cubin."""
    script = SCRIPT + """
run()
intarsia.finalize()
from triton.compiler import ASTSource
from triton.backends.compiler import GPUTarget
source = ASTSource(kernel, {"p": "*i32", "x": "constexpr"}, {"x": 1}, {(0,): [["tt.divisibility", 16]]})
print(triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm["cubin"][:4])
"""  # fmt: skip
    assert lines(python(script, env=own_caches)) == ["11 compiled", repr(b"\x7fELF")]


def test_eight_processes_from_cold(files, own_caches, root):
    import subprocess
    import sys

    path = files / "script.py"
    path.write_text(SCRIPT + "run()\n")
    env = {**os.environ, **own_caches, "PYTHONPATH": str(root / "python")}
    started = [
        subprocess.Popen([sys.executable, path], env=env, stdout=subprocess.PIPE, text=True) for _ in range(8)
    ]
    results = [process.communicate(timeout=300)[0] for process in started]
    assert all(text.startswith("11 ") for text in results), results
