"""intarsia inspect, check and fmt."""

import json
import subprocess

import pytest

KERNEL = """
.version 8.1
.target sm_90a, debug
.address_size 64
.extern .func (.param .b32 r) nvshmem_my_pe();
.extern .func nvshmem_quiet;
.extern .global .align 8 .b64 state;
.global .align 16 .v4 .f32 table[3];
.const .u8 text[] = { 1, 2, 3 };
.weak .func (.param .f64 out) helper(.param .align 8 .b8 pair[16], .param .u16 small)
{
    .local .align 4 .b8 depot[24];
    .reg .f64 %fd<9>;
    ld.param.f64 %fd3, [pair+8];
    st.param.f64 [out], %fd3;
    ret;
}
.visible .entry kernel(.param .u64 .ptr .global .align 32 x, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<100>;
    .reg .b64 %rd<3>, %f;
    .shared .align 4 .b8 tile[256];
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r1, [n];
    setp.eq.s32 %p1, %r1, 0;
    @%p1 bra END;
    mov.b64 {%r7, %r8}, %rd1;
    call (_), nvshmem_my_pe, ();
    {
        .reg .b32 %r1;
        mov.u32 %r1, 7;
        mov.u64 %f, kernel;
        PROTO: .callprototype _ ();
        call %rd2, (), PROTO;
    }
    intarsia.call (%r9), 0123456789abcdef::put, (%rd1, %r1);
END:
    ret;
}
"""


@pytest.fixture
def kernel(intarsia):
    path = intarsia.folder / "kernel.ptx"
    path.write_text(KERNEL.replace(".extern .func nvshmem_quiet;", ".extern .func nvshmem_quiet();"))
    return path


@pytest.fixture
def summary(intarsia, kernel):
    done = intarsia("inspect", "--json", kernel)
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


def function(summary, name):
    return next(f for f in summary["functions"] if f["name"] == name)


# -- inspect ---------------------------------------------------------------------------------------------------------


def test_the_module(summary, kernel):
    assert summary["file"] == str(kernel)
    assert summary["version"] == "8.1"
    assert summary["targets"] == ["sm_90a", "debug"]
    assert summary["address_size"] == 64
    assert [f["name"] for f in summary["functions"]] == ["nvshmem_my_pe", "nvshmem_quiet", "helper", "kernel"]


def test_variables_and_externs(summary):
    variables = {v["name"]: (v["space"], v["size"], v["linkage"]) for v in summary["variables"]}
    assert variables == {"state": ("global", 8, "extern"), "table": ("global", 48, "local"),
                         "text": ("const", 3, "local")}
    assert {(e["name"], e["kind"]) for e in summary["externs"]} == {
        ("nvshmem_my_pe", "function"), ("nvshmem_quiet", "function"), ("state", "variable")}


def test_parameters(summary):
    kernel = function(summary, "kernel")
    assert kernel["entry"] and kernel["linkage"] == "visible"
    assert [(p["name"], p["type"], p["size"]) for p in kernel["parameters"]] == [("x", ".u64", 8), ("n", ".u32", 4)]
    assert kernel["parameters"][0]["declared"] == ".u64 .ptr.global"
    helper = function(summary, "helper")
    assert not helper["entry"] and helper["linkage"] == "weak"
    assert [(p["declared"], p["size"], p["align"]) for p in helper["parameters"]] == [
        (".align 8 .b8[16]", 16, 8), (".u16", 2, 0)]
    assert [(p["type"], p["size"]) for p in helper["results"]] == [(".f64", 8)]


def test_registers_are_those_that_are_used(summary):
    """Not those that are declared: %r<100>. An inner %r1 is another register than the outer one."""
    assert function(summary, "kernel")["registers"] == {"pred": 1, "b32": 5, "b64": 3}
    assert function(summary, "helper")["registers"] == {"f64": 1}


def test_memory_and_instructions(summary):
    kernel = function(summary, "kernel")
    assert (kernel["local_bytes"], kernel["shared_bytes"]) == (0, 256)
    assert function(summary, "helper")["local_bytes"] == 24
    assert kernel["instructions"] == 11


def test_calls(summary):
    def line(piece):
        return KERNEL[:KERNEL.index(piece)].count("\n") + 1

    assert function(summary, "kernel")["calls"] == [
        {"callee": "nvshmem_my_pe", "line": line("call (_)")},
        {"callee": None, "line": line("call %rd2")},
        {"callee": "put", "unit": "0123456789abcdef", "line": line("intarsia.call")},
    ]


def test_text_says_the_same(intarsia, kernel):
    out = intarsia("inspect", kernel).out
    for piece in ["PTX 8.1 for sm_90a, debug, 64-bit addresses", "entry kernel visible", "function helper weak",
                  "function nvshmem_my_pe, declared only, extern", "1 .pred, 5 .b32, 3 .b64",
                  "local 0, shared 256 bytes", "0123456789abcdef::put (region), line ", "through a register, line ",
                  "needed from elsewhere"]:
        assert piece in out, piece


def test_a_name_of_four_kilobytes(intarsia):
    name = "k" * 4096
    (intarsia.folder / "x.ptx").write_text(f".version 8.0\n.target sm_80\n.address_size 64\n.entry {name}() {{ ret; }}")
    assert name in intarsia("inspect", "x.ptx").out
    assert json.loads(intarsia("inspect", "--json", "x.ptx").out)["functions"][0]["name"] == name


# -- fmt -------------------------------------------------------------------------------------------------------------


def test_printing_twice_changes_nothing(intarsia, kernel):
    once = intarsia("fmt", kernel)
    assert once.code == 0
    assert intarsia("fmt", "-", stdin=once.out).out == once.out


def test_what_is_printed_is_the_same_module(intarsia, kernel, summary):
    printed = intarsia("fmt", kernel).out
    again = json.loads(intarsia("inspect", "--json", "-", stdin=printed).out)
    for module in (again, summary):
        del module["file"]
        for f in module["functions"]:
            for call in f.get("calls", []):
                del call["line"]
    assert again == summary


# -- check -----------------------------------------------------------------------------------------------------------

GOOD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry good()
{
    .reg .b32 %r<3>;
    mov.u32 %r1, %tid.x;
    add.s32 %r2, %r1, 1;
    ret;
}
"""


def test_paths_that_are_not_ascii(intarsia, ptxas, tmp_path):
    """ptxas takes ASCII only: other bytes are printed as compilers write them, escapes stay, and both are one text."""
    text = (
        ".version 7.0\n.target sm_80\n.address_size 64\n"
        '.file 1 "/home/%s/x.cu"\n.visible .entry k()\n{\n.loc 1 2 3\nret;\n}\n'
    )
    raw, escaped = intarsia.folder / "raw.ptx", intarsia.folder / "escaped.ptx"
    raw.write_text(text % "ren\u00e9", encoding="utf-8")
    escaped.write_text(text % r"ren\303\251", encoding="ascii")
    printed = intarsia("fmt", raw)
    assert printed.code == 0 and r'.file 1 "/home/ren\303\251/x.cu"' in printed.out
    assert intarsia("fmt", escaped).out == printed.out
    path = tmp_path / "printed.ptx"
    path.write_text(printed.out)
    command = [ptxas, "-lineinfo", "-arch", "sm_80", "-o", tmp_path / "x.cubin"]
    assert subprocess.run([*command, path], check=False).returncode == 0
    assert rb"ren\303\251" in (tmp_path / "x.cubin").read_bytes()
    assert subprocess.run([*command, raw], capture_output=True, check=False).returncode != 0


def test_good_files(intarsia):
    (intarsia.folder / "a.ptx").write_text(GOOD)
    (intarsia.folder / "b.ptx").write_text(GOOD)
    done = intarsia("check", "a.ptx", "b.ptx")
    assert (done.code, done.err) == (0, "")
    assert done.out == "a.ptx: no fault found\nb.ptx: no fault found\n"
    assert intarsia("check", "-q", "a.ptx").out == ""
    assert intarsia("check", "-", stdin=GOOD).code == 0


def test_all_faults_of_all_files_are_listed(intarsia):
    (intarsia.folder / "a.ptx").write_text(GOOD.replace("%r1, 1", "%r1"))
    (intarsia.folder / "b.ptx").write_text(GOOD.replace("add.s32 %r2", "add.s32 %nowhere").replace("%tid.x;", "%tid.x"))
    (intarsia.folder / "c.ptx").write_text(GOOD)
    done = intarsia("check", "a.ptx", "b.ptx", "c.ptx")
    assert done.code == 1
    assert done.out == "c.ptx: no fault found\n"
    assert "a.ptx:8:" in done.err and "b.ptx:" in done.err


def test_check_agrees_with_ptxas(intarsia, ptxas):
    wide = GOOD.replace("%r<3>;", "%r<3>; .reg .b64 %rd<3>;")
    bad = {"no prototype": GOOD.replace("ret;", "call nobody, (); ret;"),
           "no label": GOOD.replace("ret;", "bra nowhere; ret;"),
           "a register of another size": wide.replace("%r1, 1", "%rd1, 1")}
    for what, text in {"good": GOOD, **bad}.items():
        path = intarsia.folder / "x.ptx"
        path.write_text(text)
        theirs = subprocess.run([ptxas, "-arch", "sm_80", path, "-o", "/dev/null"], capture_output=True, check=False)
        assert (intarsia("check", path).code == 0) == (theirs.returncode == 0) == (what == "good"), what
