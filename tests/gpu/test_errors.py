"""Each mistake gives one clear message."""

from __future__ import annotations


def test_full_heap(pes):
    done = pes(1, "misuse.py", "full_heap", NVSHMEM_SYMMETRIC_SIZE="512M", NVSHMEM_DISABLE_CUDA_VMM="1")
    assert "no room for 3221225472 bytes in the symmetric heap" in done.stdout
    assert "NVSHMEM_SYMMETRIC_SIZE" in done.stdout


def test_another_rank(pes):
    done = pes(1, "misuse.py", "another_rank")
    assert "NVSHMEM is initialised already, as PE 0 of 1, and this process is PE 0 of 2" in done.stdout


def test_launch_before_init(pes):
    done = pes(1, "misuse.py", "no_init")
    assert "call intarsia.init() before the first launch" in done.stdout + done.stderr


def test_fault(pes):
    done = pes(1, "misuse.py", "bad_address")
    assert "a kernel failed on PE 0" in done.stdout


def test_no_nvshmem(pes):
    done = pes(2, "regions.py", "all", INTARSIA_NVSHMEM="none")
    assert done.returncode != 0
    assert "INTARSIA_NVSHMEM is set to 'none'" in done.stderr


def test_an_exception_ends_all(pes):
    """No crash on the way out, and nobody waits for the one that has failed."""
    done = pes(2, "raises.py", timeout=60)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stdout + done.stderr


def test_a_peer_that_dies(pes):
    done = pes(2, "dies.py", timeout=60)
    assert done.returncode == 7
    assert "PE 1 exited with code 7; the others were stopped" in done.stderr
