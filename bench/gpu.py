"""
Figures on a GPU, side by side in one run (`make bench-gpu`):

    speed      a persistent matrix product with (a) no wait, (b) a wait in hand-written inline assembly, (c) the same
               wait as a region, (d) NVSHMEM's own wait as a region; cuBLAS beside them
    linking    what it costs to bring one NVSHMEM function into a kernel: as a region, and by Triton's extern_libs with
               NVSHMEM's bitcode

Every product is checked against torch. Times are medians; `spread` is the largest over the smallest of three medians.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.language import core

import intarsia
from intarsia import _gpu_asm

device = intarsia.load("gpu-device.cu")

_NVSHMEM = "d NVSHMEM's wait as a region"
NO_WAIT, BY_HAND, REGION, NVSHMEM = (tl.constexpr(i) for i in range(4))


@triton.jit
def wait_by_hand(ready, value):
    tl.inline_asm_elementwise(
        "{ .reg .pred p; .reg .b64 v; .reg .b32 t; mov.u32 t, %tid.x; setp.ne.u32 p, t, 0; @p bra DONE; "
        "LOOP: ld.acquire.sys.global.b64 v, [$1]; setp.lt.u64 p, v, $2; @p bra LOOP; "
        "DONE: bar.sync 0; mov.u32 $0, 0; }",
        "=r,l,l", [ready.to(tl.int64), value.to(tl.int64)], dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit(do_not_specialize=["value"])
def product(
    a, b, c, ready, value, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GM: tl.constexpr, SMS: tl.constexpr, MODE: tl.constexpr,
):  # fmt: skip
    rows, columns, steps = tl.cdiv(M, BM), tl.cdiv(N, BN), tl.cdiv(K, BK)
    ad = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    bd = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    cd = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN // 2])
    for tile in tl.range(tl.program_id(0), rows * columns, SMS, flatten=True):
        group = tile // (GM * columns)
        height = min(rows - group * GM, GM)
        row = (group * GM + (tile % (GM * columns)) % height) * BM
        column = (tile % (GM * columns)) // height * BN
        if MODE == BY_HAND:
            wait_by_hand(ready, value)
        if MODE == REGION:
            intarsia.call(device.wait_plain, [ready, value.to(tl.int64)], sync=False)
        if MODE == NVSHMEM:
            intarsia.call(device.wait_nvshmem, [ready, value.to(tl.int64)], sync=False)
        sum = tl.zeros((BM, BN), tl.float32)
        for k in range(steps):
            sum = tl.dot(ad.load([row, k * BK]), bd.load([column, k * BK]).T, sum)
        halves = tl.permute(tl.reshape(sum, (BM, 2, BN // 2)), (0, 2, 1))
        left, right = tl.split(halves)
        cd.store([row, column], left.to(c.dtype.element_ty))
        cd.store([row, column + BN // 2], right.to(c.dtype.element_ty))


def advice(kernel) -> str:
    """What the assembler has done on its own: serialised wgmma, ignored setmaxnreg."""
    about = getattr(kernel.metadata, "intarsia", None) or {}
    said = about.get("assembled")
    if said is None:
        said = _gpu_asm.assemble("kernel.ptx", kernel.asm["ptx"], "sm_90a")[1]
    codes = sorted({a["code"] for a in said["advice"]})
    main = next((f for f in said["functions"] if f["entry"]), {})
    return f"{said['tool']}, {main.get('registers')} registers, {' '.join(codes) or 'no warning'}"


def medians(call, count: int = 3) -> list[float]:
    return [triton.testing.do_bench(call, warmup=30, rep=120, return_mode="median") for _ in range(count)]


def speed(m: int, n: int, k: int) -> None:
    a = torch.randn(m, k, dtype=torch.float16, device="cuda")
    b = torch.randn(n, k, dtype=torch.float16, device="cuda")
    ready = torch.full((1,), 1 << 40, dtype=torch.uint64, device="cuda")
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    want = torch.matmul(a, b.T).float()
    print(f"\nproduct of {m} x {k} and {k} x {n}, float16")
    print(f"{'':32} {'ms':>8} {'TFLOP/s':>8} {'spread':>7}  assembled by")
    found: dict[str, list[float]] = {"cuBLAS": []}
    runs = {"cuBLAS": lambda: torch.matmul(a, b.T)}
    said = {"cuBLAS": ""}
    for name, mode in (("a no wait", 0), ("b wait by hand", 1), ("c wait as a region", 2), (_NVSHMEM, 3)):
        c = torch.full((m, n), float("nan"), dtype=torch.float16, device="cuda")

        def run(mode=mode, c=c):
            return product[(sms,)](a, b, c, ready, 7, m, n, k, 128, 256, 64, 8, sms, mode, num_warps=8, num_stages=4)

        said[name] = advice(run())
        error = ((c.float() - want).norm() / want.norm()).item()
        assert error < 2e-3, (name, error)
        runs[name], found[name] = run, []
    for _ in range(3):  # in turns, so that a change of the clock hits all of them
        for name, run in runs.items():
            found[name] += medians(run, 1)
    for name, times in found.items():
        middle = statistics.median(times)
        rate = 2 * m * n * k / middle / 1e9
        print(f"{name:32} {middle:8.4f} {rate:8.1f} {max(times) / min(times):7.3f}  {said[name]}")
    middle = {name: statistics.median(times) for name, times in found.items()}
    by_hand = middle["b wait by hand"]
    print(f"c over b {middle['c wait as a region'] / by_hand:.4f}, d over b {middle[_NVSHMEM] / by_hand:.4f}")


# -- linking ---------------------------------------------------------------------------------------------------------


@triton.jit
def plain(p, ROUND: tl.constexpr):
    tl.store(p, ROUND)


@triton.jit
def with_put(p, ROUND: tl.constexpr):
    intarsia.call(device.put, [p, tl.program_id(0) + ROUND, 0])


@triton.jit
def with_wait(p, ROUND: tl.constexpr):
    intarsia.call(device.wait_nvshmem, [p, tl.program_id(0).to(tl.int64) + ROUND])


@core.extern
def extern_put(p, value, pe, _semantic=None):
    kinds = (core.dtype("int64"), core.dtype("int32"), core.dtype("int32"))
    return core.extern_elementwise(
        "", "", [p, value, pe], {kinds: ("nvshmem_int_p", core.dtype("int32"))}, is_pure=False, _semantic=_semantic
    )


@triton.jit
def by_bitcode(p, ROUND: tl.constexpr):
    extern_put(p.to(tl.int64), tl.program_id(0) + ROUND, 0)


def compile_time(kernel, rounds: int, first: int = 100, **options) -> list[float]:
    """Seconds for each of some kernels that differ, from number `first` on; nothing of them is in Triton's cache."""
    p = torch.zeros(8, dtype=torch.uint64 if kernel is with_wait else torch.int32, device="cuda")
    times = []
    for i in range(rounds):
        start = time.perf_counter()
        kernel.warmup(p, first + i, grid=(1,), **options)
        times.append(time.perf_counter() - start)
    return times


def linking() -> None:
    folder = tempfile.mkdtemp(prefix="intarsia-bench-")
    os.environ["TRITON_CACHE_DIR"] = folder
    import nvidia.nvshmem

    bitcode = str(Path(next(iter(nvidia.nvshmem.__path__))) / "lib" / "libnvshmem_device.bc")
    print("\nseconds to compile a small kernel, nothing of it in Triton's cache")
    print(f"{'':44} {'first':>8} {'then':>8}")
    compile_time(plain, 1, 0)  # Triton's own beginning
    rows = [
        ("no NVSHMEM", plain, {}),
        ("nvshmem_int_p as a region", with_put, {}),
        ("nvshmem_signal_wait_until as a region", with_wait, {}),
        ("nvshmem_int_p by extern_libs and bitcode", by_bitcode, {"extern_libs": {"libnvshmem_device": bitcode}}),
    ]
    for name, kernel, options in rows:
        try:
            times = compile_time(kernel, 4, **options)
        except Exception as error:
            print(f"{name:44} failed: {str(error).splitlines()[-1][:90]}")
            continue
        print(f"{name:44} {times[0]:8.3f} {statistics.median(times[1:]):8.3f}")
    shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transport", default="all", choices=["all", "p2p"])
    parser.add_argument("--only", choices=["speed", "linking"])
    given = parser.parse_args()
    intarsia.init("cuda", transport=given.transport)
    triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    print(
        f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, triton {triton.__version__}, "
        f"NVSHMEM {_gpu_asm.version()}, transport {given.transport}"
    )
    if given.only != "linking":
        speed(8192, 8192, 8192)
    if given.only != "speed":
        linking()


if __name__ == "__main__":
    main()
