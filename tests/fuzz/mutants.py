#!/usr/bin/env python3
"""
Spoils PTX files that are right, a word each, and asks the verifier and ptxas about every one.

The files are those of tests/ptx/good and tests/corpus/ptx, and the small ones of build/corpus where that was made. A
mutant has a word taken away, doubled, swapped with its neighbour or replaced by another of the file, or a statement cut
or copied. What the verifier refuses ptxas must refuse; what ptxas alone refuses is listed by what it says.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from fuzz import CARRIED, ROOT, Verdict, judge

LARGEST = 20000  # bytes of a file
OF_CORPUS = 150  # files of build/corpus, of up to a third of that
HEADER = 6  # words that stay: the version, the target
WORD = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|[.%$\w]+|\s+|.', re.S)

# What ptxas lets pass and the verifier doesn't, as docs/opcodes.md tells.
KNOWN = re.compile(
    r"'%\w+' is declared twice|expected ',' or '}', found '='|is a special register, '.*' takes a register to write to"
    r"|only .extern variables go without|'fence.proxy.tensormap[^']*' takes an integer register as address"
    r"|can't be a label, it has a dot"  # opcodes that are one word to ptxas: tcgen05.wait
    r"|the index of an array must be a constant here"
)


@dataclass
class Mutant:
    source: str
    line: int
    change: str
    text: str


def read_sources() -> list[tuple[str, list[str]]]:
    folders = ("tests/ptx/good", "tests/corpus/ptx")
    files = [f for folder in folders for f in sorted((ROOT / folder).glob("*.ptx")) if f.stat().st_size <= LARGEST]
    made = [f for f in sorted((ROOT / "build/corpus").rglob("*.ptx")) if f.stat().st_size <= LARGEST // 3]
    files += random.Random(0).sample(made, min(OF_CORPUS, len(made)))
    texts = [(f.name, f.read_text()) for f in files]
    # debug sections hold numbers by the thousand, about which only ptxas knows anything
    return [
        (name, WORD.findall(re.split(r"\n\s*\.section", text)[0])) for name, text in texts if "debug" not in text[:200]
    ]


def statement(words: list[str], begin: int) -> int:
    """Where the statement ends that goes on at `begin`."""
    return next((i for i in range(begin, len(words)) if words[i] in (";", "{", "}")), len(words) - 1) + 1


def mutate(random: random.Random, source: str, words: list[str]) -> Mutant | None:
    words = list(words)
    places = [i for i, w in enumerate(words) if not w.isspace() and not w.startswith(("//", "/*"))][HEADER:]
    if len(places) < 2:
        return None
    at = random.randrange(len(places) - 1)
    i, after = places[at], places[at + 1]
    line = "".join(words[:i]).count("\n") + 1
    word = words[i]
    match random.randrange(6):
        case 0:
            change, words[i] = f"without {word}", ""
        case 1:
            change, words[i] = f"{word} twice", f"{word} {word}"
        case 2:
            change = f"{words[after]} in front of {word}"
            words[i], words[after] = words[after], word
        case 3:
            other = words[random.choice(places)]
            change, words[i] = f"{other} for {word}", other
        case 4:  # of the same kind
            alike = [words[p] for p in places if words[p][0] == word[0] and words[p] != word]
            if not alike:
                return None
            other = random.choice(alike)
            change, words[i] = f"{other} for {word}", other
        case _:
            end = statement(words, i)
            part = "".join(words[i:end])
            if random.random() < 0.5:
                change, words[i:end] = f"without {part}", []
            else:
                change = f"a second {part}"
                words.insert(random.choice(places), part)
    return Mutant(source, line, " ".join(change.split())[:80], "".join(words))


def verdict(mutant: Mutant, folder: Path, number: int) -> Verdict:
    file = folder / f"{number}.ptx"
    file.write_text(mutant.text)
    try:
        return judge(file)
    finally:
        file.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000, help="mutants (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--show", type=int, default=3, help="mutants of each kind (default %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="writes those that differ there")
    args = parser.parse_args()
    chance = random.Random(args.seed)
    sources = read_sources()
    tried = (mutate(chance, *chance.choice(sources)) for _ in range(args.count))
    mutants = [m for m in tried if m]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(args.jobs) as pool:
        folder = Path(name)
        verdicts = list(pool.map(lambda job: verdict(job[1], folder, job[0]), enumerate(mutants)))
    kinds: dict[tuple[bool, str], list[tuple[Mutant, Verdict]]] = defaultdict(list)
    for mutant, found in zip(mutants, verdicts, strict=True):
        if found.ours == found.theirs or (found.ours and CARRIED.search(found.words)):
            continue
        if found.theirs and KNOWN.search(found.message):
            continue
        kinds[found.theirs, re.sub("'[^']*'", "'...'", found.message if found.theirs else found.words)].append(
            (mutant, found)
        )
    for number, ((strict, words), several) in enumerate(
        sorted(kinds.items(), key=lambda kind: (kind[0][0], -len(kind[1])))
    ):
        print(
            f"{len(several)} {'REFUSED, which ptxas accepts' if strict else 'accepted, of which ptxas says'}: {words}"
        )
        for mutant, found in several[: args.show]:
            print(f"    {mutant.source}:{mutant.line}: {mutant.change}: {found.message if strict else found.words}")
            if args.keep:
                args.keep.mkdir(parents=True, exist_ok=True)
                (args.keep / f"{number}-{mutant.source}").write_text(mutant.text)
    wrong = sum(len(several) for (strict, _), several in kinds.items() if strict)
    accepted = sum(found.ours for found in verdicts)
    print(f"{len(mutants)} mutants of {len(sources)} files: the verifier accepts {accepted}; {wrong} wrongly refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
