"""
What GPUs get of NVSHMEM, without a GPU: its own device functions with transport p2p are loads and stores, which the
simulator runs. It takes NVSHMEM's headers (`pip install nvidia-nvshmem-cu13`); tests/gpu needs more.
"""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parent / "programs" / "nvshmem_p2p.py"
KERNELS = (
    "rma_half", "rma_uchar", "rma_int", "rma_double", "rma_128", "rma_mem", "wait_short", "wait_uint64", "add_long",
    "swap_float", "bits_uint", "signals_only",
)  # fmt: skip


@pytest.fixture(autouse=True)
def nvshmem():
    from intarsia import _gpu_asm

    if _gpu_asm.version() is None:
        pytest.skip("there is no NVSHMEM on this machine")


def expect_good(done, n, count):
    assert done.returncode == 0, done.stderr
    for pe in range(n):
        assert f"PE {pe} of {n}: {count} kernels good" in done.stdout


@pytest.mark.parametrize("n", [1, 3])
def test_calls_of_every_kind(launch, n):
    expect_good(launch(n, PROGRAM, *KERNELS), n, len(KERNELS))


def test_what_a_signal_stands_for_may_be_read(launch):
    """Behind the wait there is a fence, which NVSHMEM's own has not."""
    expect_good(launch(2, PROGRAM, "hand_over", options=("--check", "races")), 2, 1)
