"""The package itself: what it says when something that it needs is missing, and what it doesn't need."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCK = """
import importlib.abc, sys
class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {name!r}:
            raise ModuleNotFoundError(f"No module named {name!r}", name={name!r})
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == {name!r} else found(name, package)
sys.meta_path.insert(0, Blocker())
"""


def test_import_is_light(python):
    done = python("import intarsia, sys; print('triton' in sys.modules, 'numpy' in sys.modules)")
    assert done.stdout == "False False\n", done.stderr


def test_without_triton(python):
    script = BLOCK.format(name="triton") + """
import intarsia
try:
    intarsia.load("x.cu")
except intarsia.Error as error:
    print(error)
intarsia.init()
x = intarsia.zeros(4)
print(x.numpy().sum())
"""  # fmt: skip
    done = python(script)
    assert done.stdout == "Triton is not installed; run `pip install 'triton>=3.6,<3.7'`\n0.0\n", done.stderr


@pytest.mark.parametrize("version", ["3.5.1", "3.7.0", "4.0.0"])
def test_with_an_unsupported_triton(python, version):
    script = f"""
import importlib.metadata
importlib.metadata.version = lambda name: {version!r}
import intarsia
try:
    intarsia.load("x.cu")
except intarsia.Error as error:
    print(error)
"""
    message = f"Triton {version} is installed, this Intarsia needs another; run `pip install 'triton>=3.6,<3.7'`\n"
    done = python(script)
    assert done.stdout == message, done.stderr


def test_without_numpy(python):
    script = BLOCK.format(name="numpy") + """
import intarsia
try:
    intarsia.zeros(4)
except intarsia.Error as error:
    print(error)
"""  # fmt: skip
    done = python(script)
    assert done.stdout == "NumPy is not installed; run `pip install numpy`\n", done.stderr


def test_without_the_library(python):
    done = python("import intarsia\nintarsia.init()", env={"INTARSIA_LIBRARY": "/nowhere/libintarsia.so"})
    assert "INTARSIA_LIBRARY names /nowhere/libintarsia.so, which is not a file" in done.stderr and done.returncode == 1


def test_unknown_names_and_backends(python):
    script = """
import intarsia
for call in (lambda: intarsia.nothing, lambda: intarsia.init("rocm"), lambda: intarsia.init(arch="gfx90")):
    try:
        call()
    except (AttributeError, intarsia.Error) as error:
        print(error)
"""
    done = python(script)
    assert done.stdout.splitlines() == [
        "module 'intarsia' has no attribute 'nothing'",
        "there is no backend called 'rocm'; there are 'sim' and 'cuda'",
        "'gfx90' is no architecture; write it as 'sm_80' or 'sm_90'",
    ], done.stderr  # fmt: skip


def test_errors_can_be_pickled():
    import pickle

    import intarsia

    error = intarsia.Error("text", (intarsia.Diagnostic("error", "m", None, ()),), "bad input")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == "text" and copy.diagnostics == error.diagnostics and copy.status == "bad input"


def test_the_console_script_is_the_program(root):
    done = subprocess.run(
        [sys.executable, "-m", "intarsia", "--version"],
        capture_output=True, text=True, check=False, env={"PYTHONPATH": str(root / "python"), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.split()[:2] == ["intarsia", "0.1.0"], done.stderr
