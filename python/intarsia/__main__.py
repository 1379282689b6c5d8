"""The console script: finds the C program and becomes it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def program() -> Path | None:
    tree = _PACKAGE.parent.parent
    places = (
        _PACKAGE / "bin" / "intarsia",
        tree / "build" / "release" / "bin" / "intarsia",
        tree / "build" / "dev" / "bin" / "intarsia",
    )
    return next((p for p in places if os.access(p, os.X_OK)), None)


def main() -> None:
    found = program()
    if found is None:
        sys.exit("intarsia: the program is not built; run `make` in the source tree")
    os.environ.setdefault("INTARSIA_PYTHON", sys.executable)
    os.execv(found, [str(found), *sys.argv[1:]])


if __name__ == "__main__":
    main()
