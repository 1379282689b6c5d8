"""
What GPUs get of NVSHMEM, without a GPU: its own device functions with transport p2p are loads and stores, which the
simulator runs, and host files compile against the real headers. It takes NVSHMEM (`pip install nvidia-nvshmem-cu13`);
tests/gpu needs more.
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


HOST = """
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>
#ifdef __cplusplus
extern "C"
#endif
int versions(void) {
    int major, minor, patch, runtime;
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    if (cudaRuntimeGetVersion(&runtime) != cudaSuccess || runtime < 12000) return -1;
    return 10000 * major + 100 * minor + patch;
}
"""


@pytest.mark.parametrize("suffix", [".c", ".cc"])
def test_a_host_file_against_the_real_headers(tmp_path, suffix):
    """It is loaded as well: every name is there, in NVSHMEM's library and the CUDA runtime's."""
    import intarsia
    from intarsia import _gpu_asm, _gpu_host

    try:
        _gpu_host._cuda()
    except intarsia.Error as error:
        pytest.skip(str(error))
    path = tmp_path / f"versions-host{suffix}"
    path.write_text(HOST)
    major, minor, patch = (int(number) for number in _gpu_asm.version().split("."))
    assert _gpu_host.build(str(path), ()).versions() == 10000 * major + 100 * minor + patch
