"""What goes wrong, as Python sees it: the C library's diagnostics become one exception with the rendered text."""

from __future__ import annotations

from dataclasses import dataclass


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
