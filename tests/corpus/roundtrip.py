#!/usr/bin/env python3
"""Checks that ptxas makes the same machine code of a text and of what Intarsia prints after parsing it.

    roundtrip.py [--corpus build/corpus] [--library build/release/lib/libintarsia.so] [--only PATTERN] [--rename] [--verify] [FILE...]

Every file of the corpus is assembled twice with the same ptxas, the one of its producer: as it is, and after parse and
print. The two cubins must hold the same sections, debug information and names of symbols aside. With --rename every
local name is another one in between (rename.c, compiled on the spot). With --verify the verifier must accept each file too.
"""

from __future__ import annotations

import argparse
import ctypes
import difflib
import fnmatch
import hashlib
import json
import re
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import tools
from workers import Pool, progress

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TRIES = 10
DWARF_NAMES = "names in DWARF"
FINE = ("same", DWARF_NAMES)
NO_CONTENTS = (8, 0x7000000A)  # SHT_NOBITS, and NVIDIA's type of .nv.shared sections

# -- the library -------------------------------------------------------------------------------------------------------


class Refused(Exception):
    """The parser's diagnostics."""


@cache
def library(path: str) -> ctypes.CDLL:
    lib = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)  # for the renamer
    lib.its_context_new.restype = ctypes.c_void_p
    lib.its_diag_render.restype = ctypes.c_void_p
    lib.its_ptx_verify.argtypes = [ctypes.c_void_p]
    for name in ("its_context_free", "its_free", "its_module_free", "its_ptx_print", "its_diag_render", "its_ptx_parse"):
        getattr(lib, name).argtypes = {
            "its_context_free": [ctypes.c_void_p],
            "its_free": [ctypes.c_void_p, ctypes.c_void_p],
            "its_module_free": [ctypes.c_void_p],
            "its_ptx_print": [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t)],
            "its_diag_render": [ctypes.c_void_p, ctypes.c_bool],
            "its_ptx_parse": [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t,
                              ctypes.POINTER(ctypes.c_void_p)],
        }[name]
    return lib


def build_renamer(folder: str) -> str:
    path = f"{folder}/rename.so"
    command = ["cc", "-std=c11", "-shared", "-fPIC", f"-I{ROOT / 'include'}", str(HERE / "rename.c"), "-o", path]
    subprocess.run(command, check=True)
    return path


@cache
def renamer(path: str) -> ctypes.CDLL:
    lib = ctypes.CDLL(path)
    lib.rename_locals.argtypes = [ctypes.c_void_p]
    lib.rename_locals.restype = ctypes.c_size_t
    return lib


def diagnostics(lib: ctypes.CDLL, context: int) -> str:
    return ctypes.string_at(lib.its_diag_render(context, False)).decode(errors="replace")


class Unverified(Refused):
    """The verifier's diagnostics."""


def parse_and_print(path: str, name: str, text: bytes, rename: str | None = None, verify: bool = False) -> bytes:
    """print(parse(text)), in a context of its own."""
    lib = library(path)
    context = lib.its_context_new(None)
    module, out, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    try:
        if lib.its_ptx_parse(context, name.encode(), text, len(text), ctypes.byref(module)):
            raise Refused(diagnostics(lib, context))
        if verify and lib.its_ptx_verify(module):
            raise Unverified(diagnostics(lib, context))
        if rename and not renamer(rename).rename_locals(module) and b".reg" in text:
            raise Refused("nothing was renamed")
        if lib.its_ptx_print(module, ctypes.byref(out), ctypes.byref(size)):
            raise Refused("the printer failed")
        return ctypes.string_at(out, size.value)
    finally:
        if out:
            lib.its_free(context, out)
        if module:
            lib.its_module_free(module)
        lib.its_context_free(context)


# -- machine code ------------------------------------------------------------------------------------------------------


def assemble(ptxas: Path, text: bytes, flags: list[str]) -> bytes:
    """The cubin, or RuntimeError with what ptxas says. The file's name is always the same: it may end in the cubin."""
    arch = re.search(rb"^\s*\.target\s+(sm_\w+)", text, re.M)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "x.ptx").write_bytes(text)
        command = [str(ptxas), *flags, f"-arch={arch[1].decode() if arch else 'sm_80'}", "x.ptx", "-o", "x.cubin"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or done.stdout.strip())
        return (Path(folder) / "x.cubin").read_bytes()


def sections(cubin: bytes) -> dict[str, bytes]:
    """The sections of an ELF file that decide what runs: not names, not debug information."""
    (offset,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    heads = [struct.unpack_from("<IIQQQQIIQQ", cubin, offset + i * size) for i in range(count)]
    names = heads[names_at]
    found = {}
    for name_at, kind, _, _, start, length, *_ in heads:
        end = cubin.index(b"\0", names[4] + name_at)
        name = cubin[names[4] + name_at : end].decode()
        if name and not re.search(r"debug|^\.(note|shstrtab|strtab)|\.(shstrtab|strtab)$", name):
            found[name] = struct.pack("<Q", length) if kind in NO_CONTENTS else cubin[start : start + length]
    return found


def without_names(found: dict[str, bytes]) -> dict[str, bytes]:
    """Symbols as they are but for the offset of their name."""
    table = found.get(".symtab", b"")
    rows = [table[i + 4 : i + 24] for i in range(0, len(table), 24)]
    return {**found, ".symtab": b"".join(rows)}


def differing_section(before: bytes, after: bytes) -> str | None:
    if before == after:
        return None
    a, b = without_names(sections(before)), without_names(sections(after))
    if a.keys() != b.keys():
        return f"sections {sorted(a.keys() ^ b.keys())} are in one of them only"
    return next((f"section {name} differs" for name in a if a[name] != b[name]), None)


def first_code_difference(before: bytes, after: bytes) -> str:
    """The first lines that nvdisasm shows differently."""
    triton = tools.package_dir("triton")
    places = [r / "bin/nvdisasm" for r in tools.cuda_roots()]
    places += [triton / "backends/nvidia/bin/nvdisasm"] if triton else []
    program = next((p for p in places if p.exists()), None)
    if program is None:
        return ""
    listings = []
    for cubin in (before, after):
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            listings.append(subprocess.run([program, "-c", file.name], capture_output=True, text=True).stdout.splitlines())
    lines = [d for d in difflib.unified_diff(*listings, lineterm="", n=1) if not d.startswith(("---", "+++"))]
    return "\n".join(line[:110] for line in lines[:8])


# -- one file ----------------------------------------------------------------------------------------------------------


@dataclass
class Item:
    path: Path
    producer: str
    flags: list[str]


def reference(ptxas: Path, text: bytes, flags: list[str], cache_dir: Path) -> bytes:
    """The cubin of the original text, kept from run to run."""
    key = hashlib.sha256(b"\0".join([tools.version_of(ptxas).encode(), " ".join(flags).encode(), text])).hexdigest()
    path = cache_dir / f"{key}.cubin"
    if not path.exists():
        cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        cubin = assemble(ptxas, text, flags)
        with tempfile.NamedTemporaryFile(dir=cache_dir, delete=False) as file:
            file.write(cubin)
        Path(file.name).replace(path)
    return path.read_bytes()


def check(item: Item, lib: str, rename: str | None, verify: bool, cache_dir: Path) -> tuple[str, str]:
    """An outcome ("same", "ptxas refuses the original", ...) and its details."""
    text = item.path.read_bytes()
    if rename and re.search(rb"^\s*\.target[^;{]*?,\s*debug\b", text, re.M):
        return DWARF_NAMES, ""  # ptxas keeps alive what DWARF says lies in a register of that name
    ptxas = tools.assembler_for(text.decode(errors="replace"))
    if ptxas is None:
        return "no ptxas for this version", ""
    try:
        before = reference(ptxas, text, item.flags, cache_dir)
    except RuntimeError as error:
        return "ptxas refuses the original", str(error)
    try:
        printed = parse_and_print(lib, str(item.path), text, rename, verify)
    except Unverified as error:
        return "the verifier refuses it", str(error)
    except Refused as error:
        return "the parser refuses it", str(error)
    if parse_and_print(lib, "printed", printed) != printed:
        return "printing is not stable", ""
    try:
        after = assemble(ptxas, printed, item.flags)
    except RuntimeError as error:
        return "ptxas refuses what is printed", str(error)
    why = differing_section(before, after)
    if why and not same_at_last(ptxas, text, printed, item.flags, before, after):
        return "different machine code", f"{why}\n{first_code_difference(before, after)}"
    return "same", ""


def same_at_last(ptxas: Path, text: bytes, printed: bytes, flags: list[str], before: bytes, after: bytes) -> bool:
    """Some ptxas give one of several cubins for one text, by the luck of addresses: do the two sets have one in common?"""
    originals, others = [before], [after]
    for _ in range(TRIES):
        originals.append(assemble(ptxas, text, flags))
        others.append(assemble(ptxas, printed, flags))
        if any(differing_section(a, b) is None for a in originals for b in others):
            return True
    return False


def items_of(corpus: Path, only: str | None) -> list[Item]:
    index = corpus / "index.json"
    if not index.exists():
        raise SystemExit(f"{index} is missing: run generate.py first")
    found = []
    for entry in json.loads(index.read_text()):
        if not only or only in entry["file"] or fnmatch.fnmatch(entry["file"], only):
            found.append(Item(corpus / entry["file"], entry["producer"], ["-c"] if "rdc" in entry["flags"] else []))
    return found


def given_flags(path: Path) -> list[str]:
    """-c where the file's own head asks for it, or where it has something undefined."""
    text = path.read_text(errors="replace")
    return ["-c"] if re.search(r"^// corpus.*-c$|^\s*\.extern\s+\.(func|global|const)", text, re.M) else []


def report(results: list[tuple[Item, str, str]], corpus: Path) -> int:
    bad = [(item, outcome, detail) for item, outcome, detail in results if outcome not in FINE]
    for item, outcome, detail in bad:
        where = item.path.relative_to(corpus) if item.path.is_relative_to(corpus) else item.path
        print(f"{where}: {outcome}", *[f"    {line[:160]}" for line in detail.splitlines()[:8]], sep="\n")
    outcomes = sorted({o for _, o, _ in results}, key=lambda o: (o not in FINE, o))
    table = Counter((item.producer, outcome) for item, outcome, _ in results)
    print("\n" + "".join([f"{'producer':<12}", *(f"{o:>{len(o) + 3}}" for o in outcomes)]))
    for producer in sorted({i.producer for i, _, _ in results}):
        print("".join([f"{producer:<12}", *(f"{table[producer, o]:>{len(o) + 3}}" for o in outcomes)]))
    print(f"{sum(r[1] == 'same' for r in results)} of {len(results)} files give the same machine code")
    return 1 if bad or not results else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Check print(parse(x)) against x with ptxas.")
    parser.add_argument("--corpus", type=Path, default=ROOT / "build/corpus")
    parser.add_argument("--library", type=Path, default=ROOT / "build/release/lib/libintarsia.so")
    parser.add_argument("--only", metavar="PATTERN", help="files whose name contains or matches this")
    parser.add_argument("--rename", action="store_true", help="give every local name another one in between")
    parser.add_argument("--verify", action="store_true", help="what ptxas accepts the verifier must accept")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="check these instead of the corpus")
    options = parser.parse_args()
    corpus = options.corpus.resolve()
    if options.files:
        items = [Item(f.resolve(), "given", given_flags(f)) for f in options.files]
    else:
        items = items_of(corpus, options.only)
    with tempfile.TemporaryDirectory() as folder:
        rename = build_renamer(folder) if options.rename else None
        call = partial(check, lib=str(options.library.resolve()), rename=rename, verify=options.verify, cache_dir=corpus / ".cubin")
        results = []
        for i, (item, error, answer) in enumerate(Pool(options.jobs, call).run(items), 1):
            results.append((item, *(answer if answer else ("crashed", error or ""))))
            progress(f"[{i}/{len(items)}] {item.path.name}")
    progress("", end=True)
    return report(sorted(results, key=lambda r: str(r[0].path)), corpus)


if __name__ == "__main__":
    sys.exit(main())
