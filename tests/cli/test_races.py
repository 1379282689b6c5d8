"""`--check races`: accesses that nothing orders are found, and whatever is ordered is left alone."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# s[0] is a flag or signal, data lies behind it. PE 0 or CTA 0 sends, the other one receives.
KERNELS = """#include <intarsia/nvshmem.h>
#define KERNEL extern "C" __global__ void
typedef unsigned long long u64;
#define TID threadIdx.x
#define SENDER (nvshmem_my_pe() == 0)
#define SIGNAL nvshmemx_signal_op((uint64_t *)s, 1, NVSHMEM_SIGNAL_SET, 1)
#define WAIT nvshmem_signal_wait_until((uint64_t *)s, NVSHMEM_CMP_EQ, 1)
#define USE s[200 + TID] = s[1 + TID]

// -- shared memory of a CTA
KERNEL no_barrier(u64 *s) {
    __shared__ int b[64];
    b[TID] = TID;
    s[TID] = b[63 - TID];
}
KERNEL barrier(u64 *s) {
    __shared__ int b[64];
    b[TID] = TID;
    __syncthreads();
    s[TID] = b[63 - TID];
}
KERNEL one_barrier_of_two(u64 *s) {
    __shared__ int b[64];
    for (int i = 0; i < 2; i++) {
        b[TID] = TID + i;
        __syncthreads();
        s[TID] += b[63 - TID];
    }
}
KERNEL named_barriers(u64 *s) {
    __shared__ int b[32];
    if (TID < 32) {
        b[TID] = TID;
        asm volatile("bar.arrive 3, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 3, 64;" ::: "memory");
        s[TID] = b[TID - 32];
    }
}
KERNEL other_named_barrier(u64 *s) {
    __shared__ int b[32];
    if (TID < 32) {
        asm volatile("bar.arrive 3, 64;" ::: "memory");
        b[TID] = TID;
    } else {
        asm volatile("bar.sync 3, 64;" ::: "memory");
        s[TID] = b[TID - 32];
    }
}
KERNEL copy_not_waited_for(u64 *s) {
    __shared__ __align__(16) int b[64];
    unsigned at = (unsigned)__cvta_generic_to_shared(&b[TID]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.commit_group;" ::"r"(at), "l"((int *)s + TID));
    __syncthreads();
    s[100 + TID] = b[63 - TID];
    asm volatile("cp.async.wait_group 0;" ::: "memory");
}
KERNEL copy_waited_for(u64 *s) {
    __shared__ __align__(16) int b[64];
    unsigned at = (unsigned)__cvta_generic_to_shared(&b[TID]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.commit_group;" ::"r"(at), "l"((int *)s + TID));
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    s[100 + TID] = b[63 - TID];
}

#if __CUDA_ARCH__ >= 900
#define SEND(wait) \\
    __shared__ __align__(16) int b[4]; \\
    unsigned at = (unsigned)__cvta_generic_to_shared(b); \\
    if (TID == 0) { \\
        b[0] = b[1] = b[2] = b[3] = 7; \\
        asm volatile("fence.proxy.async; cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" \\
                     ::"l"(s), "r"(at) : "memory"); \\
        asm volatile("cp.async.bulk.commit_group; " wait ::: "memory"); \\
    } \\
    __syncthreads(); \\
    if (TID == 32) b[2] = 8
KERNEL send_not_waited_for(u64 *s) { SEND(""); }
KERNEL send_waited_for(u64 *s) { SEND("cp.async.bulk.wait_group.read 0;"); }
#endif

// -- CTAs
KERNEL ctas(u64 *s) {
    if (blockIdx.x == 0)
        s[1 + TID] = 1;
    else
        USE;
}
KERNEL ctas_write_the_same(u64 *s) { s[TID] = 1; }
KERNEL ctas_write_partly_the_same(u64 *s) { s[TID] = TID < 40 ? 1 : blockIdx.x; }
KERNEL ctas_write_the_same_rows(uint4 *s) { s[TID] = make_uint4(1, 2, 3, TID); }
KERNEL ctas_write_other_ends_of_rows(uint4 *s) { s[TID] = make_uint4(1, 2, 3, blockIdx.x); }
KERNEL ctas_write_other_words(u64 *s) { s[2 * TID] = TID == 60 ? blockIdx.x : 1; }
KERNEL ctas_write_others(u64 *s) { s[TID] = blockIdx.x; }
KERNEL ctas_neighbours(u64 *s) { ((unsigned char *)s)[blockIdx.x * 67 + TID] = 1 + blockIdx.x; }
#define CTA_FLAG(name, before, after) \\
    KERNEL name(u64 *s) { \\
        volatile u64 *flag = s; \\
        if (blockIdx.x == 0) { \\
            s[1 + TID] = 1; \\
            __syncthreads(); \\
            if (TID == 0) { \\
                before; \\
                *flag = 1; \\
            } \\
        } else { \\
            if (TID == 0) { \\
                while (*flag != 1) {} \\
                after; \\
            } \\
            __syncthreads(); \\
            USE; \\
        } \\
    }
CTA_FLAG(flag, __threadfence(), __threadfence())
CTA_FLAG(flag_no_release, , __threadfence())
CTA_FLAG(flag_no_acquire, __threadfence(), )
KERNEL counter(u64 *s) {
    __shared__ bool last;
    s[1 + 64 * blockIdx.x + TID] = 1;
    __threadfence();
    __syncthreads();
    if (TID == 0) last = atomicAdd((unsigned *)s, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    s[200 + TID] = s[1 + TID] + s[65 + TID];
}

// -- PEs
KERNEL put_signal(u64 *s) {
    if (SENDER) {
        nvshmemx_putmem_signal_block(s + 1, s + 100, 512, (uint64_t *)s, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        if (TID == 0) WAIT;
        __syncthreads();
        USE;
    }
}
#define PE_SIGNAL(name, first, second) \\
    KERNEL name(u64 *s) { \\
        if (SENDER) { \\
            first; \\
            __syncthreads(); \\
            second; \\
        } else { \\
            if (TID == 0) WAIT; \\
            __syncthreads(); \\
            USE; \\
        } \\
    }
#define PUT nvshmemx_putmem_nbi_block(s + 1, s + 100, 512, 1)
PE_SIGNAL(quiet, PUT, if (TID == 0) { nvshmem_quiet(); SIGNAL; })
PE_SIGNAL(fence, PUT, if (TID == 0) { nvshmem_fence(); SIGNAL; })
PE_SIGNAL(no_quiet, PUT, if (TID == 0) SIGNAL)
PE_SIGNAL(signal_first, if (TID == 0) SIGNAL, PUT)
KERNEL no_wait(u64 *s) {
    if (SENDER)
        nvshmemx_putmem_signal_block(s + 1, s + 100, 512, (uint64_t *)s, 1, NVSHMEM_SIGNAL_SET, 1);
    else
        USE;
}
KERNEL others_do_not_wait(u64 *s) {
    if (SENDER) {
        nvshmemx_putmem_signal_block(s + 1, s + 100, 512, (uint64_t *)s, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        if (TID == 0) WAIT;
        if (TID >= 32) USE;
    }
}
KERNEL get_without_signal(u64 *s) {
    if (SENDER)
        s[1 + TID] = 5;
    else
        nvshmemx_getmem_block(s + 200, s + 1, 512, 0);
}
KERNEL device_barrier(u64 *s) {
    if (SENDER) nvshmemx_putmem_block(s + 1, s + 100, 512, 1);
    nvshmemx_barrier_all_block();
    if (!SENDER) USE;
}
KERNEL signals_that_grow(u64 *s) {
    uint64_t *mine = (uint64_t *)s;
    int other = 1 - nvshmem_my_pe();
    for (int i = 1; i <= 20; i++) {
        u64 *inbox = s + 1 + i % 2 * 64;
        nvshmemx_putmem_signal_block(inbox, s + 200, 512, mine, i, NVSHMEM_SIGNAL_SET, other);
        if (TID == 0) nvshmem_signal_wait_until(mine, NVSHMEM_CMP_GE, i);
        __syncthreads();
        s[300 + TID] += inbox[TID];
        __syncthreads();
    }
}
KERNEL one_inbox(u64 *s) {
    uint64_t *mine = (uint64_t *)s;
    int other = 1 - nvshmem_my_pe();
    for (int i = 1; i <= 20; i++) {
        nvshmemx_putmem_signal_block(s + 1, s + 200, 512, mine, i, NVSHMEM_SIGNAL_SET, other);
        if (TID == 0) nvshmem_signal_wait_until(mine, NVSHMEM_CMP_GE, i);
        __syncthreads();
        __nanosleep(500000);
        s[300 + TID] += s[1 + TID];
        __syncthreads();
    }
}
KERNEL read_in_silence(u64 *s) { // the word that comes back is no release
    if (TID) return;
    if (SENDER) {
        while (!*(volatile u64 *)s) continue;
        nvshmem_ulonglong_p(s + 1, 5, 1);
    } else {
        s[200] = s[1];
        nvshmem_ulonglong_p(s, 1, 0);
    }
}
KERNEL narrow_scope(u64 *s) {
    u64 *there = (u64 *)nvshmem_ptr(s, 1);
    if (SENDER) {
        there[1 + TID] = 5;
        __syncthreads();
        if (TID == 0) asm volatile("st.release.gpu.u64 [%0], 1;" ::"l"(there) : "memory");
    } else {
        if (TID == 0) WAIT;
        __syncthreads();
        USE;
    }
}
"""

CTA, CTAS, PES = ["--block", "64"], ["--block", "64", "--grid", "2"], ["-n", "2"]
HOPPER = [*CTA, "--arch", "sm_90"]
RACES = {
    "no_barrier": (CTA, "at shared address", "bar.sync"),
    "one_barrier_of_two": (CTA, "at shared address", "bar.sync"),
    "other_named_barrier": (CTA, "at shared address", "bar.sync"),
    "copy_not_waited_for": (CTA, "at shared address", "bar.sync"),
    "send_not_waited_for": (HOPPER, "at shared address", "bar.sync"),
    "ctas": (CTAS, "8 bytes into a 8192-byte allocation", "__threadfence"),
    "ctas_write_others": (CTAS, "0 bytes into a 8192-byte allocation", "__threadfence"),
    "ctas_write_partly_the_same": (CTAS, "CTA 0, thread 40 has written", "check the index and the mask of each"),
    "ctas_write_other_ends_of_rows": (CTAS, "8 bytes into a 8192-byte allocation", "__threadfence"),
    "ctas_write_other_words": (CTAS, "960 bytes into a 8192-byte allocation", "__threadfence"),
    "flag_no_release": (CTAS, "bytes into a 8192-byte allocation", "__threadfence"),
    "flag_no_acquire": (CTAS, "bytes into a 8192-byte allocation", "__threadfence"),
    "no_quiet": (PES, "bytes into a 8192-byte allocation of symmetric memory", "nvshmem_quiet"),
    "signal_first": (PES, "bytes into a 8192-byte allocation of symmetric memory", "nvshmem_quiet"),
    "no_wait": (PES, "bytes into a 8192-byte allocation of symmetric memory", "nvshmem_signal_wait_until"),
    "others_do_not_wait": (PES, "bytes into a 8192-byte allocation of symmetric memory", "barrier of the CTA"),
    "get_without_signal": (PES, "bytes into a 8192-byte allocation of symmetric memory", "nvshmem_signal_wait_until"),
    "one_inbox": (PES, "bytes into a 8192-byte allocation of symmetric memory", "nvshmem_signal_wait_until"),
    "read_in_silence": (PES, "bytes into a 8192-byte allocation of symmetric memory", "written again too early"),
    "narrow_scope": (PES, "bytes into a 8192-byte allocation of symmetric memory", "nvshmem_quiet"),
}
ORDERED = {
    "barrier": CTA,
    "named_barriers": CTA,
    "copy_waited_for": CTA,
    "send_waited_for": HOPPER,
    "ctas_write_the_same": CTAS,
    "ctas_write_the_same_rows": CTAS,
    "ctas_neighbours": CTAS,
    "flag": CTAS,
    "counter": CTAS,
    "put_signal": PES,
    "quiet": PES,
    "fence": PES,
    "device_barrier": PES,
    "signals_that_grow": PES,
}


def run_kernel(
    program: Path, folder: Path, entry: str, how: list[str], check: bool = True
) -> "subprocess.CompletedProcess[str]":
    (folder / "kernels.cu").write_text(KERNELS)
    checks = ["--check", "races"] if check else []
    if how is PES:
        command = [program, "run", "--sim", *checks, *how, "--timeout", "60", program, "sim", "--block", "64"]
    else:
        command = [program, "sim", *checks, *how]
    return subprocess.run(
        [*command, "kernels.cu", "--entry", entry, "--symmetric", "--arg", "zero:8192"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("entry", RACES)
def test_a_race(program: Path, tmp_path: Path, entry: str) -> None:
    how, where, hint = RACES[entry]
    done = run_kernel(program, tmp_path, entry, how)
    assert done.returncode == 1, done.stderr
    errors = [line for line in done.stderr.splitlines() if "nothing orders the two" in line]
    assert errors, done.stderr
    assert f"kernel '{entry}', CTA (" in errors[0], "the one access"
    assert f"kernel '{entry}' (" in errors[0] and "kernels.cu:" in errors[0], "the other one, with its line"
    assert where in errors[0]
    assert how is not PES or ", which PE " in errors[0], "the other one's PE"
    if "hint: its own report" not in done.stderr:
        assert hint in done.stderr


@pytest.mark.parametrize("entry", ORDERED)
def test_no_race(program: Path, tmp_path: Path, entry: str) -> None:
    done = run_kernel(program, tmp_path, entry, ORDERED[entry])
    assert done.returncode == 0, done.stderr


# More words are released through than the finder has places for: then some share one. The last two words are such that
# they share theirs (src/sim/race.c: `hash`), and the one's release must not take the other's away.
CROWD = """typedef unsigned long long u64;
__device__ unsigned place(volatile u64 *word) { return (u64)((u64)word | 1) * 0x9e3779b97f4a7c15ull >> 40 & 16383; }
extern "C" __global__ void crowd(volatile u64 *s) {
    volatile u64 *data = s, *words = s + 64, *a = words + 60000, *b = a + 1;
    for (int i = blockIdx.x; i < 20000; i += 3) {
        __threadfence();
        words[i] = 1;
        words[i + 20000] = 2;
    }
    while (place(b) != place(a)) b++;
    if (blockIdx.x == 0) {
        *(u64 *)data = 7;
        __threadfence();
        *a = 1;
    } else if (blockIdx.x == 1) {
        __threadfence();
        while (*a != 1) {}
        *b = 5;
    } else {
        while (*b != 5) {}
        while (*a != 1) {}
        __threadfence();
        s[1] = *(u64 *)data;
    }
}
"""


def test_a_crowd(program: Path, tmp_path: Path) -> None:
    (tmp_path / "crowd.cu").write_text(CROWD)
    done = subprocess.run(
        [program, "sim", "--check", "races", "--grid", "3", "crowd.cu", "--arg", "zero:4M"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_only_if_asked(program: Path, tmp_path: Path) -> None:
    assert run_kernel(program, tmp_path, "no_barrier", CTA, check=False).returncode == 0


def test_usage(program: Path) -> None:
    for command, text in (
        (["run", "--sim", "--check", "speed", "x.py"], "--check takes 'races', not 'speed'"),
        (["run", "--check", "races", "x.py"], "--check is for simulated GPUs"),
        (["sim", "--check", "speed", "x.ptx"], "--check takes 'races', not 'speed'"),
    ):
        done = subprocess.run([program, *command], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and text in done.stderr
    done = subprocess.run(
        [program, "run", "--sim", "x"],
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ, INTARSIA_SIM_CHECK="speed"),
    )
    assert done.returncode != 0


def run_example(program: Path, n: int, script: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [program, "run", "--sim", "--check", "races", "-n", str(n), script, *args],
        capture_output=True,
        text=True,
        timeout=300,
        env=dict(os.environ, INTARSIA_PYTHON=sys.executable),
    )


@pytest.mark.parametrize("name", ["00-vector-add/vector-add.py", "01-simple-shift/simple-shift.py"])
def test_small_examples(program: Path, name: str) -> None:
    done = run_example(program, 3, EXAMPLES / name)
    assert done.returncode == 0, done.stderr


def test_the_gemm(program: Path) -> None:
    done = run_example(
        program, 3, EXAMPLES / "02-allgather-gemm/ag-gemm.py", "--case", "check", "--iterations", "5", "--slow", "1"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("equal to NumPy's") == 3


def edited(folder: Path, example: str, file: str, old: str, new: str) -> Path:
    copy = folder / example
    shutil.copytree(EXAMPLES / example, copy)
    text = (copy / file).read_text()
    assert old in text
    (copy / file).write_text(text.replace(old, new))
    return copy


def test_the_shift_without_its_barrier(program: Path, tmp_path: Path) -> None:
    call = "nvshmemx_barrier_all_on_stream(0);"
    copy = edited(tmp_path, "01-simple-shift", "simple-shift-host.c", call, "")
    done = run_example(program, 2, copy / "simple-shift.py")
    assert done.returncode == 1
    assert "nothing orders the two" in done.stderr, done.stderr


def test_the_gemm_without_its_wait(program: Path, tmp_path: Path) -> None:
    call = "nvshmem_signal_wait_until(signals + index, NVSHMEM_CMP_GE, epoch);"
    copy = edited(tmp_path, "02-allgather-gemm", "ag-gemm-device.cu", call, ";")
    done = run_example(program, 2, copy / "ag-gemm.py", "--case", "check")
    assert done.returncode == 1
    assert "nothing orders the two" in done.stderr and "kernel 'ag_gemm'" in done.stderr, done.stderr


STREAMS = """#include <cuda_runtime.h>
/* Two streams write to the same memory: with an event between them, or with nothing. */
int two_streams(int ordered) {
    cudaStream_t a, b;
    cudaEvent_t event;
    char *memory;
    if (cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking) != cudaSuccess) return 1;
    for (int i = 0; i < 13; i++) cudaEventCreate(&event); /* numbers are given to events and streams alike */
    if (cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking) != cudaSuccess) return 1;
    cudaEventCreate(&event);
    cudaMalloc((void **)&memory, 4096);
    cudaEventRecord(event, a);
    cudaMemsetAsync(memory, 1, 4096, a);
    if (ordered) {
        cudaEventRecord(event, a);
        cudaStreamWaitEvent(b, event, 0);
    }
    cudaMemsetAsync(memory + 64, 2, 64, b);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""


@pytest.mark.parametrize("ordered", [0, 1])
def test_streams(program: Path, tmp_path: Path, ordered: int) -> None:
    (tmp_path / "streams.c").write_text(STREAMS)
    (tmp_path / "streams.py").write_text(
        f"import sys, intarsia\nintarsia.init()\nsys.exit(intarsia.load_host('streams.c').two_streams({ordered}))\n"
    )
    done = run_example(program, 1, tmp_path / "streams.py")
    assert (done.returncode == 0) == bool(ordered), done.stderr
    if not ordered:
        assert re.search(
            r"PE 0: a fill on stream 0x\w+ writes (64 bytes at 0x\w+, 64|4096 bytes at 0x\w+, 0) bytes into a "
            r"4096-byte allocation of device memory( \(0x\w+ among them\))?, which a fill on a stream has written",
            done.stderr,
        ), done.stderr
