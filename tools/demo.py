#!/usr/bin/env python3
"""`make demo`: runs the examples on the simulator, and shows what of their output was checked, and how.

Each case is a command that is also shown, so that it can be typed; its check reads the output and knows by itself what
must stand there.
"""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / ".venv" / "bin" / "intarsia"


class CheckError(Exception):
    """What was expected and did not come."""


def check_shift(output: str, n: int) -> str:
    """Every PE has received its left neighbour's number, once."""
    got = {int(pe): int(value) for pe, value in re.findall(r"^\[pe (\d+)\] .*received (-?\d+)", output, re.M)}
    expected = {pe: (pe - 1) % n for pe in range(n)}
    if got != expected:
        raise CheckError(f"expected {expected}, got {got}")
    return "received " + ", ".join(f"{got[pe]}" for pe in range(n))


def check_gemm(output: str, n: int) -> str:
    """Every PE has compared its part of the product with NumPy's."""
    line = r"^\[pe (\d+)\] .*: equal to NumPy's, largest difference ([\d.e+-]+)$"
    got = {int(pe): float(difference) for pe, difference in re.findall(line, output, re.M)}
    if set(got) != set(range(n)):
        raise CheckError(f"expected a comparison by each of {n} PEs, got {sorted(got)}")
    return f"{n} parts of the product are NumPy's, largest difference {max(got.values()):g}"


def check_barriers(output: str, n: int) -> str:
    """Every PE has compared both its all-reduces and its rounds of the pipeline with NumPy's."""
    line = r"^\[pe (\d+)\] .*: \d+ (all-reduces|rounds of the pipeline).*: equal to NumPy's, largest difference 0$"
    got = sorted((what, int(pe)) for pe, what in re.findall(line, output, re.M))
    if got != [(what, pe) for what in ("all-reduces", "rounds of the pipeline") for pe in range(n)]:
        raise CheckError(f"expected two comparisons by each of {n} PEs, got {got}")
    return f"all-reduces and pipeline are NumPy's on {n} PEs, largest difference 0"


@dataclass
class Case:
    n: int
    script: str
    check: Callable[[str, int], str]
    arguments: tuple[str, ...] = ()

    def command(self) -> list[str]:
        return ["run", "--sim", "-n", str(self.n), f"examples/{self.script}", *self.arguments]


SHIFT = "01-simple-shift/simple-shift.py"
GEMM = "02-allgather-gemm/ag-gemm.py"
BARRIER = "03-device-barrier/device-barrier.py"
CASES = [
    Case(2, SHIFT, check_shift),
    Case(4, SHIFT, check_shift),
    Case(2, GEMM, check_gemm, ("--case", "check")),
    Case(4, GEMM, check_gemm, ("--case", "check")),
    Case(4, BARRIER, check_barriers, ("--case", "check")),
]


def run(case: Case) -> tuple[bool, str, float]:
    """Whether it was good, what was checked or went wrong, and the seconds it took."""
    began = time.monotonic()
    done = subprocess.run([PROGRAM, *case.command()], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", stdin=subprocess.DEVNULL, check=False)
    seconds = time.monotonic() - began
    try:
        if done.returncode != 0:
            raise CheckError(f"exit code {done.returncode}")
        return True, case.check(done.stdout, case.n), seconds
    except CheckError as error:
        print(f"\n{done.stdout}", file=sys.stderr)
        return False, str(error), seconds


def progress(text: str) -> None:
    """One line that is written over on a terminal, and one after the other elsewhere."""
    if not sys.stdout.isatty():
        print(text, flush=True)
        return
    width = shutil.get_terminal_size().columns
    print(f"\r{text[:width - 1]:{width - 1}}", end="", flush=True)


def table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        print("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def main() -> int:
    rows: list[tuple[str, ...]] = [("command", "checked", "time", "result")]
    good = True
    for number, case in enumerate(CASES, 1):
        command = " ".join(["intarsia", *case.command()])
        progress(f"[{number}/{len(CASES)}] {command}")
        passed, checked, seconds = run(case)
        good = good and passed
        rows.append((command, checked, f"{seconds:.1f} s", "good" if passed else "FAILED"))
    if sys.stdout.isatty():
        progress("")
        print("\r", end="")
    print()
    table(rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
