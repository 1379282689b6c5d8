"""Calls of device functions put into kernels, as text: what a region call or an extern call in a kernel looks like.

A kernel gets one parameter more, the address of scratch memory, of which each thread has SLOT bytes of its own:

    0 .. 767      what pointers given to the functions point to, 64 bytes each
    768 .. 1279   what the functions returned, a place for each call

Calls stand in blocks with registers of their own, at three places: where the kernel starts and before its last `ret`,
where only the first CTA makes them; and in the middle, behind a guard that is never true, so that even a function
that could not run there is inlined there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SLOT, RESULTS, POINTER, RESULT = 1280, 768, 64, 64
SCRATCH = "ia_scratch"
UNIT = "00c0ffee00c0ff{:02x}"  # of the file with that tag
SIZES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16, "16x2": 4}

COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
FUNCTION = re.compile(
    r"^[ \t]*(?:\.(?:visible|weak)\s+)?\.func\b\s*(?:\((?P<result>[^()]*)\)\s*)?(?P<name>[\w$.%]+)\s*"
    r"(?:\((?P<params>[^()]*)\))?(?P<rest>[^;{]*)\{", re.M)
PARAMETER = re.compile(
    r"^\.(?P<space>param|reg)(?:\s+\.align\s+(?P<align>\d+))?\s+\.[a-z]+?(?P<bits>\d+(?:x2)?)\s+[\w$%.]+\s*(?:\[(?P<n>\d*)\])?$")
STORE = re.compile(r"\bst\.param(?:\.v(?P<vector>\d))?\.[a-z]+(?P<bits>\d+)\s+\[\s*(?P<name>[\w$%]+)\s*(?:\+\s*(?P<offset>\d+))?\s*\]")


@dataclass(frozen=True)
class Param:
    """A parameter or result: bytes of an element, elements (0: one value), alignment."""

    size: int
    count: int
    align: int
    in_register: bool

    @property
    def bytes(self) -> int:
        return self.size * max(1, self.count)

    @property
    def declared(self) -> str:
        """As a .param variable, without its name."""
        align = f".align {self.align} " if self.align else ""
        return f".param {align}.b{8 * self.size}"

    @property
    def brackets(self) -> str:
        return f"[{self.count}]" if self.count else ""


@dataclass(frozen=True)
class Function:
    name: str
    params: tuple[Param, ...]
    result: Param | None
    written: frozenset[int] = frozenset()  # bytes of the result that the function stores to: padding holds anything

    @property
    def by_region_call(self) -> bool:
        """A region call passes single values, to .param or .reg."""
        values = [*self.params, *([self.result] if self.result else [])]
        return all(not p.count and p.size <= 8 for p in values)

    @property
    def by_extern_call(self) -> bool:
        return not any(p.in_register for p in [*self.params, *([self.result] if self.result else [])])


def blanked(ptx: str) -> str:
    """The text with comments and strings as blanks: offsets stay."""
    return re.sub(COMMENTS.pattern + r'|"[^"\n]*"', lambda m: re.sub(r"[^\n]", " ", m[0]), ptx, flags=re.S)


def end_of_body(plain: str, start: int) -> int:
    depth = 1
    for match in re.compile(r"[{}]").finditer(plain, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    raise ValueError("a body does not end")


def read_param(text: str) -> Param | None:
    match = PARAMETER.match(" ".join(text.split()))
    if not match or match["n"] == "" or match["bits"] not in SIZES:
        return None
    size = SIZES[match["bits"]]
    return Param(size, int(match["n"] or 0), int(match["align"] or 0), match["space"] == "reg")


def written_bytes(result: str, body: str) -> frozenset[int]:
    """Offsets that some store of the body writes in its result."""
    name = result.split("[")[0].split()[-1] if result.strip() else ""
    found: set[int] = set()
    for match in STORE.finditer(body):
        if match["name"] == name:
            start = int(match["offset"] or 0)
            found |= set(range(start, start + int(match["vector"] or 1) * int(match["bits"]) // 8))
    return frozenset(found)


def functions_of(ptx: str) -> list[Function]:
    """The functions that a text defines and that can be called with made-up arguments."""
    found = []
    plain = blanked(ptx)
    for match in FUNCTION.finditer(plain):
        texts = [t for t in (match["params"] or "").split(",") if t.strip()]
        params = [read_param(t) for t in texts]
        result = read_param(match["result"]) if match["result"] and match["result"].strip() else None
        unclear = None in params or (result is None and (match["result"] or "").strip())
        if unclear or ".noreturn" in match["rest"]:
            continue
        body = plain[match.end() : end_of_body(plain, match.end())]
        written = written_bytes(match["result"] or "", body)
        found.append(Function(match["name"], tuple(p for p in params if p), result, written))
    return found


def shown(ptx: str) -> str:
    """The text with all its functions visible, as a library has them."""
    return re.sub(r"^([ \t]*)\.func\b", r"\1.visible .func", ptx, flags=re.M)


# -- one call ----------------------------------------------------------------------------------------------------------


def value_of(param: Param, index: int, lines: list[str]) -> str:
    """A register with something for the parameter: a pointer to 64 bytes, or a small number that threads differ in."""
    if param.size == 8:
        lines.append(f"add.u64 %ia_d{index + 2}, %ia_d1, {POINTER * (index % 12)};")
        return f"%ia_d{index + 2}"
    return {1: "%ia_h1", 2: "%ia_h1", 4: "%ia_r1"}[param.size]


def pass_array(param: Param, name: str, lines: list[str]) -> None:
    lines.append(f"{param.declared} {name}{param.brackets};")
    step = 4 if param.align >= 4 and param.bytes % 4 == 0 else 1
    for offset in range(0, param.bytes, step):
        lines.append(f"st.param.{'b32' if step == 4 else 'b8'} [{name}+{offset}], {'%ia_r1' if step == 4 else '%ia_h1'};")


def take_result(function: Function, name: str, at: int, lines: list[str]) -> None:
    """Stores what was returned, by words where the alignment allows it."""
    param = function.result
    assert param is not None
    words = param.size >= 4 or param.align >= 4
    offset = 0
    while offset < min(param.bytes, RESULT):
        step = 4 if words and offset % 4 == 0 and set(range(offset, offset + 4)) <= function.written else 1
        if set(range(offset, offset + step)) <= function.written:
            kind, reg = ("b32", "%ia_r2") if step == 4 else ("b8", "%ia_h2")
            lines.append(f"ld.param.{kind} {reg}, [{name}+{offset}];")
            lines.append(f"st.global.{kind} [%ia_d1+{at + offset}], {reg};")
        offset += step


def extern_call(function: Function, at: int) -> list[str]:
    """PTX's own call sequence, in a block."""
    lines = ["{"]
    for i, param in enumerate(function.params):
        if param.count or param.size > 8:
            pass_array(param, f"ia_a{i}", lines)
        else:
            lines.append(f"{param.declared} ia_a{i};")
            value = value_of(param, i, lines)
            lines.append(f"st.param.b{8 * param.size} [ia_a{i}], {value};")
    result = function.result
    if result:
        lines.append(f"{result.declared} ia_v{result.brackets};")
    arguments = ", ".join(f"ia_a{i}" for i in range(len(function.params)))
    lines.append(f"call {'(ia_v), ' if result else ''}{function.name}{f', ({arguments})' if arguments else ''};")
    if result:
        take_result(function, "ia_v", at, lines)
    return [*lines, "}"]


def region_call(function: Function, at: int, guard: str, tag: int) -> list[str]:
    lines: list[str] = []
    values = ", ".join(value_of(p, i, lines) for i, p in enumerate(function.params))
    size = function.result.size if function.result else 4
    reg = {1: "%ia_h2", 2: "%ia_h2", 4: "%ia_r2", 8: "%ia_d0"}[size]
    lines.append(f"{guard} intarsia.call ({reg}), {UNIT.format(tag)}::{function.name}, ({values});")
    lines.append(f"{guard} st.global.b{8 * size} [%ia_d1+{at}], {reg};")
    return lines


# -- a site ------------------------------------------------------------------------------------------------------------


def site(functions: list[Function], number: int, as_region: bool, live: bool, tag: int) -> str:
    """A block that calls the functions, in the first CTA if `live`, else never."""
    most = max((len(f.params) for f in functions), default=0)
    first = "0" if live else "-2"
    lines = ["{", ".reg .pred %ia_p; .reg .b16 %ia_h<3>; .reg .b32 %ia_r<3>;", f".reg .b64 %ia_d<{most + 3}>;",
             f"ld.param.b64 %ia_d1, [{SCRATCH}{tag}];", "mov.u32 %ia_r1, %tid.x;",
             f"mad.wide.u32 %ia_d1, %ia_r1, {SLOT}, %ia_d1;",
             "mov.u32 %ia_r2, %ctaid.x;", "mov.u32 %ia_r0, %ctaid.y;", "add.u32 %ia_r2, %ia_r2, %ia_r0;",
             "mov.u32 %ia_r0, %ctaid.z;", "add.u32 %ia_r2, %ia_r2, %ia_r0;",
             f"setp.eq.s32 %ia_p, %ia_r2, {first};", "and.b32 %ia_r1, %ia_r1, 3;", "add.u32 %ia_r1, %ia_r1, 1;",
             "cvt.u16.u32 %ia_h1, %ia_r1;"]
    for i, function in enumerate(functions):
        at = RESULTS + RESULT * ((4 * number + i) % ((SLOT - RESULTS) // RESULT))
        if as_region:
            lines += region_call(function, at, "@%ia_p", tag)
        else:
            skip = f"$ia_skip{tag}_{number}_{i}"
            lines += [f"@!%ia_p bra {skip};", *extern_call(function, at), f"{skip}:"]
    return "\n".join([*lines, "}", ""])


def declarations(functions: list[Function]) -> str:
    lines = []
    for function in dict.fromkeys(functions):
        result = f"({function.result.declared} ia_v{function.result.brackets}) " if function.result else ""
        params = ", ".join(f"{p.declared} ia_a{i}{p.brackets}" for i, p in enumerate(function.params))
        lines.append(f".extern .func {result}{function.name}({params});\n")
    return "".join(lines)


# -- the kernel --------------------------------------------------------------------------------------------------------

ENTRY = re.compile(r"^[ \t]*(?:\.(?:visible|weak)\s+)?\.entry\s+([\w$.%]+)\s*(\([^()]*\))?[^;{(]*\{", re.M)


def places(plain: str, start: int, end: int, middle: int) -> tuple[int, int, int]:
    """Offsets in a body behind its declarations, at its middle, and before its last `ret`."""
    depth, spots = 0, []
    for match in re.compile(r"[{};]").finditer(plain, start, end):
        depth += {"{": 1, "}": -1, ";": 0}[match[0]]
        if depth == 0 and match[0] == ";":
            spots.append(match.end())
    lines = [plain[plain.rfind("\n", 0, s) + 1 : s] for s in spots]
    first = next((i for i, line in enumerate(lines) if not re.search(r"^\s*\.(reg|local|shared|loc|param)\b", line)), 0)
    begin = spots[first - 1] if first else start
    rets = [m.start() for m in re.compile(r"(?m)^[ \t]*ret;").finditer(plain, start, end)]
    inner = spots[first:-1] or [begin]
    return begin, inner[middle % len(inner)], rets[-1] if rets else end


def splice(kernel: str, live: list[Function], dead: list[Function], as_region: bool, middle: int = 0,
           entries: int = 2, tag: int = 0) -> str:
    """
    The kernel's text with calls in its first entries: of `live` at both ends, of `dead` in the middle. A kernel can get
    calls of several files, one after the other: each file has a tag, and scratch memory of its own.
    """
    plain = blanked(kernel)
    inserts: list[tuple[int, str]] = []
    for match in list(ENTRY.finditer(plain))[:entries]:
        begin, inside, last = places(plain, match.end(), end_of_body(plain, match.end()), middle)
        list_end = match.end(2) - 1 if match[2] else match.end(1)
        comma = "," if match[2] and match[2].strip("() \t\n") else ""
        added = f"{comma} .param .u64 {SCRATCH}{tag}"
        inserts.append((list_end, added if match[2] else f"({added})"))
        number = 4 * len(inserts)
        for at, functions, runs in ((begin, live, True), (last, live, True), (inside, dead, False)):
            if functions:
                inserts.append((at, "\n" + site(functions, number, as_region, runs, tag)))
            number += 1
    if not as_region and inserts:
        start = min(at for at, _ in inserts)
        line = kernel.rfind(".visible", 0, start) if ".visible" in kernel[:start] else kernel.rfind(".entry", 0, start)
        inserts.append((line, declarations([*live, *dead])))
    for at, text in sorted(inserts, key=lambda i: i[0], reverse=True):
        kernel = kernel[:at] + text + kernel[at:]
    return kernel
