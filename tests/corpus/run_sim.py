#!/usr/bin/env python3
"""Launches every Triton case of the corpus on the simulator and compares the outcome with NumPy.

    run_sim.py [--arch sm_80] [--only PATTERN] [--library build/release/lib/libintarsia.so] [--limit 60]

Prints what did not pass and a table: a case passes, or the simulator refuses it and names what it can't run, or it fails.
Cases that are made to fault pass if the report says what they expect.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import os
import re
import sys
import time
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import cases
from workers import Pool, progress

ROOT = Path(__file__).resolve().parents[2]
REFUSAL = re.compile(r"the simulator (?:can't|doesn't|has no)")


def launch(entry: cases.Case) -> str | None:
    """Runs a case on the open backend: what is wrong with the outcome, or None."""
    import intarsia
    import triton

    def on_device(array: cases.Array) -> Any:
        """The same bits in device memory: types that NumPy lacks must not be rounded again."""
        raw = array.raw.reshape(-1).view("u1")
        return intarsia.array(raw).view(tuple(array.shape), str(array.dtype)) if raw.size else None

    args, arrays = entry.arguments(on_device)
    before = {name: array.values() for name, array in arrays.items()}
    scratch = []
    triton.set_allocator(lambda size, align, stream: scratch.append(intarsia.zeros(size, "uint8")) or scratch[-1])
    entry.kernel[entry.grid](**args, **entry.options)
    intarsia.synchronize()
    after = {}
    for name, array in arrays.items():
        given = getattr(args[name], "base", args[name])
        bits = given.view((given.nbytes,), "uint8").numpy()
        after[name] = array.dtype.decode(bits.view(array.dtype.store).reshape(array.shape))
    return entry.check(before, after)


def run(name: str, source: Path, arch: str) -> tuple[str, str, float]:
    """Outcome, details and seconds of one case; the backend is opened for it alone."""
    import intarsia

    entry = next(c for c in cases.load([source]) if c.name == name)
    intarsia.init("sim", arch.rstrip("a"))
    started = time.monotonic()
    try:
        fault = launch(entry)
        if entry.faults:
            fault = f"ran although it should report '{entry.faults}'"
        outcome = ("failed", fault) if fault else ("passed", "")
    except intarsia.Error as error:
        text = str(error)
        if entry.faults and entry.faults in text:
            outcome = ("passed", "")
        else:
            outcome = ("refused" if REFUSAL.search(text) else "failed", text)
    with contextlib.suppress(intarsia.Error):  # a fault is told again when the backend closes
        intarsia.finalize()
    return (*outcome, time.monotonic() - started)


def what_is_refused(text: str) -> str:
    """The line that says it, without its place and the kernel's name."""
    line = next(line for line in text.splitlines() if REFUSAL.search(line))
    return re.sub(r"^(?:.*error: |\w+ (?=takes |uses ))", "", line)


def report(results: list[tuple[cases.Case, str, str, float]]) -> int:
    refusals = defaultdict(list)
    for entry, outcome, detail, _ in results:
        if outcome == "failed":
            print(f"{entry.name}: failed", *[f"    {line[:150]}" for line in detail.splitlines()[:12]], sep="\n")
        elif outcome == "refused":
            refusals[what_is_refused(detail)].append(entry.name)
    if refusals:
        print("\nrefused by name:")
        for reason, names in sorted(refusals.items(), key=lambda r: -len(r[1])):
            print(f"  {len(names):4}  {reason[:120]}  ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})")
    table = Counter((entry.source.stem, outcome) for entry, outcome, _, _ in results)
    print(f"\n{'family':<16}{'passed':>8}{'refused':>9}{'failed':>8}{'seconds':>9}")
    for family in sorted({e.source.stem for e, *_ in results}):
        seconds = sum(r[3] for r in results if r[0].source.stem == family)
        print(f"{family:<16}{table[family, 'passed']:>8}{table[family, 'refused']:>9}{table[family, 'failed']:>8}{seconds:>9.1f}")
    total = Counter(r[1] for r in results)
    print(f"{total['passed']} of {len(results)} cases passed, {total['refused']} refused by name, {total['failed']} failed")
    return 1 if total["failed"] or not results else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the Triton cases of the corpus on the simulator.")
    parser.add_argument("--arch", default="sm_80", choices=list(cases.TARGETS))
    parser.add_argument("--only", metavar="PATTERN", help="cases whose name contains or matches this")
    parser.add_argument("--library", type=Path, help="the libintarsia.so to use")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one case")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.library:
        os.environ["INTARSIA_LIBRARY"] = str(options.library.resolve())
    sys.path.insert(0, str(ROOT / "python"))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    chosen = [c for c in cases.load() if options.arch in c.targets]
    if options.only:
        chosen = [c for c in chosen if options.only in c.name or fnmatch.fnmatch(c.name, options.only)]
    by_name = {c.name: c for c in chosen}
    results = []
    pool = Pool(options.jobs, partial(run_job, arch=options.arch), limit=options.limit)
    for i, (job, error, answer) in enumerate(pool.run([(c.name, c.source) for c in chosen]), 1):
        results.append((by_name[job[0]], *(answer if answer else ("failed", error or "", 0.0))))
        progress(f"[{i}/{len(chosen)}] {job[0]}")
    progress("", end=True)
    return report(sorted(results, key=lambda r: r[0].name))


def run_job(job: tuple[str, Path], arch: str) -> tuple[str, str, float]:
    return run(*job, arch=arch)


if __name__ == "__main__":
    sys.exit(main())
