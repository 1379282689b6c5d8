"""
Barriers and signals between PEs, in kernels.

A barrier is an abstract operation in the PTX, which the linker lowers to the functions of a provider and inlines:

    intarsia.device_intra_barrier.sync.block.acq_rel ($0), 5f0c2a9b71d3e846::intarsia, ($1, $2);

Which names there are comes from the linker's own table (src/link/barrier.def). Signals and queries are plain region
calls of the built-in provider.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any

from . import _lib, _triton
from ._errors import Error
from ._units import Linking, Source

_triton.require()

from triton.language import core as tl  # noqa: E402

from . import _hook  # noqa: E402
from . import _language as language  # noqa: E402
from ._language import _Refused  # noqa: E402

_FIELDS = ("barrier_kind", "group_kind", "order", "team", "scope", "space")  # its_barrier_field
_SIGNAL_OPS = {"set": 0, "add": 1}
_COMPARES = {"eq": 0, "ne": 1, "ge": 2, "gt": 3, "le": 4, "lt": 5}
_THREADS = {"thread": 1, "warp": 32}  # of the CTA that take part; of a block all do

# -- names -----------------------------------------------------------------------------------------------------------


@functools.cache
def names(field: str) -> tuple[str, ...]:
    """What an argument of `distributed_barrier` may be."""
    found: list[str] = []
    while (name := _lib.lib().its_barrier_name(_FIELDS.index(field), len(found))) is not None:
        found.append(name.decode())
    return tuple(found)


def _check_name(argument: str, value: Any, allowed: Sequence[str]) -> str:
    if isinstance(value, str) and value in allowed:
        return value
    there = f"{argument} may be {' or '.join(repr(name) for name in allowed)}"
    if argument in _FIELDS and isinstance(value, str):
        why = _lib.lib().its_barrier_refusal(_FIELDS.index(argument), value.encode())
        if why is not None:
            raise _Refused(f"{argument} can't be {value!r}: {why.decode()}", there)
    raise _Refused(f"{argument} can't be {value!r}", there)


# -- providers -------------------------------------------------------------------------------------------------------


class Provider(language.OfUnit):
    """Whose functions a barrier becomes."""

    def __init__(self, name: str, source: Source, team: str | None = None) -> None:
        super().__init__(source, name, f"The barriers of {source.path}.")
        self._team = team

    @property
    def cache_key(self) -> str:
        return f"{super().cache_key}:{self._team}"

    def __repr__(self) -> str:
        return f"barrier_provider_{self._name}"

    def __call__(self, *_args: Any, **_options: Any) -> Any:
        raise Error(f"{self!r} is no function: pass it as barrier_provider=")


class Operation(language.OfUnit):
    """An operation in kernels that needs the built-in provider, whose code the kernel then depends on."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(_own()._source, function.__name__, function.__doc__)
        self.__wrapped__ = function

    def __call__(self, *args: Any, _semantic: Any = None, _generator: Any = None, **options: Any) -> Any:
        if _semantic is None:
            raise Error(f"intarsia.{self._name} is for kernels: call it inside a @triton.jit kernel")
        return self.__wrapped__(*args, _semantic=_semantic, _generator=_generator, **options)


@functools.cache
def _own() -> Provider:
    text = _lib.lib().its_cc_builtin(b"intarsia/barrier.cu")
    if text is None:
        raise Error(f"{_lib.lib().path} was built without its barriers")
    return Provider("intarsia", Source("intarsia/barrier.cu", text.decode(), "cuda", (), Linking()))


def _provider(value: Any) -> Provider:
    if isinstance(value, Provider):
        return value
    if value == "flagcx":
        raise _Refused(
            "barrier_provider 'flagcx' needs an installation of FlagCX",
            "say where it is, outside of the kernel: flagcx = intarsia.flagcx('/opt/flagcx'); barrier_provider=flagcx",
        )
    _check_name("barrier_provider", value, ("intarsia", "flagcx"))
    return _own()


def _check_multimem(provider: Provider) -> None:
    if provider is not _own():
        return
    from . import _comm

    raise _Refused(f"multimem=True can't be used: {_comm.why_no_multicast()}", "leave multimem=True away")


# -- barriers --------------------------------------------------------------------------------------------------------


@Operation
def distributed_barrier(
    comm: Any,
    space: Any = "device",
    group_kind: Any = "block",
    order: Any = "acq_rel",
    barrier_kind: Any = "sync",
    index: Any = None,
    multimem: Any = False,
    barrier_provider: Any = "intarsia",
    sync: Any = True,
    _semantic: Any = None,
    _generator: Any = None,
) -> Any:
    """
    A barrier between the PEs of `comm`, an intarsia.Comm that was passed to the kernel: or one half of it.

    barrier_kind "arrive" tells the others that this PE has come, "wait" waits for all of them, "sync" does both.
    `index` is the barrier, the program's number if not given: each program of the grid meets the same program of the
    other PEs. `order` says what else is ordered: "release" what was done before the arrive, "acquire" what is done
    after the wait, "acq_rel" both, "relaxed" nothing. `group_kind` is who of the program takes part: all of it
    ("block"), its first warp, or its first thread, and then the rest does not wait. The result is a token for `after`.
    """
    run = _hook.compilation(_semantic.builder.options)
    plain = language._plain
    try:
        provider = _provider(plain(barrier_provider))
        kind = _check_name("barrier_kind", plain(barrier_kind), names("barrier_kind"))
        group = _check_name("group_kind", plain(group_kind), names("group_kind"))
        _check_name("space", plain(space), names("space"))
        parts = ["intarsia.device_intra_barrier", kind, group, _check_name("order", plain(order), names("order"))]
        if plain(multimem):
            _check_multimem(provider)
            parts.append("multimem")
        if provider._team:
            parts.append(provider._team)
        unit = provider._source.compiled(_hook.arch_of(_semantic.builder.options))
        number, operands, constraints = _index(index, _semantic)
        operands.insert(0, _address(comm))
        constraints.insert(0, "l")
    except Error as error:
        return language._fail(run, error, None, _semantic)
    except _Refused as refused:
        return language._fail(run, language._at_call(refused, _generator), None, _semantic)
    run.add(unit, provider._source)
    run.barriers.append([_argument_name(comm, _generator), plain(index) if isinstance(plain(index), int) else None])
    text = f"{'.'.join(parts)} ($0), {unit.id}::{provider._name}, ($1, {number});"
    whole = group not in _THREADS
    return language._insert(
        text if whole else _guarded(text, _THREADS[group]),
        ",".join(["=r", *constraints, "~{memory}"]),
        operands,
        tl.int32,
        bool(plain(sync)) and not whole and kind != "wait",
        _semantic,
        _generator,
    )


def _guarded(text: str, threads: int) -> str:
    """Only the first threads of the CTA; the token is zero in all."""
    return (
        "{ .reg .pred %its_in; .reg .b32 %its_tid; mov.u32 %its_tid, %tid.x; "
        f"setp.lt.u32 %its_in, %its_tid, {threads}; mov.b32 $0, 0; @%its_in {text} }}"
    )


def _address(comm: Any) -> Any:
    scalar = isinstance(comm, tl.tensor) and not comm.type.is_block()
    if scalar and (comm.dtype.is_ptr() or comm.dtype in (tl.int64, tl.uint64)):
        return comm
    hint = "pass an intarsia.Comm to the kernel as an argument, and that argument here"
    raise _Refused(f"the communicator is {language._kind(comm)}, and must be a pointer", hint)


def _index(index: Any, semantic: Any) -> tuple[str, list[Any], list[str]]:
    """The text of the index in the operation, and the operand behind it if it is no constant."""
    value = language._plain(index)
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value < 1 << 31:
            raise _Refused(f"there is no barrier {value}", "barriers are counted from 0")
        return str(value), [], []
    if value is None:
        value = _program(semantic)
    if not isinstance(value, tl.tensor) or value.type.is_block() or not value.dtype.is_int():
        raise _Refused(f"the index is {language._kind(value)}, and must be an integer")
    if value.dtype.int_bitwidth != 32:
        raise _Refused(f"the index is {value.dtype}, and must be int32", "convert it: .to(tl.int32)")
    return "$2", [value], ["r"]


def _program(semantic: Any) -> Any:
    """The number of the program in its grid."""
    number = semantic.program_id(2)
    for axis in (1, 0):
        row = semantic.mul(number, semantic.num_programs(axis), False)
        number = semantic.add(row, semantic.program_id(axis), False)
    return number


def _is_certain(generator: Any) -> bool:
    """Whether the kernel comes to this call whatever it is given: in no branch or loop, behind no early return."""
    line = generator.cur_node.lineno
    for statement in generator.jit_fn.parse().body[0].body:
        if statement.lineno <= line <= statement.end_lineno:
            return not isinstance(statement, (ast.If, ast.For, ast.While))
        if any(isinstance(node, ast.Return) for node in ast.walk(statement)):
            return False
    return False


def _argument_name(comm: Any, generator: Any) -> str | None:
    """Which argument of the kernel the communicator is, if a launch can be checked for whether it has the barrier."""
    if generator is None or not generator.is_kernel or not _is_certain(generator):
        return None
    return next((name for name in generator.jit_fn.arg_names if generator.lscope.get(name) is comm), None)


# -- signals and queries ---------------------------------------------------------------------------------------------


def _call(name: str, args: Sequence[Any], sync: Any, dtype: Any, semantic: Any, generator: Any) -> Any:
    region = language.Region(_own()._source, f"intarsia_provider_{name}")
    return language._emit(region, args, bool(language._plain(sync)), dtype, semantic, generator)


def _refuse(refused: _Refused, semantic: Any, generator: Any) -> Any:
    run = _hook.compilation(semantic.builder.options)
    return language._fail(run, language._at_call(refused, generator), None, semantic)


def _word(value: Any, semantic: Any) -> Any:
    """A signal's value: integers of any size become its 64 bits."""
    if isinstance(value, tl.tensor) and not value.type.is_block() and value.dtype.is_int():
        return semantic.cast(value, tl.int64 if value.dtype.is_int_signed() else tl.uint64)
    return value


@Operation
def signal(
    comm: Any, peer: Any, slot: Any, op: Any = "set", value: Any = 1, _semantic: Any = None, _generator: Any = None
) -> Any:
    """
    Sets signal `slot` of the PE of rank `peer` to `value`, or adds to it (op "add"). What the whole program did before
    is published first. The result is a token for `after`.
    """
    try:
        code = _SIGNAL_OPS[_check_name("op", language._plain(op), tuple(_SIGNAL_OPS))]
        args = [_address(comm), peer, slot, code, _word(value, _semantic)]
    except _Refused as refused:
        return _refuse(refused, _semantic, _generator)
    return _call("signal", args, False, None, _semantic, _generator)


@Operation
def signal_wait(
    comm: Any, slot: Any, value: Any, cmp: Any = "ge", _semantic: Any = None, _generator: Any = None
) -> Any:
    """
    Waits until this PE's signal `slot` compares so with `value`: "eq", "ne", "ge", "gt", "le" or "lt". What was
    published before the signal is seen after it. The result is a token for `after`.
    """
    try:
        code = _COMPARES[_check_name("cmp", language._plain(cmp), tuple(_COMPARES))]
        args = [_address(comm), slot, _word(value, _semantic), code]
    except _Refused as refused:
        return _refuse(refused, _semantic, _generator)
    return _call("signal_wait", args, False, None, _semantic, _generator)


def _query(name: str, comm: Any, semantic: Any, generator: Any) -> Any:
    try:
        address = _address(comm)
    except _Refused as refused:
        return _refuse(refused, semantic, generator)
    return _call(name, [address], False, None, semantic, generator)


@Operation
def comm_rank(comm: Any, _semantic: Any = None, _generator: Any = None) -> Any:
    """This PE's rank in the team of `comm`."""
    return _query("rank", comm, _semantic, _generator)


@Operation
def comm_size(comm: Any, _semantic: Any = None, _generator: Any = None) -> Any:
    """How many PEs the team of `comm` has."""
    return _query("size", comm, _semantic, _generator)


@Operation
def comm_local_rank(comm: Any, _semantic: Any = None, _generator: Any = None) -> Any:
    """This PE's rank among the members that are reached by loads and stores."""
    return _query("local_rank", comm, _semantic, _generator)


@Operation
def comm_local_size(comm: Any, _semantic: Any = None, _generator: Any = None) -> Any:
    """How many members are reached by loads and stores."""
    return _query("local_size", comm, _semantic, _generator)


@Operation
def peer_ptr(comm: Any, pointer: Any, peer: Any, _semantic: Any = None, _generator: Any = None) -> Any:
    """Where this PE reaches what `pointer`, symmetric memory of its own, is on the PE of rank `peer`."""
    try:
        address = _address(comm)
        if not isinstance(pointer, tl.tensor) or not pointer.dtype.is_ptr() or pointer.type.is_block():
            what = language._kind(pointer)
            raise _Refused(f"peer_ptr takes a pointer to symmetric memory, not {what}", "add offsets to its result")
    except _Refused as refused:
        return _refuse(refused, _semantic, _generator)
    return _call("peer_ptr", [address, pointer, peer], False, pointer.dtype, _semantic, _generator)
