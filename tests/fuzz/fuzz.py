#!/usr/bin/env python3
"""Runs the fuzzers of build/fuzz: time spread over the targets, seeds and dictionary made here, ptxas asked afterwards.

A run with `--keep` goes on from the inputs that earlier ones found, in build/fuzz/corpus: for machines that do it every
night. Without, it starts from the seeds alone: what `make test` does for a minute.

Nothing is typed by hand here: the dictionary is read out of the opcode tables, the seeds are the texts of other tests.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("parse", "link", "sim")
LARGEST = 6000  # bytes of an input: small ones are fast, and show as much
LIMITS = ["-timeout=20", "-rss_limit_mb=2500", "-malloc_limit_mb=2000", f"-max_len={LARGEST}", "-print_final_stats=1"]

# -- what they start from ----------------------------------------------------------------------------------------------


def dictionary() -> str:
    """The words of the tables (opcodes, modifiers, special registers) and of the parser (directives)."""
    words: set[str] = set()
    for table in ("ptx_ops.def", "ptx_mods.def", "ptx_sregs.def"):
        text = (ROOT / "src/ptx" / table).read_text()
        words.update(re.findall(r'^ITS_(?:OP|MOD|SREG)\w*\(\w+,\s*"([^"]+)"', text, re.M))
    for source in sorted((ROOT / "src/ptx").glob("parse*.c")):
        words.update(re.findall(r'"(\.[a-z_]+)"', source.read_text()))
    return "".join(f'"{word}"\n' for word in sorted(words))


def dumped_kernels(folder: Path) -> None:
    """The kernels of the simulator's tests, which write them down when they are asked to."""
    for program in sorted((ROOT / "build/release/bin").glob("test_sim_*")):
        environment = {**os.environ, "INTARSIA_TEST_TEXTS": str(folder)}
        if "cells" not in program.name:
            subprocess.run([program], env=environment, capture_output=True, timeout=300)


def make_seeds(target: str, folder: Path) -> int:
    """Writes the seeds of a target; returns how many there are."""
    folders = {
        "parse": ("tests/ptx/good", "tests/ptx/bad", "tests/corpus/ptx"),
        "link": ("tests/link/data",),
        "sim": ("tests/ptx/good",),
    }[target]
    folder.mkdir(parents=True)
    files = [f for name in folders for f in sorted((ROOT / name).glob("*.ptx"))]
    files += sorted((ROOT / "tests/fuzz/regressions" / target).glob("*"))
    for file in files:
        if file.stat().st_size <= LARGEST:
            shutil.copyfile(file, folder / file.name)
    if target == "sim":
        dumped_kernels(folder)
    return sum(1 for _ in folder.iterdir())


# -- running -----------------------------------------------------------------------------------------------------------


def fuzz(target: str, seconds: int, jobs: int, keep: bool, work: Path) -> list[str]:
    """Runs `jobs` processes of one target side by side; returns what went wrong."""
    program = ROOT / "build/fuzz/bin" / f"fuzz_{target}"
    seeds, crashes = work / f"seeds-{target}", ROOT / "build/fuzz/crashes" / target
    found = ROOT / "build/fuzz/corpus" / target if keep else work / f"corpus-{target}"
    found.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(parents=True, exist_ok=True)
    count = make_seeds(target, seeds)
    (work / "words").write_text(dictionary())
    command = [str(program), *LIMITS, f"-max_total_time={seconds}", f"-dict={work / 'words'}"]
    command += [f"-artifact_prefix={crashes}/", str(found), str(seeds)]
    start = int(time.time()) if keep else 1
    logs = [work / f"{target}-{job}.log" for job in range(jobs)]
    running = []
    for job, log in enumerate(logs):
        with log.open("wb") as out:
            running.append(subprocess.Popen([*command, f"-seed={start + job}"], stdout=out, stderr=out))
    failures = []
    runs = 0
    for process, log in zip(running, logs, strict=True):
        status = process.wait()
        text = log.read_text(errors="replace")
        executed = re.search(r"number_of_executed_units: (\d+)", text)
        runs += int(executed[1]) if executed else 0
        if status or not executed:
            failures.append(f"fuzz_{target} ended with status {status}:\n" + "\n".join(text.splitlines()[-60:]))
    print(f"fuzz_{target}: {count} seeds, {runs} runs in {seconds} s, {len(failures)} failures", flush=True)
    return failures


# -- ptxas as the oracle -----------------------------------------------------------------------------------------------


def judge(file: Path) -> tuple[bool, bool, str]:
    """What the verifier says of a file, what ptxas says, and its first words."""
    ours = subprocess.run([ROOT / "build/release/bin/intarsia", "check", file], capture_output=True, timeout=60)
    arch = re.search(rb"^\s*\.target\s+(sm_\w+)", file.read_bytes(), re.M)
    command = [os.environ.get("PTXAS") or "ptxas", "-c", "-o", os.devnull, str(file)]
    command += [f"-arch={arch[1].decode()}"] if arch else []
    theirs = subprocess.run(command, capture_output=True, timeout=120)
    words = (theirs.stderr + theirs.stdout).decode(errors="replace")
    first = next((line for line in words.splitlines() if "error" in line or "fatal" in line), words)
    return ours.returncode == 0, theirs.returncode == 0, re.sub(r"^ptxas \S+ line \d+; ", "", first)


def ask_ptxas(folder: Path, most: int, jobs: int) -> list[str]:
    """Compares the verifier with ptxas on a sample. What ours refuses, ptxas must refuse: that is the promise."""
    if not (shutil.which("ptxas") or os.environ.get("PTXAS")):
        print("SKIPPED: no ptxas on this machine, set PTXAS to its path")
        return []
    files = [f for f in folder.iterdir() if b".target sm_" in f.read_bytes()]
    files = sorted(files, key=lambda f: hashlib.sha256(f.name.encode()).digest())[:most]
    with ThreadPoolExecutor(jobs) as pool:
        verdicts = list(pool.map(judge, files))
    too_strict = [f for f, (ours, theirs, _) in zip(files, verdicts, strict=True) if theirs and not ours]
    too_lax = [(f, words) for f, (ours, theirs, words) in zip(files, verdicts, strict=True) if ours and not theirs]
    accepted = sum(ours for ours, _, _ in verdicts)
    print(f"ptxas: {len(files)} inputs, the verifier accepts {accepted}, of which ptxas refuses {len(too_lax)}")
    for file, words in too_lax:
        print(f"  {file.name}: {words}")
    return [f"{file}: the verifier refuses what ptxas accepts" for file in too_strict]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="in total, spread over the targets (default 600)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only these (default: all)")
    parser.add_argument("--keep", action="store_true", help="go on from build/fuzz/corpus, and add to it")
    parser.add_argument("--ptxas", type=int, default=0, metavar="N", help="ask ptxas about N of the parser's inputs")
    args = parser.parse_args()
    targets = args.target or TARGETS
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        for target in targets:
            failures += fuzz(target, max(1, args.seconds // len(targets)), args.jobs, args.keep, Path(name))
        if args.ptxas and "parse" in targets:
            found = ROOT / "build/fuzz/corpus/parse" if args.keep else Path(name) / "corpus-parse"
            failures += ask_ptxas(found, args.ptxas, args.jobs)
    for failure in failures:
        print(failure)
    if failures:
        print("inputs that fail are in build/fuzz/crashes: mend it, and add the input to tests/fuzz/regressions")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
