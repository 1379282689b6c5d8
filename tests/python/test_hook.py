"""The stage hook among other people's, and kernels that don't need it."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl
from kernels import build

import intarsia

unit = intarsia.load(source='extern "C" __device__ int f(int x) { return x + 41; }\n')


@triton.jit
def with_region(p, i):
    tl.store(p, unit.f(i))


@triton.jit
def plain(p, i):
    tl.store(p, i + 41)


SIGNATURE = {"p": "*i32", "i": "i32"}


@pytest.fixture
def always_compile(monkeypatch):
    monkeypatch.setattr(triton.knobs.compilation, "always_compile", True)


def test_a_kernel_without_regions_is_left_alone(always_compile, monkeypatch):
    ours = build(plain, SIGNATURE)
    assert not hasattr(ours.metadata, "intarsia")
    monkeypatch.setattr(triton.knobs.runtime, "add_stages_inspection_hook", None)
    theirs = build(plain, SIGNATURE)
    assert ours.asm["ptx"] == theirs.asm["ptx"] and ours.asm["cubin"] == theirs.asm["cubin"]


def test_a_hook_that_was_there_before_stays(python):
    done = python(
        """
import triton
calls = []
def theirs(*args):
    if not args:
        return "their key", "their hash"
    stages, inner = args[1], args[1]["ptx"]
    stages["ptx"] = lambda src, metadata: calls.append("ptx") or inner(src, metadata)
triton.knobs.runtime.add_stages_inspection_hook = theirs
import intarsia, triton.language as tl
from triton.compiler import ASTSource
from triton.backends.compiler import GPUTarget
unit = intarsia.load(source='extern "C" __device__ int f(int x) { return x + 41; }')
@triton.jit
def kernel(p, i):
    tl.store(p, unit.f(i))
built = triton.compile(ASTSource(kernel, {"p": "*i32", "i": "i32"}), target=GPUTarget("cuda", 80, 32))
assert calls == ["ptx"] and "intarsia.call" not in built.asm["ptx"], calls
key, digest = triton.knobs.runtime.add_stages_inspection_hook()
assert key.startswith("their keyintarsia-") and digest.startswith("their hashintarsia-"), (key, digest)
print("fine")
"""
    )
    assert done.stdout == "fine\n", done.stderr


def test_a_hook_that_comes_later_and_chains(always_compile, monkeypatch):
    ours, calls = triton.knobs.runtime.add_stages_inspection_hook, []

    def later(*args):
        calls.append(len(args))
        return ours(*args)

    monkeypatch.setattr(triton.knobs.runtime, "add_stages_inspection_hook", later)
    assert ", 41;" in build(with_region, SIGNATURE).asm["ptx"]
    assert calls == [5]


def test_a_hook_that_comes_later_and_does_not_chain_is_told(always_compile, monkeypatch):
    monkeypatch.setattr(triton.knobs.runtime, "add_stages_inspection_hook", lambda *args: None)
    with pytest.raises(triton.CompilationError, match="another stage hook took the place of Intarsia's"):
        build(with_region, SIGNATURE)


def test_the_report_is_in_the_metadata():
    intarsia_of = build(with_region, SIGNATURE).metadata.intarsia
    assert len(intarsia_of["units"]) == 1
    assert intarsia_of["report"]["regions_inlined"] == 1
    assert [f["name"] for f in intarsia_of["report"]["functions"] if f["entry"]] == ["with_region"]


def test_line_information_points_into_the_device_file(tmp_path):
    path = tmp_path / "lines.cu"
    path.write_text('extern "C" __device__ int f(int x) {\n    return x * 1234567;\n}\n')
    lines = intarsia.load(path, options=["-lineinfo"])

    @triton.jit
    def kernel(p, i):
        tl.store(p, lines.f(i))

    ptx = build(kernel, SIGNATURE).asm["ptx"]
    assert f'"{path}"' in ptx and "inlined_at" in ptx
