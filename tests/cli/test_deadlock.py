"""A deadlock ends a run at once, with a table of who waits for what."""

import os
import subprocess
import sys
import time
from pathlib import Path

SPIN = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b64 %rd<4>; .reg .pred %p<4>; .reg .b32 %r<4>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p2, %r1, 0;
@%p2 bra DONE;
LOOP:
ld.acquire.sys.global.u64 %rd2, [%rd1];
setp.lt.u64 %p1, %rd2, 5;
@%p1 bra LOOP;
DONE:
bar.sync 0;
ret;
}
"""

DEVICE = """#include <intarsia/nvshmem.h>
extern "C" __device__ void wait_for(uint64_t *signal, uint64_t value) {
    if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, value);
    __syncthreads();
}
extern "C" __device__ void set(uint64_t *signal, uint64_t value, int pe) {
    if (threadIdx.x == 0) nvshmemx_signal_op(signal, value, NVSHMEM_SIGNAL_SET, pe);
}
"""

PROGRAM = """import sys
import time
import intarsia
import numpy as np
import triton
import triton.language as tl

device = intarsia.load("wait-device.cu")


@triton.jit
def k(signal, value):
    device.wait_for(signal, value.to(tl.int64))


@triton.jit
def tell(signal, value, pe):
    device.set(signal, value.to(tl.int64), pe)


intarsia.init()
signal = intarsia.symmetric(1, "int64")
signal.copy_from(np.array([3]))
intarsia.barrier()
if sys.argv[1] == "late" and intarsia.my_pe() == 0:
    time.sleep(2)
    for pe in range(2):
        tell[(1,)](signal, 4, pe)
        intarsia.synchronize()
k[(1,)](signal, 4)
intarsia.synchronize()
print("went on")
"""


def test_a_kernel_that_waits_for_nobody(program: Path, tmp_path: Path) -> None:
    (tmp_path / "spin.ptx").write_text(SPIN)
    began = time.monotonic()
    done = subprocess.run(
        [program, "sim", "spin.ptx", "--entry", "k", "--grid", "1,1,1", "--block", "64,1,1", "--arg", "zero:64"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert time.monotonic() - began < 30
    assert "spin.ptx:12:1: error: deadlock: no PE can go on, and kernel 'k' of PE 0 waits" in done.stderr
    rows = [line.split() for line in done.stderr.splitlines() if line.startswith("  0 ")]
    assert [row[5:7] for row in rows] == [["0", "1"], ["0", "31"], ["1", "32"]]
    assert rows[0][-4:-2] == ["5", "0"], "waits for 5 and sees 0"
    assert rows[1][-2:] == ["barrier", "0"]


def run(program: Path, folder: Path, n: int, *args: str) -> "subprocess.CompletedProcess[str]":
    (folder / "wait-device.cu").write_text(DEVICE)
    (folder / "wait.py").write_text(PROGRAM)
    env = dict(os.environ, INTARSIA_PYTHON=sys.executable)
    return subprocess.run(
        [program, "run", "--sim", "-n", str(n), "wait.py", *args],
        cwd=folder,
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
    )


def test_two_pes_that_wait_for_each_other(program: Path, tmp_path: Path) -> None:
    done = run(program, tmp_path, 2, "never")
    assert done.returncode == 1
    assert "deadlock: no PE can go on" in done.stderr
    assert "wait-device.cu:3" in done.stderr
    assert "3 at 0x" in done.stderr, "what it sees"


def test_a_late_pe_is_no_deadlock(program: Path, tmp_path: Path) -> None:
    done = run(program, tmp_path, 2, "late")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("went on") == 2
