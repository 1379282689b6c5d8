#!/usr/bin/env python3
"""Every function of the public C API has a comment of its own, one that returns a status says which errors.

    tools/check-api.py include/intarsia/*.h

A function is a declaration with ITS_API, or a member that points to one (backend.h). Its comment stands right above it
or behind it on its line. The comment of a function that returns a status names those (ITS_ERR_..., or "never fails");
that of one whose result is the caller's (`char *`, not const) says how it is freed.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

COMMENT = r"/\*.*?\*/"
FUNCTION = re.compile(r"^[ \t]*ITS_API\b(?P<left>[^;{]*?)\b(?P<name>its_\w+)\((?P<rest>[^;]*);", re.M)
MEMBER = re.compile(r"^[ \t]+(?P<left>[\w \t*]+?)\(\*(?P<name>\w+)\)\((?P<rest>[^;]*);", re.M)


class Declaration(NamedTuple):
    line: int
    name: str
    result: str
    comment: str


def blank_out_comments(text: str) -> str:
    """The same text with spaces for what is in comments, so that offsets stay."""
    return re.sub(COMMENT, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.S)


def comment_of(text: str, begin: int, end: int) -> str:
    behind = "".join(re.findall(COMMENT, text[begin : text.find("\n", end)], re.S))
    return comment_above(text[:begin]) + " " + behind


def comment_above(text: str) -> str:
    """The one that ends in the line above, unless it is a ruler or stands behind something else."""
    if not re.search(r"\*/[ \t]*\n[ \t]*\Z", text):
        return ""
    begin = text.rfind("/*")
    stands_behind = text[text.rfind("\n", 0, begin) + 1 : begin].strip()
    return "" if stands_behind or text.startswith("/* -- ", begin) else text[begin:]


def declarations(text: str) -> list[Declaration]:
    code = blank_out_comments(text)
    found = sorted((m for pattern in (FUNCTION, MEMBER) for m in pattern.finditer(code)), key=lambda m: m.start())
    return [
        Declaration(
            text.count("\n", 0, m.start("name")) + 1,
            m["name"],
            " ".join(m["left"].split()),
            comment_of(text, m.start(), m.end()),
        )
        for m in found
    ]


def complaints(declaration: Declaration, is_member: bool) -> list[str]:
    words = re.findall(r"\w+", declaration.comment)
    if len(words) < 3:
        return ["has no comment"]
    said = []
    names_errors = re.search("ITS_ERR_|never fails", declaration.comment)
    if declaration.result == "its_status" and not is_member and not names_errors:
        said.append("returns a status, but its comment names no error")
    if declaration.result == "char *" and "free" not in declaration.comment:
        said.append("returns a text of the caller's, but its comment doesn't say how it is freed")
    return said


def check(path: Path) -> tuple[int, int]:
    text = path.read_text()
    found, bad = declarations(text), 0
    for declaration in found:
        is_member = not declaration.name.startswith("its_")
        for complaint in complaints(declaration, is_member):
            print(f"{path}:{declaration.line}: {declaration.name} {complaint}")
            bad += 1
    return len(found), bad


def main() -> None:
    paths = [Path(name) for name in sys.argv[1:]]
    results = [check(path) for path in paths]
    count, bad = sum(n for n, _ in results), sum(b for _, b in results)
    marked = sum(len(re.findall(r"\bITS_API\b(?!\s*(?:__attribute__|\n|$))", path.read_text())) for path in paths)
    listed = sum(1 for path in paths for d in declarations(path.read_text()) if d.name.startswith("its_"))
    if count == 0 or marked != listed:
        sys.exit(f"check-api: {listed} of {marked} declarations with ITS_API were understood")
    if bad:
        sys.exit(1)
    print(f"public C API: {count} functions, each with its comment")


if __name__ == "__main__":
    main()
