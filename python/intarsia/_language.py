"""
What kernels see: region functions, `call` and `after`.

A region function is an object that Triton takes for one of its own constexpr functions, for two reasons: kernels may
then refer to it as a global, and its `cache_key`, which holds the id of its unit, becomes a part of the kernel's. So
Triton's cache on disk notices an edited device file or header by itself. Within a process Triton asks for a kernel's
key only once; `_watch.py` makes it ask again.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Sequence
from typing import Any

from . import _triton
from ._errors import Diagnostic, Error, Place
from ._units import Signature, Source

_triton.require()

from triton import knobs  # noqa: E402
from triton._C.libtriton import ir  # noqa: E402
from triton.language import core as tl  # noqa: E402
from triton.runtime.jit import ConstexprFunction, JITCallable, get_jit_fn_file_line  # noqa: E402

from . import _hook, _watch  # noqa: E402

_hook.install()

# -- units and their functions ---------------------------------------------------------------------------------------


class Unit(JITCallable):  # type: ignore[misc]
    """A device file. Its functions are attributes; `instance` makes one of a template."""

    def __init__(self, source: Source) -> None:  # not JITCallable's: there is no Python function behind it
        self._source = source
        self._functions: dict[str, Region] = {}
        self.__name__ = self.__qualname__ = source.path
        self.__doc__ = f"Device functions of {source.path}."
        self.noinline = False
        self.used_global_vals: dict[Any, Any] = {}

    @property
    def cache_key(self) -> str:
        return "unit"  # its functions say what matters

    def __hash__(self) -> int:
        return id(self)

    def __getattr__(self, name: str) -> Region:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._function(name)

    def __getitem__(self, name: str) -> Region:
        """A function whose name is no Python name, or one that a unit has as well: `unit["ns::parse"]`."""
        return self._function(name)

    def instance(self, spelling: str) -> Region:
        """An instantiation of a template, spelled as in C++: `unit.instance("scale<float>")`."""
        self._source.add_instance(spelling)
        return self._function(spelling)

    @property
    def functions(self) -> tuple[str, ...]:
        """What the file defines, as the user spells it. Compiles it if that has not happened yet."""
        return self._source.compiled(_hook.current_arch()).functions

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self.functions if name.isidentifier())]

    def __repr__(self) -> str:
        return f"<intarsia unit {self._source.path}>"

    def _function(self, name: str) -> Region:
        if name not in self._functions:
            self._functions[name] = Region(self._source, name)
        return self._functions[name]


class OfUnit(ConstexprFunction):  # type: ignore[misc]
    """What kernels may refer to as a global, and then depend on a unit by: see the head of this file."""

    def __init__(self, source: Source, name: str, doc: str | None) -> None:
        self._source, self._name = source, name
        self.__name__ = self.__qualname__ = name
        self.__module__ = "intarsia"
        self.__doc__ = doc
        self.noinline = False
        self.used_global_vals: dict[Any, Any] = {}
        source.on_change = _watch.forget

    @property
    def cache_key(self) -> str:
        return f"{_hook.unit_key(self._source)}:{self._name}"

    def __hash__(self) -> int:
        return hash((self._name, self.cache_key))

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return self._name

    def __deepcopy__(self, memo: object) -> OfUnit:
        return self


class Region(OfUnit):
    """A device function that kernels call, as `fn(args)` or `intarsia.call(fn, args)`."""

    def __init__(
        self, source: Source, name: str, arity: int | None = None, result: Any = None, doc: str | None = None
    ) -> None:
        super().__init__(source, name, doc or f"The device function {name} of {source.path}.")
        self._arity, self._result = arity, result

    def __repr__(self) -> str:
        return f"region_{self._name}"

    def __call__(
        self, *args: Any, sync: Any = True, dtype: Any = None, _semantic: Any = None, _generator: Any = None
    ) -> Any:
        if _semantic is None:
            raise Error(f"{self._name} is a device function: call it inside a @triton.jit kernel")
        return _emit(self, args, _plain(sync), _plain(dtype), _semantic, _generator)


@tl.builtin  # type: ignore[untyped-decorator]
def call(
    fn: Any, args: Any = (), sync: Any = True, dtype: Any = None, _semantic: Any = None, _generator: Any = None
) -> Any:
    """
    Calls a device function, once per thread. `args` are scalars: pointers, integers, floats, booleans, constants.

    The result is the function's own, or an int32 that is always zero if it returns nothing: either is a token for
    `after`. `dtype` says what the result is where PTX does not tell. `sync` puts a CTA barrier in front, so that what
    the whole tile program wrote before is visible to whichever thread of the region hands it on.
    """
    region = _plain(fn)
    if not isinstance(region, Region):
        raise TypeError(
            f"intarsia.call takes a device function, made by intarsia.load or @intarsia.dialect, not {_kind(region)}"
        )
    items = args.values if isinstance(args, tl.tuple) else args
    if not isinstance(items, (tuple, list)):
        raise TypeError("intarsia.call takes its arguments as a list: intarsia.call(fn, [a, b])")
    return _emit(region, items, _plain(sync), _plain(dtype), _semantic, _generator)


# -- one call --------------------------------------------------------------------------------------------------------

_REGISTERS = {".f32": "f", ".f64": "d", ".b16": "h", ".b32": "r", ".b64": "l"}
_RESULTS = {".f32": tl.float32, ".f64": tl.float64, ".b16": tl.int16, ".b32": tl.int32, ".b64": tl.int64}


class _Refused(Exception):
    """What is wrong with a call, and the hint that goes with it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def _emit(region: Region, args: Sequence[Any], sync: bool, dtype: Any, semantic: Any, generator: Any) -> Any:
    options = semantic.builder.options
    run = _hook.compilation(options)
    try:
        unit = region._source.compiled(_hook.arch_of(options))
        name = unit.find(region._name)
        signature = unit.signature(name)
        texts, constraints, operands = _arguments(region, signature, args, semantic)
        register, result, wanted = _result(region, signature, dtype)
    except Error as error:
        return _fail(run, _with_call(error, generator), dtype or region._result, semantic)
    except _Refused as refused:
        return _fail(run, _at_call(refused, generator), dtype or region._result, semantic)
    run.add(unit, region._source)
    text = f"intarsia.call ($0), {unit.id}::{name.replace('$', '$$')}, ({', '.join(texts)});"
    spelled = ",".join([f"={register}", *constraints, "~{memory}"])
    return _cast(_insert(text, spelled, operands, result, sync, semantic, generator), wanted, semantic)


def _insert(
    text: str, constraints: str, operands: Sequence[Any], result: Any, sync: bool, semantic: Any, generator: Any
) -> Any:
    """An operation of ours in the kernel."""

    def emit() -> Any:
        if sync:
            semantic.debug_barrier()
        return _asm(semantic, text, constraints, operands, result)

    return _always(semantic, result, emit) if _in_loop(generator) else emit()


def _fail(run: Any, error: Error, dtype: Any, semantic: Any) -> Any:
    """Notes the error, the first one counts, and lets Triton go on with a value; see _Compilation.after_codegen."""
    if run.failure is None:
        run.failure = error
    wanted = dtype if isinstance(dtype, tl.dtype) else tl.int32
    if wanted.is_ptr():
        return semantic.cast(semantic.scalar_constant(0, tl.int64), wanted)
    return semantic.scalar_constant(0, wanted)


def _with_call(error: Error, generator: Any) -> Error:
    """An error that has no place, a name that the device file lacks, gets that of the call."""
    first = error.diagnostics[0] if error.diagnostics else None
    return _at_call(_Refused(first.message, first.hint), generator) if first and not first.places else error


def _at_call(refused: _Refused, generator: Any) -> Error:
    """The error with the place of the call in the kernel."""
    node = generator.cur_node
    file, begin = get_jit_fn_file_line(generator.jit_fn)
    line = begin + node.lineno - 1
    source = linecache.getline(file, line).rstrip("\n")
    indent = len(source) - len(source.lstrip())
    column = indent + 1 if node.col_offset < indent else node.col_offset + 1
    place = Place(file, line, column, source, "")
    text = f"{file}:{line}:{column}: error: {refused}\n    {source}\n    {' ' * (column - 1)}^"
    if refused.hint:
        text += f"\nhint: {refused.hint}"
    return Error(text, (Diagnostic("error", str(refused), refused.hint, (place,)),), "bad input")


def _arguments(
    region: Region, signature: Signature, args: Sequence[Any], semantic: Any
) -> tuple[list[str], list[str], list[Any]]:
    """For each argument its text in the call; for those in registers also the constraint and the value."""
    expected = len(signature.params)
    if region._arity not in (None, expected):
        declared = _count(region._arity or 0)
        raise _Refused(f"{region._name}{signature} takes {_count(expected)}, its Python declaration has {declared}")
    if len(args) != expected:
        raise _Refused(f"{region._name}{signature} takes {_count(expected)}, the kernel passes {len(args)}")
    texts: list[str] = []
    constraints: list[str] = []
    operands: list[Any] = []
    for index, (type_, arg) in enumerate(zip(signature.params, args)):
        try:
            constant = _plain(arg)
            if constant is None or isinstance(constant, (bool, int, float)):
                texts.append(_immediate(constant, type_))
                continue
            value = _scalar(arg, type_, signature.whole[index], semantic)
        except _Refused as why:
            what = f"argument {index + 1} of {region._name}{signature} is {type_}, the kernel passes {why}"
            raise _Refused(what, why.hint) from None
        texts.append(f"${len(operands) + 1}")
        constraints.append(_register(value.type))
        operands.append(value)
    return texts, constraints, operands


def _count(n: int) -> str:
    return "1 argument" if n == 1 else f"{n} arguments"


def _immediate(value: Any, type_: str) -> str:
    if type_ in (".f32", ".f64"):
        if value is None:
            raise _Refused("None")
        if type_ == ".f32":
            return f"0f{struct.unpack('>I', struct.pack('>f', value))[0]:08X}"
        return f"0d{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"
    if isinstance(value, float):
        raise _Refused(f"the float {value}", "declare the parameter as float or double, or pass an integer")
    number, bits = int(value or 0), _bits(type_)
    if not bits:
        raise _Refused(f"{value}", "structures can't be passed from a kernel; pass a pointer to one")
    if not -(1 << (bits - 1)) <= number < 1 << bits:
        raise _Refused(f"{number}, which has more bits")
    return str(number)


def _scalar(arg: Any, type_: str, whole: bool, semantic: Any) -> Any:
    """The argument as a scalar whose register fits a parameter of type `type_`, as far as C would convert it."""
    if not isinstance(arg, tl.tensor):
        raise _Refused(_kind(arg))
    if arg.type.is_block():
        raise _Refused(f"a block, {arg.type}", "region arguments are scalars; pass a pointer")
    given = arg.dtype
    if given.is_floating():
        return _float_scalar(arg, type_, whole, semantic)
    if type_ in (".f32", ".f64"):
        hint = None if given.is_ptr() else f"convert it: .to(tl.float{_bits(type_)})"
        raise _Refused(f"{given}", hint)
    if given.is_int1():
        return arg
    if given.is_int() and given.int_bitwidth < 32 and type_ == ".b32":
        return semantic.cast(arg, tl.int32)  # as C promotes it
    if (64 if given.is_ptr() else given.primitive_bitwidth) != _bits(type_):
        hint = f"convert it: .to(tl.int{_bits(type_)})" if given.is_int() and _bits(type_) else None
        raise _Refused(f"{given}", hint)
    return arg


def _float_scalar(arg: Any, type_: str, whole: bool, semantic: Any) -> Any:
    given = arg.dtype
    if whole and given.primitive_bitwidth == _bits(type_):
        to = f"tl.int{_bits(type_)}"
        raise _Refused(
            f"{given}, and the function reads an integer",
            f"convert it: .to({to}), or, where the function wants a float's bits, .to({to}, bitcast=True)",
        )
    if given.primitive_bitwidth == 16 and type_ in (".b16", ".b8[2]"):  # a C++ half is a structure of two bytes
        return semantic.bitcast(arg, tl.int16)
    if given.primitive_bitwidth != _bits(type_):
        hint = f"convert it: .to(tl.float{_bits(type_)})" if type_ in (".f32", ".f64") else None
        raise _Refused(f"{given}", hint)
    return arg


def _bits(type_: str) -> int:
    return int(type_[2:]) if type_ in _REGISTERS else 0


def _register(type_: Any) -> str:
    """The inline-assembly constraint for a scalar."""
    if type_.is_ptr():
        return "l"
    if type_.is_fp32():
        return "f"
    if type_.is_fp64():
        return "d"
    return {1: "b", 16: "h", 32: "r", 64: "l"}[type_.primitive_bitwidth]


def _result(region: Region, signature: Signature, dtype: Any) -> tuple[str, Any, Any]:
    """The constraint and type of the result's register, and the type that the kernel sees."""
    wanted = dtype if dtype is not None else region._result
    type_ = signature.result or ".b32"
    if type_ == ".b8[2]" and wanted in (tl.float16, tl.bfloat16, tl.int16, tl.uint16):
        type_ = ".b16"  # a C++ half is a structure of two bytes
    if type_ not in _REGISTERS:
        hint = "if it is a half, say which: intarsia.call(fn, [...], dtype=tl.float16)" if type_ == ".b8[2]" else None
        raise _Refused(f"{region._name}{signature} returns a structure; let it write through a pointer instead", hint)
    if signature.result is None and wanted is not None:
        raise _Refused(f"{region._name}{signature} returns nothing, the kernel wants {wanted}")
    if wanted is not None and not _holds(type_, wanted):
        raise _Refused(f"{region._name}{signature} returns {type_}, the kernel wants {wanted}")
    if wanted is not None and wanted.is_floating() and _bits(type_) >= 32:
        type_ = f".f{_bits(type_)}"
    result = _RESULTS[type_]
    return _REGISTERS[type_], result, wanted if wanted is not None else result


def _holds(type_: str, wanted: Any) -> bool:
    if not isinstance(wanted, tl.dtype):
        return False
    if wanted.is_ptr():
        return type_ == ".b64"
    if type_.startswith(".f"):
        return bool(wanted.is_floating() and wanted.primitive_bitwidth == _bits(type_))
    if wanted.is_int():
        return bool(wanted.primitive_bitwidth == _bits(type_) or (type_ == ".b32" and wanted.primitive_bitwidth < 32))
    return bool(wanted.is_floating() and wanted.primitive_bitwidth == _bits(type_))


def _cast(value: Any, wanted: Any, semantic: Any) -> Any:
    """The result as the type that the kernel wants; the bits stay, but a bool is what is not zero."""
    if value.dtype == wanted:
        return value
    if wanted.is_int1():
        return semantic.not_equal(value, semantic.to_tensor(0))
    if wanted.is_ptr() or (wanted.is_int() and wanted.primitive_bitwidth != value.dtype.primitive_bitwidth):
        return semantic.cast(value, wanted)
    return semantic.bitcast(value, wanted)


def _asm(semantic: Any, text: str, constraints: str, operands: Sequence[Any], result: Any, pure: bool = False) -> Any:
    builder = semantic.builder
    handles = [operand.handle for operand in operands]
    op = builder.create_inline_asm(text, constraints, handles, [result.to_ir(builder)], pure, 1)
    return tl.tensor(op.get_result(0), result)


def _in_loop(generator: Any) -> bool:
    """Whether the call may end up in a loop; of a function that a kernel calls that is not known here."""
    return generator is None or bool(generator.scf_stack) or not generator.is_kernel


def _always(semantic: Any, result: Any, emit: Any) -> Any:
    """
    What `emit` emits, under a condition that is always true and that the compiler can't see through.

    Triton's pipeliner brings forward whatever a load of a later iteration depends on, for a token the region call too.
    It must then be able to suppress it where there is no later iteration. It can't do that to inline assembly, but it
    can to an `if`. ptxas sees the constant and drops the branch.
    """
    builder = semantic.builder
    one = _asm(semantic, "mov.b32 $0, 1;", "=r", [], tl.int32, pure=True)
    condition = semantic.not_equal(one, semantic.to_tensor(0))
    branch = builder.create_if_op([result.to_ir(builder)], condition.handle, True)
    here = builder.get_insertion_point()
    builder.set_insertion_point_to_start(branch.get_then_block())
    value = emit()
    builder.create_yield_op([value.handle])
    builder.set_insertion_point_to_start(branch.get_else_block())
    builder.create_yield_op([semantic.scalar_constant(0, result).handle])
    builder.restore_insertion_point(here)
    return tl.tensor(branch.get_result(0), result)


# -- after -----------------------------------------------------------------------------------------------------------


@tl.builtin  # type: ignore[untyped-decorator]
def after(x: Any, token: Any, _semantic: Any = None) -> Any:
    """
    `x`, available only once the region call that gave `token` is done: loads through it stay behind that call.

    `x` is a pointer, an integer or a float, a scalar or a block of any shape, or a tuple of them. The loads of a tensor
    descriptor are tied by one of their coordinates.
    """
    if not isinstance(token, tl.tensor) or token.type.is_block():
        raise TypeError(f"intarsia.after takes the result of a region call as its second argument, not {_kind(token)}")
    if isinstance(x, tl.tuple):
        return tl.tuple([after(item, token, _semantic=_semantic) for item in x.values])
    if isinstance(x, tl.tensor_descriptor_base):
        raise TypeError(
            "a tensor descriptor can't be tied to a token; tie a coordinate: desc.load([intarsia.after(row, token), k])"
        )
    return _plus(_semantic.to_tensor(x), _zero(token, _semantic), _semantic)


def _zero(token: Any, semantic: Any) -> Any:
    """
    A zero that the compiler believes to be computed from the token.

    Adding it costs nothing once ptxas has seen the constant, and Triton is told that it changes no alignment: a move of
    the value itself would hide what is known about a pointer, and with it vector loads and asynchronous copies.
    """
    zero = _asm(semantic, "mov.b32 $0, 0;", f"=r,{_register(token.type)}", [token], tl.int32, pure=True)
    zero.handle.set_attr("tt.divisibility", ir.make_attr([1 << 20], zero.handle.get_context()))
    return zero


def _plus(x: Any, zero: Any, semantic: Any) -> Any:
    dtype = x.dtype
    if dtype.is_ptr():
        return semantic.add(x, zero, False)
    if dtype.is_int1():
        return semantic.or_(x, semantic.not_equal(zero, semantic.to_tensor(0)))
    whole = dtype if dtype.is_int() else tl.get_int_dtype(dtype.primitive_bitwidth, signed=True)
    bits = x if dtype.is_int() else semantic.bitcast(x, whole)
    total = semantic.add(bits, semantic.cast(zero, whole), False)
    return total if dtype.is_int() else semantic.bitcast(total, dtype)


# -- small things ----------------------------------------------------------------------------------------------------


def in_interpreter() -> bool:
    return bool(knobs.runtime.interpret)


def is_type(value: object) -> bool:
    """Whether it is one of Triton's element types."""
    return isinstance(value, tl.dtype)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def _kind(value: Any) -> str:
    if isinstance(value, tl.tensor):
        return str(value.type)
    value = _plain(value)
    return f"{value!r}" if isinstance(value, str) else f"a {type(value).__name__}"
