"""What goes wrong, as Python sees it: the C library's diagnostics become one exception with the rendered text."""

from __future__ import annotations

import inspect
import os
import warnings
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """One place of a diagnostic: both ends of a conflict are two of them, a chain of inlined calls one per link."""

    file: str | None
    line: int
    column: int
    text: str
    label: str


@dataclass(frozen=True)
class Diagnostic:
    """`severity` is "note", "warning" or "error"; `places[0]`, if there is one, is where the message points."""

    severity: str
    message: str
    hint: str | None
    places: tuple[Place, ...]


class Error(RuntimeError):
    """Anything that Intarsia refuses. `str(error)` is for people, `error.diagnostics` for programs."""

    def __init__(self, text: str, diagnostics: tuple[Diagnostic, ...] = (), status: str = "") -> None:
        super().__init__(text)
        self.diagnostics = diagnostics
        self.status = status

    def __reduce__(self) -> tuple[type[Error], tuple[str, tuple[Diagnostic, ...], str]]:
        return type(self), (str(self), self.diagnostics, self.status)


class Warning(UserWarning):
    """Something that works but is likely not what was meant."""


_OWN = str(Path(__file__).parent) + os.sep
_PYTHONS = str(Path(os.__file__).parent) + os.sep


def warn(text: str) -> None:
    """Warns at the line of the program that led here: neither ours, nor Triton's, nor Python's own."""
    frame = inspect.currentframe()
    while frame is not None and _is_inner(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        warnings.warn(text, Warning, stacklevel=2)
    else:
        warnings.warn_explicit(text, Warning, frame.f_code.co_filename, frame.f_lineno)


def _is_inner(file: str) -> bool:
    packaged = "site-packages" in file or "dist-packages" in file
    return (
        file.startswith((_OWN, "<"))
        or (packaged and f"{os.sep}triton{os.sep}" in file)
        or (not packaged and file.startswith(_PYTHONS))
    )
