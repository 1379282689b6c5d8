"""Each mistake gives one clear message."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest


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


def nvshmem_home():
    import importlib.util

    found = importlib.util.find_spec("nvidia.nvshmem")
    return Path(next(iter(found.submodule_search_locations)))


def test_headers_of_another_version(pes, tmp_path):
    home = nvshmem_home()
    shutil.copytree(home / "include", tmp_path / "include")
    (tmp_path / "lib").symlink_to(home / "lib")
    version = tmp_path / "include" / "non_abi" / "nvshmem_version.h"
    version.write_text(re.sub(r"(NVSHMEM_VENDOR_MINOR_VERSION\s+)\d+", r"\g<1>99", version.read_text()))
    done = pes(2, "regions.py", "all", INTARSIA_NVSHMEM=str(tmp_path / "lib"), timeout=60)
    assert done.returncode != 0
    output = done.stdout + done.stderr
    assert re.search(r"host library '\S+' is version \d+\.\d+\.\d+, but the headers beside it are \d+\.99\.\d+", output)


def test_two_host_libraries(pes, tmp_path):
    (tmp_path / "lib").mkdir()
    shutil.copy(nvshmem_home() / "lib" / "libnvshmem_host.so.3", tmp_path / "lib")
    done = pes(1, "misuse.py", "two_libraries", str(tmp_path / "lib" / "libnvshmem_host.so.3"), timeout=60)
    assert f"there are two NVSHMEM host libraries: '{tmp_path}/lib/libnvshmem_host.so.3" in done.stdout


def test_an_exception_ends_all(pes):
    """No crash on the way out, and nobody waits for the one that has failed."""
    done = pes(2, "raises.py", timeout=60)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stdout + done.stderr


def test_a_peer_that_dies(pes):
    done = pes(2, "dies.py", timeout=60)
    assert done.returncode == 7
    assert "PE 1 exited with code 7; the others were stopped" in done.stderr


@pytest.mark.parametrize("transport", ["all", "p2p"])
@pytest.mark.parametrize(
    "kind, line, sees",
    [("by_hand", "waits-device.cu:5", "== 3 and sees 2"), ("by_nvshmem", "waits-device.cu:11", ">= 5 and sees 2"),
     ("in_triton", r"waits.py:\d+", ">= 9 and sees 2")],
)
def test_a_wait_that_takes_too_long(pes, kind, line, sees, transport):
    """PE 1, which has nothing to wait for but the end, is stopped as well."""
    done = pes(2, "waits.py", transport, kind, timeout=90)
    assert done.returncode != 0
    output = done.stdout + done.stderr
    assert re.search(rf"PE 0, kernel '{kind}', CTA \(0, 0, 0\), thread \(\d+, 0, 0\) waits at \S+/{line}", output)
    assert f" for longer than 1 s for a value {sees} at 0x" in output
    assert ", 0 bytes into a symmetric allocation of 32 bytes" in output


def test_a_wait_that_torch_meets(pes):
    """torch only knows that the launch failed; the report comes as well."""
    done = pes(1, "waits.py", "all", "by_hand", "torch", timeout=90)
    assert done.returncode != 0
    assert "for a value == 3 and sees 2" in done.stdout + done.stderr


def test_sizes_that_differ(pes):
    done = pes(2, "sizes.py", timeout=60)
    assert done.returncode != 0
    output = done.stdout + done.stderr
    assert "PE 0 asked for 256 bytes aligned to 256 at " in output
    assert "sizes.py:11, but PE 1 asked for 260 bytes aligned to 256 at " in output
    assert "PE 1 asked for 260 bytes aligned to 256 at " in output
    assert "sizes.py:9, but PE 0 asked for 256 bytes" in output
