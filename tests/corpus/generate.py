#!/usr/bin/env python3
"""Writes the PTX corpus: what every producer makes of the sources beside this file.

    generate.py [--out build/corpus] [--only PATTERN] [--jobs 2] [--list]

Sources are triton/*.py (tables of cases), cuda/*.cu, llvm/*.ll and ptx/*.ptx. The last three say in their first lines
what is made of them:

    // corpus [TAG]: PRODUCER ...; TARGET ...; OPTION ...

Files are made again only if their source, options or compiler changed. A producer that this machine lacks is told and
skipped; a producer that refuses its source is a failure. `index.json` in the output folder describes every file.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import cases
import tools
from workers import Pool, progress

ROOT = Path(__file__).resolve().parents[2]
HEADER = re.compile(r"^\s*(?://|;)\s*corpus(?:\s+(\w+))?:\s*([^;]+);\s*([^;]+)(?:;\s*(.*))?$")


@dataclass
class Job:
    """One file to make."""

    name: str
    producer: str
    target: str
    source: str
    options: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)  # "rdc": assemble with -c; "debug": made with -G
    version: str = ""
    key: str = ""

    @property
    def file(self) -> str:
        return f"{self.producer}/{self.name}.{self.target}.ptx"


# -- what there is to make ---------------------------------------------------------------------------------------------


@cache
def file_text(path: str) -> str:
    return Path(path).read_text()


def absent(producer: str) -> str | None:
    """Why this producer can't be used here, or None."""
    stem, _, number = producer.partition("-")
    if stem in ("triton", "gluon"):
        return None if tools.package_dir("triton") else "the package triton is not installed"
    if stem == "nvrtc":
        return None if tools.nvrtc() else "libnvrtc was not found"
    if stem == "nvcc":
        return None if tools.nvcc() else "nvcc was not found"
    if stem in ("clang", "llc"):
        return None if number in tools.llvm_programs(stem) else f"{producer} was not found"
    if producer in NEWER:
        return f"{producer[:-1]} {NEWER[producer]} or newer was not found"
    return None


def version(producer: str) -> str:
    stem, _, number = producer.partition("-")
    if stem in ("triton", "gluon"):
        return "triton " + metadata.version("triton")
    if stem == "nvrtc":
        return tools.nvrtc_version()
    if stem == "nvcc":
        path = tools.nvcc()
        assert path is not None
        return tools.version_of(path)
    return tools.version_of(tools.llvm_programs(stem)[number]) if number else ""


# clang reads the headers of CUDA 13 from this version on; llc has opaque pointers by default and all that features.ll uses.
NEWER = {"clang+": 20, "llc+": 18}


def expand(producer: str) -> list[str]:
    """`clang` means every version that is installed, `clang+` those that are new enough."""
    if producer not in ("clang", *NEWER):
        return [producer]
    stem = producer.rstrip("+")
    numbers = [n for n in sorted(tools.llvm_programs(stem), key=int) if int(n) >= NEWER.get(producer, 0)]
    return [f"{stem}-{n}" for n in numbers] or [producer]


def header_jobs(path: Path) -> list[Job]:
    """Jobs of a source that says in its first lines what to make of it."""
    jobs = []
    for line in path.read_text().splitlines():
        if not (match := HEADER.match(line)):
            break
        tag, producers, targets, options = match[1], match[2].split(), match[3].split(), (match[4] or "").split()
        flags = (["rdc"] if any(o in ("-rdc=true", "-fgpu-rdc", "-c") for o in options) else []) + (
            ["debug"] if "-G" in options else [])
        for producer in (p for name in producers for p in expand(name)):
            name = path.stem + (f"_{tag}" if tag else "")
            jobs += [Job(name, producer, t, str(path), [o for o in options if o != "-c"], flags) for t in targets]
    if not jobs:
        raise SystemExit(f"{path}: error: no line `// corpus: PRODUCERS; TARGETS; OPTIONS` at its head")
    return jobs


def triton_jobs() -> list[Job]:
    if tools.package_dir("triton") is None:
        return [Job(p.stem, "triton", "all", str(p)) for p in cases.families()]
    jobs = []
    for entry in cases.load():
        producer = "gluon" if entry.is_gluon else "triton"
        options = [f"{k}={v}" for k, v in entry.options.items()]
        jobs += [Job(entry.name, producer, t, str(entry.source), options) for t in entry.targets]
    return jobs


def all_jobs(only: str | None) -> list[Job]:
    jobs = triton_jobs()
    for pattern in ("cuda/*.cu", "llvm/*.ll", "ptx/*.ptx"):
        for path in sorted(cases.HERE.glob(pattern)):
            jobs += header_jobs(path)
    if only:
        jobs = [j for j in jobs if only in j.file or fnmatch.fnmatch(j.file, only)]
    seen: dict[str, Job] = {}
    for job in jobs:
        if job.file in seen:
            raise SystemExit(f"two sources make {job.file}: {seen[job.file].source} and {job.source}")
        seen[job.file] = job
    return jobs


def content_key(job: Job) -> str:
    """Changes when anything that the file depends on does."""
    parts = [json.dumps([job.file, job.options, job.version]), file_text(job.source), file_text(__file__)]
    if job.source.endswith(".py"):
        parts.append(file_text(cases.__file__))
    for included in re.findall(r'^\s*#include "([^"]+)"', parts[1], re.M):
        if (path := Path(job.source).parent / included).exists():
            parts.append(file_text(str(path)))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# -- making one file ---------------------------------------------------------------------------------------------------


def run_compiler(command: list[str], out: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}")
    return out.read_text()


def make_cuda(job: Job) -> str:
    stem, _, number = job.producer.partition("-")
    includes = [f"-I{p}" for p in ([tools.nvshmem_include()] if "nvshmem" in job.name else []) if p]
    source = file_text(job.source)
    if stem == "nvrtc":
        includes += [f"-I{p}" for p in tools.cuda_includes()] + [f"-I{Path(job.source).parent}"]
        return tools.nvrtc_compile(source, job.source, [f"-arch={job.target}", *includes, *job.options])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.ptx"
        if stem == "nvcc":
            command = [str(tools.nvcc()), "-ptx", f"-arch={job.target}", *includes, *job.options, job.source, "-o", str(out)]
        elif stem == "clang":
            command = [str(tools.llvm_programs("clang")[number]), "-x", "cuda", "--cuda-device-only", "-S", "-w",
                       "-Wno-unknown-cuda-version", f"--cuda-gpu-arch={job.target}", *includes, *job.options, job.source,
                       "-o", str(out)]
            if root := tools.in_toolkit("nvvm"):
                command.append(f"--cuda-path={root.parent}")
        else:
            command = [str(tools.llvm_programs("llc")[number]), "-mtriple=nvptx64-nvidia-cuda", f"-mcpu={job.target}",
                       *job.options, job.source, "-o", str(out)]
        return run_compiler(command, out)


def make(job: Job) -> tuple[str, dict[str, Any]]:
    """The PTX of a job, and what else its producer found out."""
    if job.producer in ("triton", "gluon"):
        entries = {c.name: c for c in cases.load([Path(job.source)])}
        return cases.compile_ptx(entries[job.name], job.target)
    if job.producer == "hand":
        return Path(job.source).read_bytes().decode(), {}
    return make_cuda(job), {}


def make_file(job: Job, out: Path) -> tuple[dict[str, Any], float]:
    """Runs in a worker: writes the file, returns what its producer found out and the seconds it took."""
    started = time.monotonic()
    ptx, facts = make(job)
    path = out / job.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(ptx.encode())
    return facts, time.monotonic() - started


# -- the whole corpus --------------------------------------------------------------------------------------------------


def split_absent(jobs: list[Job]) -> tuple[list[Job], dict[str, int]]:
    here, missing = [], {}
    reasons = {p: absent(p) for p in {j.producer for j in jobs}}
    for job in jobs:
        reason = reasons[job.producer]
        if reason is None and "nvshmem" in job.name and tools.nvshmem_include() is None:
            reason = "the headers of NVSHMEM were not found"
        if reason:
            missing[reason] = missing.get(reason, 0) + 1
        else:
            here.append(job)
    return here, missing


def load_index(out: Path) -> dict[str, dict[str, Any]]:
    path = out / "index.json"
    return {e["file"]: e for e in json.loads(path.read_text())} if path.exists() else {}


def save_index(out: Path, entries: dict[str, dict[str, Any]]) -> None:
    path = out / "index.json.new"
    path.write_text(json.dumps([entries[k] for k in sorted(entries)], indent=1) + "\n")
    path.replace(out / "index.json")


def build(jobs: list[Job], out: Path, n: int, whole: bool) -> list[tuple[Job, str]]:
    index = load_index(out)
    versions = {p: version(p) for p in {j.producer for j in jobs}}
    for job in jobs:
        job.version = versions[job.producer]
        job.key = content_key(job)
    stale = [j for j in jobs if index.get(j.file, {}).get("key") != j.key or not (out / j.file).exists()]
    failures: list[tuple[Job, str]] = []
    # Triton 3.6 keeps some lowering choices (fp8 conversions) of the first target that a process compiles for, so
    # each target has processes of its own.
    pool = Pool(n, partial(make_file, out=out), group=lambda job: job.target)
    for i, (job, error, made) in enumerate(pool.run(stale), 1):
        progress(f"[{i}/{len(stale)}] {job.file} {made[1] if made else 0:.1f} s")
        if error:
            failures.append((job, error))
            index.pop(job.file, None)
        else:
            entry = {"file": job.file, **asdict(job), "facts": made[0]}
            entry["source"] = str(Path(job.source).relative_to(ROOT))
            index[job.file] = entry
        if i % 50 == 0:
            save_index(out, index)
    if whole:
        wanted = {j.file for j in jobs}
        for name in [f for f in index if f not in wanted]:
            (out / name).unlink(missing_ok=True)
            del index[name]
    save_index(out, index)
    progress(f"{len(jobs)} files, {len(stale) - len(failures)} made now, {len(failures)} failed", end=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the PTX corpus.")
    parser.add_argument("--out", type=Path, default=ROOT / "build/corpus")
    parser.add_argument("--only", metavar="PATTERN", help="files whose name contains or matches this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="name the files and make none")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    jobs, missing = split_absent(all_jobs(options.only))
    if options.list:
        print("\n".join(f"{j.file}  {' '.join(j.options)}".rstrip() for j in jobs))
    for reason, n in sorted(missing.items()):
        print(f"skipped {n} files: {reason}", file=sys.stderr)
    if options.list:
        return 0
    failures = build(jobs, out, options.jobs, whole=options.only is None and not missing)
    (out / "failures.txt").write_text("".join(f"{job.file}\n{error}\n\n" for job, error in failures))
    for job, error in failures:
        lines = [f"  {line[:150]}" for line in error.splitlines()[:12]]
        print(f"failed: {job.file} ({Path(job.source).name})", *lines, sep="\n", file=sys.stderr)
    if failures:
        print(f"all of it is in {out / 'failures.txt'}", file=sys.stderr)
    return 1 if failures or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
