"""Barriers and signals between PEs, in Triton kernels on the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "programs"


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_barrier_hands_data_over(launch, n):
    done = launch(n, PROGRAMS / "barrier_slice.py")
    assert done.returncode == 0, done.stdout + done.stderr
    for pe in range(n):
        assert f"PE {pe} of {n}: good" in done.stdout
