#!/usr/bin/env python3
"""Launches every case of the corpus on the simulator and compares the outcome with NumPy.

    run_sim.py [--arch sm_80] [--only PATTERN] [--corpus build/corpus] [--library build/release/lib/libintarsia.so] [--limit 60]

Triton's cases are compiled; a CUDA case runs on each build of its source that the corpus has for this target.
Prints what did not pass and a table: a case passes, or the simulator refuses it and names what it can't run, or it fails.
Cases that are made to fault, or to be refused, pass if the report says what they expect.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cases
import cuda_cases
import tools
from workers import Pool, progress

ROOT = Path(__file__).resolve().parents[2]
REFUSAL = re.compile(r"the simulator (?:can't|doesn't|has no)")


@dataclass(frozen=True)
class Job:
    """One case, and for CUDA the build of its source to run."""

    case: str
    source: Path
    build: cuda_cases.Build | None = None

    @property
    def title(self) -> str:
        return f"{self.case} of {self.build.file}" if self.build else self.case

    @property
    def family(self) -> str:
        return self.case.split(".")[0]


@dataclass(frozen=True)
class Result:
    job: Job
    outcome: str
    detail: str
    seconds: float


# -- running one case --------------------------------------------------------------------------------------------------


def on_device(array: cases.Array) -> Any:
    """The same bits in device memory: types that NumPy lacks must not be rounded again."""
    import intarsia

    raw = array.raw.reshape(-1).view("u1")
    return intarsia.array(raw).view(tuple(array.shape), str(array.dtype)) if raw.size else None


def values_of(arrays: dict[str, cases.Array], args: dict[str, Any]) -> cuda_cases.Values:
    after = {}
    for name, array in arrays.items():
        given = getattr(args[name], "base", args[name])
        bits = given.view((given.nbytes,), "uint8").numpy()
        after[name] = array.dtype.decode(bits.view(array.dtype.store).reshape(array.shape))
    return after


def launch_triton(entry: cases.Case) -> str | None:
    """Runs a case on the open backend: what is wrong with the outcome, or None."""
    import intarsia
    import triton

    args, arrays = entry.arguments(on_device)
    before = {name: array.values() for name, array in arrays.items()}
    scratch = []
    triton.set_allocator(lambda size, align, stream: scratch.append(intarsia.zeros(size, "uint8")) or scratch[-1])
    entry.kernel[entry.grid](**args, **entry.options)
    intarsia.synchronize()
    return entry.check(before, values_of(arrays, args))


@contextlib.contextmanager
def what_is_printed() -> Iterator[list[str]]:
    """Standard output goes into the list meanwhile: the simulator writes there what kernels print."""
    printed: list[str] = []
    saved = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield printed
        finally:
            os.dup2(saved, 1)
            os.close(saved)
            file.seek(0)
            printed.append(file.read().decode(errors="replace"))


def launch_cuda(entry: cuda_cases.CudaCase, build: cuda_cases.Build) -> str | None:
    """The same for a CUDA case."""
    import intarsia

    kernel = intarsia.module(build.path).entry(entry.kernel)
    args, arrays = entry.arguments(on_device)
    before = {name: array.values() for name, array in arrays.items()}
    with what_is_printed() as printed:
        kernel[entry.grid, entry.block, entry.shared](*args.values())
        intarsia.synchronize()
    return entry.check_all(before, values_of(arrays, args), printed[0])


def attempt(launch: Callable[[], str | None], faults: str | None, refuses: str | None) -> tuple[str, str]:
    """Outcome and details of a launch that may be expected not to work."""
    import intarsia

    expected = refuses or faults
    try:
        fault = launch()
        if expected:
            fault = f"ran although it should report '{expected}'"
        return ("failed", fault) if fault else ("passed", "")
    except intarsia.Error as error:
        text = str(error)
        is_refusal = REFUSAL.search(text) is not None
        if expected and expected in text and is_refusal == bool(refuses):
            return "passed", ""
        return ("failed" if expected or not is_refusal else "refused"), text


def run(job: Job, arch: str) -> tuple[str, str, float]:
    """Outcome, details and seconds of one case; the backend is opened for it alone."""
    import intarsia

    intarsia.init("sim", arch.rstrip("a"))
    started = time.monotonic()
    if job.build:
        cuda = next(c for c in cuda_cases.load([job.source.stem]) if c.name == job.case)
        outcome = attempt(partial(launch_cuda, cuda, job.build), cuda.faults, cuda.refuses)
    else:
        entry = next(c for c in cases.load([job.source]) if c.name == job.case)
        outcome = attempt(partial(launch_triton, entry), entry.faults, None)
    with contextlib.suppress(intarsia.Error):  # a fault is told again when the backend closes
        intarsia.finalize()
    return (*outcome, time.monotonic() - started)


# -- what there is to run ----------------------------------------------------------------------------------------------


def builds_of(corpus: Path, arch: str) -> dict[Path, list[cuda_cases.Build]]:
    """The builds of each source of CUDA for a target."""
    found = defaultdict(list)
    for entry in json.loads((corpus / "index.json").read_text()):
        if entry["source"].endswith(".cu") and entry["target"] == arch:
            found[ROOT / entry["source"]].append(cuda_cases.Build(entry["file"], arch, corpus / entry["file"]))
    return found


def cuda_jobs(corpus: Path, arch: str) -> tuple[list[Job], list[str]]:
    """Every case with every build that it fits, and the kernels of this target that no case launches."""
    builds = builds_of(corpus, arch)
    jobs, launched = [], defaultdict(set)
    for entry in cuda_cases.load():
        for build in builds.get(entry.source, []):
            if entry.fits(build):
                jobs.append(Job(entry.name, entry.source, build))
                launched[entry.source].add(entry.kernel)
    kernels = {s: set().union(*(b.kernels for b in some)) for s, some in builds.items()}
    return jobs, sorted(f"cuda/{s.stem}.{k}" for s, ks in kernels.items() for k in ks - launched[s])


def triton_jobs(arch: str) -> list[Job]:
    if tools.package_dir("triton") is None:
        print("the package triton is not installed: no Triton case runs", file=sys.stderr)
        return []
    return [Job(c.name, c.source) for c in cases.load() if arch in c.targets]


def selected(jobs: list[Job], pattern: str | None) -> list[Job]:
    return [j for j in jobs if not pattern or pattern in j.title or fnmatch.fnmatch(j.title, pattern)]


# -- the table ---------------------------------------------------------------------------------------------------------


def what_is_refused(text: str) -> str:
    """The line that says it, without its place and the kernel's name."""
    line = next(line for line in text.splitlines() if REFUSAL.search(line))
    return re.sub(r"^(?:.*error: |\w+ (?=takes |uses ))", "", line)


def report_refusals(results: list[Result]) -> None:
    refusals = defaultdict(list)
    for r in results:
        if r.outcome == "refused":
            refusals[what_is_refused(r.detail)].append(r.job.title)
    if refusals:
        print("\nrefused by name:")
    for reason, names in sorted(refusals.items(), key=lambda r: -len(r[1])):
        print(f"  {len(names):4}  {reason[:120]}  ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})")


def report_failures(results: list[Result]) -> None:
    """Builds of one source mostly fail alike: they are told together."""
    alike = defaultdict(list)
    for r in results:
        if r.outcome == "failed":
            alike[r.job.case, "\n".join(line[:150] for line in r.detail.splitlines()[:12])].append(r.job)
    for (name, detail), jobs in alike.items():
        files = ", ".join(j.build.file for j in jobs if j.build)
        print(f"{name}: failed{' of ' if files else ''}{files}", *[f"    {line}" for line in detail.splitlines()], sep="\n")


def report(results: list[Result]) -> int:
    report_failures(results)
    report_refusals(results)
    table = Counter((r.job.family, r.outcome) for r in results)
    print(f"\n{'family':<20}{'passed':>8}{'refused':>9}{'failed':>8}{'seconds':>9}")
    for family in sorted({r.job.family for r in results}):
        seconds = sum(r.seconds for r in results if r.job.family == family)
        print(f"{family:<20}{table[family, 'passed']:>8}{table[family, 'refused']:>9}{table[family, 'failed']:>8}{seconds:>9.1f}")
    total = Counter(r.outcome for r in results)
    print(f"{total['passed']} of {len(results)} cases passed, {total['refused']} refused by name, {total['failed']} failed")
    return 1 if total["failed"] or not results else 0


def run_all(jobs: list[Job], arch: str, limit: float, at_once: int) -> list[Result]:
    results = []
    pool = Pool(at_once, partial(run, arch=arch), limit=limit)
    for i, (job, error, answer) in enumerate(pool.run(jobs), 1):
        results.append(Result(job, *(answer if answer else ("failed", error or "", 0.0))))
        progress(f"[{i}/{len(jobs)}] {job.title}")
    progress("", end=True)
    return sorted(results, key=lambda r: r.job.title)


def choose(options: argparse.Namespace) -> list[Job]:
    jobs = selected(triton_jobs(options.arch), options.only)
    if not (options.corpus / "index.json").exists():
        print(f"{options.corpus / 'index.json'} is missing (run generate.py): no CUDA case runs", file=sys.stderr)
        return jobs
    cuda, unused = cuda_jobs(options.corpus.resolve(), options.arch)
    for name in unused if not options.only else []:
        print(f"{name}: no case launches it")
    return jobs + selected(cuda, options.only)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the cases of the corpus on the simulator.")
    parser.add_argument("--arch", default="sm_80", choices=list(cases.TARGETS))
    parser.add_argument("--only", metavar="PATTERN", help="cases whose name ('CASE of FILE' for CUDA) contains or matches this")
    parser.add_argument("--corpus", type=Path, default=ROOT / "build/corpus")
    parser.add_argument("--library", type=Path, help="the libintarsia.so to use")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one case")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.library:
        os.environ["INTARSIA_LIBRARY"] = str(options.library.resolve())
    sys.path.insert(0, str(ROOT / "python"))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    return report(run_all(choose(options), options.arch, options.limit, options.jobs))


if __name__ == "__main__":
    sys.exit(main())
