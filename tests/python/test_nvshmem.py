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


def test_what_the_device_library_lacks(tmp_path):
    """NVSHMEM 3.4 has no way through a network for a single int8; should a later one have it, both transports do."""
    from intarsia import _gpu_asm, _gpu_lib, _link, _units
    from intarsia._errors import Error

    text = '#include <intarsia/nvshmem.h>\nextern "C" __global__ void k(int8_t *p) { nvshmem_int8_p(p, 1, 0); }\n'
    ptx = bytes(_units.Source("k.cu", text, "cuda", (), _units.Linking()).compiled("sm_90").ptx)

    def machine_code(transport: int, ptx: bytes) -> dict:
        with _link.link(
            "k.ptx", ptx, _link.no_units, keep_externs=True, version=_gpu_asm.ptx_version("sm_90"),
            load_libraries=lambda ctx: _gpu_asm.libraries(ctx, ["nvshmem_int8_p"], "sm_90", transport),
        ) as linked:  # fmt: skip
            return _gpu_asm.assemble("k.ptx", linked.ptx, "sm_90")[1]

    assert machine_code(_gpu_lib.TRANSPORT_P2P, ptx + _gpu_asm.version_text())["tool"] == "ptxas"
    try:
        assert machine_code(_gpu_lib.TRANSPORT_ALL, ptx)["tool"] == "nvJitLink"
    except Error as error:
        assert "Undefined reference to '_Z23nvshmemi_transfer_rma_pIaEvPvT_i'" in str(error)
        assert 'transport="p2p" does without' in str(error)


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
