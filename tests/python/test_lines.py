"""Line tables of linked kernels: what nvdisasm says of each instruction, with the chain of calls it came through.

Each function of the device file leaves one instruction that can be told from all others. The lines here and there must
not have the same numbers: ptxas writes no row for a place that differs from the one before in its file or calls only.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
import triton.language as tl
from kernels import build

import intarsia

DEVICE = """\
__device__ __noinline__ float inner(float x) {
    return rsqrtf(x);  // inner
}
__device__ __forceinline__ float between(float x) {
    return exp2f(x);  // between
}
__device__ __noinline__ float middle(float x) {
    float y = inner(x);  // calls inner
    return between(y);  // calls between
}
extern "C" __device__ float outer(float x) {
    float y = middle(x);  // calls middle
    return __popc(__float_as_int(y));  // outer
}
extern "C" __device__ float twice(float x) { return __popc(__float_as_int(middle(x))) + rsqrtf(x); }  // all in one line
"""


@pytest.fixture
def unit(tmp_path, request):
    (tmp_path / "device.cu").write_text(DEVICE)
    return intarsia.load(tmp_path / "device.cu", options=[request.param])


@triton.jit
def kernel(p, q, FN: tl.constexpr):
    i = tl.arange(0, 128)
    x = tl.load(p + i)
    y = tl.load(q)  # loads y
    z = intarsia.call(FN, [y])  # calls outer
    tl.store(p + i, x + z)  # stores


def line_of(text: str, comment: str) -> int:
    ends = (f"# {comment}", f"// {comment}")
    return next(i for i, line in enumerate(text.splitlines(), 1) if line.endswith(ends))


def places(cubin: bytes, folder: Path) -> dict[str, list[list[tuple[str, int]]]]:
    """For each opcode the places of its instructions: innermost first, then where that was inlined, and so on."""
    (folder / "code.cubin").write_bytes(cubin)
    command = [triton.knobs.nvidia.nvdisasm.path, "-gi", "-c", folder / "code.cubin"]
    found: dict[str, list[list[tuple[str, int]]]] = {}
    chain: list[tuple[str, int]] = []
    fresh = True
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if place := re.search(r'//## File "([^"]+)", line (\d+)(?: inlined at "([^"]+)", line (\d+))?', line):
            chain = [] if fresh else chain
            fresh = False
            here = (Path(place[1]).name, int(place[2]))
            assert not chain or chain[-1] == here, line  # each row is where the one before was inlined
            chain = [*(chain or [here]), *([(Path(place[3]).name, int(place[4]))] if place[3] else [])]
        elif code := re.search(r"/\*[0-9a-f]{4}\*/\s+(?:@!?U?P\w+ )?([A-Z0-9]+(?:\.[A-Z0-9]+)*)", line):
            fresh = True
            found.setdefault(".".join(code[1].split(".")[:2]), []).append(chain)
    return found


def at(comment: str) -> tuple[str, int]:
    here = Path(__file__).read_text()
    if f"// {comment}\n" in DEVICE:
        return "device.cu", line_of(DEVICE, comment)
    return Path(__file__).name, line_of(here, comment)


CHAINS = {
    "-lineinfo": {
        "MUFU.RSQ": ("inner", "calls inner", "calls middle", "calls outer"),
        "MUFU.EX2": ("between", "calls between", "calls middle", "calls outer"),
    },
    # With -G the compiler inlines forced functions without saying where.
    "-G": {
        "MUFU.RSQ": ("inner", "calls inner", "calls middle", "calls outer"),
        "MUFU.EX2": ("between", "calls middle", "calls outer"),
    },
}


@pytest.mark.parametrize("arch", (80, 90))
@pytest.mark.parametrize(("unit", "option"), [(o, o) for o in CHAINS], indirect=["unit"], ids=list(CHAINS))
def test_instructions_have_their_lines(unit, option, arch, tmp_path):
    built = build(kernel, {"p": "*fp32", "q": "*fp32", "FN": "constexpr"}, arch, constants={"FN": unit.outer})
    assert built.metadata.intarsia["report"]["calls_left"] == []
    found = places(built.asm["cubin"], tmp_path)
    for opcode, chain in {**CHAINS[option], "POPC": ("outer", "calls outer")}.items():
        assert found[opcode] == [[at(c) for c in chain]], opcode
    assert [at("loads y")] in found["LDG.E"]
    assert found["STG.E"] == [[at("stores")]]
    assert all(chain and chain[-1][0] == Path(__file__).name for chains in found.values() for chain in chains if chain)


@pytest.mark.parametrize("unit", ["-lineinfo"], indirect=True)
def test_two_ways_to_a_function_stay_apart(unit, tmp_path):
    """The same function through two others: each copy has the chain of its own call."""
    @triton.jit
    def both(p, A: tl.constexpr, B: tl.constexpr):
        x = tl.load(p)
        y = intarsia.call(A, [x])  # calls A
        z = intarsia.call(B, [x + 1])  # calls B
        tl.store(p, y + z)

    constants = {"A": unit.outer, "B": unit.twice}
    built = build(both, {"p": "*fp32", "A": "constexpr", "B": "constexpr"}, constants=constants)
    found = places(built.asm["cubin"], tmp_path)
    chains = [chain for chains in found.values() for chain in chains]
    for caller in ([at("calls middle"), at("calls A")], [at("all in one line"), at("calls B")]):
        assert [at("between"), at("calls between"), *caller] in chains
    assert [at("all in one line"), at("calls B")] in chains and [at("outer"), at("calls A")] in chains
