"""tools/demo.py: its checks see what is wrong with an output. That the examples are good is shown by make demo."""

import importlib.util
import sys

import pytest


@pytest.fixture
def demo(root, monkeypatch):
    spec = importlib.util.spec_from_file_location("demo_tool", root / "tools" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "demo_tool", module)  # where dataclasses look up annotations
    spec.loader.exec_module(module)
    return module


GOOD = "[pe 1] PE 1 of 2 received 0 from\n[pe 0] PE 0 of 2 received 1 from\n"


def test_the_shift(demo):
    assert demo.check_shift(GOOD, 2) == "received 1, 0"
    for bad in (GOOD.replace("received 0", "received 1"), GOOD.splitlines()[0], "", GOOD + "[pe 2] received 1\n"):
        with pytest.raises(demo.CheckError):
            demo.check_shift(bad, 2)


def test_the_gemm(demo):
    good = "".join(f"[pe {pe}] PE {pe}: x: equal to NumPy's, largest difference 1e-0{pe + 1}\n" for pe in range(3))
    assert "0.1" in demo.check_gemm(good, 3)
    for bad in (good.replace("equal to", "NOT equal to"), good.splitlines()[0], good.replace("[pe 2]", "[pe 1]")):
        with pytest.raises(demo.CheckError):
            demo.check_gemm(bad, 3)


def test_the_barriers(demo):
    kinds = ("3 all-reduces of 2 * 7", "3 rounds of the pipeline")
    good = "".join(f"[pe {pe}] PE {pe} of 2: {kind}: equal to NumPy's, largest difference 0\n"
                   for kind in kinds for pe in range(2))
    assert "2 PEs" in demo.check_barriers(good, 2)
    for bad in (good.replace("equal to", "NOT equal to"), good.replace("difference 0", "difference 1"),
                good.replace("[pe 1]", "[pe 0]"), good.replace(kinds[1], kinds[0]), ""):
        with pytest.raises(demo.CheckError):
            demo.check_barriers(bad, 2)


@pytest.mark.parametrize(("body", "good", "says"), [
    ("print('[pe 0] received 0')", True, "received 0"),
    ("print('[pe 0] received 1')", False, "expected {0: 0}, got {0: 1}"),
    ("print('[pe 0] received 0'); raise SystemExit(3)", False, "exit code 3"),
])
def test_a_run(demo, tmp_path, monkeypatch, body, good, says):
    program = tmp_path / "program"
    program.write_text(f"#!{sys.executable}\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(demo, "PROGRAM", program)
    monkeypatch.setattr(demo, "CASES", [demo.Case(1, "x.py", demo.check_shift)])
    assert demo.run(demo.CASES[0])[:2] == (good, says)
    assert demo.main() == (0 if good else 1)
