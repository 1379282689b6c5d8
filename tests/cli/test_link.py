"""intarsia link: which file is what, reports, and errors. What linking does is tested in tests/link."""

import json
import re
import subprocess

import pytest

UNIT = "5f0c2a9b71d3e846"
OTHER = "09c1bd7740aa12ef"

MAIN = f"""
.version 8.3
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 x)
{{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, 41;
    intarsia.call (%r2), {UNIT}::increment, (%r1);
    st.global.u32 [%rd1], %r2;
    ret;
}}
"""

REGION = """
.version 8.0
.target sm_80
.address_size 64
.visible .func (.param .b32 result) increment(.param .b32 value)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [value];
    add.s32 %r2, %r1, 1;
    st.param.b32 [result], %r2;
    ret;
}
"""

SOURCE = 'extern "C" __device__ int increment(int value) { return value + 1; }\n'


@pytest.fixture
def files(intarsia):
    folder = intarsia.folder
    (folder / "main.ptx").write_text(MAIN)
    (folder / "region.ptx").write_text(REGION)
    (folder / "device.cu").write_text(SOURCE)
    return folder


def calls(intarsia, ptx):
    summary = json.loads(intarsia("inspect", "--json", "-", stdin=ptx).out)
    return [call for f in summary["functions"] for call in f.get("calls", [])]


@pytest.fixture
def assembles(ptxas, tmp_path):
    def check(ptx):
        path = tmp_path / "linked.ptx"
        path.write_text(ptx)
        done = subprocess.run([ptxas, "-arch", "sm_80", path, "-o", "/dev/null"], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stderr
        return True

    return check


@pytest.mark.parametrize("region", ["region.ptx", f"{UNIT}=region.ptx", "device.cu", f"{UNIT}=device.cu"])
def test_the_region_is_inlined(intarsia, files, assembles, region):
    done = intarsia("link", "main.ptx", region)
    assert (done.code, done.err) == (0, "")
    assert calls(intarsia, done.out) == []
    assert assembles(done.out)


def test_two_units(intarsia, files, assembles):
    main = MAIN.replace("    st.global", f"    intarsia.call (%r2), {OTHER}::twice, (%r2);\n    st.global")
    (files / "main.ptx").write_text(main)
    (files / "twice.ptx").write_text(REGION.replace("increment", "twice").replace("%r1, 1", "%r1, %r1"))
    done = intarsia("link", "main.ptx", f"{UNIT}=region.ptx", f"{OTHER}=twice.ptx")
    assert (done.code, done.err) == (0, "")
    assert calls(intarsia, done.out) == [] and assembles(done.out)
    done = intarsia("link", "main.ptx", "region.ptx", "twice.ptx")
    assert done.code == 2
    assert "it is not clear which unit 'region.ptx' is" in done.err
    assert UNIT in done.err and OTHER in done.err


def test_a_kernel_without_units_takes_definitions_from_files_and_libraries(intarsia, files, assembles):
    caller = """
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 result) increment(.param .b32 value);
.visible .entry kernel(.param .u64 x)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    .param .b32 in, out;
    ld.param.u64 %rd1, [x];
    st.param.b32 [in], 3;
    call (out), increment, (in);
    ld.param.b32 %r1, [out];
    st.global.u32 [%rd1], %r1;
    ret;
}
"""
    caller = caller.replace(".param .b32 in, out;", ".param .b32 in;\n    .param .b32 out;")
    (files / "caller.ptx").write_text(caller)
    for arguments in (["region.ptx"], ["--library", "region.ptx"], ["-l", "device.cu"]):
        done = intarsia("link", "caller.ptx", *arguments)
        assert (done.code, done.err) == (0, ""), arguments
        assert calls(intarsia, done.out) == [] and assembles(done.out)
    done = intarsia("link", "caller.ptx", "region.ptx", "--no-inline")
    assert [call["callee"] for call in calls(intarsia, done.out)] == ["increment"] and assembles(done.out)
    done = intarsia("link", "caller.ptx")
    assert done.code == 1 and done.out == "" and "increment" in done.err
    for option in (["--keep-externs"], ["--defer", "incr"]):
        done = intarsia("link", "caller.ptx", *option)
        assert done.code == 0 and [call["callee"] for call in calls(intarsia, done.out)] == ["increment"]


def test_barriers_that_are_built_in_need_no_file(intarsia, files, assembles, root):
    """As long as the kernel was made for the barriers of this version, which the unit's id says."""
    unit = intarsia("cc", "--unit", str(root / "device" / "intarsia" / "barrier.cu")).out.strip()
    barrier = "intarsia.device_intra_barrier.sync.block.acq_rel (%r3), {}::intarsia, (%rd1, 0);\n    ret;"
    (files / "main.ptx").write_text(MAIN.replace("ret;", barrier.format(unit)))
    done = intarsia("link", "main.ptx", "region.ptx")
    assert (done.code, done.err) == (0, "")
    assert calls(intarsia, done.out) == [] and "st.relaxed.sys.global.u64" in done.out and assembles(done.out)
    (files / "main.ptx").write_text(MAIN.replace("ret;", barrier.format(OTHER)))
    done = intarsia("link", "main.ptx", f"{UNIT}=region.ptx")
    assert done.code == 1
    assert f"no region is given for '{OTHER}::intarsia_provider_sync'" in done.err


def test_reports(intarsia, files):
    done = intarsia("link", "main.ptx", "region.ptx", "--report", "json", "-o", "out.ptx")
    assert done.code == 0
    report = json.loads(done.out)
    assert "1" in re.findall(r"\d+", json.dumps(report))
    done = intarsia("link", "main.ptx", "region.ptx", "--report", "text")
    assert ".entry kernel" in done.out and "kernel" in done.err
    assert intarsia("link", "main.ptx", "region.ptx", "--report", "text", "-o", "out.ptx").out == done.err


def test_the_main_file_may_come_from_standard_input(intarsia, files):
    assert intarsia("link", "-", "region.ptx", stdin=MAIN).out == intarsia("link", "main.ptx", "region.ptx").out


def test_nothing_is_written_when_linking_fails(intarsia, files):
    (files / "out.ptx").write_text("precious")
    (files / "region.ptx").write_text(REGION.replace("increment", "decrement"))
    done = intarsia("link", "main.ptx", "region.ptx", "-o", "out.ptx")
    assert done.code == 1
    assert "increment" in done.err and "decrement" in done.err
    assert (files / "out.ptx").read_text() == "precious"


def test_a_call_that_does_not_fit_shows_both_sides(intarsia, files):
    (files / "region.ptx").write_text(REGION.replace(".param .b32 value", ".param .b64 value").replace(
        "ld.param.b32", "ld.param.u32"))
    done = intarsia("link", "main.ptx", "region.ptx")
    assert done.code == 1
    assert "main.ptx:11:" in done.err and "region.ptx:5:" in done.err


def test_a_region_that_does_not_compile(intarsia, files):
    (files / "device.cu").write_text("int broken(")
    done = intarsia("link", "main.ptx", "device.cu")
    assert done.code == 1 and "device.cu:1" in done.err
