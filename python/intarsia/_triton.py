"""The one place that says which Triton this package works with, and that imports it."""

from __future__ import annotations

import importlib.metadata
import importlib.util

from ._errors import Error

# The first version that works and the first that is not known to; pyproject.toml repeats it for pip.
OLDEST, BEYOND = (3, 6), (3, 7)


def installed() -> bool:
    return importlib.util.find_spec("triton") is not None


def require() -> None:
    """Raises an Error that says what to do if Triton is missing or of a version this package doesn't know."""
    wanted = f"triton>={OLDEST[0]}.{OLDEST[1]},<{BEYOND[0]}.{BEYOND[1]}"
    if not installed():
        raise Error(f"Triton is not installed; run `pip install '{wanted}'`")
    version = importlib.metadata.version("triton")
    parts = tuple(int(p) for p in version.split(".")[:2] if p.isdigit())
    if not OLDEST <= parts < BEYOND:
        raise Error(f"Triton {version} is installed, this Intarsia needs another; run `pip install '{wanted}'`")
