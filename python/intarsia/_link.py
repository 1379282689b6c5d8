"""Linking as Python needs it: PTX text and units in, PTX text and a report out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass, field
from typing import Any, NoReturn

from . import _lib
from ._errors import Error
from ._units import Compiled, Linking


@dataclass
class Linked:
    """`module` (an its_module) and `ptx` are alive and valid until the `link` they come from is left."""

    module: c_void_p
    report: dict[str, Any]
    _ctx: _lib.Context
    _parts: list[Any] = field(default_factory=list)

    @property
    def ptx(self) -> str:
        text, size = c_void_p(), c_size_t()
        self._ctx.check(_lib.lib().its_ptx_print(self.module, byref(text), byref(size)))
        return self._ctx.take_text(text.value)


def parse(ctx: _lib.Context, name: str, text: bytes) -> c_void_p:
    module = c_void_p()
    ctx.check(_lib.lib().its_ptx_parse(ctx.handle, name.encode(), text, len(text), byref(module)))
    return module


def units_of(ctx: _lib.Context, module: c_void_p) -> list[str]:
    """The ids that the region calls of a module name."""
    ids, count = POINTER(c_char_p)(), c_uint32()
    ctx.check(_lib.lib().its_link_units(module, byref(ids), byref(count)))
    return [_lib.text_of(ids[i]) for i in range(count.value)]


@contextmanager
def link(
    name: str,
    text: bytes,
    find_unit: Callable[[str], tuple[Compiled, Linking]],
    *,
    libraries: Sequence[tuple[str, bytes]] = (),
    load_libraries: Callable[[_lib.Context], list[c_void_p]] | None = None,
    keep_externs: bool = False,
    version: tuple[int, int] = (0, 0),
    limit_waits: bool = False,
) -> Iterator[Linked]:
    """
    Links the PTX `text`, which diagnostics call `name`. `find_unit` gives the unit for an id and what linking is told
    of it; `load_libraries` gives modules of the library's own making; `version` is the newest PTX version that the
    assembler takes, if one comes after; with `limit_waits` loops that wait look at the time.
    """
    c = _lib.lib()
    ctx = _lib.Context()
    modules: list[c_void_p] = []
    linked = c_void_p()
    try:
        main = parse(ctx, name, text)
        modules.append(main)
        regions: list[_lib.LinkRegion] = []
        deferred: list[str] = []
        for unit_id in units_of(ctx, main):
            unit, linking = find_unit(unit_id)
            modules.append(parse(ctx, f"{unit.path}.ptx", unit.ptx))
            regions.append(_region(unit_id, modules[-1], linking))
            deferred += linking.deferred
        provided = load_libraries(ctx) if load_libraries is not None else []
        modules += provided
        for library_name, library in libraries:
            provided.append(parse(ctx, library_name, library))
            modules.append(provided[-1])
        given = _lib.LinkInput(
            main=main,
            regions=(_lib.LinkRegion * len(regions))(*regions) if regions else None,
            n_regions=len(regions),
            libraries=(c_void_p * len(provided))(*provided) if provided else None,
            n_libraries=len(provided),
            options=_lib.LinkOptions(
                keep_externs=keep_externs,
                deferred=_lib.strings(deferred),
                n_deferred=len(deferred),
                version_major=version[0],
                version_minor=version[1],
                limit_waits=limit_waits,
                own_window=True,
            ),
        )
        ctx.check(c.its_link(ctx.handle, byref(given), byref(linked)))
        ctx.tell_warnings()
        report = json.loads(ctx.take_text(c.its_report_json(ctx.handle, c.its_linked_report(linked))))
        yield Linked(c_void_p(c.its_linked_module(linked)), report, ctx)
    finally:
        if linked:
            c.its_linked_free(linked)
        for module in modules:
            c.its_module_free(module)
        ctx.close()


def _region(unit_id: str, module: c_void_p, linking: Linking) -> _lib.LinkRegion:
    return _lib.LinkRegion(
        unit=unit_id.encode(),
        module=module,
        budget=linking.budget or 0,
        barrier_map=linking.barrier_map.encode() if linking.barrier_map is not None else None,
    )


def no_units(unit_id: str) -> NoReturn:
    raise Error(
        f"the PTX calls a region of unit {unit_id}, whose source is not known here; "
        "link it first: `intarsia link kernel.ptx NAME-device.cu`"
    )
