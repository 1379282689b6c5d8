"""Barriers and signals between PEs: the programs that run on the simulator too, and example 03."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "python" / "programs"
EXAMPLE = ROOT / "examples" / "03-device-barrier" / "device-barrier.py"


@pytest.mark.parametrize("n", [1, 2])
def test_a_barrier_hands_data_over(pes, n):
    done = pes(n, PROGRAMS / "barrier_slice.py")
    assert done.returncode == 0
    assert len(re.findall(r"PE \d of \d: good", done.stdout)) == n


@pytest.mark.parametrize("kind", ["split", "sync"])
def test_ten_thousand_rounds(pes, kind):
    """PEs that share a GPU take turns on it, some milliseconds each."""
    done = pes(2, PROGRAMS / "barrier_rounds.py", kind, "10000", "block", timeout=600)
    assert done.returncode == 0
    for pe in range(2):
        assert f"PE {pe} of 2: 10000 rounds of {kind} by block: 0 wrong, 0 calls left" in done.stdout


@pytest.mark.parametrize("group", ["warp", "thread"])
def test_smaller_groups(pes, group):
    done = pes(2, PROGRAMS / "barrier_rounds.py", "split", "500", group, timeout=300)
    assert done.returncode == 0
    assert done.stdout.count(f"500 rounds of split by {group}: 0 wrong, 0 calls left") == 2


@pytest.mark.parametrize("n", [1, 2])
def test_signals_and_queries(pes, n):
    done = pes(n, PROGRAMS / "barrier_signals.py")
    assert done.returncode == 0
    assert len(re.findall(r"PE \d of \d: good", done.stdout)) == n


def check_example(done, n):
    assert done.returncode == 0
    assert len(re.findall(r": equal to NumPy's, largest difference 0(?![.\d])", done.stdout)) == 2 * n


@pytest.mark.parametrize("transport", ["all", "p2p"])
@pytest.mark.parametrize("n", [1, 2])
def test_example_03(pes, n, transport):
    check_example(pes(n, EXAMPLE, "-n", "5000", timeout=300, INTARSIA_TRANSPORT=transport), n)


def test_example_03_under_torchrun(run, free_port):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port", str(free_port)]
    check_example(run([*command, str(EXAMPLE)], timeout=300), 2)


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        ("index", r"intarsia_barrier_sync: there is no barrier 7, the communicator has 3 \(CTA \([01], 0, 0\) of a "
                  r"grid of \(2, 1, 1\), PE 0; the team is PE 0\)"),
        ("order", "intarsia_barrier_wait: a wait at barrier 0 without an arrive before it"),
    ],
)  # fmt: skip
def test_mistakes_that_only_the_kernel_knows(pes, mistake, says):
    done = pes(1, "beyond.py", mistake, timeout=90)
    assert done.returncode != 0
    assert re.search(says, done.stdout + done.stderr)


def test_a_pe_that_never_comes(pes):
    """The limit of waits says where in the kernel."""
    done = pes(2, "alone.py", timeout=90)
    assert done.returncode != 0
    output = done.stdout + done.stderr
    assert re.search(r"PE 0, kernel 'meet', CTA \(0, 0, 0\), thread \(\d+, 0, 0\) waits at \S+/alone.py:10 for", output)
    assert ">= 1 and sees 0" in output
