"""Region calls: what they become in the kernel's PTX, for every kind of argument, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import triton
import triton.language as tl
from kernels import ARCHS, assemble, build, machine_code
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource

import intarsia

SOURCE = r"""
typedef unsigned long long u64;
extern "C" __device__ void many(float *p, int i, u64 l, short h, bool b, float f, double d, unsigned char c) {
    p[i] = f + (float)d + (float)l + h + c + b;
}
extern "C" __device__ int two(int a, int b) { return a * 3 + b; }
extern "C" __device__ float half_of(float x) { return x / 2; }
extern "C" __device__ double quarter_of(double x) { return x * 0.25; }
extern "C" __device__ long long wide(long long x) { return x * 5; }
extern "C" __device__ bool is_odd(int x) { return x & 1; }
extern "C" __device__ float *next(float *p) { return p + 1; }
extern "C" __device__ void nothing() {}
extern "C" __global__ void whole_kernel() {}
struct pair { int a, b; };
extern "C" __device__ int of_pair(pair p) { return p.a + p.b; }
extern "C" __device__ pair to_pair(int a) { return pair{a, a}; }
template <class T> __device__ void scale(T *p, T by) { p[threadIdx.x] *= by; }
template <class T> __device__ int measure(T *p) { return sizeof *p; }
struct half_like { unsigned short bits; };
extern "C" __device__ half_like to_half(float x) { return half_like{(unsigned short)x}; }
namespace deep { __device__ int inside(int x) { return x + 1; } }
"""
unit = intarsia.load(source=SOURCE)
scale_float = unit.instance("scale<float>")
inside = unit["deep::inside"]


@intarsia.dialect(source='extern "C" __device__ float half_it(float x) { return x / 2; }', extern_func_name="half_it")
def halve(x) -> tl.float32: ...


@intarsia.dialect("cuda", source='extern "C" __device__ int two(int a, int b) { return a + b; }')
def two(a): ...


# -- every kind of argument and result --------------------------------------------------------------------------------


@triton.jit
def all_registers(p, i, l, h, b, f, d):  # noqa: E741
    intarsia.call(unit.many, [p, i, l, h, b, f, d, i.to(tl.int8)])


@triton.jit
def all_constants(p):
    intarsia.call(unit.many, [p, 3, 1 << 40, -2, True, 0.5, 1, 7])


@triton.jit
def all_results(p, i, l, f, d):  # noqa: E741
    x = unit.half_of(f) + unit.quarter_of(d).to(tl.float32) + unit.wide(l).to(tl.float32)
    if unit.is_odd(i, dtype=tl.int1):
        x += unit.two(i, 4)
    tl.store(unit.next(p, dtype=tl.pointer_type(tl.float32)), x + unit.nothing())


@triton.jit
def other_spellings(p, f, i):
    scale_float(p, halve(f))
    tl.store(p, inside(i))


KERNELS = {
    all_registers: {"p": "*fp32", "i": "i32", "l": "i64", "h": "i16", "b": "i1", "f": "fp32", "d": "fp64"},
    all_constants: {"p": "*fp32"},
    all_results: {"p": "*fp32", "i": "i32", "l": "i64", "f": "fp32", "d": "fp64"},
    other_spellings: {"p": "*fp32", "f": "fp32", "i": "i32"},
}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_linked_kernels_pass_ptxas_without_a_call(kernel, arch, tmp_path):
    built = build(kernel, KERNELS[kernel], arch)
    report = built.metadata.intarsia["report"]
    assert report["calls_left"] == [] and report["externs"] == []
    assert report["regions_inlined"] == built.asm["ttir"].count("intarsia.call")
    assert "intarsia.call" not in built.asm["ptx"]
    assemble(built.asm["ptx"], tmp_path, arch)
    assert not re.search(r"\bCALL\b", machine_code(built.asm["cubin"], tmp_path))


def test_the_pseudo_instruction(monkeypatch):
    """What the linker gets: one call, registers by size, constants as immediates in the parameter's type."""
    from intarsia import _hook

    seen = []

    def stop(self, stage, src, metadata):
        seen.append(stage(src, metadata))
        raise InterruptedError

    monkeypatch.setattr(_hook._Compilation, "link", stop)
    monkeypatch.setattr(triton.knobs.compilation, "always_compile", True)
    with pytest.raises(InterruptedError):
        build(all_registers, KERNELS[all_registers])
    with pytest.raises(InterruptedError):
        build(all_constants, KERNELS[all_constants])
    registers, constants = (re.findall(r"intarsia\.call.*", ptx) for ptx in seen)
    assert len(registers) == len(constants) == 1
    unit_id = re.escape(intarsia._units.Source("source.cu", SOURCE, instances=("scale<float>",)).compiled("sm_80").id)
    arguments = ", ".join(rf"%{kind}\d+" for kind in ("rd", "r", "rd", "r", "p", "r", "rd", "r"))
    assert re.fullmatch(rf"intarsia\.call \(%r\d+\), {unit_id}::many, \({arguments}\);", registers[0]), registers[0]
    expected = ", 3, 1099511627776, -2, 1, 0f3F000000, 0d3FF0000000000000, 7);"
    assert constants[0].endswith(expected), constants[0]

def test_a_barrier_stands_in_front_unless_it_is_not_wanted():
    @triton.jit
    def with_barrier(i):
        unit.two(i, i)

    @triton.jit
    def without(i):
        unit.two(i, i, sync=False)

    assert "bar.sync" in build(with_barrier, {"i": "i32"}).asm["ptx"]
    assert "bar.sync" not in build(without, {"i": "i32"}).asm["ptx"]


def test_a_region_as_constexpr_argument():
    @triton.jit
    def kernel(p, i, FN: tl.constexpr):
        tl.store(p, intarsia.call(FN, [i, i]))

    built = build(kernel, {"p": "*i32", "i": "i32", "FN": "constexpr"}, constants={"FN": unit.two})
    assert built.metadata.intarsia["report"]["regions_inlined"] == 1


# -- other ways to write kernels ---------------------------------------------------------------------------------------


def test_functions_that_stay_functions():
    @triton.jit(noinline=True)
    def helper(x):
        return unit.two(x, 5)

    @triton.jit
    def kernel(p):
        tl.store(p, helper(tl.load(p)))

    report = build(kernel, {"p": "*i32"}).metadata.intarsia["report"]
    assert (report["regions_inlined"], report["calls_inlined"], report["calls_left"]) == (1, 1, [])


def test_beside_prints_and_asserts():
    @triton.jit
    def kernel(p, n):
        i = 0
        while i < n:
            i = unit.two(i, 1)
            tl.device_print("i", i)
            tl.device_assert(i > 0, "not positive")
        tl.store(p, i)

    report = build(kernel, {"p": "*i32", "n": "i32"}, debug=True).metadata.intarsia["report"]
    assert report["regions_inlined"] == 1
    assert {call["callee"] for call in report["calls_left"]} == {"vprintf", "__assertfail"}


@gluon.jit
def in_gluon(p, n):
    x = intarsia.call(unit.two, [n, n])
    for _ in range(n):
        x += unit.two(x, 1)
    gl.store(intarsia.after(p, x), x)


def test_gluon():
    target = triton.backends.compiler.GPUTarget("cuda", 90, 32)
    built = triton.compile(GluonASTSource(in_gluon, {"p": "*i32", "n": "i32"}), target=target)
    assert built.metadata.intarsia["report"]["regions_inlined"] == 2


@triton.jit
def specialised(a_ptr, b_ptr, c_ptr, n, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, FN: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [M, BK])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [N, BK])
    acc = tl.zeros((M, N), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True, num_stages=2):
        token = intarsia.call(FN, [n], sync=False)
        acc = tl.dot(a.load([0, intarsia.after(k, token)]), b.load([0, k]).T, acc)
    tl.store(c_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)


def test_warp_specialised_kernels_take_regions_without_barriers_only():
    regions = intarsia.load(source=r"""
extern "C" __device__ int alone(int n) { return n * 3; }
extern "C" __device__ int place(int n) { return n + (threadIdx.x == 0); }
extern "C" __device__ int together(int n) { __syncthreads(); return n; }
""")
    names = dict.fromkeys(["M", "N", "BK", "FN"], "constexpr")
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "n": "i32", "K": "i32", **names}
    constants = {"M": 128, "N": 128, "BK": 64}
    built = build(specialised, signature, 100, {**constants, "FN": regions.alone})
    assert built.metadata.intarsia["report"]["regions_inlined"] == 1
    for region, why in ((regions.place, "asks for its thread's place"), (regions.together, "waits for the whole CTA")):
        with pytest.raises(intarsia.Error, match=f"{why}.*but the kernel splits its warps into partitions"):
            build(specialised, signature, 100, {**constants, "FN": region})


def test_a_large_function_that_is_called_twice_stays_a_call():
    def kernel_with(large):
        @triton.jit
        def kernel(p):
            tl.store(p, large.f(1.0) + large.f(2.0))

        return build(kernel, {"p": "*fp32"}).metadata.intarsia["report"]

    text = 'extern "C" __device__ float f(float x) { return sinf(x) * cosf(x); }'
    assert kernel_with(intarsia.load(source=text))["calls_left"] == []
    left = kernel_with(intarsia.load(source=text, budget=10))["calls_left"]
    assert [call["callee"] for call in left] == ["f", "f"]


# -- what is refused, with the text that the user reads ----------------------------------------------------------------


def refused(body, match, signature=None):
    with pytest.raises(intarsia.Error, match=match) as caught:
        build(body, signature or {"p": "*fp32", "i": "i32", "f": "fp32"})
    return caught.value


@triton.jit
def too_few(p, i, f):
    intarsia.call(unit.two, [i])


@triton.jit
def wide_for_narrow(p, i, f):
    unit.two(i.to(tl.int64), i)


@triton.jit
def narrow_for_wide(p, i, f):
    unit.wide(i)


@triton.jit
def int_for_float(p, i, f):
    unit.half_of(i)


@triton.jit
def float_for_int(p, i, f):
    unit.two(f.to(tl.float64), i)


@triton.jit
def float_constant_for_int(p, i, f):
    unit.two(1.5, i)


@triton.jit
def pointer_for_int(p, i, f):
    unit.two(p, i)


@triton.jit
def block(p, i, f):
    unit.next(p + tl.arange(0, 32))


@triton.jit
def structure(p, i, f):
    unit.of_pair(i)


@triton.jit
def structure_result(p, i, f):
    unit.to_pair(i)


@triton.jit
def result_of_nothing(p, i, f):
    unit.nothing(dtype=tl.float32)


@triton.jit
def too_large(p, i, f):
    unit.two(1 << 33, i)


@triton.jit
def text(p, i, f):
    unit.two("one", i)


@triton.jit
def wrong_arity(p, i, f):
    two(i)


@triton.jit
def unknown(p, i, f):
    unit.tow(i, i)


@triton.jit
def float_for_int_of_its_size(p, i, f):
    unit.two(i / 2, i)


@triton.jit
def kernel_of_its_own(p, i, f):
    unit.whole_kernel()


@triton.jit
def template_alone(p, i, f):
    unit.measure(p)


@triton.jit
def half_of_no_kind(p, i, f):
    unit.to_half(f)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (too_few, r"two\(.b32, .b32\) -> .b32 takes 2 arguments, the kernel passes 1"),
        (wide_for_narrow, r"argument 1 of two\(.b32, .b32\) -> .b32 is .b32, the kernel passes int64"),
        (narrow_for_wide, r"argument 1 of wide\(.b64\) -> .b64 is .b64, the kernel passes int32"),
        (int_for_float, r"argument 1 of half_of\(.f32\) -> .f32 is .f32, the kernel passes int32"),
        (float_for_int, r"is .b32, the kernel passes fp64"),
        (float_for_int_of_its_size, r"is .b32, the kernel passes fp32, and the function reads an integer"),
        (float_constant_for_int, r"is .b32, the kernel passes the float 1.5"),
        (pointer_for_int, r"is .b32, the kernel passes pointer<fp32>"),
        (block, r"passes a block, .*\n(.*\n)*.*region arguments are scalars; pass a pointer"),
        (structure, r"argument 1 of of_pair\(.b8\[8\]\) -> .b32 is .b8\[8\]"),
        (structure_result, r"to_pair\(.b32\) -> .b8\[8\] returns a structure"),
        (result_of_nothing, r"nothing\(\) returns nothing, the kernel wants fp32"),
        (too_large, r"the kernel passes 8589934592, which has more bits"),
        (text, r"the kernel passes 'one'"),
        (wrong_arity, r"two\(.b32, .b32\) -> .b32 takes 2 arguments, its Python declaration has 1 argument"),
        (unknown, r"defines no function 'tow'; .*two, .*\n(.*\n)*hint: did you mean 'two'"),
        (kernel_of_its_own, r"'whole_kernel' is a kernel \(__global__\), which no kernel can call"),
        (template_alone, r"defines no function 'measure';.*\n(.*\n)*hint: .* of a template .* 'measure<float>'"),
        (half_of_no_kind, r"to_half.* returns a structure.*\n(.*\n)*hint: .*dtype=tl.float16"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_wrong_calls_say_both_sides_and_where(kernel, message):
    error = refused(kernel, message)
    assert len(error.diagnostics) == 1 and error.diagnostics[0].severity == "error"
    place = error.diagnostics[0].places[0]
    assert Path(place.file).name == "test_calls.py"
    assert place.text == Path(__file__).read_text().splitlines()[place.line - 1]
    assert place.text[place.column - 1 :].startswith(("unit.", "intarsia.call", "two("))


def test_a_call_outside_of_a_kernel():
    with pytest.raises(intarsia.Error, match=r"two is a device function: call it inside a @triton.jit kernel"):
        unit.two(1, 2)


def test_something_else_than_a_device_function():
    @triton.jit
    def kernel(i):
        intarsia.call(i, [i])

    with pytest.raises(triton.CompilationError, match=r"intarsia.call takes a device function.*not int32"):
        build(kernel, {"i": "i32"})


def test_dynamic_shared_memory_is_the_kernels_own():
    """A region's would begin where Triton keeps its own."""
    grabby = intarsia.load(source=r"""
extern __shared__ float room[];
extern "C" __device__ void grab(int i) { room[threadIdx.x] = i; }
""")

    @triton.jit
    def kernel(i):
        grabby.grab(i)

    error = refused(kernel, "'grab' uses dynamic shared memory, 'room', where the kernel has its own", {"i": "i32"})
    assert "__shared__ float x[256]" in error.diagnostics[0].hint


# -- device files ------------------------------------------------------------------------------------------------------


def test_a_file_lists_its_functions(tmp_path):
    (tmp_path / "x-device.cu").write_text('extern "C" __device__ int one() { return 1; }\n')
    loaded = intarsia.load(tmp_path / "x-device.cu")
    assert loaded.functions == ("one",)
    assert "one" in dir(loaded)


def test_paths_are_relative_to_the_caller(python, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "f.cu").write_text('extern "C" __device__ int one() { return 1; }\n')
    script = tmp_path / "sub" / "script.py"
    script.write_text("import intarsia\nprint(intarsia.load('f.cu').functions)\nintarsia.load('none.cu')\n")
    done = python(script)
    assert done.stdout == "('one',)\n"
    assert f"{tmp_path}/sub/none.cu doesn't exist" in done.stderr and done.returncode == 1


def test_what_is_no_device_file_is_refused_at_once(tmp_path):
    with pytest.raises(intarsia.Error, match=f"{tmp_path} is a folder; name the file in it"):
        intarsia.load(tmp_path)
    with pytest.raises(intarsia.Error, match="options is a list of texts, and 3 is none"):
        intarsia.load(source="", options=[3])


def test_a_syntax_error_has_the_users_line_and_nothing_is_kept(tmp_path):
    path = tmp_path / "broken.cu"
    path.write_text('extern "C" __device__ int f(int x) {\n    return x +;\n}\n')
    broken = intarsia.load(path)

    @triton.jit
    def kernel(p, i):
        tl.store(p, broken.f(i))

    for _ in range(2):
        with pytest.raises(intarsia.Error, match=rf"{re.escape(str(path))}:2:\d+: error: expected an expression"):
            build(kernel, {"p": "*i32", "i": "i32"})
    path.write_text('extern "C" __device__ int f(int x) {\n    return x + 77;\n}\n')
    assert ", 77;" in build(kernel, {"p": "*i32", "i": "i32"}).asm["ptx"]


def test_a_compilers_warning_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("INTARSIA_CACHE_DIR", str(tmp_path))
    source = 'extern "C" __device__ int f(int x) { int unused; return x; }\n'
    with pytest.warns(intarsia.Warning, match=r'mine.cu\(1\): warning .*"unused" was declared but never referenced'):
        assert intarsia.load("mine.cu", source=source).functions == ("f",)


def test_an_extern_that_nobody_provides():
    lost = intarsia.load(source='extern "C" __device__ int elsewhere(int);\n'
                                'extern "C" __device__ int f(int x) { return elsewhere(x); }\n')  # fmt: skip

    @triton.jit
    def kernel(p, i):
        tl.store(p, lost.f(i))

    with pytest.raises(intarsia.Error, match="elsewhere"):
        build(kernel, {"p": "*i32", "i": "i32"})


def test_nvshmem_stays_open_for_the_backend_which_a_gpu_must_have(monkeypatch):
    device = intarsia.load(source="#include <intarsia/nvshmem.h>\n"
                                  'extern "C" __device__ void f(int *p) { nvshmem_int_p(p, 1, 0); }\n')  # fmt: skip

    @triton.jit
    def kernel(p):
        device.f(p)

    monkeypatch.setenv("INTARSIA_NVSHMEM", "/nowhere")
    with pytest.raises(intarsia.Error, match=r"NVSHMEM's host library \(libnvshmem_host.so\)"):
        build(kernel, {"p": "*i32"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dialect": "fortran", "source": ""}, "no dialect called 'fortran'; there are cuda and ptx"),
        ({"options": "-DX"}, "options is a list"),
        ({}, "needs a path"),
    ],
)
def test_load_with_wrong_arguments(arguments, message):
    with pytest.raises(intarsia.Error, match=message):
        intarsia.load(**arguments)


def test_declarations_that_make_no_sense():
    declare = intarsia.dialect("cuda", source=SOURCE)
    with pytest.raises(intarsia.Error, match="parameters that a device function can't have"):
        declare(lambda *args: None)
    with pytest.raises(intarsia.Error, match="annotated with <class 'list'>"):

        @declare
        def half_of(x) -> list: ...

    with pytest.raises(intarsia.Error, match="no compiler called 'nvcc'"):
        intarsia.dialect("cuda", source=SOURCE, compiler="nvcc")
