"""Example 02 as the GPU it is for runs it: the kernel for Hopper, every way to push, and the benchmark's harness."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GEMM = ROOT / "examples" / "02-allgather-gemm" / "ag-gemm.py"
SMALL = ["-m", "256", "-n", "264", "-k", "136"]


@pytest.fixture(autouse=True)
def hopper():
    import torch

    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("the kernel is for compute capability 9.0")


@pytest.mark.parametrize(
    "options",
    [
        ["--slow", "1"],
        ["--chunk-rows", "128", "--iterations", "10"],
        ["--push", "sm", "--push-ctas", "8", "--chunk-rows", "128"],
        ["--gather-first"],
        ["--gather-first", "--push", "sm"],
        ["--dtype", "bfloat16"],
    ],
)
@pytest.mark.parametrize("n", [1, 2])
def test_every_way_to_push(pes, n, options):
    done = pes(n, GEMM, "--kernel", "hopper", *SMALL, *options)
    assert done.returncode == 0
    assert len(re.findall(r"equal to NumPy's, largest difference 0\.0", done.stdout)) == n


def test_a_wait_with_a_limit_still_works(pes):
    done = pes(2, GEMM, "--kernel", "hopper", *SMALL, INTARSIA_WAIT_LIMIT="20")
    assert done.returncode == 0


@pytest.mark.parametrize("n", [1, 2])
def test_the_harness(run, tmp_path, free_port, n):
    out = tmp_path / "table"
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={n}"]
    command += ["--master_port", str(free_port)]
    shape = ["--shapes", "512,520,264", "--timeline", "512,520,264", "--iterations", "4", "--repeats", "3", "--tune"]
    drawn = importlib.util.find_spec("matplotlib") is not None
    shape += [] if drawn else ["--no-png"]
    done = run([*command, str(ROOT / "bench" / "ag_gemm.py"), "--out", str(out), *shape],
               INTARSIA_CACHE_DIR=str(tmp_path / "cache"), timeout=200)
    assert done.returncode == 0
    (row,) = json.loads(Path(f"{out}.json").read_text())["rows"]
    assert row["right"] and row["error"] < 2e-3 and row["ours_ms"] > 0
    assert row["fraction"] == pytest.approx(row["limit_ms"] / row["ours_ms"])
    assert row["limit_ms"] == max(row["gemm_ms"], row["copy_ms"])
    with open(f"{out}.csv") as file:
        (line,) = csv.DictReader(file)
    assert float(line["ours_ms"]) == row["ours_ms"] and line["right"] == "True"
    assert not drawn or Path(f"{out}.png").read_bytes().startswith(b"\x89PNG")
    assert len(list((tmp_path / "cache" / "plans").iterdir())) == 1, "what was tuned is kept"
    events = json.loads(Path(f"{out}.trace.json").read_text())["traceEvents"]
    tiles = [e for e in events if e["name"].startswith("tile")]
    rows, columns, _ = row["plan"]["block"]
    assert len(tiles) == n * n * -(-512 // rows) * -(-520 // columns)
    assert all(e["dur"] > 0 for e in tiles) and {e["pid"] for e in tiles} == {f"PE {pe}" for pe in range(n)}
    assert bool([e for e in events if e["name"] == "wait"]) == (n > 1)
