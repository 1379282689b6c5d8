"""A deadlock ends a run at once, with a table of who waits for what; whoever is just slow is left alone."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

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

KERNELS = """#include <intarsia/nvshmem.h>
#define KERNEL extern "C" __global__ void
typedef unsigned long long u64;
__device__ u64 now() {
    u64 t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}
__device__ void wait7(u64 *s) {
    if (threadIdx.x == 0) nvshmem_signal_wait_until((uint64_t *)s, NVSHMEM_CMP_GE, 7);
    __syncthreads();
}
__device__ void tell(u64 *s, int pe) {
    if (threadIdx.x == 0) nvshmemx_signal_op((uint64_t *)s, 7, NVSHMEM_SIGNAL_SET, pe);
}

// -- nobody can go on
KERNEL each_other(u64 *s) {
    wait7(s);
    tell(s, 1 - nvshmem_my_pe());
}
KERNEL any_of_eight(u64 *s) { nvshmem_uint64_wait_until_any((uint64_t *)s, 8, nullptr, NVSHMEM_CMP_EQ, 3); }
KERNEL leader_tells_warp(u64 *s) {
    u64 v = 0;
    do {
        if (threadIdx.x % 32 == 0) v = *(volatile u64 *)s;
        v = __shfl_sync(~0u, v, 0);
    } while (v != 9);
}
KERNEL leader_tells_cta(u64 *s) {
    __shared__ int done;
    do {
        __syncthreads();
        if (threadIdx.x == 0) done = *(volatile u64 *)s == 9;
        __syncthreads();
    } while (!done);
}
KERNEL naps_between(u64 *s) {
    while (*(volatile u64 *)s != 9) __nanosleep(100000);
}
__device__ __noinline__ int look(volatile u64 *s, int n) {
    int k = 0;
    for (int i = 0; i < n; i++) k += s[i] == 9;
    return k;
}
KERNEL looks_by_call(u64 *s) {
    while (look(s, 8) == 0) {}
}
KERNEL two_locks(int *s) {
    int me = nvshmem_my_pe();
    if (threadIdx.x) return;
    while (nvshmem_int_atomic_compare_swap(s, 0, 1, me)) {}
    nvshmem_barrier_all();
    while (nvshmem_int_atomic_compare_swap(s, 0, 1, 1 - me)) {}
}
KERNEL two_barriers(int *s) {
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 64;");
    else
        asm volatile("bar.sync 2, 64;");
}
KERNEL phase_never(int *s) {
    __shared__ u64 barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), done = 0;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 2;" ::"r"(at));
    __syncthreads();
    u64 state;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at));
        while (!done)
            asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                         : "=r"(done)
                         : "r"(at), "l"(state));
    }
    __syncthreads();
}
KERNEL first_leaves(u64 *s) {
    if (nvshmem_my_pe()) wait7(s);
}

// -- PE 0 takes its time, then PE 1 goes on
#define OTHERS_WAIT if (nvshmem_my_pe()) { wait7(s); return; }
KERNEL computes(u64 *s) {
    OTHERS_WAIT
    unsigned x = 1;
    for (int i = 0; i < 2000000; i++) x = x * 1664525u + 1013904223u;
    if (x == 12345) s[1] = x;
    tell(s, 1);
}
KERNEL looks_at_the_clock(u64 *s) {
    OTHERS_WAIT
    u64 begin = now();
    while (now() - begin < 1000000000ull) {}
    tell(s, 1);
}
KERNEL looks_at_half_a_clock(u64 *s) {
    OTHERS_WAIT
    unsigned first, last;
    asm volatile("mov.u32 %0, %globaltimer_hi;" : "=r"(first));
    do asm volatile("mov.u32 %0, %globaltimer_hi;" : "=r"(last));
    while (first == last);
    tell(s, 1);
}
KERNEL sleeps(u64 *s) {
    OTHERS_WAIT
    for (int i = 0; i < 700; i++) __nanosleep(1000000);
    tell(s, 1);
}
KERNEL writes_the_same(u64 *s) {
    OTHERS_WAIT
    for (int i = 0; i < 200000; i++) ((volatile u64 *)s)[2] = 5;
    tell(s, 1);
}
KERNEL writes_to_and_fro(u64 *s) {
    OTHERS_WAIT
    for (int i = 0; i < 200000; i++) {
        ((volatile u64 *)s)[2] = 1;
        ((volatile u64 *)s)[2] = 0;
    }
    tell(s, 1);
}
KERNEL counts_in_memory_of_its_own(u64 *s) {
    OTHERS_WAIT
    volatile int n[4];
    n[0] = 0;
    do n[0] = n[0] + 1;
    while (n[0] < 200000);
    tell(s, 1);
}
KERNEL comes_back_often(u64 *s) {
    OTHERS_WAIT
    unsigned x = 0;
    int n = 0;
    do {
        x = (x + 1) & 31;
        n += x == 0;
    } while (n < 20000);
    tell(s, 1);
}
KERNEL times_out(u64 *s) {
    if (nvshmem_my_pe() == 0) return;
    for (int i = 0; i < 500000 && *(volatile u64 *)s != 7; i++) {}
    s[2] = 2;
}
KERNEL eight_flags_slowly(u64 *s) {
    if (nvshmem_my_pe() == 0) {
        for (int i = 0; i < 400; i++) {
            __nanosleep(1000000);
            nvshmemx_signal_op((uint64_t *)s + i % 8, i + 1, NVSHMEM_SIGNAL_SET, 1);
        }
        return;
    }
    for (u64 n = 0; n < 3172;) {
        n = 0;
        for (int k = 0; k < 8; k++) n += ((volatile u64 *)s)[k];
    }
}
KERNEL to_and_fro(u64 *s) {
    int me = nvshmem_my_pe();
    if (threadIdx.x) return;
    for (int i = 1; i <= 400; i++) {
        if (me == 0) nvshmemx_signal_op((uint64_t *)s, i, NVSHMEM_SIGNAL_SET, 1);
        nvshmem_signal_wait_until((uint64_t *)s, NVSHMEM_CMP_GE, i);
        if (me == 1) nvshmemx_signal_op((uint64_t *)s, i, NVSHMEM_SIGNAL_SET, 0);
    }
}
KERNEL warps_in_turn(u64 *s) {
    volatile u64 *v = s;
    unsigned warp = threadIdx.x / 32;
    for (int i = 0; i < 2000; i++) {
        if (threadIdx.x % 32 == 0) {
            while (v[0] % 2 != warp) {}
            v[0] = v[0] + 1;
        }
        __syncwarp();
    }
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

PROGRAM = """import ctypes
import sys
import threading
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
    time.sleep(1)
    for pe in range(2):
        tell[(1,)](signal, 4, pe)
        intarsia.synchronize()
def set_directly(pe, delay=1):
    time.sleep(delay)
    ctypes.c_int64.from_address(signal.peer(pe).data_ptr()).value = 9


if sys.argv[1] == "thread":
    threading.Thread(target=set_directly, args=(intarsia.my_pe(),)).start()
k[(1,)](signal, 4)
if sys.argv[1] == "host" and intarsia.my_pe() == 0:
    set_directly(1)
    set_directly(0)
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
    assert rows[0][8:10] == ["5", "0"], "waits for 5 and sees 0"
    assert rows[0][10] == "at" and rows[0][12:] == ["byte", "0", "of", "64"], "which word of the array it is"
    assert rows[1][-7:] == ["barrier", "0", "63", "of", "64", "threads", "there"]
    assert rows[0][7] == "spin.ptx:12"


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


# What each table says, in a row of PE 1: where, for what, and what is seen.
STUCK = {
    "each_other": "kernels.cu:10 7 0 at",
    "any_of_eight": "kernels.cu:22 3 0 at",
    "leader_tells_warp": "kernels.cu:26 9 0 at",
    "leader_tells_cta": "kernels.cu:34 9 0 at",
    "naps_between": "kernels.cu:39 9 0 at",
    "looks_by_call": "kernels.cu:43 9 0 at",
    "two_locks": "kernels.cu:54 0 1 at",
    "two_barriers": "kernels.cu:58 barrier 1 32 of 64 threads there",
    "phase_never": "phase 0 1 arrivals, 0 bytes missing",
    "first_leaves": "kernels.cu:10 7 0 at",
}
ALIVE = [
    "computes",
    "looks_at_the_clock",
    "looks_at_half_a_clock",
    "sleeps",
    "writes_the_same",
    "writes_to_and_fro",
    "counts_in_memory_of_its_own",
    "comes_back_often",
    "times_out",
    "eight_flags_slowly",
    "to_and_fro",
    "warps_in_turn",
]


def run_kernel(program: Path, folder: Path, entry: str, n: int = 2) -> "subprocess.CompletedProcess[str]":
    """With a time limit: a deadlock that is not seen ends with exit code 124."""
    (folder / "kernels.cu").write_text(KERNELS)
    launch = [program, "run", "--sim", "-n", str(n), "--timeout", "60", program, "sim", "kernels.cu"]
    return subprocess.run(
        [*launch, "--entry", entry, "--block", "64", "--symmetric", "--arg", "zero:128"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("entry", STUCK)
def test_nobody_can_go_on(program: Path, tmp_path: Path, entry: str) -> None:
    done = run_kernel(program, tmp_path, entry)
    assert done.returncode == 1, done.stderr
    rows = [line.split(None, 2)[2] for line in done.stderr.splitlines() if line.startswith("[pe 1]   1  ")]
    assert rows and rows[0].split()[1] == entry, done.stderr
    assert any(STUCK[entry] in " ".join(row.split()) for row in rows), done.stderr
    if entry != "first_leaves":
        assert f"kernel '{entry}' of PE 0 waits" in done.stderr, "every PE says what it waits for"
    else:
        assert "PE 0 waits in the barrier for PE 1" in done.stderr


@pytest.mark.parametrize("entry", ALIVE)
def test_slow_is_not_stuck(program: Path, tmp_path: Path, entry: str) -> None:
    done = run_kernel(program, tmp_path, entry)
    assert done.returncode == 0, done.stderr


def test_one_of_three_leaves(program: Path, tmp_path: Path) -> None:
    done = run_kernel(program, tmp_path, "first_leaves", n=3)
    assert done.returncode == 1
    assert all(f"kernel 'first_leaves' of PE {pe} waits" in done.stderr for pe in (1, 2)), done.stderr


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


@pytest.mark.parametrize("who", ["thread", "host"])
def test_a_host_that_will_write(program: Path, tmp_path: Path, who: str) -> None:
    """Another thread of the same process, or a host that has not come to wait yet, writes without any call."""
    done = run(program, tmp_path, 2, who)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("went on") == 2


def test_a_cta_of_a_cluster(program: Path, tmp_path: Path) -> None:
    (tmp_path / "cluster.cu").write_text("""extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int *s) {
    if (blockIdx.x)
        asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    else
        while (*(volatile int *)s != 7) {}
}
""")
    done = subprocess.run(
        [program, "sim", "cluster.cu", "--arch", "sm_90", "--grid", "2", "--block", "64", "--arg", "zero:64"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    rows = [" ".join(line.split()) for line in done.stderr.splitlines() if line.startswith("  0 ")]
    assert done.returncode == 1 and len(rows) == 4
    assert "cluster.cu:5 7 0 at" in rows[0] and "the cluster 64 of this CTA's 64 threads there" in rows[2]
