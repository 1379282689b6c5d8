#!/usr/bin/env python3
"""
Lists the instructions of a target that the simulator refuses: every form of the opcode tables that the verifier takes
is decoded. Needs the release build.

    survey.py [--target 90a] [--version 86] [--op mma ...] [--show 2]
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/ptx"), str(ROOT / "python")]

import against_ptxas  # noqa: E402
import candidates as made  # noqa: E402

import intarsia  # noqa: E402

AT_ONCE = 150  # a report has 200 errors at most


def accepted(setting: tuple[int, str], ops: list[str] | None) -> list[made.Candidate]:
    forms = [f for f in made.forms() if f.op not in ("call", "intarsia") and (not ops or f.op in ops)]
    found = made.candidates(forms, 0)
    with tempfile.TemporaryDirectory() as folder:
        refused = against_ptxas.ask_ours(setting, [c.text for c in found], Path(folder))
    return [c for i, c in enumerate(found) if i not in refused]


def refusals(setting: tuple[int, str], part: list[made.Candidate]) -> dict[int, str]:
    """What the simulator says of each instruction that it doesn't have, by its number."""
    module = intarsia.module(against_ptxas.module(setting, [c.text for c in part]))
    try:
        module.function("k")
        return {}
    except intarsia.Error as error:
        found = re.finditer(r"^.*?:(\d+):\d+: error: (.*)$", str(error), re.M)
        return {int(m[1]) - against_ptxas.FIRST: m[2] for m in found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="90a")
    parser.add_argument("--version", type=int, default=86, help="of PTX, times ten")
    parser.add_argument("--op", action="append", help="only these opcodes")
    parser.add_argument("--show", type=int, default=2, help="examples of each kind")
    args = parser.parse_args()
    setting = (args.version, args.target)
    intarsia.init("sim", "sm_" + args.target.rstrip("af"))
    found = accepted(setting, args.op)
    missing: dict[tuple[str, str], list[str]] = defaultdict(list)
    for at in range(0, len(found), AT_ONCE):
        part = found[at : at + AT_ONCE]
        for i, words in refusals(setting, part).items():
            kind = words if " with '" in words else re.sub(r"(?<= )'[^']*'|^'[^']*'", "~", words)
            missing[part[i].form.op, kind].append(part[i].text)
    for (op, kind), texts in sorted(missing.items()):
        print(f"{op}: {len(texts)}: {kind}", *(f"    {text[:140]}" for text in texts[: args.show]), sep="\n")
    print(f"{sum(map(len, missing.values()))} of {len(found)} instructions are refused")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
