"""A few dozen pairs of the corpus, made afresh: kernels linked with device functions. `make check-corpus` does more."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402
import link_pairs  # noqa: E402
import splice  # noqa: E402
import tools  # noqa: E402

PROGRAM = Path(os.environ.get("INTARSIA_TEST_PROGRAM", link_pairs.ROOT / "build/release/bin/intarsia")).resolve()
KERNELS = ("triton/reduce.dot_product.sm_80.ptx", "triton/control.noinline_loop.sm_80.ptx", "triton/norm.softmax_fp32.sm_80.ptx",
           "triton/matmul.matmul_fp16_warps1.sm_80.ptx", "triton/scan.flip_rows.sm_80.ptx")
REGIONS = ("nvrtc/basics.sm_80.ptx", "nvrtc/basics_debug.sm_80.ptx", "nvrtc/control_lineinfo.sm_80.ptx",
           "nvrtc/control_rdc.sm_80.ptx", "hand/calls.sm_80.ptx")

FUNCTIONS = """
.func (.param .b32 r) shut(.param .b32 a) { st.param.b32 [r], 1; ret; } // .func no { in a comment
.weak .func (.param .align 8 .b8 r[24]) struct(.param .align 8 .b8 a[24], .param .b64 b)
{ st.param.v2.b32 [r+8], {x, y}; st.param.b8 [r], z; ret; }
.visible .func (.reg .b32 r) registers(.reg .b64 a) { ret; }
.func declared(.param .b32 a);
.func varargs(.param .align 8 .b8 rest[]) { ret; }
.func leaves() .noreturn { exit; }
"""


def test_functions_are_found_in_text() -> None:
    found = {f.name: f for f in splice.functions_of(FUNCTIONS)}
    assert list(found) == ["shut", "struct", "registers"]
    assert found["shut"].by_region_call and found["shut"].by_extern_call and found["shut"].written == frozenset(range(4))
    assert not found["struct"].by_region_call and found["struct"].params[0] == splice.Param(1, 24, 8, False)
    assert found["struct"].written == frozenset([0, *range(8, 16)])
    assert found["registers"].by_region_call and not found["registers"].by_extern_call


def test_calls_stand_at_three_places() -> None:
    function = splice.functions_of(FUNCTIONS)[0]
    kernel = ".version 8.0\n.target sm_80\n.visible .entry k(.param .u32 n)\n{\n.reg .b32 %r<3>;\nmov.u32 %r1, 1;\nmov.u32 %r2, 2;\nret;\n}\n"
    text = splice.splice(kernel, [function], [function], as_region=True)
    assert ".param .u32 n, .param .u64 ia_scratch0" in text
    assert text.count("intarsia.call") == 3 and text.count("setp.eq.s32 %ia_p, %ia_r2, -2;") == 1
    order = re.findall(r"mov\.u32 %r1, 1|mov\.u32 %r2, 2|intarsia\.call|\bret;", text)
    assert order in (["intarsia.call", "mov.u32 %r1, 1", "intarsia.call", "mov.u32 %r2, 2", "intarsia.call", "ret;"],
                     ["intarsia.call", "mov.u32 %r1, 1", "mov.u32 %r2, 2", "intarsia.call", "intarsia.call", "ret;"])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    pytest.importorskip("triton")
    if not tools.assemblers() or not tools.nvrtc():
        pytest.skip("there is no ptxas or no NVRTC")
    corpus = tmp_path_factory.mktemp("corpus")
    jobs, _ = generate.split_absent([j for j in generate.all_jobs(None) if j.file in KERNELS + REGIONS])
    assert not generate.build(jobs, corpus, 2, whole=False)
    entries = list(generate.load_index(corpus).values())
    pairs, _ = link_pairs.pairs_of(entries, corpus, PROGRAM, 2)
    chosen = [p for p in pairs if p.producer == "triton"]
    return corpus, link_pairs.check_all(chosen, corpus, PROGRAM, 2)


def test_pairs_compute_the_same(results) -> None:
    _, checked = results
    assert len(checked) >= 24
    assert [r for r in checked if r[1] not in link_pairs.FINE] == []
    assert [verdict for _, verdict, _ in checked].count("same result") >= len(checked) // 2


def test_several_files_at_once_say_the_same(results) -> None:
    corpus, checked = results
    some = [pair for pair, _, _ in checked if "flip_rows" in pair.kernel]
    groups = link_pairs.bundled(some, 3)
    assert sorted(p.title for g in groups for p in g) == sorted(p.title for p in some)
    assert max(map(len, groups)) == 3 and all(len({p.kernel for p in g}) == 1 for g in groups)
    together = link_pairs.check_all(some, corpus, PROGRAM, 2, together=3)
    assert {(p.title, v) for p, v, _ in together} == {(p.title, v) for p, v, _ in checked if p in some}


def test_one_wrong_file_of_several_is_found(results, monkeypatch) -> None:
    corpus, checked = results
    pairs = max(link_pairs.bundled([p for p, v, _ in checked if v == "same result"], 3), key=len)
    link = link_pairs.link

    def spoilt(program, kernel, given, out, *options):
        report = link(program, kernel, given, out, *options)
        if "// corpus marker" in kernel.read_text():
            out.write_text(add_garbage(out.read_text()))
        return report

    read_calls = link_pairs.put_calls

    def marked(some, *rest):
        text, *others = read_calls(some, *rest)
        return (text + "// corpus marker\n" if pairs[-1] in some else text, *others)

    monkeypatch.setattr(link_pairs, "link", spoilt)
    monkeypatch.setattr(link_pairs, "put_calls", marked)
    verdicts = [verdict for verdict, _ in link_pairs.check(pairs, corpus, PROGRAM)]
    assert verdicts == ["same result"] * (len(pairs) - 1) + ["ptxas refuses it"] and len(pairs) > 1


def lose_results(text: str) -> str:
    """Without the lines that keep what functions returned."""
    return re.sub(r"^.*st\.global\.b\d+ \[%ia_d1\+.*$", "", text, flags=re.M)


def add_garbage(text: str) -> str:
    return text + "\n.garbage;\n"


def no_result(text: str) -> str:
    """Every store of the kernel itself gets lost."""
    return re.sub(r"^(?!.*ia_d1)(.*)\bst\.global\S* .*;", r"\1mov.u32 %ia_none, 0;", text, flags=re.M).replace(
        "{\n", "{\n.reg .b32 %ia_none;\n", 1)


@pytest.mark.parametrize(("spoil", "verdict"), [(lose_results, "functions compute something else"),
                                               (add_garbage, "ptxas refuses it"), (no_result, "wrong after linking")])
def test_a_wrong_link_is_seen(results, monkeypatch, spoil, verdict) -> None:
    corpus, checked = results
    pair = next(p for p, v, _ in checked if v == "same result" and p.region.runnable and "flip_rows" in p.kernel)
    link = link_pairs.link

    def spoilt(program, kernel, given, out, *options):
        report = link(program, kernel, given, out, *options)
        if "--no-inline" not in options:
            out.write_text(spoil(out.read_text()))
        return report

    monkeypatch.setattr(link_pairs, "link", spoilt)
    assert link_pairs.check([pair], corpus, PROGRAM)[0][0] == verdict
