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
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("parse", "link", "sim")
TEST_RUNS = 25000  # of a process, in `make test`
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


def same_every_time(command: list[str], seeds: Path) -> list[str]:
    """
    The command such that it sees the same inputs on every machine: addresses don't vary, seeds come in the order of
    their names and not in that of the folder, and no process takes up what another one has found.
    """
    tool = shutil.which("setarch")
    fixed = [tool, os.uname().machine, "-R"] if tool else []
    order = seeds.with_suffix(".list")
    order.write_text(",".join(str(file) for file in sorted(seeds.iterdir())))
    return [*fixed, *command, "-use_cmp=0", "-reload=0", f"-runs={TEST_RUNS}", f"-seed_inputs=@{order}"]


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
    command += [f"-artifact_prefix={crashes}/"]
    start = int(time.time()) if keep else 1
    if keep:
        command += [str(found), str(seeds)]
    else:  # a test that fails by chance helps nobody
        command = same_every_time(command, seeds)
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


CHECKER = ROOT / "build/release/bin/intarsia"


@dataclass
class Verdict:
    """Whether the verifier accepts a file, and ptxas; the first message of either."""

    ours: bool
    theirs: bool
    message: str
    words: str


def judge(file: Path) -> Verdict:
    ours = subprocess.run([CHECKER, "check", file], capture_output=True, timeout=60)
    if ours.returncode not in (0, 1):
        raise RuntimeError(f"intarsia check ended with status {ours.returncode} for:\n{file.read_text()}")
    arch = re.search(rb"^\s*\.target\s+(sm_\w+)", file.read_bytes(), re.M)
    command = [os.environ.get("PTXAS") or "ptxas", "-c", "-o", os.devnull, str(file)]
    command += [f"-arch={arch[1].decode()}"] if arch else []
    theirs = subprocess.run(command, capture_output=True, timeout=120)
    words = (theirs.stderr + theirs.stdout).decode(errors="replace")
    first = next((line for line in words.splitlines() if "error" in line or "fatal" in line), words)
    message = ours.stderr.decode(errors="replace").split("\n")[0].partition(": error: ")[2]
    return Verdict(ours.returncode == 0, theirs.returncode == 0, message, re.sub(r"^ptxas \S+ line \d+; ", "", first))


CARRIED = re.compile(
    "Parsing error near|Not a name of any known instruction|Unknown modifier|No variable storage|Unsupported|non-ASCII"
    "|is not defined for option"
)


def accepts(file: Path) -> bool:
    return subprocess.run([CHECKER, "check", file], capture_output=True, timeout=60).returncode == 0


def sample(folder: Path, most: int, jobs: int) -> list[Path]:
    """Inputs for ptxas, by hash: up to `most` that the verifier accepts, half as many that it refuses."""
    files = [f for f in folder.iterdir() if re.search(rb"\.target sm_\d", f.read_bytes())]
    files = sorted(files, key=lambda f: hashlib.sha256(f.name.encode()).digest())[: 20 * most]
    with ThreadPoolExecutor(jobs) as pool:
        good = list(pool.map(accepts, files))
    chosen = [f for f, ok in zip(files, good, strict=True) if ok][:most]
    return chosen + [f for f, ok in zip(files, good, strict=True) if not ok][: most // 2]


def ask_ptxas(folder: Path, most: int, jobs: int) -> list[str]:
    """
    Compares the verifier with ptxas on a sample. What ours refuses, ptxas must refuse: that is the promise. What ours
    accepts and ptxas doesn't is listed, but for words that ptxas doesn't know: those are carried through by design.
    """
    if not (shutil.which("ptxas") or os.environ.get("PTXAS")):
        print("SKIPPED: no ptxas on this machine, set PTXAS to its path")
        return []
    files = sample(folder, most, jobs)
    with ThreadPoolExecutor(jobs) as pool:
        verdicts = list(zip(files, pool.map(judge, files), strict=True))
    too_lax = [(f, found.words) for f, found in verdicts if found.ours and not found.theirs]
    accepted = sum(found.ours for _, found in verdicts)
    unknown = [file for file, words in too_lax if CARRIED.search(words)]
    too_lax = [(file, words) for file, words in too_lax if not CARRIED.search(words)]
    print(
        f"ptxas: of {accepted} inputs that the verifier accepts it refuses {len(too_lax)}, not counting {len(unknown)} "
        "with words that neither knows"
    )
    for file, words in too_lax:
        print(f"  {file.name}: {words}")
    return [
        f"{f}: the verifier refuses what ptxas accepts: {found.message}"
        for f, found in verdicts
        if found.theirs and not found.ours
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="in total, spread over the targets (default 600)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only these (default: all)")
    parser.add_argument("--keep", action="store_true", help="go on from build/fuzz/corpus, and add to it")
    parser.add_argument("--ptxas", type=int, default=0, metavar="N", help="ask ptxas about N inputs of each target")
    args = parser.parse_args()
    targets = args.target or TARGETS
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        for target in targets:
            failures += fuzz(target, max(1, args.seconds // len(targets)), args.jobs, args.keep, Path(name))
            if args.ptxas and target != "link":
                found = ROOT / "build/fuzz/corpus" / target if args.keep else Path(name) / f"corpus-{target}"
                failures += ask_ptxas(found, args.ptxas, args.jobs)
    for failure in failures:
        print(failure)
    if failures:
        print("inputs that fail are in build/fuzz/crashes: mend it, and add the input to tests/fuzz/regressions")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
