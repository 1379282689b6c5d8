"""intarsia cc and intarsia cache."""

import os
import re
import stat
import subprocess

import pytest

SOURCE = """
#include "scale.h"
extern "C" __device__ int nvshmem_my_pe();
template <typename T> __device__ T scaled(T x) { return x * T(SCALE); }
extern "C" __device__ int put(int *to, int value) { *to = value + nvshmem_my_pe(); return 0; }
__device__ int hidden(float x) { return static_cast<int>(x) + OFFSET; }
"""


@pytest.fixture
def source(intarsia):
    include = intarsia.folder / "include"
    include.mkdir()
    (include / "scale.h").write_text("#define SCALE 3\n")
    path = intarsia.folder / "ops.cu"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def cc(intarsia, source):
    def call(*arguments, **rest):
        return intarsia("cc", source.name, "-I", "include", "-D", "OFFSET=4", *arguments, **rest)

    return call


def entries(intarsia):
    return int(re.search(r"^(\d+) entries", intarsia("cache").out, re.M)[1])


# -- compiling -------------------------------------------------------------------------------------------------------


def test_ptx_that_ptxas_takes(intarsia, cc, ptxas):
    done = cc()
    assert (done.code, done.err) == (0, "")
    assert "put(" in done.out and ".extern .func" in done.out and "sm_80" in done.out
    path = intarsia.folder / "ops.ptx"
    path.write_text(done.out)
    subprocess.run([ptxas, "-c", "-arch", "sm_80", path, "-o", "/dev/null"], check=True)


def test_output_to_a_file(intarsia, cc):
    assert cc("-o", "ops.ptx").out == ""
    assert (intarsia.folder / "ops.ptx").read_text() == cc().out


def test_architectures(cc):
    assert re.search(r"^\.target sm_90a", cc("--arch", "sm_90a").out, re.M)
    done = cc("--arch", "sm_1")
    assert done.code != 0 and "sm_1" in done.err and done.out == ""


def test_the_functions_of_a_file(cc):
    lines = cc("--list", "--instance", "scaled<float>", "--instance", "scaled<int>").out.splitlines()
    assert "put" in lines
    assert any(line.endswith("scaled<float>") for line in lines)
    assert any(line.endswith("scaled<int>") for line in lines)


def test_an_instance_that_is_not_there(cc):
    done = cc("--instance", "scald<float>")
    assert done.code == 1 and "scald" in done.err and done.out == ""


def test_files_that_were_read(cc):
    lines = cc("--depends").out.splitlines()
    assert [os.path.basename(line) for line in lines] == ["ops.cu", "scale.h"]


def test_a_unit_is_named_by_its_contents(intarsia, cc):
    unit = cc("--unit").out
    assert re.fullmatch(r"[0-9a-f]{16}\n", unit)
    assert cc("--unit").out == unit
    (intarsia.folder / "include" / "scale.h").write_text("#define SCALE 5\n")
    assert cc("--unit").out != unit


def test_from_standard_input(intarsia):
    done = intarsia("cc", "-", stdin='extern "C" __device__ void f(int *x) { *x = 1; }')
    assert done.code == 0 and ".visible .func f(" in done.out
    done = intarsia("cc", "-", stdin="broken")
    assert done.code == 1 and "stdin" in done.err


def test_options_for_the_compiler(cc):
    assert ".loc" in cc("-X", "-lineinfo").out


def test_ptx_is_a_dialect_too(intarsia):
    header = ".version 8.0\n.target sm_80\n.address_size 64\n"
    (intarsia.folder / "x.ptx").write_text(header + ".visible .func f() { ret; }\n")
    done = intarsia("cc", "--dialect", "ptx", "x.ptx", "--list")
    assert (done.code, done.out) == (0, "f\n")
    done = intarsia("cc", "--dialect", "pascal", "x.ptx")
    assert done.code != 0 and "pascal" in done.err


# -- what is wrong ---------------------------------------------------------------------------------------------------


def test_an_error_is_told_with_file_and_line_and_nothing_is_kept(intarsia, source, cc):
    source.write_text(SOURCE + "\n__device__ int bad() { return undeclared; }\n")
    before = entries(intarsia)
    done = cc("-o", "out.ptx")
    assert done.code == 1
    line = len(SOURCE.splitlines()) + 2
    assert re.search(rf"ops\.cu:{line}(:\d+)?: error: .*undeclared", done.err), done.err
    assert not (intarsia.folder / "out.ptx").exists()
    assert entries(intarsia) == before


def test_an_error_in_a_header(intarsia, cc):
    (intarsia.folder / "include" / "scale.h").write_text("#define SCALE 3\n\nnonsense here;\n")
    done = cc()
    assert done.code == 1 and re.search(r"include/scale\.h:3(:\d+)?: error: ", done.err), done.err


def test_a_source_that_is_not_there(intarsia):
    done = intarsia("cc", "missing.cu")
    assert done.code == 1 and "missing.cu" in done.err and "No such file or directory" in done.err


def test_without_nvrtc_one_sentence_says_what_to_do(cc):
    done = cc(INTARSIA_NVRTC="none")
    assert done.code == 1 and done.out == ""
    assert "NVRTC" in done.err and "pip install nvidia-cuda-nvrtc" in done.err
    assert len(done.err.splitlines()) <= 2


# -- the cache -------------------------------------------------------------------------------------------------------


def test_the_cache_is_shown_and_cleared(intarsia, cc, environment):
    assert intarsia("cache", "path").out == environment["INTARSIA_CACHE_DIR"] + "\n"
    assert entries(intarsia) == 0
    cc()
    cc("--arch", "sm_90")
    cc()
    assert entries(intarsia) == 2
    assert stat.S_IMODE(os.stat(environment["INTARSIA_CACHE_DIR"]).st_mode) == 0o700
    assert intarsia("cache", "clear").out == "2 entries removed\n"
    assert entries(intarsia) == 0
    assert intarsia("cache", "clear").out == "0 entries removed\n"


def test_the_cache_may_be_passed_by(intarsia, cc):
    assert cc("--no-cache").out == cc().out
    assert entries(intarsia) == 1
