"""
Running compilers that are programs of this machine, and keeping what they make. The cache goes by content: the
preprocessed source, the compiler's version, the options, the libraries.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from ctypes import byref
from pathlib import Path

from . import _lib
from ._errors import Error, warn

_LANGUAGES = {
    ".c": ("CC", ("cc", "gcc", "clang"), "c"),
    ".cc": ("CXX", ("c++", "g++", "clang++"), "c++"),
    ".cpp": ("CXX", ("c++", "g++", "clang++"), "c++"),
    ".cxx": ("CXX", ("c++", "g++", "clang++"), "c++"),
    ".cu": ("CXX", ("c++", "g++", "clang++"), "c++"),
}


def compiler_of(path: str) -> tuple[list[str], str]:
    """The command and the language of a host file."""
    suffix = Path(path).suffix
    if suffix not in _LANGUAGES:
        raise Error(f"{path} is no host file by its name: one ends in {', '.join(_LANGUAGES)}")
    variable, names, language = _LANGUAGES[suffix]
    if given := os.environ.get(variable):
        words = shlex.split(given)
        if not words or shutil.which(words[0]) is None:
            raise Error(f"{variable} names {given}, which is no program")
        return words, language
    for name in names:
        if shutil.which(name):
            return [name], language
    raise Error(f"there is no compiler for {path}: install one of {', '.join(names)}, or set {variable}")


def run(command: list[str], path: str) -> bytes:
    """What it prints; `path` is what an error is about."""
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
    if done.returncode != 0:
        raise Error(_explain(path, done.stderr.decode(errors="replace").strip(), command))
    return done.stdout


def _explain(path: str, said: str, command: list[str]) -> str:
    missing = sorted({line.partition("undefined reference to `")[2].rstrip("'") for line in said.splitlines()} - {""})
    if missing:
        return f"{path} uses what nothing here provides: {', '.join(missing)}\n{said}"
    return f"{path} does not compile:\n{said or ' '.join(command)}"


def kept(name: str, parts: Sequence[bytes], command: Callable[[str], list[str]], path: str) -> Path:
    """
    The file `name` that a compiler makes of `path`, from the cache if all that it depends on, `parts`, is as it was
    before. `command` gets where to write it.
    """
    return _kept_in(_folder(), name, parts, command, path)


def loaded(name: str, parts: Sequence[bytes], command: Callable[[str], list[str]], path: str) -> ctypes.CDLL:
    """The same for a library, which is loaded. If nothing can be kept it goes from the disk at once, with a warning."""
    try:
        folder = _folder()
    except (Error, OSError) as error:
        why = str(error).splitlines()[0].removeprefix("error: ")
        warn(f"{why}; host files are compiled without a cache")
        with tempfile.TemporaryDirectory(prefix="intarsia-") as aside:
            return ctypes.CDLL(str(_kept_in(Path(aside), name, parts, command, path)))
    return ctypes.CDLL(str(_kept_in(folder, name, parts, command, path)))


def _kept_in(
    folder: Path, name: str, parts: Sequence[bytes], command: Callable[[str], list[str]], path: str
) -> Path:
    key = hashlib.blake2b(digest_size=8)
    for part in parts:
        key.update(len(part).to_bytes(8, "little") + part)
    built = folder / key.hexdigest() / name
    if not built.is_file():
        _in_place(built, command, path)
    return built


def _folder() -> Path:
    """Beside the units, so that `intarsia cache` counts and clears these files too."""
    with _lib.context() as ctx:
        info = _lib.CacheInfo()
        ctx.check(_lib.lib().its_cache_query(ctx.handle, byref(info)))
        folder = Path(ctx.take_text(info.directory)) / "host"
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Error(f"{folder} can't be written to")
    return folder


def _in_place(built: Path, command: Callable[[str], list[str]], path: str) -> None:
    """Compiles aside and renames into place, so that another process sees all of it or nothing."""
    aside = Path(tempfile.mkdtemp(prefix=".new-", dir=built.parent.parent))
    try:
        run(command(str(aside / built.name)), path)
        try:
            aside.rename(built.parent)
        except OSError:  # another process was first
            if not built.is_file():
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
