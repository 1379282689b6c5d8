#!/usr/bin/env python3
"""Links kernels of the corpus with device functions of the corpus, in pairs, and checks what comes out.

    link_pairs.py [--corpus build/corpus] [--program build/release/bin/intarsia] [--only PATTERN] [--skip N]
                  [--sample N | --all] [--together N]

A pair is a kernel and a file with device functions that the kernel's target can run. Calls of some of the functions are
put into the kernel (splice.py), half of the pairs as region calls and half as calls of externs. Then

  - linking must succeed, and ptxas must accept the result;
  - no call may be left but for the reasons that the report gives;
  - if the simulator can run the kernel (a case of triton/*.py), it must compute NumPy's result with the calls in it,
    inlined and not, and the functions must have returned, and written through their pointers, the same both ways.

Which functions can run with made-up arguments is tried out first, in a kernel that does nothing else; the others stand
behind a guard that is never true. --sample takes N pairs (every kernel once before the first comes twice), behind the first that --skip names; --all all.

With --together, up to N files at once are linked into a kernel, as with a user who has several: that is as many pairs
in a fraction of the time. If anything is not as it should be, each of these pairs is linked alone.
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
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import cases
import splice
import tools
from workers import Pool, progress

ROOT = Path(__file__).resolve().parents[2]
THREADS, LIVE, DEAD = 128, 4, 3
PROBE = """.version {version}
.target {target}
.address_size 64
.visible .entry probe()
{{
ret;
}}
"""
# Returns nothing at all for a value that its enumeration lacks, such as the one it gets here.
UNDEFINED = re.compile(r"memcpy_completion_impl\d+__defer")
# What the linker refuses for a reason that the pair itself has: named, counted, and no fault.
BY_DESIGN = re.compile(r"splits its warps|is defined twice|here and a (variable|function) elsewhere|textures and samplers|"
                       r"'outside' is declared with \d")


@dataclass(frozen=True)
class Region:
    file: str
    target: str
    functions: tuple[splice.Function, ...]
    runnable: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pair:
    kernel: str  # a file of the corpus
    target: str
    producer: str
    name: str  # of the case
    source: str
    shared: int
    warps: int
    clusters: int
    region: Region

    @property
    def title(self) -> str:
        return f"{self.kernel} + {self.region.file}"


def run(*command: object, limit: float = 120) -> subprocess.CompletedProcess[str]:
    words = [str(c) for c in command]
    try:
        return subprocess.run(words, capture_output=True, text=True, errors="replace", check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", f"no end after {limit:.0f} seconds")


def number_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


# -- pairs -------------------------------------------------------------------------------------------------------------


def can_run(region: str, kernel: str) -> bool:
    """Does a GPU of the kernel's target run a region made for this one? Those with an `a` run nowhere else."""
    if region[-1].isalpha():
        return region == kernel
    return int(region[3:]) <= int(re.sub(r"\D", "", kernel))


def ptx_version(text: str) -> str:
    match = re.search(r"^\s*\.version\s+([\d.]+)", text, re.M)
    return match[1] if match else "8.0"


def probe(region: Region, corpus: Path, program: Path) -> Region:
    """The region with the names of those of its functions that run with made-up arguments."""
    text = (corpus / region.file).read_text(errors="replace")
    runnable = []
    with tempfile.TemporaryDirectory() as folder:
        library, kernel = Path(folder, "library.ptx"), Path(folder, "probe.ptx")
        library.write_text(splice.shown(text))
        main = PROBE.format(version=ptx_version(text), target=region.target)
        for function in region.functions:
            if not function.by_extern_call or UNDEFINED.search(function.name):
                continue
            kernel.write_text(splice.splice(main, [function], [], as_region=False))
            done = run(program, "sim", "--no-inline", "--keep-externs", kernel, "--library", library, "--block", THREADS,
                       "--arg", f"zero:{THREADS * splice.SLOT}", limit=10)
            if done.returncode == 0:
                runnable.append(function.name)
    return Region(region.file, region.target, region.functions, frozenset(runnable))


def regions_of(entries: list[dict], corpus: Path) -> list[Region]:
    found = []
    for entry in entries:
        if entry["producer"] in ("triton", "gluon"):
            continue
        functions = splice.functions_of((corpus / entry["file"]).read_text(errors="replace"))
        if re.search("_(debug|o0)$", entry["name"]):  # unoptimised code copies padding, too
            functions = [replace(f, written=frozenset()) if f.result and f.result.count else f for f in functions]
        if functions:
            found.append(Region(entry["file"], entry["target"], tuple(functions)))
    return found


def kernels_of(entries: list[dict], corpus: Path) -> list[dict]:
    return [e for e in entries if e["producer"] in ("triton", "gluon")
            or ".entry" in (corpus / e["file"]).read_text(errors="replace")]


def all_pairs(kernels: list[dict], regions: list[Region]) -> list[Pair]:
    """In rounds: each kernel with one region, then each with another ..., in an order that depends on names only."""
    rounds = defaultdict(list)
    for entry in kernels:
        fit = [r for r in regions if can_run(r.target, entry["target"]) and r.file != entry["file"]]
        facts = entry["facts"]
        for i, region in enumerate(sorted(fit, key=lambda r: number_of(entry["file"] + r.file))):
            pair = Pair(entry["file"], entry["target"], entry["producer"], entry["name"], entry["source"],
                        facts.get("shared", 0), facts.get("num_warps", 4), facts.get("num_ctas", 1), region)
            rounds[i].append(pair)
    return [p for i in sorted(rounds) for p in sorted(rounds[i], key=lambda p: number_of(p.title))]


def chosen(functions: list[splice.Function], n: int, seed: str) -> list[splice.Function]:
    return sorted(functions, key=lambda f: number_of(seed + f.name))[:n]


# -- running a case ----------------------------------------------------------------------------------------------------


@cache
def case_called(name: str, source: str) -> cases.Case | None:
    return next((c for c in cases.load([ROOT / source]) if c.name == name), None)


def parameters(ptx: str) -> list[str]:
    """The kinds of the kernel's parameters: "u64", "f32" ..."""
    match = splice.ENTRY.search(splice.blanked(ptx))
    assert match is not None
    return re.findall(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)", match[2] or "")


def launch_arguments(entry: cases.Case, ptx: str, folder: Path) -> tuple[list[str], dict[str, cases.Array]] | None:
    """Arguments for `intarsia sim`, and the arrays by the names of their files; None if they can't be told."""
    if entry.faults or any(isinstance(v, cases.Descriptor) for v in entry.args.values()):
        return None
    args, arrays = entry.arguments()
    special = {p.name for p in entry.kernel.params if p.is_constexpr}
    wanted = {p.name: p for p in entry.kernel.params}
    given = [(n, args[n]) for n in wanted if n in args and n not in special and args[n] is not None
             and not (type(args[n]) is int and args[n] == 1 and not wanted[n].do_not_specialize)]
    kinds = parameters(ptx)
    if len(kinds) != len(given) + 2:  # Triton adds two pointers to scratch memory
        return None
    words = []
    for (name, value), kind in zip(given, kinds, strict=False):
        if name in arrays:
            if kind != "u64" or not arrays[name].raw.nbytes:
                return None
            (folder / name).write_bytes(arrays[name].raw.tobytes())
            words.append(f"inout:{folder / name}")
        elif isinstance(value, bool | int) and kind in ("u32", "u64", "u16", "u8"):
            words.append(f"{kind.replace('u', 'i' if value < 0 else 'u')}:{int(value)}")
        elif isinstance(value, float) and kind == "f32":
            words.append(f"f32:{value!r}")
        else:
            return None
    return [*words, "zero:4096", "zero:4096"], arrays


def simulate(pair: Pair, entry: cases.Case, linked: Path, original: str, program: Path, files: int) -> tuple[str, list[str]]:
    """ "" and the digests of each file's scratch memory, or what went wrong."""
    with tempfile.TemporaryDirectory() as name:
        made = launch_arguments(entry, original, Path(name))
        assert made is not None
        words, arrays = made
        before = {n: a.values().copy() for n, a in arrays.items()}
        grid = ",".join(str(g) for g in entry.grid)
        command = [program, "sim", "--no-inline", "--keep-externs", linked, "--grid", grid, "--block", 32 * pair.warps]
        if pair.shared:
            command += ["--shared", pair.shared]
        scratch = [Path(name, f"{splice.SCRATCH}{i}") for i in range(files)]
        for word in [*words, *(f"out:{32 * pair.warps * splice.SLOT}:{file}" for file in scratch)]:
            command += ["--arg", word]
        done = run(*command, limit=60 * files)
        if done.returncode:
            return f"does not run: {done.stderr.strip()}", []
        after = {}
        for n, array in arrays.items():
            bits = bytearray(Path(name, n).read_bytes())
            after[n] = array.dtype.decode(cases.np.frombuffer(bits, array.dtype.store).reshape(array.shape))
        return entry.check(before, after) or "", [hashlib.sha256(file.read_bytes()).hexdigest() for file in scratch]


# -- pairs of one kernel ----------------------------------------------------------------------------------------------------------


class Failed(Exception):
    """A verdict and its details."""


def link(program: Path, kernel: Path, given: list[object], out: Path, *options: str) -> dict[str, Any]:
    done = run(program, "link", "--report", "json", *options, kernel, *given, "-o", out)
    if done.returncode:
        raise Failed("told by name" if BY_DESIGN.search(done.stderr) else "not linked", done.stderr)
    return json.loads(done.stdout)


def assemble(linked: Path, target: str, relocatable: bool) -> None:
    ptxas = tools.assembler_for(linked.read_text(errors="replace"))
    if ptxas is None:
        raise Failed("no ptxas for this version", "")
    done = run(ptxas, f"-arch={target}", *(["-c"] if relocatable else []), linked, "-o", linked.with_suffix(".cubin"), limit=600)
    if done.returncode:
        raise Failed("ptxas refuses it", done.stdout + done.stderr)


def how_to_call(pair: Pair, kernel: str) -> tuple[bool, list[splice.Function]]:
    """By region calls? And which functions. A kernel that has a function of that name can't declare it as an extern."""
    functions = pair.region.functions
    by_region = [f for f in functions if f.by_region_call]
    own = {f.name for f in splice.functions_of(kernel)}
    by_extern = [f for f in functions if f.by_extern_call and f.name not in own]
    first_region = number_of(pair.title) % 2 == 0
    as_region = bool(by_region) and (first_region or not by_extern)
    return as_region, by_region if as_region else by_extern


Verdict = tuple[str, str]  # and its details


def check(pairs: list[Pair], corpus: Path, program: Path) -> list[Verdict]:
    """The verdicts of some pairs of one kernel."""
    try:
        verdict = check_together(pairs, corpus, program)
    except Failed as failure:
        verdict = failure.args
    if len(pairs) == 1 or verdict[0] in ("same result", "accepted"):
        return [verdict] * len(pairs)
    return [check([pair], corpus, program)[0] for pair in pairs]


def put_calls(pairs: list[Pair], text: str, corpus: Path, folder: Path) -> tuple[str, list[object], list[splice.Function]]:
    """The kernel with calls of all these files, how they are given to the linker, and the functions that run."""
    given: list[object] = []
    running: list[splice.Function] = []
    for tag, pair in enumerate(pairs):
        as_region, usable = how_to_call(pair, text)
        if not usable:
            raise Failed("nothing to call", "")
        live = chosen([f for f in usable if f.name in pair.region.runnable], LIVE, pair.title)
        text = splice.splice(text, live, chosen(usable, DEAD, pair.title), as_region, number_of(pair.title), tag=tag)
        file = folder / f"region{tag}.ptx"
        region = (corpus / pair.region.file).read_text(errors="replace")
        file.write_text(region if as_region else splice.shown(region))
        given += [f"{splice.UNIT.format(tag)}={file}"] if as_region else ["--library", file]
        running += live
    return text, given, running


def check_together(pairs: list[Pair], corpus: Path, program: Path) -> Verdict:
    pair = pairs[0]
    original = (corpus / pair.kernel).read_text(errors="replace")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernel, after, before = folder / "kernel.ptx", folder / "after.ptx", folder / "before.ptx"
        text, given, live = put_calls(pairs, original, corpus, folder)
        kernel.write_text(text)
        report = link(program, kernel, given, after, "--keep-externs")
        assemble(after, pair.target, bool(report["externs"]))
        entry = case_called(pair.name, pair.source) if pair.producer in ("triton", "gluon") else None
        if pair.clusters > 1 or report["externs"] or entry is None or launch_arguments(entry, original, folder) is None:
            return "accepted", ""
        link(program, kernel, given, before, "--keep-externs", "--no-inline")
        fault, called = simulate(pair, entry, before, original, program, len(pairs))
        if fault:
            return ("accepted", "") if "the simulator" in fault else ("wrong before", fault)
        fault, inlined = simulate(pair, entry, after, original, program, len(pairs))
        if fault:
            return "wrong after linking", fault
        if called != inlined:
            return "functions compute something else", ", ".join(f.name for f in live)
    return "same result", ""


def bundled(pairs: list[Pair], most: int) -> list[list[Pair]]:
    """The pairs in groups: of one kernel, and of files that were made of different sources and so share no names."""
    groups: dict[str, list[dict[str, Pair]]] = defaultdict(list)
    for pair in pairs:
        source = Path(pair.region.file).name.split(".")[0].split("_")[0]
        free = (group for group in groups[pair.kernel] if len(group) < most and source not in group)
        group = next(free, None)
        if group is None:
            group = {}
            groups[pair.kernel].append(group)
        group[source] = pair
    return [list(group.values()) for of_kernel in groups.values() for group in of_kernel]


def pairs_of(entries: list[dict], corpus: Path, program: Path, jobs: int) -> tuple[list[Pair], list[Region]]:
    """All pairs of these files, and the regions with what is known of their functions."""
    found = regions_of(entries, corpus)
    regions = []
    for i, (region, error, probed) in enumerate(Pool(jobs, partial(probe, corpus=corpus, program=program)).run(found), 1):
        if error:
            raise SystemExit(f"{region.file}: {error}")
        regions.append(probed)
        progress(f"[{i}/{len(found)}] trying the functions of {region.file}")
    return all_pairs(kernels_of(entries, corpus), regions), regions


FINE = ("same result", "accepted", "told by name", "nothing to call")


def check_all(pairs: list[Pair], corpus: Path, program: Path, jobs: int, together: int = 1) -> list[tuple[Pair, str, str]]:
    results: list[tuple[Pair, str, str]] = []
    pool = Pool(jobs, partial(check, corpus=corpus, program=program))
    for group, error, verdicts in pool.run(bundled(pairs, together)):
        results += [(pair, *verdict) for pair, verdict in zip(group, verdicts or [("crashed", error or "")] * len(group), strict=True)]
        progress(f"[{len(results)}/{len(pairs)}] {group[0].title}")
    progress("", end=True)
    return results


def report(results: list[tuple[Pair, str, str]]) -> int:
    told = Counter(detail.splitlines()[0].split("error: ")[-1][:100] for _, verdict, detail in results if verdict == "told by name")
    bad = [r for r in results if r[1] not in FINE]
    for pair, verdict, detail in sorted(bad, key=lambda r: r[0].title):
        print(f"{pair.title}: {verdict}", *[f"    {line[:150]}" for line in detail.strip().splitlines()[:8]], sep="\n")
    for reason, n in told.most_common():
        print(f"{n} refused: {reason}")
    counts = Counter(r[1] for r in results)
    print(", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()), f"of {len(results)} pairs")
    return 1 if bad or not results else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Link kernels and device functions of the corpus in pairs.")
    parser.add_argument("--corpus", type=Path, default=ROOT / "build/corpus")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/bin/intarsia")
    parser.add_argument("--only", metavar="PATTERN", help="pairs whose 'KERNEL + REGION' contains or matches this")
    parser.add_argument("--sample", type=int, default=400, metavar="N", help="check N pairs (default 400)")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N, which ran before")
    parser.add_argument("--all", action="store_true", help="check every pair: many hours")
    parser.add_argument("--together", type=int, default=1, metavar="N", help="link up to N files at once (default 1)")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    corpus, program = options.corpus.resolve(), options.program.resolve()
    if not (corpus / "index.json").exists():
        raise SystemExit(f"{corpus / 'index.json'} is missing: run generate.py first")
    entries = json.loads((corpus / "index.json").read_text())
    pairs, regions = pairs_of(entries, corpus, program, options.jobs)
    if options.only:
        pairs = [p for p in pairs if options.only in p.title or fnmatch.fnmatch(p.title, options.only)]
    pairs = pairs[options.skip :]
    pairs = pairs if options.all else pairs[: options.sample]
    n = sum(len(r.functions) for r in regions)
    progress(f"{n} functions in {len(regions)} files, {sum(len(r.runnable) for r in regions)} of them run", end=True)
    return report(check_all(pairs, corpus, program, options.jobs, options.together))


if __name__ == "__main__":
    sys.exit(main())
