"""
Instructions made from the opcode tables: every form with each of its modifiers, operands as the form wants them; and
spoiled ones, with a word or an operand that doesn't belong.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SRC = Path(__file__).resolve().parents[2] / "src/ptx"
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
MOST = 48  # spellings of a form, before some are left out
MANY = 16  # words for one place: more are the sizes of matrices

# -- the tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    op: str
    text: str
    items: tuple[tuple[str | None, ...], ...]  # the words of each modifier, None first if it may be missing
    operands: tuple[str, ...]


@cache
def modifiers() -> dict[str, str]:
    """Every modifier with its class."""
    text = (SRC / "ptx_mods.def").read_text()
    return {m[1]: m[2] for m in re.finditer(r'^ITS_MOD\(\w+, "([^"]+)", \w+, \w+, (\w+)\)', text, re.M)}


@cache
def sets() -> dict[str, str]:
    text = (SRC / "ptx_ops.def").read_text()
    found = re.finditer(r'^ITS_SET\("([^"]+)",((?:\s*"[^"]*")+)\)', text, re.M)
    return {m[1]: "".join(STRING.findall(m[2])) for m in found}


def words(choice: str) -> list[str]:
    """The modifiers that an item takes: sets and `*` written out."""
    found: list[str] = []
    for word in re.sub(r"<[^>]*>", "", choice).split("/"):
        if word.startswith("@"):
            found += [mod for one in sets()[word].split() for mod in words(one)]
        elif "*" in word:
            head, tail = word.split("*")
            found += [m for m in modifiers() if m.startswith(head) and m.endswith(tail)]
        else:
            found.append(word)
    return found


def read_form(op: str, text: str) -> Form:
    items, operands = re.fullmatch(r"(.*?)(?<!:):(?=\s|$)(.*)", text.strip(), re.S).groups()  # type: ignore[union-attr]
    read: list[tuple[str | None, ...]] = []
    for item in items.split():
        if not item.startswith("<"):
            read.append((*((None,) if item.endswith("?") else ()), *words(item.rstrip("?"))))
    return Form(op, " ".join(text.split()), tuple(read), tuple(operands.split()))


@cache
def forms() -> list[Form]:
    text = (SRC / "ptx_ops.def").read_text()
    found = []
    for row in re.finditer(r'^ITS_OP\(\w+, "(\w+)",((?:\s*"(?:[^"]*)")+),', text, re.M):
        pattern = "".join(STRING.findall(row[2]))
        found += [read_form(row[1], form) for form in pattern.split(";") if form.strip()]
    return found


# -- operands ----------------------------------------------------------------------------------------------------------

SIZES = {"b1": 1, "e2m1x2": 1, "f16x2": 4, "bf16x2": 4, "tf32": 4, "f32x2": 8, "s16x2": 4, "u16x2": 4, "pred": 0,
         "e4m3x2": 2, "e5m2x2": 2, "e2m3x2": 2, "e3m2x2": 2, "ue8m0x2": 2, "e2m1x4": 2, "e4m3x4": 4, "e5m2x4": 4,
         "e2m3x4": 4, "e3m2x4": 4}
KINDS = ("TYPE", "LAX")
WIDE = ".reg .b128 %q<9>; "
REGISTERS = ".reg .pred %p<9>; .reg .b8 %b<9>; .reg .b16 %h<40>; .reg .b32 %r<300>; .reg .b64 %d<300>; " + WIDE
TYPED = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "f16", "f16x2", "f32", "f64")
BODY = (
    REGISTERS
    + " ".join(f" .reg .{t} %{t}_<40>;" for t in TYPED)
    + " .reg .v2 .b32 %v2_0; .reg .v4 .b32 %v4_0; .local .align 16 .b8 lv[64]; .shared .align 16 .b8 sv[64];"
    " L0: Lt: .branchtargets L0;"
)
GLOBALS = ".global .align 16 .b8 gv[64]; .const .align 16 .b8 cv[64]; .global .texref tr; .global .surfref sr;"


def size_of(type_: str) -> int:
    """Bytes of a register that holds the type."""
    if type_ in SIZES:
        return SIZES[type_]
    bits = re.fullmatch(r"[busf]f?(\d+)", type_)
    return max(int(bits[1]) // 8, 1) if bits else 1


class Names:
    """Hands out registers, each once in an instruction."""

    def __init__(self) -> None:
        self.used = itertools.count(1)

    def of(self, size: int) -> str:
        letter = {0: "p", 1: "b", 2: "h", 4: "r", 8: "d", 16: "q"}[size]
        number = next(self.used)
        return f"%{letter}{number % 9 if letter in 'pbq' else number % 40 if letter == 'h' else number}"


def types_of(mods: list[str]) -> list[str]:
    return [m[1:] for m in mods if modifiers()[m] == "TYPE"]


def shape_of(mods: list[str]) -> tuple[int, int, int]:
    for mod in mods:
        if match := re.fullmatch(r"\.m(\d+)n(\d+)(?:k(\d+))?", mod):
            return int(match[1]), int(match[2]), int(match[3] or 0)
    return 0, 0, 0


BITS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}


def fragment(op: str, mods: list[str], which: str) -> tuple[int, int]:
    """Registers of a matrix fragment and the bytes of each, by the manual: elements over threads, packed."""
    m, n, k = shape_of(mods)
    types = types_of(mods)
    sparse = any(mod.startswith(".sp") for mod in mods)
    dense4 = ".kind::mxf4" in mods or ".kind::mxf4nvf4" in mods
    threads = 128 if op == "wgmma" else 32
    if op == "wgmma" and which == "A":
        return 4, 4
    type_ = types[0]
    if op == "mma":
        type_ = types["DABC".index(which)]
    elif op == "wmma" and ".mma" in mods:
        type_ = types["DABC".index(which)] if len(types) == 4 else {"D": types[0], "C": types[1]}.get(which, "f16")
    elif op == "wmma":
        which = "A" if ".a" in mods else "B" if ".b" in mods else "C"
    elements = {"A": m * k // (2 if sparse else 1), "B": k * n}.get(which, m * n)
    bits = BITS.get(type_, 4 if dense4 else 8)
    if op == "wmma" and type_ == "f16" and which in "AB":
        return 8, 4
    if op == "mma" and (m, k) == (8, 4) and bits < 64:
        if which in "AB":
            return (4 if bits == 32 else 2), 4
        threads = 8
    each = 64 if bits == 64 else 32
    return max(elements * bits // (threads * each), 1), each // 8


def dimensions(mods: list[str]) -> int:
    if ".tile::gather4" in mods or ".tile::scatter4" in mods:
        return 5
    return next((i + 1 for i, d in enumerate((".1d", ".2d", ".3d", ".4d", ".5d")) if d in mods), 2)


def coordinates(op: str, mods: list[str], names: Names) -> str:
    count = dimensions(mods)
    if op != "cp":
        count = {".1d": 1, ".2d": 2, ".a1d": 2, ".2dms": 4, ".a2dms": 4}.get(next(m for m in mods if m[1:] in GEOM), 4)
        if op == "tex" and ".a1d" in mods and types_of(mods)[-1] == "f32":
            count = 2
    vector = ", ".join(names.of(4) for _ in range(count))
    return f"[{names.of(8)}, {{{vector}}}]"


GEOM = ("1d", "2d", "3d", "a1d", "a2d", "cube", "acube", "2dms", "a2dms")


def registers(count: int, size: int, names: Names) -> str:
    return "{" + ", ".join(names.of(size) for _ in range(count)) + "}"


def type_size(letter: str, mods: list[str]) -> int:
    """Bytes that a type of a pattern stands for."""
    types = types_of(mods)
    if letter in "TSUV":
        index = "TSUV".index(letter)
        return size_of(types[index]) if index < len(types) else 4
    if letter in ("W", "B"):
        return size_of(types[0]) * (2 if letter == "W" else 1)
    if letter == "p":
        return 0
    return int(letter[1:]) // 8




def number(op: str, mods: list[str], letter: str) -> str:
    types = types_of(mods)
    if letter in "TSUV" and types and types["TSUV".index(letter)] in ("f32", "f64"):
        return "0f3F800000" if types["TSUV".index(letter)] == "f32" else "0d3FF0000000000000"
    return "0" if op in ("mma", "tensormap", "cp", "lop3") else "1"


def vector_width(mods: list[str]) -> int:
    return next((int(m[2:]) for m in mods if m in (".v2", ".v4", ".v8")), 1)


def shape(op: str, mods: list[str], text: str, names: Names) -> str:
    """One operand, as `text` in a pattern wants it."""
    if not text:
        return "_"
    if text == "[]":
        return f"[{names.of(8)}]"
    if text == "[32]":
        return f"[{names.of(4)}]"
    if text == "[,]":
        return coordinates(op, mods, names)
    if text == "L":
        return "Lt" if op == "brx" else "L0"
    if text == "&":
        return "sv" if any(m.startswith(".shared") for m in mods) else "gv"
    if text == "*":
        return anything(op, mods, names)
    if text == "h":
        return names.of(8)
    if ".." in text:
        return text.split("..")[0]
    if re.fullmatch(r"-?\d+", text):
        return text
    if text.startswith("{"):
        type_, size = text[1:-1].split(",")
        if size in "ABCD":
            return registers(*fragment(op, mods, size), names)
        if size == "x":
            times = int(next(m for m in mods if re.fullmatch(r"\.x\d+", m))[2:])
            times *= {".m16n16": 2, ".16x128b": 2, ".16x256b": 4}.get(
                next((m for m in mods if modifiers()[m] == "SHAPE"), ""), 1)
            return registers(times, 4, names)
        count = {"v": vector_width(mods), "o": dimensions(mods) - 2}.get(size) or int(size)
        if count == 1 and size != "o":
            return names.of(type_size(type_, mods))
        return registers(count, type_size(type_, mods), names)
    if text.endswith("#"):
        return number(op, mods, text[:-1])
    return names.of(type_size(text, mods))


def anything(op: str, mods: list[str], names: Names) -> str:
    """What stands for `*`, which says nothing."""
    if op == "cp":
        return f"[{names.of(8)}]"
    if op == "st" and ".async" in mods:
        width = vector_width(mods)
        size = type_size("T", mods)
        return registers(width, size, names) if width > 1 else names.of(size)
    if op in ("tex", "tld4"):
        size = size_of(types_of(mods)[0])
        return registers(vector_width(mods), max(size, 2), names)
    if op in ("suld", "sust", "sured"):
        width, size = vector_width(mods), max(type_size("T", mods), 2)
        return registers(width, size, names) if width > 1 else names.of(size)
    if op == "set":
        return names.of(2)
    if op == "cvt":
        return names.of(4)
    width, size = vector_width(mods), type_size("T", mods)
    return registers(width, size, names) if width > 1 else names.of(size)


def rest(op: str, mods: list[str], names: Names) -> list[str]:
    """What stands for `...`."""
    if op in ("tex", "tld4"):
        return [names.of(4)] if ".level" in mods else (
            [registers(2, 4, names), registers(2, 4, names)] if ".grad" in mods else [])
    if op == "tcgen05":
        sparse = [f"[{names.of(4)}]"] if ".sp" in mods else []
        scale = [f"[{names.of(4)}]", f"[{names.of(4)}]"] if ".block_scale" in mods else []
        return [*sparse, names.of(4), *scale, names.of(0)]
    return []


# -- instructions ------------------------------------------------------------------------------------------------------


def spellings(form: Form, rng: random.Random) -> Iterator[list[str]]:
    """The modifiers of a form: all of them together if that is few, else each one at least once, and some by chance."""
    total = 1
    for item in form.items:
        total *= len(item)
    if total <= MOST:
        for chosen in itertools.product(*form.items):
            yield [word for word in chosen if word]
        return
    firsts = [item[0] for item in form.items]
    yield [word for word in firsts if word]
    for i, item in enumerate(form.items):
        for word in item:
            others = [rng.choice(choices) for choices in form.items]
            yield [w for w in [*firsts[:i], word, *firsts[i + 1 :]] if w]
            if len(item) <= MANY:
                yield [w for w in [*others[:i], word, *others[i + 1 :]] if w]


def operand_lists(form: Form, mods: list[str]) -> Iterator[list[str]]:
    """Operands of a form: the first of every alternative, then each other one; those that may be missing, too."""
    shapes = []
    for text in form.operands:
        pair = text.split("|")[1] if "|" in text else None
        bare = text.split("|")[0].lstrip("=").removeprefix("_").lstrip("~")
        optional = bare.endswith("?") and not pair
        alternatives = bare.rstrip("?").split("/") if not bare.startswith("{") else [
            "{" + part.removeprefix("{") if "}" in part else part for part in bare.rstrip("?").split("/")]
        if alternatives == ["h"] and ".L2::cache_hint" not in mods:
            continue
        shapes.append((alternatives, optional, pair))
    least = next((i for i, (_, optional, _) in enumerate(shapes) if optional), len(shapes))
    for length in range(least, len(shapes) + 1):
        if length > least and not shapes[length - 1][1]:
            continue
        for which in [(i, j) for i in range(length) for j in range(len(shapes[i][0])) if i == 0 or j]:
            names = Names()
            made: list[str] = []
            for i, (alternatives, _, pair) in enumerate(shapes[:length]):
                text = alternatives[which[1] if i == which[0] else 0]
                if text == "...":
                    made += rest(form.op, mods, names)
                    continue
                one = shape(form.op, mods, text, names)
                made.append(f"{one}|{names.of(0)}" if pair and (pair.endswith("!") or which[0] % 2) else one)
            yield made
        if length == 0:
            yield []


def instruction(op: str, mods: list[str], operands: list[str]) -> str:
    return f"{op}{''.join(mods)} {', '.join(operands)};".replace(" ;", ";")


@dataclass(frozen=True)
class Candidate:
    form: Form
    text: str


def candidates(chosen: list[Form], seed: int = 0) -> list[Candidate]:
    """Every form's instructions, each text once."""
    rng = random.Random(seed)
    found: dict[str, Candidate] = {}
    for form in chosen:
        for mods in spellings(form, rng):
            for operands in operand_lists(form, mods):
                text = instruction(form.op, mods, operands)
                found.setdefault(text, Candidate(form, text))
    return list(found.values())


# -- spoiled -----------------------------------------------------------------------------------------------------------


def split(text: str) -> tuple[str, list[str], list[str]]:
    """The opcode, modifiers and operands of an instruction."""
    name, _, rest = text.rstrip(";").partition(" ")
    op, *mods = re.split(r"(?<!:)(?=\.)", name)
    return op, mods, [part for part in re.split(r", (?![^\[{]*[\]}])", rest) if part]


def odd_operand(operand: str, rng: random.Random) -> str:
    """Something else in an operand's place: another register, a number, a vector, the sink, an address."""
    typed = [f"%{t}_{rng.randint(1, 9)}" for t in TYPED]
    plain = ["%p1", "%b1", "%h1", "%r1", "%d1", "%q1"]
    others = ["1", "-1", "0f3F800000", "0d3FF0000000000000", "_", "gv", "sv", "lv", "[gv]", "[sv]", "[%r1]", "[%d1]",
              "{%r1, %r2}", "{%h1, %h2}", "{%r1, _}", "%v2_0", "!%p1", "%tid.x", "%r1|%p1"]
    return rng.choice(rng.choice((typed, plain, others)))


def spoil(candidate: Candidate, rng: random.Random) -> Candidate:
    """The instruction with one or two changes of any kind; most are wrong then, some are not."""
    op, mods, operands = split(candidate.text)
    known = sorted({word for form in forms() if form.op == op for item in form.items for word in item if word})
    for _ in range(rng.randint(1, 2)):
        what = rng.randint(0, 6)
        if what == 0 and mods:
            mods[rng.randrange(len(mods))] = rng.choice(known)
        elif what == 1 and mods:
            del mods[rng.randrange(len(mods))]
        elif what == 2 and known:
            mods.insert(rng.randint(0, len(mods)), rng.choice(known))
        elif what == 3 and operands:
            del operands[rng.randrange(len(operands))]
        elif operands:
            at = rng.randrange(len(operands))
            operands[at] = odd_operand(operands[at], rng)
    return Candidate(candidate.form, instruction(op, mods, operands))


def spoiled(chosen: list[Form], count: int, seed: int) -> list[Candidate]:
    """So many instructions of all that `candidates` gives, spoiled by chance."""
    rng = random.Random(seed)
    whole = candidates(chosen, seed)
    by_op: dict[str, list[Candidate]] = {}
    for candidate in whole:
        by_op.setdefault(candidate.form.op, []).append(candidate)
    ops = sorted(by_op)
    made = (spoil(rng.choice(by_op[rng.choice(ops)]), rng) for _ in range(count))
    return list({candidate.text: candidate for candidate in made}.values())
