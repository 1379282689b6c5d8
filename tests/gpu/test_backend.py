"""The backend's calls, and regions that call NVSHMEM, each in processes of their own."""

from __future__ import annotations

import pytest


def test_every_call(pes):
    done = pes(1, "backend.py")
    assert done.returncode == 0
    assert "backend ok" in done.stdout


@pytest.mark.parametrize("transport", ["all", "p2p"])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_regions(pes, n, transport):
    done = pes(n, "regions.py", transport, timeout=300)
    assert done.returncode == 0
    assert done.stdout.count("regions ok") == n


@pytest.mark.parametrize("n", [1, 2])
def test_host_file_in_cuda(pes, n):
    done = pes(n, "hosted.py", timeout=300)
    assert done.returncode == 0
    for me in range(n):
        assert f"PE {me}: the host file's kernel sent and received {1000 + (me - 1) % n}" in done.stdout
