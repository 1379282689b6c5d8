"""Names of 4 KB in every diagnostic of the verifier and the linker.

The files that each of them must refuse (tests/ptx/bad, tests/link/data) are refused once more with all names of
functions, variables and parameters made long. What is said must be the same but for those names, none of them cut.
Both times names have a tail, so that a name such as `a` is no word of a message.
"""

import re

import pytest
from conftest import ROOT

SHORT, LONG = "_q7", "n" * 4090
BUILT_IN = {"vprintf", "malloc", "free", "__assertfail"}
DECLARED = (
    re.compile(r"\.(?:func|entry)\s+(?:\([^()]*\)\s*)?([A-Za-z_$][\w$]*)"),
    re.compile(
        r"\.(?:[busf]\d+(?:x2)?|bf16|pred|texref|samplerref|surfref)\s+([A-Za-z_$][\w$]*)\s*(?:[\[\](),;={]|$)", re.M
    ),
    re.compile(r"\.alias\s+([A-Za-z_$][\w$]*)"),
)
BAD = sorted((ROOT / "tests" / "ptx" / "bad").glob("*.ptx"))
DATA = [p for p in sorted((ROOT / "tests" / "link" / "data").glob("*.ptx"))
        if "// ERROR " in p.read_text() and "// OPTION limit_waits" not in p.read_text()]


def code_of(text):
    return re.sub(r"//[^\n]*", "", text)


def names_in(text):
    found = {name for pattern in DECLARED for name in pattern.findall(code_of(text))}
    return {n for n in found if n not in BUILT_IN and not re.search(rf"\.reg[^;]*\b{re.escape(n)}\b", code_of(text))}


def lengthen(text, names, tail):
    """Whole words only; what follows a dot or a percent sign is no name of these."""
    words = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.sub(rf"(?<![\w$.%])({words})(?![\w$])", rf"\1{tail}", text) if names else text


def messages(err):
    return re.findall(r"^(?:\S*?:\d+:\d+: )?(?:error|warning): (.*)$", err, re.M)


def compare(short, long):
    assert short.code == long.code == 1, long.err[:2000]
    assert messages(short.err)
    assert messages(long.err) == [m.replace(SHORT, LONG) for m in messages(short.err)]


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_the_verifier(intarsia, path):
    text = path.read_text()
    names = names_in(text)
    done = []
    for tail in (SHORT, LONG):
        (intarsia.folder / "x.ptx").write_text(lengthen(text, names, tail))
        done.append(intarsia("check", "x.ptx"))
    compare(*done)


OPTIONS = {"no_inline": "--no-inline", "strip_prints": "--strip-prints", "trap_asserts": "--trap-asserts",
           "keep_externs": "--keep-externs", "budget": "--budget", "deferred": "--defer",
           "own_window": "--own-window"}


def link_arguments(folder, text):
    """Writes the modules of a data file; the arguments that link them."""
    parts = re.split(r"^// MODULE (region|library)\s*(\S*)\s*(\S*)\n", text, flags=re.M)
    start = re.search(r"^\.version", parts[0], re.M)
    assert start
    (folder / "main.ptx").write_text(parts[0][start.start() :])
    arguments = ["main.ptx"]
    for i in range(1, len(parts), 4):
        kind, unit, barriers, body = parts[i : i + 4]
        (folder / f"{i}.ptx").write_text(body)
        arguments += [f"{unit}={i}.ptx"] if kind == "region" else ["--library", f"{i}.ptx"]
        arguments += ["--barrier-map", barriers] if barriers else []
    for option, value in re.findall(r"^// OPTION (\w+) ?(.*)$", text, re.M):
        arguments += [OPTIONS[option], value] if value else [OPTIONS[option]]
    return arguments


@pytest.mark.parametrize("path", DATA, ids=lambda p: p.stem)
def test_the_linker(intarsia, path):
    text = path.read_text()
    names = names_in(text)
    done = []
    for tail in (SHORT, LONG):
        done.append(intarsia("link", *link_arguments(intarsia.folder, lengthen(text, names, tail)), "-o", "out.ptx"))
    compare(*done)


def test_the_names_are_in_the_messages(intarsia):
    text = (ROOT / "tests" / "link" / "data" / "call-sizes.ptx").read_text()
    assert names_in(text) == {"word", "unused", "q", "f", "w", "g", "a", "h", "k", "x"}
    arguments = link_arguments(intarsia.folder, lengthen(text, names_in(text), LONG))
    said = messages(intarsia("link", *arguments).err)
    assert f"this argument has another size than 'w{LONG}'" in said
