"""
Barriers of a FlagCX installation: its headers are checked, its device code becomes a unit that barriers are lowered to.

    include/flagcx_device_enums.h   names and values, compared with what barriers are lowered with
    lib/libflagcx_device.ptx        device code; or libflagcx_device.bc, LLVM bitcode, which llc makes PTX of
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Sequence
from ctypes import POINTER, byref, c_bool, c_char_p, c_uint32, c_void_p
from pathlib import Path

from . import _barriers, _compile, _hook, _lib, _units
from ._errors import Error

_HEADERS = ("flagcx_device_enums.h",)
_HEADER_FOLDERS = ("include", "include/device_api", "flagcx/include", "flagcx/adaptor/include/device_api", ".")
_LIBRARIES = ("libflagcx_device.ptx", "libflagcx_device.bc")
_LIBRARY_FOLDERS = ("lib", "build/lib", ".")

class Headers(ctypes.Structure):
    _fields_ = [
        ("files", POINTER(c_char_p)),
        ("n_files", c_uint32),
        ("options", POINTER(c_char_p)),
        ("n_options", c_uint32),
        ("teams", c_bool),
    ]


_lib._SIGNATURES.update(
    {
        "its_flagcx_check_headers": (ctypes.c_int, [c_void_p, POINTER(Headers), c_char_p]),
        "its_flagcx_provider": (ctypes.c_int, [c_void_p, POINTER(_lib.Unit), c_bool, POINTER(c_char_p)]),
    }
)


def flagcx(
    path: str | os.PathLike[str],
    *,
    headers: Sequence[str | os.PathLike[str]] | None = None,
    library: str | os.PathLike[str] | None = None,
    team: str | None = None,
    options: Sequence[str] = (),
) -> _barriers.Provider:
    """
    A barrier provider: the FlagCX installation in the folder `path`, for `distributed_barrier(barrier_provider=...)`.

    `headers` are those that define FlagCX's names, `library` its device code as PTX or LLVM bitcode; both are looked
    for in the usual places of the folder if not given. With a `team` ("intra", "inter", "world") barriers become calls
    of flagcxDevBarrierArrive, Wait and Sync, else of flagcxIntraBarrierArriveS, WaitS and SyncS if it has them.
    """
    root = Path(_units.beside(path, _units.caller(1)))
    if not root.is_dir():
        raise Error(f"there is no FlagCX in {root}: it is no folder")
    teams = _barriers.names("team")
    if team is not None and team not in teams:
        raise Error(f"there is no team {team!r}; there are {', '.join(repr(name) for name in teams)}")
    found = [root / h for h in headers] if headers else [_find(root, _HEADER_FOLDERS, _HEADERS, "header")]
    code = root / library if library is not None else _find(root, _LIBRARY_FOLDERS, _LIBRARIES, "device code")
    for file in (*found, code):
        _units.check_exists(str(file))
    ptx = _ptx_of(code)
    source = _units.Source(str(ptx), None, "ptx", (), _units.Linking())
    name, team = _choose(source, team)
    _check_headers(found, options, name == "flagcx_team")
    return _barriers.Provider(name, source, team)


def _find(root: Path, folders: Sequence[str], names: Sequence[str], what: str) -> Path:
    for name in names:
        for folder in folders:
            if (root / folder / name).is_file():
                return root / folder / name
    keyword = "headers" if what == "header" else "library"
    raise Error(f"{root} has no {what} of FlagCX, {' or '.join(names)}; {keyword}= says where it is")


def _choose(source: _units.Source, team: str | None) -> tuple[str, str | None]:
    """Which of FlagCX's two families of functions the library has, and that they take what they are given."""
    unit, name = source.compiled(_hook.current_arch()), c_char_p()
    with _lib.context() as ctx:
        ctx.check(_lib.lib().its_flagcx_provider(ctx.handle, unit.c_unit, team is not None, byref(name)))
    provider = _lib.text_of(name.value)
    return provider, (team or "intra") if provider == "flagcx_team" else None


def _check_headers(files: Sequence[Path], options: Sequence[str], teams: bool) -> None:
    given = [str(f) for f in files]
    flags = [*(f"-I{folder}" for folder in dict.fromkeys(f.parent for f in files)), *options]
    with _lib.context() as ctx:
        headers = Headers(_lib.strings(given), len(given), _lib.strings(flags), len(flags), teams)
        ctx.check(_lib.lib().its_flagcx_check_headers(ctx.handle, byref(headers), _hook.current_arch().encode()))


# -- bitcode ---------------------------------------------------------------------------------------------------------


def _ptx_of(code: Path) -> Path:
    """PTX is taken as it is; bitcode is compiled by LLVM's llc, $INTARSIA_LLC or the one in $PATH, and kept."""
    if code.suffix != ".bc":
        return code
    llc = os.environ.get("INTARSIA_LLC") or shutil.which("llc")
    if llc is None:
        raise Error(f"{code} is LLVM bitcode and there is no llc to compile it; INTARSIA_LLC says where it is")
    arch = _hook.current_arch()
    parts = [code.read_bytes(), _compile.run([llc, "--version"], str(code)), arch.encode()]
    command = [llc, "-march=nvptx64", f"-mcpu={arch.rstrip('af')}", "-O3", str(code), "-o"]
    return _compile.kept(f"{code.stem}.ptx", parts, lambda out: [*command, out], str(code))
