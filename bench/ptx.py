#!/usr/bin/env python3
"""The PTX library's speed and memory beside what the way through LLVM costs: `make bench-ptx`.

    bench/ptx.py [--runs 15] [--kernel K.ptx --region R.ptx] [--nvshmem libnvshmem_device.bc] [--only-ours]

The texts are PTX that Triton made of bench/ptx_kernel.py, taken from its compiler before the region call in it is
linked: with tiles of 16 x 16 and without line tables, and with tiles of 128 x 64 and line tables. The larger texts are
that second kernel again and again, as it would be if it had been compiled for many shapes: each copy has names of its
own for the kernel, its parameters and its labels, so that nothing of one helps with the next. The region is
bench/ptx-device.cu through NVRTC. All are kept in build/bench and made again when a source or Triton's version changes.

The other way brings the same device function in by LLVM bitcode: clang, llvm-link with NVSHMEM's library of 31 MB, opt
and llc. A tool or library that is missing is named, and its figure left out.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNEL = ROOT / "bench" / "ptx_kernel.py"
REGION = ROOT / "bench" / "ptx-device.cu"
PROGRAM = ROOT / "build" / "release" / "bin" / "intarsia"
BENCH = ROOT / "build" / "release" / "bin" / "bench_ptx"
FOLDER = ROOT / "build" / "bench"
TILES = {"small": (16, 16, 16, 1), "large": (128, 64, 32, 3)}  # BM, BN, BK, stages
SIZES = (1 << 20, 14 << 20)
WHOLE = "llvm-link without --only-needed"


def run(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


# -- texts -------------------------------------------------------------------------------------------------------------


class Taken(Exception):
    """The PTX of a kernel, taken out of Triton's compiler before Intarsia links it."""


def take_ptx(stage, src, metadata):
    raise Taken(stage(src, metadata))


def compile_kernels(paths: dict[str, Path]) -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    spec = importlib.util.spec_from_file_location("ptx_kernel", KERNEL)
    if spec is None or spec.loader is None:
        sys.exit(f"{KERNEL} can't be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    link = triton.knobs.runtime.add_stages_inspection_hook

    def hook(*args):
        if len(args) > 1 and "ptx" in args[1]:
            stage = args[1]["ptx"]
            args[1]["ptx"] = lambda src, metadata: take_ptx(stage, src, metadata)
        return link(*args)

    triton.knobs.runtime.add_stages_inspection_hook = hook
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "signals": "*i64", "epoch": "i64"}
    for name, (bm, bn, bk, stages) in TILES.items():
        constants = {"BM": bm, "BN": bn, "BK": bk, "N_CTAS": 4}
        signature = {p: "constexpr" if p in constants else types.get(p, "i32") for p in module.product.arg_names}
        aligned = {(i,): [["tt.divisibility", 16]] for i in range(3)}
        source = ASTSource(module.product, signature, constants, aligned)
        triton.knobs.compilation.disable_line_info = name == "small"
        try:
            triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_stages": stages})
        except Taken as taken:
            paths[name].write_text(taken.args[0])



def texts() -> tuple[Path, list[Path]]:
    """The region and the kernels, from build/bench if they were made for this example and this Triton."""
    key = hashlib.sha256(importlib.metadata.version("triton").encode())
    for source in (Path(__file__), KERNEL, REGION, ROOT / "device" / "intarsia" / "nvshmem.h"):
        key.update(source.read_bytes())
    folder = FOLDER / key.hexdigest()[:16]
    paths = {name: folder / f"{name}.ptx" for name in TILES}
    if not all(path.exists() for path in paths.values()):
        folder.mkdir(parents=True, exist_ok=True)
        compile_kernels(paths)
    region = folder / "region.ptx"
    run(PROGRAM, "cc", REGION, "--arch", "sm_80", "-o", region)
    return region, list(paths.values())


def copies(path: Path, size: int) -> Path:
    """A text of `size` bytes: the kernel of `path` several times, under new names."""
    text = path.read_text()
    entry = re.search(r"^\.visible \.entry (\w+)\(.*?^\}$", text, re.M | re.S)
    if entry is None:
        sys.exit(f"{path} has no kernel")
    head, body, tail = text[: entry.start()], entry[0], text[entry.end() :]
    name = entry[1]
    parts, used = [head, body], len(text)
    while used + len(body) < size:
        part = re.sub(rf"\b{name}(?=\b|_param)", f"{name}_{len(parts)}", body)
        parts.append("\n" + part.replace("$L__", f"$L__{len(parts)}_"))
        used += len(parts[-1])
    large = path.with_name(f"{path.stem}-{size >> 20}M.ptx")
    large.write_text("".join([*parts, tail]))
    return large


# -- ours --------------------------------------------------------------------------------------------------------------


def mb_per_s(size: int, ms: float) -> str:
    return f"{size / ms / 1e3:.0f}"


def spread(times: list[float]) -> str:
    median, low, high = times
    return f"{median:.3f} ({low:.3f}-{high:.3f})" if median < 10 else f"{median:.1f} ({low:.1f}-{high:.1f})"


def table(head: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths)))


def ours(region: Path, kernels: list[Path], runs: int) -> None:
    rows = []
    for line in run(BENCH, runs, region, *kernels).splitlines():
        numbers = [float(word) for word in line.split("\t")]
        size, times = int(numbers[0]), [numbers[i : i + 3] for i in (1, 4, 7)]
        module, peak_parse, peak_link = numbers[10:]
        label = f"{size / 1e6:.1f} MB" if size > 1e6 else f"{size / 1e3:.1f} KB"
        row = [label]
        for phase in times:
            row += [spread(phase), mb_per_s(size, phase[0])]
        rows.append([*row, f"{module / size:.1f}", f"{peak_parse / size:.1f}", f"{peak_link / 1e6:.1f} MB",
                     f"{peak_link / size:.1f}"])
    print(f"CPU time in ms, median (quartiles) of {runs} runs taken in turn; memory in bytes per byte of text:\n")
    phases = ["parse", "MB/s", "parse+print", "MB/s", "full link", "MB/s"]
    table(["text", *phases, "module", "peak, parse", "peak, link", ""], rows)


# -- the way through LLVM ----------------------------------------------------------------------------------------------


def newest(tool: str) -> str | None:
    for version in range(30, 13, -1):
        if path := shutil.which(f"{tool}-{version}"):
            return path
    return shutil.which(tool)


def nvshmem_library(given: str | None) -> Path | None:
    places = [Path(given)] if given else []
    if home := os.environ.get("NVSHMEM_HOME"):
        places.append(Path(home) / "lib" / "libnvshmem_device.bc")
    if spec := importlib.util.find_spec("nvidia"):
        places += [Path(p) / "nvshmem/lib/libnvshmem_device.bc" for p in spec.submodule_search_locations or []]
    return next((place for place in places if place.exists()), None)


def cpu_ms(*command: object) -> tuple[float, float]:
    """CPU time of a command that must succeed, and its peak memory in MB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run("sh", "-c", 'ulimit -c 0; exec "$@"', "sh", *command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1e3 * seconds, after.ru_maxrss / 1e3


def steps_of_llvm(folder: Path, library: Path | None) -> tuple[list[tuple[str, list[object]]], list[str]]:
    """The commands whose tools are there, and what is missing."""
    tools = {name: newest(name) for name in ("clang++", "llvm-link", "opt", "llc")}
    missing = [name for name, path in tools.items() if path is None]
    missing += ["libnvshmem_device.bc (wheel nvidia-nvshmem-cu13, or --nvshmem)"] if library is None else []
    source, bc, joined, best = (folder / name for name in ("d.cu", "d.bc", "joined.bc", "best.bc"))
    # What NVRTC knows by itself; clang's own header for it wants a whole CUDA toolkit that it knows.
    source.write_text(
        "#define __device__ __attribute__((device))\n#define __host__ __attribute__((host))\n"
        "#define __forceinline__ inline __attribute__((always_inline))\n"
        'struct its_index { unsigned x, y, z; };\nextern "C" __device__ int __nvvm_read_ptx_sreg_tid_x();\n'
        "#define threadIdx its_index{(unsigned)__nvvm_read_ptx_sreg_tid_x(), 0, 0}\n"
        '#define __syncthreads() asm volatile("bar.sync 0;" ::: "memory")\n' + REGION.read_text())
    device_only = ["--cuda-device-only", "--cuda-gpu-arch=sm_80", "-nocudainc", "-nocudalib", "-O2", "-emit-llvm"]
    commands: list[tuple[str, list[object]]] = [
        ("clang++", [*device_only, "-c", f"-I{ROOT / 'device'}", "-x", "cuda", source, "-o", bc]),
        (WHOLE, [bc, library, "-o", joined]),
        ("llvm-link", [bc, "--only-needed", library, "-o", joined]),
        ("opt", ["-passes=internalize,default<O2>", "-internalize-public-api-list=wait_chunk", joined, "-o", best]),
        ("llc", ["-mcpu=sm_80", "-O3", best, "-o", folder / "d.ptx"]),
    ]
    done: list[tuple[str, list[object]]] = []
    for name, arguments in commands:
        tool = tools[name.partition(" ")[0]]
        if tool is None or (name != "clang++" and library is None):
            break
        done.append((name, [tool, *arguments]))
    return done, missing


def through_llvm(given: str | None, runs: int) -> None:
    library = nvshmem_library(given)
    with tempfile.TemporaryDirectory() as name:
        steps, missing = steps_of_llvm(Path(name), library)
        times: dict[str, list[tuple[float, float]]] = {tool: [] for tool, _ in steps}
        own = []
        for _ in range(runs):
            for tool, command in steps:
                times[tool].append(cpu_ms(*command))
            own.append(cpu_ms(PROGRAM, "cc", REGION, "--arch", "sm_80", "--no-cache", "-o",
                              Path(name) / "own.ptx"))
    size = f", llvm-link with {library.name} of {library.stat().st_size / 1e6:.0f} MB" if library else ""
    print(f"\nThe same device function through LLVM{size}; CPU time in ms, median (lowest-highest) of {runs}:\n")
    rows, whole = [], 0.0
    for tool, measured in times.items():
        ms = [m for m, _ in measured]
        whole += statistics.median(ms) if tool != WHOLE else 0
        rows.append([Path(newest(tool) or tool).name, f"{statistics.median(ms):.0f} ({min(ms):.0f}-{max(ms):.0f})"])
    rows.append(["all that is needed", f"{whole:.0f}" if "llc" in times else "not all are there"])
    ms = [m for m, _ in own]
    rows.append(["intarsia cc, which runs NVRTC", f"{statistics.median(ms):.0f} ({min(ms):.0f}-{max(ms):.0f})"])
    table(["step", "ms"], rows)
    for what in missing:
        print(f"missing: {what}")


# -- the machine -------------------------------------------------------------------------------------------------------


def describe() -> None:
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    system = re.search(r'PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text())
    pages = re.search(r"\[(\w+)\]", Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text())
    compiler = run("sh", "-c", "grep CMAKE_C_COMPILER:.*= build/release/CMakeCache.txt | cut -d= -f2").strip() or "cc"
    print(f"{time.strftime('%Y-%m-%d')}, {cpu[1] if cpu else 'unknown CPU'}, {os.cpu_count()} cores, load "
          f"{os.getloadavg()[0]:.1f}; {system[1] if system else 'unknown system'}, Linux {os.uname().release}, "
          f"huge pages {pages[1] if pages else 'unknown'}; {run(compiler, '--version').splitlines()[0]}; Triton "
          f"{importlib.metadata.version('triton')}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--kernel", help="a kernel that calls a region, instead of the example's")
    parser.add_argument("--region", help="that region")
    parser.add_argument("--nvshmem", metavar="FILE", help="libnvshmem_device.bc, if the wheel is not installed")
    parser.add_argument("--only-ours", action="store_true", help="leave LLVM out")
    given = parser.parse_args()
    if bool(given.kernel) != bool(given.region):
        parser.error("--kernel and --region go together")
    os.chdir(ROOT)
    describe()
    with tempfile.TemporaryDirectory() as name:
        region, kernels = (Path(given.region), [Path(given.kernel)]) if given.kernel else texts()
        base = Path(shutil.copy(kernels[-1], name))
        ours(region, kernels + [copies(base, size) for size in SIZES], given.runs)
    if not given.only_ours:
        through_llvm(given.nvshmem, max(3, given.runs // 3))


if __name__ == "__main__":
    main()
