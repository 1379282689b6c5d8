"""Random PTX modules full of calls, to compare what they compute before and after inlining.

    python tests/link/random_modules.py SEED > module.ptx

Every module has one entry `kernel(u64 in, u64 out)`: each thread reads a word, calls functions with it, and writes a
word. Parameters are scalars and structs, written in pieces on one side and read in other pieces on the other; every
byte that is read has been written. All loops end, and no two threads touch the same memory.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field


@dataclass
class Param:
    size: int
    align: int
    array: bool

    def declare(self, name: str) -> str:
        if self.array:
            return f".param .align {self.align} .b8 {name}[{self.size}]"
        return f".param .b{self.size * 8} {name}"


@dataclass
class Function:
    name: str
    params: list[Param]
    result: Param | None
    text: str = ""


@dataclass
class Writer:
    """The body of one function: numbered registers, labels and variables."""

    rng: random.Random
    functions: list[Function]
    lines: list[str] = field(default_factory=list)
    regs: dict[str, int] = field(default_factory=lambda: {"r": 1, "rd": 1, "rs": 1, "p": 1, "f": 1})
    labels: int = 0
    vars: int = 0
    depth: int = 0

    def reg(self, kind: str) -> str:
        self.regs[kind] += 1
        return f"%{kind}{self.regs[kind] - 1}"

    def put(self, line: str) -> None:
        self.lines.append("\t" * (self.depth + 1) + line)

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    # -- pieces of parameters --------------------------------------------------------------------------------------

    def pieces(self, param: Param) -> list[tuple[int, int, int]]:
        """(offset, bytes of one, how many): together they cover the parameter."""
        if self.rng.random() < 0.5 and not param.array:
            return [(0, param.size, 1)]
        result, at = [], 0
        while at < param.size:
            fits = [s for s in (1, 2, 4, 8) if at % s == 0 and at + s <= param.size and s <= param.align]
            size = self.rng.choice(fits[-2:])
            counts = [n for n in (1, 2, 4) if n * size <= min(16, param.align) and at % (n * size) == 0
                      and at + n * size <= param.size]
            count = self.rng.choice(counts) if size >= 2 else 1
            result.append((at, size, count))
            at += size * count
        return result

    def value(self, size: int, source: str) -> str:
        """Some register or immediate of at least `size` bytes that depends on the 32-bit register `source`."""
        if self.rng.random() < 0.15:
            return str(self.rng.randrange(0, 1 << (8 * min(size, 4) - 1)))
        mixed = self.reg("r")
        self.put(f"mad.lo.u32 {mixed}, {source}, {self.rng.randrange(1, 99999)}, {self.rng.randrange(99999)};")
        if size == 8 or (size == 4 and self.rng.random() < 0.2):
            wide = self.reg("rd")
            self.put(f"mul.wide.u32 {wide}, {mixed}, {self.rng.randrange(1, 1 << 30)};")
            return wide
        if size <= 2 and self.rng.random() < 0.6:
            short = self.reg("rs")
            self.put(f"cvt.u16.u32 {short}, {mixed};")
            return short
        return mixed

    def write(self, name: str, piece: tuple[int, int, int], source: str, guard: str = "") -> None:
        offset, size, count = piece
        vector = f".v{count}" if count > 1 else ""
        one = self.same_width if count > 1 else self.value  # vectors take registers of one width
        values = [one(size, source) for _ in range(count)]
        shown = "{" + ", ".join(values) + "}" if count > 1 else values[0]
        self.put(f"{guard}st.param{vector}.b{size * 8} [{name}+{offset}], {shown};")

    def same_width(self, size: int, source: str) -> str:
        if size == 8:
            wide = self.reg("rd")
            self.put(f"mul.wide.u32 {wide}, {source}, 77777;")
            return wide
        mixed = self.reg("r")
        self.put(f"xor.b32 {mixed}, {source}, {self.rng.randrange(1 << 20)};")
        return mixed

    def read(self, name: str, piece: tuple[int, int, int], into: str) -> None:
        """Loads a piece and adds it to the 32-bit register `into`."""
        offset, size, count = piece
        kind = self.rng.choice("us") if size < 8 else "u"
        wide = size == 8 or (count == 1 and self.rng.random() < 0.2)
        short = size <= 2 and count == 1 and not wide and self.rng.random() < 0.4
        regs = [self.reg("rd" if wide else "rs" if short else "r") for _ in range(count)]
        vector = f".v{count}" if count > 1 else ""
        shown = "{" + ", ".join(regs) + "}" if count > 1 else regs[0]
        self.put(f"ld.param{vector}.{kind}{size * 8} {shown}, [{name}+{offset}];")
        for reg in regs:
            self.add(into, reg)

    def add(self, into: str, reg: str) -> None:
        plain = reg
        if reg.startswith("%rd"):
            plain, shifted, other = self.reg("r"), self.reg("rd"), self.reg("r")
            self.put(f"cvt.u32.u64 {plain}, {reg};")
            self.put(f"shr.u64 {shifted}, {reg}, 32;")
            self.put(f"cvt.u32.u64 {other}, {shifted};")
            self.put(f"mad.lo.u32 {into}, {into}, 31, {other};")
        elif reg.startswith("%rs"):
            plain = self.reg("r")
            self.put(f"cvt.{self.rng.choice('us')}32.{self.rng.choice('us')}16 {plain}, {reg};")
        self.put(f"mad.lo.u32 {into}, {into}, 17, {plain};")

    # -- statements ------------------------------------------------------------------------------------------------

    def call(self, function: Function, acc: str) -> None:
        params = [f"q{self.vars + i}" for i in range(len(function.params))]
        result = f"v{self.vars}"
        self.vars += len(params) + 1
        guarded = self.rng.random() < 0.25
        guard = ""
        if guarded:
            predicate = self.reg("p")
            compare, limit = self.rng.choice(["gt", "lt"]), self.rng.randrange(-1 << 20, 1 << 20)
            self.put(f"setp.{compare}.s32 {predicate}, {acc}, {limit};")
            guard = f"@{self.rng.choice(['', '!'])}{predicate} "
        skip = self.label() if guarded and function.result else ""
        if skip:  # ptxas takes no guard on the load of a result
            flipped = guard[1:].strip()
            self.put(f"@{flipped[1:] if flipped.startswith('!') else '!' + flipped} bra {skip};")
            guard = ""
        self.put("{")
        self.depth += 1
        for name, param in zip(params, function.params, strict=True):
            self.put(param.declare(name) + ";")
            pieces = self.pieces(param)
            for piece in pieces:
                self.write(name, piece, acc)
            if self.rng.random() < 0.3:
                self.write(name, self.rng.choice(self.pieces(param)), acc)
        if function.result:
            self.put(function.result.declare(result) + ";")
        group = f"({result}), " if function.result else ""
        args = f", ({', '.join(params)})" if params else ""
        uniform = self.rng.choice(["", ".uni"]) if not skip and not guard else ""
        self.put(f"{guard}call{uniform} {group}{function.name}{args};")
        if function.result:
            for piece in self.pieces(function.result):
                if self.rng.random() < 0.9:
                    self.read(result, piece, acc)
        self.depth -= 1
        self.put("}")
        if skip:
            self.put(f"{skip}:")

    def arithmetic(self, acc: str) -> None:
        other = self.reg("r")
        self.put(f"shr.u32 {other}, {acc}, {self.rng.randrange(1, 20)};")
        self.put(f"xor.b32 {acc}, {acc}, {other};")

    def shadow(self, acc: str) -> None:
        self.put("{")
        self.depth += 1
        self.put(".reg .b32 %t;")
        self.put(f"add.u32 %t, {acc}, {self.rng.randrange(999)};")
        self.block(acc, 1)
        self.put(f"xor.b32 {acc}, {acc}, %t;")
        self.depth -= 1
        self.put("}")

    def branch(self, acc: str) -> None:
        predicate, label = self.reg("p"), self.label()
        self.put(f"setp.ge.u32 {predicate}, {acc}, {self.rng.randrange(1 << 31)};")
        self.put(f"@{predicate} bra {label};")
        self.block(acc, 1)
        self.put(f"{label}:")

    def loop(self, acc: str) -> None:
        counter, predicate, label = self.reg("r"), self.reg("p"), self.label()
        self.put(f"mov.u32 {counter}, 0;")
        self.put(f"{label}:")
        self.block(acc, 1)
        self.put(f"add.u32 {counter}, {counter}, 1;")
        self.put(f"setp.lt.u32 {predicate}, {counter}, {self.rng.randrange(2, 4)};")
        self.put(f"@{predicate} bra {label};")

    def depot(self, acc: str) -> None:
        name, base, offset, at = f"d{self.vars}", self.reg("rd"), self.reg("rd"), self.reg("rd")
        index, loaded = self.reg("r"), self.reg("r")
        self.vars += 1
        self.put(f".local .align 8 .b8 {name}[16];")
        self.put(f"mov.u64 {base}, {name};")
        self.put(f"st.local.v2.u32 [{base}], {{{acc}, 3}};")
        self.put(f"st.local.v2.u32 [{base}+8], {{5, {acc}}};")
        self.put(f"and.b32 {index}, {acc}, 3;")
        self.put(f"mul.wide.u32 {offset}, {index}, 4;")
        self.put(f"add.u64 {at}, {base}, {offset};")
        self.put(f"ld.local.u32 {loaded}, [{at}];")
        self.put(f"mad.lo.u32 {acc}, {acc}, 13, {loaded};")

    def block(self, acc: str, most: int) -> None:
        for _ in range(self.rng.randint(1, most)):
            choices = [self.arithmetic, self.shadow, self.branch, self.depot]
            if self.depth + self.labels < 6:
                choices.append(self.loop)
            if self.functions and self.rng.random() < 0.5:
                self.call(self.rng.choice(self.functions[-6:]), acc)
            else:
                self.rng.choice(choices)(acc)

    def declarations(self) -> list[str]:
        types = {"r": "b32", "rd": "b64", "rs": "b16", "p": "pred", "f": "f32"}
        return [f"\t.reg .{types[kind]} %{kind}<{count}>;" for kind, count in self.regs.items()]


def random_param(rng: random.Random) -> Param:
    if rng.random() < 0.55:
        size = rng.choice([1, 2, 4, 4, 8])
        return Param(size, size, False)
    align = rng.choice([1, 2, 4, 8, 8, 16])
    return Param(align * rng.randint(1, max(1, 32 // align)), align, True)


def make_function(rng: random.Random, name: str, functions: list[Function]) -> Function:
    params = [random_param(rng) for _ in range(rng.randint(0, 4))]
    function = Function(name, params, random_param(rng) if rng.random() < 0.85 else None)
    w = Writer(rng, functions)
    acc = w.reg("r")
    w.put(f"mov.u32 {acc}, {rng.randrange(1 << 30)};")
    for i, param in enumerate(params):
        if rng.random() < 0.15 and param.size >= 4 and param.align >= 4:  # through its address
            base, loaded = w.reg("rd"), w.reg("r")
            w.put(f"mov.b64 {base}, a{i};")
            w.put(f"ld.local.u32 {loaded}, [{base}+{rng.randrange(param.size // 4) * 4}];")
            w.add(acc, loaded)
        for piece in w.pieces(param):
            w.read(f"a{i}", piece, acc)
    w.block(acc, 3)
    if function.result:
        for piece in w.pieces(function.result):
            w.write("result", piece, acc)
    if rng.random() < 0.5:
        predicate = w.reg("p")
        w.put(f"setp.gt.u32 {predicate}, {acc}, {rng.randrange(1 << 32)};")
        w.put(f"@{predicate} ret;")
        w.block(acc, 2)
        if function.result:
            for piece in w.pieces(function.result):
                w.write("result", piece, acc, f"@!{predicate} " if rng.random() < 0.3 else "")
    if rng.random() < 0.9:
        w.put("ret;")
    head = f".func {'(' + function.result.declare('result') + ') ' if function.result else ''}{name}"
    head += "(" + ", ".join(p.declare(f"a{i}") for i, p in enumerate(params)) + ")"
    function.text = "\n".join([head, "{", *w.declarations(), *w.lines, "}", ""])
    return function


def make_module(seed: int, target: str = "sm_80") -> str:
    rng = random.Random(seed)
    functions: list[Function] = []
    for i in range(rng.randint(3, 9)):
        functions.append(make_function(rng, f"f{i}", list(functions)))
    w = Writer(rng, functions)
    acc, tid, start, out, offset = w.reg("r"), w.reg("r"), w.reg("rd"), w.reg("rd"), w.reg("rd")
    w.put(f"ld.param.u64 {start}, [in];")
    w.put(f"ld.param.u64 {out}, [out];")
    w.put(f"mov.u32 {tid}, %tid.x;")
    w.put(f"mul.wide.u32 {offset}, {tid}, 4;")
    w.put(f"add.u64 {start}, {start}, {offset};")
    w.put(f"add.u64 {out}, {out}, {offset};")
    w.put(f"ld.global.u32 {acc}, [{start}];")
    for function in rng.sample(functions, min(3, len(functions))):
        w.call(function, acc)
        w.arithmetic(acc)
    w.put(f"st.global.u32 [{out}], {acc};")
    w.put("ret;")
    entry = [".visible .entry kernel(.param .u64 in, .param .u64 out)", "{", *w.declarations(), *w.lines, "}", ""]
    head = [".version 8.0", f".target {target}", ".address_size 64", ""]
    return "\n".join([*head, *(f.text for f in functions), *entry])


if __name__ == "__main__":
    sys.stdout.write(make_module(int(sys.argv[1])))
