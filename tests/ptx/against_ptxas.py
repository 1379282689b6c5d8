#!/usr/bin/env python3
"""
Holds the verifier against ptxas, instruction by instruction, and lists where they differ.

    forms    every form of the opcode tables, in every version and for every target: where it begins
    spoiled  the same with a word or an operand that doesn't belong, in the newest version
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import candidates as made

ROOT = Path(__file__).resolve().parents[2]
CHECKER = ROOT / "build/release/bin/intarsia"
VERSIONS = (60, 61, 62, 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90)
TARGETS = ("50", "53", "60", "61", "70", "72", "75", "80", "86", "89", "90", "90a", "100", "100a", "100f", "103a",
           "103f", "110a", "120", "120a", "120f", "121a")  # fmt: skip
OURS_AT_ONCE = 180  # instructions of a module: the verifier shows 200 errors and counts the rest
Setting = tuple[int, str]  # version times ten, target without sm_
SPOILED_IN = ((90, "100a"), (90, "90a"), (90, "120a"), (80, "80"))


def ptxas() -> str:
    found = os.environ.get("PTXAS") or shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    if not Path(found).exists():
        print("SKIPPED: no ptxas on this machine, set PTXAS to its path")
        sys.exit(0)
    return found


def module(setting: Setting, lines: list[str]) -> str:
    version, target = setting
    head = f".version {version // 10}.{version % 10}\n.target sm_{target}\n.address_size 64\n"
    regs = made.BODY if version >= 83 and int(re.sub(r"\D", "", target)) >= 70 else made.BODY.replace(made.WIDE, "")
    body = "".join(line + "\n" for line in lines)
    return f"{head}{made.GLOBALS}\n.visible .entry k(.param .b64 pv)\n{{ {regs}\n{body}ret;\n}}\n"


FIRST = 7  # the line of the first instruction in it


def by_line(text: str, pattern: str) -> dict[int, str]:
    """The first complaint about each line, by its number among the instructions."""
    found: dict[int, str] = {}
    for match in re.finditer(pattern, text, re.M):
        found.setdefault(int(match[1]) - FIRST, match[2])
    return found


def ask_ours(setting: Setting, lines: list[str], folder: Path) -> dict[int, str]:
    """
    What the verifier refuses. It shows so many errors only: a long list is asked in parts. What the parser can't read
    keeps it from being asked at all: that is taken out, and asked again.
    """
    refused: dict[int, str] = {}
    for start in range(0, len(lines), OURS_AT_ONCE):
        left = list(range(start, min(start + OURS_AT_ONCE, len(lines))))
        while left and (found := run_ours(setting, [lines[i] for i in left], folder)):
            refused.update({left[line]: words for line, words in found.items()})
            left = [line for i, line in enumerate(left) if i not in found]
    return refused


def run_ours(setting: Setting, lines: list[str], folder: Path) -> dict[int, str]:
    file = folder / f"ours-{setting[0]}-{setting[1]}.ptx"
    file.write_text(module(setting, lines))
    run = subprocess.run([CHECKER, "check", "-q", file], capture_output=True, text=True, check=False)
    found = by_line(run.stderr, r"^[^:\n]*:(\d+):\d+: error: (.*)$")
    if run.returncode not in (0, 1) or (run.returncode and not any(0 <= line < len(lines) for line in found)):
        sys.exit(f"{CHECKER} ended with {run.returncode}: {run.stderr[-2000:]}")
    return {line: words for line, words in found.items() if 0 <= line < len(lines)}


POISON = "poison;"  # stops ptxas behind its first checks, before it makes code: what it refuses later is not seen


def run_ptxas(setting: Setting, lines: list[str], folder: Path) -> tuple[dict[int, str], str]:
    """What ptxas says of each line, and all that it says."""
    file = folder / f"theirs-{setting[0]}-{setting[1]}.ptx"
    file.write_text(module(setting, lines))
    target = setting[1] if int(re.sub(r"\D", "", setting[1])) >= 75 else "75"
    command = [ptxas(), f"-arch=sm_{target}", "-o", os.devnull, str(file)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    words = run.stdout + run.stderr
    return by_line(words, rf"^ptxas {re.escape(str(file))}, line (\d+); (?:error|fatal)\s*: (.*)$"), words


def ask_theirs(setting: Setting, lines: list[str], folder: Path) -> dict[int, str]:
    """
    What ptxas refuses. A line that it can't parse hides what comes behind: it is taken out, and asked again. A few kill
    it without a word about the line: they are found by halving.
    """
    refused: dict[int, str] = {}
    left = list(range(len(lines)))
    while True:
        found, words = run_ptxas(setting, [*(lines[i] for i in left), POISON], folder)
        refused.update({left[line]: text for line, text in found.items() if 0 <= line < len(left)})
        if len(left) in found:
            return refused
        rest = [line for i, line in enumerate(left) if i not in found]
        if len(rest) == len(left):
            break
        left = rest
    if len(left) <= 1:
        return {**refused, **{line: re.sub(r"(?s)^.*?(?=[^;\n]*(?:error|fatal))", "", words) for line in left}}
    for part in (left[: len(left) // 2], left[len(left) // 2 :]):
        answers = ask_theirs(setting, [lines[i] for i in part], folder)
        refused.update({part[line]: text for line, text in answers.items()})
    return refused


def compile_alone(setting: Setting, line: str, folder: Path, number: int) -> str:
    """What ptxas says of an instruction when it makes code of it, too; nothing if it takes it."""
    file = folder / f"alone-{setting[0]}-{setting[1]}-{number}.ptx"
    file.write_text(module(setting, [line]))
    target = setting[1] if int(re.sub(r"\D", "", setting[1])) >= 75 else "75"
    command = [ptxas(), f"-arch=sm_{target}", "-o", os.devnull, str(file)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    file.unlink()
    return (run.stdout + run.stderr).strip() or "it crashes" if run.returncode else ""


@functools.cache
def settings() -> list[Setting]:
    """The versions and targets that go together, as ptxas has it."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "empty.ptx"
        for version in VERSIONS:
            for target in TARGETS:
                file.write_text(module((version, target), []))
                arch = target if int(re.sub(r"\D", "", target)) >= 75 else "75"
                command = [ptxas(), f"-arch=sm_{arch}", "-o", os.devnull, str(file)]
                if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                    found.append((version, target))
    return found


# -- comparing ---------------------------------------------------------------------------------------------------------


def generic(words: str) -> str:
    """A complaint without what differs from one instruction to the next."""
    return re.sub(r"'[^']*'|\b\d+\b", "~", words)


def show(setting: Setting) -> str:
    return f"{setting[0] // 10}.{setting[0] % 10}/{setting[1]}"


class Verdicts:
    """What both say of each instruction in each setting."""

    def __init__(self, lines: list[str], grid: list[Setting], jobs: int):
        self.grid = grid
        with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
            ours = pool.map(lambda s: ask_ours(s, lines, Path(name)), grid)
            theirs = pool.map(lambda s: ask_theirs(s, lines, Path(name)), grid)
            self.ours, self.theirs = dict(zip(grid, ours)), dict(zip(grid, theirs))
            alarms = [(s, i) for s in grid for i in self.ours[s] if i not in self.theirs[s]]
            whole = pool.map(lambda at: compile_alone(at[0], lines[at[1]], Path(name), at[1]), alarms)
            self.theirs_late = {at: words for at, words in zip(alarms, whole) if words}
        for (setting, i), words in self.theirs_late.items():
            self.theirs[setting][i] = words

    def differing(self, i: int) -> tuple[list[Setting], list[Setting]]:
        """Where ours alone refuses instruction i, and where ptxas alone does."""
        return (
            [s for s in self.grid if i in self.ours[s] and i not in self.theirs[s]],
            [s for s in self.grid if i not in self.ours[s] and i in self.theirs[s]],
        )

    def begins(self, i: int, theirs: bool) -> dict[str, str]:
        """For each target the versions from which on the instruction is accepted."""
        found = {}
        for target in dict.fromkeys(target for _, target in self.grid):
            refused = self.theirs if theirs else self.ours
            takes = [i not in refused[s] for s in self.grid if s[1] == target]
            versions = [v for v, t in self.grid if t == target]
            first = takes.index(True) if True in takes else None
            found[target] = "never" if first is None else f"{versions[first] / 10}" if first else "always"
            if first is not None and not all(takes[first:]):
                found[target] += "?"
        return found


def where(verdicts: Verdicts, i: int, differing: list[Setting]) -> str:
    """In which settings, in short: by target, from which version on each of both accepts it."""
    if len(verdicts.grid) < 30:
        return " ".join(map(show, differing))
    ours, theirs = verdicts.begins(i, False), verdicts.begins(i, True)
    text: dict[str, list[str]] = defaultdict(list)
    for target in dict.fromkeys(t for _, t in differing):
        text[f"ours {ours[target]}, ptxas {theirs[target]}"].append(target)
    return "; ".join(f"sm {' '.join(targets)}: {begin}" for begin, targets in text.items())


def compare(found: list[made.Candidate], grid: list[Setting], jobs: int, shown: int) -> tuple[int, int]:
    """Asks both about all instructions in all settings; prints where they differ. False alarms, and passed over."""
    verdicts = Verdicts([candidate.text for candidate in found], grid, jobs)
    counts = []
    for side, title in enumerate(("FALSE ALARMS", "ACCEPTED, ptxas refuses")):
        alike: dict[tuple[str, str, str], list[tuple[str, str]]] = defaultdict(list)
        for i, candidate in enumerate(found):
            if differing := verdicts.differing(i)[side]:
                words = (verdicts.theirs if side else verdicts.ours)[differing[-1]][i]
                place = where(verdicts, i, differing)
                alike[(candidate.form.op, place, generic(words))].append((candidate.text, words))
        counts.append(sum(map(len, alike.values())))
        print(f"== {title}: {counts[-1]} instructions of {len(found)}")
        for (_, place, _), cases in sorted(alike.items()):
            print(f"{place}: {cases[0][1]}")
            for text, _ in cases[:shown]:
                print(f"    {text if len(text) < 160 else text[:150] + ' ...'}")
            if len(cases) > shown:
                print(f"    ... and {len(cases) - shown} more like these")
    return counts[0], counts[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("forms", "spoiled"), help="which instructions")
    parser.add_argument("--op", action="append", help="only of these opcodes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20000, help="of spoiled instructions (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--settings", help="such as 9.0/100a,8.0/90a (default: all that go together)")
    parser.add_argument("--show", type=int, default=3, help="of each kind (default %(default)s)")
    args = parser.parse_args()
    chosen = [f for f in made.forms() if f.op not in ("call", "intarsia") and (not args.op or f.op in args.op)]
    whole = args.what == "forms"
    found = made.candidates(chosen, args.seed) if whole else made.spoiled(chosen, args.count, args.seed)
    grid = settings() if whole and not args.settings else list(SPOILED_IN)
    if args.settings:
        grid = [(int(v.replace(".", "")), t) for v, t in (s.split("/") for s in args.settings.split(","))]
    print(f"{len(found)} instructions of {len(chosen)} forms in {len(grid)} settings")
    alarms, _ = compare(found, grid, args.jobs, args.show)
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
