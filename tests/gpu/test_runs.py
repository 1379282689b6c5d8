"""The examples on GPUs, unchanged, with every launcher."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIFT = ROOT / "examples" / "01-simple-shift" / "simple-shift.py"
ADD = ROOT / "examples" / "00-vector-add" / "vector-add.py"
GEMM = ROOT / "examples" / "02-allgather-gemm" / "ag-gemm.py"
EXPERTS = ROOT / "examples" / "04-expert-dispatch" / "expert-dispatch.py"


def check_shift(output: str, n: int) -> None:
    for pe in range(n):
        assert f"PE {pe} of {n} received {(pe - 1) % n} from its left neighbour" in output


def test_vector_add(pes):
    assert pes(1, ADD).returncode == 0


@pytest.mark.parametrize("transport", ["all", "p2p"])
@pytest.mark.parametrize("n", [1, 2])
def test_shift(pes, n, transport):
    done = pes(n, SHIFT, INTARSIA_TRANSPORT=transport)
    assert done.returncode == 0
    check_shift(done.stdout, n)


def test_shift_under_torchrun(run, free_port):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port", str(free_port)]
    done = run([*command, str(SHIFT)])
    assert done.returncode == 0
    check_shift(done.stdout, 2)


def test_shift_without_launcher(run):
    done = run([sys.executable, str(SHIFT)])
    assert done.returncode == 0
    check_shift(done.stdout, 1)


def test_shift_as_mpirun_starts_it():
    """What mpirun sets, without an MPI: the PEs meet in a file."""
    started = []
    for pe in range(2):
        env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PMIX_NAMESPACE": f"test-{os.getpid()}"}
        env |= {"OMPI_COMM_WORLD_RANK": str(pe), "OMPI_COMM_WORLD_SIZE": "2"}
        env |= {"OMPI_COMM_WORLD_LOCAL_RANK": str(pe), "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        started.append(subprocess.Popen([sys.executable, str(SHIFT)], env=env, stdout=subprocess.PIPE, text=True))
    output = "".join(process.communicate(timeout=120)[0] for process in started)
    assert [process.returncode for process in started] == [0, 0]
    check_shift(output, 2)


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")
def test_shift_under_mpirun(run):
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable, str(SHIFT)]
    done = run(command)
    assert done.returncode == 0
    check_shift(done.stdout, 2)


@pytest.mark.skipif(not GEMM.is_file(), reason="there is no example 02")
@pytest.mark.parametrize("n", [1, 2])
def test_allgather_gemm(pes, n):
    assert pes(n, GEMM, timeout=300).returncode == 0


def check_experts(done: subprocess.CompletedProcess[str], n: int) -> None:
    assert done.returncode == 0
    assert len(re.findall(r"rows to \d+ experts: equal to NumPy's", done.stdout)) == n


@pytest.mark.parametrize("transport", ["all", "p2p"])
@pytest.mark.parametrize("n", [1, 2])
def test_expert_dispatch(pes, n, transport):
    check_experts(pes(n, EXPERTS, "--times", "5", timeout=300, INTARSIA_TRANSPORT=transport), n)


def test_expert_dispatch_with_a_limit_for_waits(pes):
    options = ["--experts", "4", "--top", "3", "--tokens", "100", "--width", "100"]
    check_experts(pes(2, EXPERTS, *options, timeout=300, INTARSIA_WAIT_LIMIT="20"), 2)


def test_expert_dispatch_under_torchrun(run, free_port):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port", str(free_port)]
    check_experts(run([*command, str(EXPERTS)], timeout=300), 2)
