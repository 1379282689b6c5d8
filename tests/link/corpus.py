#!/usr/bin/env python3
"""Links every file of the corpus (tests/corpus/generate.py makes it) with itself, and asks ptxas about the result.

    corpus.py [--corpus build/corpus] [--program build/release/bin/intarsia] [--only PATTERN]

The linked text must be taken by the ptxas that takes the original. Where the report says that no call is left, the
machine code must hold none but those of ptxas's own helpers (for division, square roots and the like). What fails is
listed; the exit code is 1 if anything did.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "corpus"))

import tools  # noqa: E402

# Helpers such as `($kernel$__internal_0_$__cuda_sm20_div_u64)`, and parts of a kernel that ptxas moved out of line.
OWN_CALLS = re.compile(r" CALL\S* .*(__internal_|__cuda_|`\(\.L_x_\d+\))")


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", check=False)


def wheel(name: str) -> Path | None:
    folder = tools.package_dir("triton")
    path = folder / "backends/nvidia/bin" / name if folder else None
    return path if path and path.exists() else tools.in_toolkit(f"bin/{name}")


def assemblers() -> list[Path]:
    found = [tools.in_toolkit("bin/ptxas"), wheel("ptxas"), wheel("ptxas-blackwell")]
    return [path for path in dict.fromkeys(found) if path]


def assemble(ptx: Path, target: str, cubin: Path, flags: list[str]) -> str:
    """Empty if some ptxas takes it, else what the first one says."""
    said = [run(path, f"-arch={target}", *flags, ptx, "-o", cubin) for path in assemblers()]
    return "" if any(done.returncode == 0 for done in said) else said[0].stdout + said[0].stderr


def calls_in(cubin: Path) -> int:
    """Calls in the machine code that are not of ptxas's own helpers."""
    listing = run(wheel("nvdisasm"), "-c", cubin).stdout
    return sum(1 for line in listing.splitlines() if " CALL" in line and not OWN_CALLS.search(line))


def check(entry: dict, corpus: Path, program: Path) -> tuple[str, str]:
    """A verdict and what goes with it."""
    source = corpus / entry["file"]
    with tempfile.TemporaryDirectory() as folder:
        linked, cubin = Path(folder, "linked.ptx"), Path(folder, "x.cubin")
        if assemble(source, entry["target"], cubin, []):
            relocatable = ["-c"]
            if said := assemble(source, entry["target"], cubin, relocatable):
                return "no original", said
        else:
            relocatable = []
        done = run(program, "link", "--keep-externs", "--report", "json", source, "-o", linked)
        if done.returncode:
            return "not linked", done.stderr
        if said := assemble(linked, entry["target"], cubin, relocatable):
            return "refused", said
        facts = json.loads(done.stdout)
        if not facts["calls_left"] and (calls := calls_in(cubin)):
            return "calls left", f"{calls} in the machine code, none in the report"
        return "fine", f"{facts['calls_inlined']} {len(facts['calls_left'])}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--corpus", type=Path, default=ROOT / "build" / "corpus")
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "release" / "bin" / "intarsia")
    parser.add_argument("--only", default="*")
    args = parser.parse_args()
    if not assemblers() or not wheel("nvdisasm"):
        sys.exit("ptxas and nvdisasm are needed: run 'make setup' or install a CUDA toolkit")
    entries = [e for e in json.loads((args.corpus / "index.json").read_text()) if fnmatch.fnmatch(e["file"], args.only)]
    verdicts: dict[str, int] = {}
    inlined = left = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for entry, (verdict, text) in zip(entries, pool.map(lambda e: check(e, args.corpus, args.program), entries),
                                          strict=True):
            verdicts[verdict] = verdicts.get(verdict, 0) + 1
            if verdict == "fine":
                inlined += int(text.split()[0])
                left += int(text.split()[1])
            else:
                print(f"{entry['file']}: {verdict}: {text.strip().splitlines()[0] if text.strip() else ''}")
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    print(f"{inlined} calls inlined, {left} left")
    return any(verdict not in ("fine", "no original") for verdict in verdicts)


if __name__ == "__main__":
    sys.exit(main())
