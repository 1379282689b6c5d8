"""Before and after linking, and who is to blame: real kernels with wgmma and setmaxnreg, real advice of ptxas."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("INTARSIA_TEST_PROGRAM", str(ROOT / "build" / "release" / "bin" / "intarsia"))
UNIT = "00c0ffee00c0ffee"
COMMIT = r"wgmma\.commit_group\.sync\.aligned;"
CONSUMER = r"setmaxnreg\.inc\.sync\.aligned\.u32 \s*232;"

REGION = """.version 8.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.visible .func (.param .f32 r) twice(.param .f32 a)
{
  .reg .f32 x;
  ld.param.f32 x, [a];
  add.f32 x, x, x;
  st.param.f32 [r], x;
  ret;
}
.visible .func (.param .b32 r) factorial(.param .b32 a)
{
  .reg .b32 x, y; .reg .pred p;
  ld.param.b32 x, [a];
  setp.lt.s32 p, x, 1;
  @p bra DONE;
  add.s32 y, x, -1;
  { .param .b32 q; .param .b32 s; st.param.b32 [q], y; call (s), factorial, (q); ld.param.b32 y, [s]; }
  mul.lo.s32 x, x, y;
DONE:
  st.param.b32 [r], x;
  ret;
}
.global .b8 format[4] = {37, 100, 10, 0};
.visible .func (.param .b32 r) say(.param .b32 a)
{
  .local .align 8 .b8 list[8];
  .reg .b32 x; .reg .b64 f, l;
  ld.param.b32 x, [a];
  st.local.b32 [list], x;
  mov.b64 f, format; cvta.global.u64 f, f;
  mov.b64 l, list; cvta.local.u64 l, l;
  {
    .param .b64 p0; .param .b64 p1; .param .b32 q;
    st.param.b64 [p0], f; st.param.b64 [p1], l;
    call (q), vprintf, (p0, p1);
    ld.param.b32 x, [q];
  }
  st.param.b32 [r], x;
  ret;
}
.visible .func (.param .b32 r) anywhere(.param .b32 a)
{
  .reg .b32 x; .reg .b64 t;
  mov.b64 t, twice;
  {
    .param .f32 p0; .param .f32 q;
    st.param.b32 [p0], 0;
    P: .callprototype (.param .f32 _) _ (.param .f32 _);
    call (q), t, (p0), P;
    ld.param.b32 x, [q];
  }
  st.param.b32 [r], x;
  ret;
}
"""

COMPILE = """
import sys
sys.path.insert(0, sys.argv[1])
import cases
for name, file in zip(sys.argv[2::2], sys.argv[3::2]):
    entry = next(c for c in cases.load([cases.HERE / "triton" / (name.split(".")[0] + ".py")]) if c.name == name)
    open(file, "w").write(cases.compile_ptx(entry, "sm_90a")[0])
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """A matmul with wgmma in a loop, and a warp-specialised one that moves registers between its groups."""
    pytest.importorskip("triton")
    folder = tmp_path_factory.mktemp("kernels")
    names = {"matmul.matmul_fp16_128x128x64": folder / "matmul.ptx", "tma.matmul_specialised": folder / "special.ptx"}
    words = [str(word) for pair in names.items() for word in pair]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache"), "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, "-c", COMPILE, str(ROOT / "tests" / "corpus"), *words], check=True, env=environment)
    (folder / "region.ptx").write_text(REGION)
    return folder


def link(folder: Path, name: str, calls: list[str], behind: str, *options: str) -> subprocess.CompletedProcess[str]:
    """The kernel with calls behind the last instruction that matches, linked and assembled."""
    text = (folder / f"{name}.ptx").read_text()
    if calls:
        at = [m.end() for m in re.finditer(behind, text)][-1]
        text = text[:at] + "".join(f"\nintarsia.call {c};" for c in calls) + "\n" + text[at:]
    (folder / "kernel.ptx").write_text(text)
    command = [PROGRAM, "link", "kernel.ptx", f"{UNIT}=region.ptx", "-o", "linked.ptx", "--assemble", "out.cubin"]
    (folder / "out.cubin").unlink(missing_ok=True)
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if "ptxas is not on this machine" in done.stderr:
        pytest.skip("there is no ptxas on this machine")
    return done


def call(function: str, argument: str = "%r1", result: str = "_") -> str:
    return f"({result}), {UNIT}::{function}, ({argument})"


def line_of(folder: Path, text: str) -> int:
    return next(i for i, line in enumerate((folder / "kernel.ptx").read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize(("name", "function", "codes", "kept"), [
    ("matmul", "factorial", ["C7509"], "a call of factorial is left here: recursive"),
    ("matmul", "say", ["C7510"], "a call of vprintf is left here: not defined here"),
    ("matmul", "anywhere", ["C7510"], "a call of an address is left here: indirect"),
    ("special", "factorial", ["C7506", "C7509"], "a call of factorial is left here: recursive"),
])  # fmt: skip
def test_strict_names_the_call(kernels, name, function, codes, kept):
    done = link(kernels, name, [call(function)], COMMIT if name == "matmul" else CONSUMER, "--strict")
    assert done.returncode == 1 and not (kernels / "out.cubin").exists()
    assert re.findall(r"^error: (C\d+): ", done.stderr, re.M) == codes
    line = line_of(kernels, f"::{function}")
    assert done.stderr.count(f"kernel.ptx:{line}:1: not so without this call of '{function}'") == len(codes)
    assert name != "matmul" or re.search(r"matmul\.py:\d+:\d+: source line", done.stderr)
    assert kept in done.stderr


def test_the_call_to_blame_is_found_among_others(kernels):
    calls = [call("twice", "%r1"), call("say"), call("twice", "%r2")]
    done = link(kernels, "matmul", calls, COMMIT, "--strict")
    assert done.returncode == 1
    assert done.stderr.count("not so without this call") == 1
    assert f"kernel.ptx:{line_of(kernels, '::say')}:1: not so without this call of 'say'" in done.stderr
    both = link(kernels, "matmul", [call("say", "%r1"), call("say", "%r2")], COMMIT, "--strict")
    assert both.returncode == 1 and "the kernel without all of the calls does not have this" in both.stderr
    first = line_of(kernels, "::say")
    assert all(f"kernel.ptx:{line}:1: a call of 'say'" in both.stderr for line in (first, first + 1))


def test_a_region_in_the_middle_that_touches_accumulators(kernels):
    """Code inlined between wgmma and its wait: nothing is left to call, and ptxas waits early all the same."""
    accumulator = re.search(r"wgmma\.mma_async\S+ \{(%r\d+)", (kernels / "matmul.ptx").read_text())
    assert accumulator
    done = link(kernels, "matmul", [call("twice", accumulator[1], accumulator[1])], COMMIT, "--strict")
    assert done.returncode == 1 and "no call" not in done.stderr
    assert re.search(r"^error: C75(09|1\d|20): .*wgmma|^error: C7517: warpgroup.wait is injected", done.stderr, re.M)
    assert f"kernel.ptx:{line_of(kernels, '::twice')}:1: not so without this call of 'twice'" in done.stderr
    assert "is left here" not in done.stderr
    if line := re.search(r"^error: C7517.* line (\d+)", done.stderr):  # ptxas points into what it was given
        text = (kernels / "linked.ptx").read_text().splitlines()[int(line[1]) - 1].strip()
        assert f"linked PTX:{line[1]}: the line of the linked PTX" in done.stderr and text in done.stderr
        assert text.startswith("add.f32")


def test_a_harmless_region_passes(kernels):
    done = link(kernels, "matmul", [call("twice", "%r1", "%r105")], COMMIT, "--strict")
    assert done.returncode == 0, done.stderr
    assert (kernels / "out.cubin").read_bytes().startswith(b"\x7fELF")
    assert "warning" not in done.stdout


def test_both_are_in_the_report(kernels):
    done = link(kernels, "matmul", [call("factorial")], COMMIT, "--report", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["calls_left"][0]["callee"] == "factorial"
    before, after = (report["assembled"][when] for when in ("before", "after"))
    assert [f["name"] for f in before["functions"]] == ["matmul"] and before["warnings"] == []
    assert {f["name"] for f in after["functions"]} == {"matmul", "factorial"}
    assert [(w["code"], w["wgmma_serialised"]) for w in after["warnings"]] == [("C7509", True)]
    kernel = {when: next(f for f in code["functions"] if f["entry"]) for when, code in report["assembled"].items()}
    assert kernel["before"]["stack_bytes"] == 0 < kernel["after"]["stack_bytes"]
    text = link(kernels, "matmul", [call("factorial")], COMMIT, "--report", "text").stdout
    assert "is left:" in text or "are left:" in text
    numbers = kernel["after"]["registers"], kernel["before"]["registers"]
    assert f"kernel matmul: {numbers[0]} registers ({numbers[1]} before)," in text
    assert f"{kernel['after']['stack_bytes']} bytes of stack (0 before)" in text
    alone = json.loads(link(kernels, "matmul", [], "", "--report", "json").stdout)["assembled"]
    assert alone["before"] is None
    assert alone["after"]["functions"][0]["registers"] == kernel["before"]["registers"]


def test_what_the_kernel_does_by_itself_is_no_fault_of_the_call(kernels):
    """Without .maxnreg or .minnctapersm ptxas ignores setmaxnreg, whatever is called."""
    own = f"""{REGION[: REGION.index(".extern")]}.visible .entry k(.param .u64 p)
{{
  .reg .b32 %r<3>; .reg .b64 %d<2>;
  ld.param.u64 %d1, [p];
  setmaxnreg.dec.sync.aligned.u32 40;
  ld.global.b32 %r1, [%d1];
  intarsia.call {call("twice", "%r1", "%r2")};
  st.global.b32 [%d1], %r2;
  ret;
}}
"""
    (kernels / "own.ptx").write_text(own)
    done = link(kernels, "own", [], "", "--strict")
    assert done.returncode == 0, done.stderr
    assert "warning C7508, as before: " in done.stdout
