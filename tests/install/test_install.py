"""What `make install` gives: C programs are built against it in every way that docs/c-api.md names, and run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
EXAMPLE = ROOT / "examples" / "10-c-api"
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
COMPILERS = [("gcc", "g++"), ("clang", "clang++")]
HEADERS = sorted(path.name for path in (ROOT / "include" / "intarsia").glob("*.h"))


def run(*command, cwd=None, **variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INTARSIA_")}
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False,
                          env={**kept, "LC_ALL": "C", **{name: str(value) for name, value in variables.items()}})
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """An installed tree that has been moved after it was installed."""
    assert (BUILD / "bin" / "intarsia").exists(), "build/release is not built: run make"
    base = tmp_path_factory.mktemp("install")
    run("make", "-s", "-C", ROOT, "-o", "build", "install", f"DESTDIR={base}/stage", "PREFIX=/opt/its")
    (base / "stage" / "opt" / "its").rename(base / "moved")
    return base / "moved"


@pytest.fixture
def flags(prefix):
    def ask(*arguments):
        return run("pkg-config", *arguments, PKG_CONFIG_PATH=prefix / "lib" / "pkgconfig").split()

    return ask


def expect_blend(output):
    version, compiled, linked, ran = output.splitlines()
    assert version == "intarsia 0.1.0"
    assert re.fullmatch(r"compiled \S*blend-device\.cu: unit [0-9a-f]{16} with blend", compiled)
    assert re.fullmatch(r"linked: 1 region call inlined, 0 calls left, \d+ instructions", linked)
    assert ran == "ran on the simulator: 1000 of 1000 values are right, out[1] is 250.5"


def run_blend(program, prefix, tmp_path):
    return run(program, EXAMPLE / "blend-device.cu", EXAMPLE / "kernel.ptx", LD_LIBRARY_PATH=prefix / "lib",
               INTARSIA_CACHE_DIR=tmp_path / "cache")


def needs(program):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", program)))


# -- the example, four ways --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_pkg_config_shared(prefix, flags, compiler, tmp_path):
    program = tmp_path / "blend"
    libraries = flags("--cflags", "--libs", "intarsia")
    run(compiler, "-std=c11", *WARNINGS, EXAMPLE / "blend.c", "-o", program, *libraries, "-lm")
    assert "libintarsia.so.0.1" in needs(program) and "libcjson.so.1" not in needs(program)
    expect_blend(run_blend(program, prefix, tmp_path))


def test_pkg_config_static(prefix, flags, tmp_path):
    program = tmp_path / "blend"
    libraries = flags("--cflags", "--static", "--libs", "intarsia")
    libraries[libraries.index("-lintarsia")] = "-l:libintarsia.a"
    run("gcc", "-std=c11", *WARNINGS, EXAMPLE / "blend.c", "-o", program, *libraries)
    assert not any("intarsia" in name for name in needs(program))
    expect_blend(run_blend(program, prefix, tmp_path))


@pytest.mark.parametrize("static", ["OFF", "ON"])
def test_cmake(prefix, static, tmp_path):
    build = tmp_path / "build"
    run("cmake", "-S", EXAMPLE, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DSTATIC={static}",
        "-DCMAKE_C_FLAGS=" + " ".join(WARNINGS))
    run("cmake", "--build", build)
    assert ("libintarsia.so.0.1" in needs(build / "blend")) == (static == "OFF")
    expect_blend(run_blend(build / "blend", prefix, tmp_path))


def test_cmake_refuses_another_minor_version(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.23)\nproject(x NONE)\nfind_package(intarsia 0.2 QUIET)\n"
        'message(STATUS "found: ${intarsia_FOUND}")\n')
    assert "found: 0" in run("cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}")


def test_an_error_is_told_and_fails(prefix, flags, tmp_path):
    program, bad = tmp_path / "blend", tmp_path / "bad.cu"
    bad.write_text('extern "C" __device__ float blend(float x) { return y; }\n')
    run("gcc", EXAMPLE / "blend.c", "-o", program, *flags("--cflags", "--libs", "intarsia"), "-lm")
    done = subprocess.run([program, bad, EXAMPLE / "kernel.ptx"], capture_output=True, text=True, check=False,
                          env={**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")})
    assert done.returncode == 1
    assert f'{bad}:1:53: error: identifier "y" is undefined' in done.stderr and done.stderr.endswith("\nbad input\n")


def test_the_program_of_the_document(prefix, flags, tmp_path):
    (code,) = re.findall(r"^```c\n(.*?)^```", (ROOT / "docs" / "c-api.md").read_text(), re.M | re.S)
    source, program = tmp_path / "list.c", tmp_path / "list"
    source.write_text(code)
    run("gcc", "-std=c11", *WARNINGS, source, "-o", program, *flags("--cflags", "--libs", "intarsia"))
    output = run(program, EXAMPLE / "kernel.ptx", LD_LIBRARY_PATH=prefix / "lib")
    assert output == "blend_all: 5 parameters, 32 bytes\n"
    bad = subprocess.run([program, source], capture_output=True, text=True, check=False,
                         env={**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")})
    assert bad.returncode == 1 and f"{source}:4:1: error: a PTX module starts with .version" in bad.stderr


# -- headers and symbols -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c, cpp", COMPILERS)
def test_headers_compile_alone(prefix, flags, c, cpp, tmp_path):
    include = flags("--cflags", "intarsia")
    assert len(HEADERS) >= 9 and sorted(os.listdir(prefix / "include" / "intarsia")) == HEADERS
    for header in HEADERS:
        (tmp_path / "x.c").write_text(f"#include <intarsia/{header}>\n")
        run(c, "-std=c11", *WARNINGS, "-fsyntax-only", *include, tmp_path / "x.c")
        run(cpp, "-std=c++17", *WARNINGS, "-fsyntax-only", *include, "-x", "c++", tmp_path / "x.c")


@pytest.mark.parametrize("cpp", [cpp for _, cpp in COMPILERS])
def test_c_plus_plus_links(prefix, flags, cpp, tmp_path):
    source, program = tmp_path / "x.cpp", tmp_path / "x"
    headers = "".join(f"#include <intarsia/{header}>\n" for header in HEADERS if header != "simhost.h")
    names = declared(ROOT / "include" / "intarsia", skip="simhost.h")
    table = ", ".join(f"reinterpret_cast<void *>(&{name})" for name in sorted(names))
    source.write_text(f"{headers}#include <cstdio>\nstatic void *all[] = {{{table}}};\n"
                      "int main() { for (void *f : all) if (!f) return 1; std::puts(its_version()); }\n")
    run(cpp, "-std=c++17", *WARNINGS, source, "-o", program, *flags("--cflags", "--libs", "intarsia"))
    version = run(program, LD_LIBRARY_PATH=prefix / "lib").strip()
    assert [version] == flags("--modversion", "intarsia") == flags("--modversion", "intarsia-simhost")


def declared(folder, skip=""):
    """The functions that headers declare with ITS_API."""
    text = "".join(path.read_text() for path in folder.rglob("*.h") if path.name != skip)
    return set(re.findall(r"^ITS_API\b[^;(]*?\b(its_\w+)\(", text, re.M))


def exported(library):
    return {line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()}


def test_the_shared_library_exports_what_headers_declare(prefix):
    public, private = declared(ROOT / "include" / "intarsia", skip="simhost.h"), declared(ROOT / "src" / "sim")
    assert len(public) > 50 and private and all(name.startswith("its_sim_") for name in private)
    assert exported(prefix / "lib" / "libintarsia.so") == public | private


def test_the_static_library_has_names_of_ours_only(prefix):
    names = run("nm", "-g", "--defined-only", prefix / "lib" / "libintarsia.a").splitlines()
    names = [line.split()[-1] for line in names if len(line.split()) == 3]
    assert len(names) > 300 and [name for name in names if not name.startswith("its_")] == []


# -- the program -------------------------------------------------------------------------------------------------------

PES = """
import intarsia
intarsia.init()
host = intarsia.load_host("pe.c")
print(intarsia.__file__, host.number(), flush=True)
"""


def test_the_program_runs_python_with_its_own_package(prefix, tmp_path):
    """The package, the libraries and the headers are all found in the tree, wherever that is."""
    (tmp_path / "pe.py").write_text(PES)
    (tmp_path / "pe.c").write_text('#include <nvshmem.h>\nint number(void) { return 10 + nvshmem_my_pe(); }\n')
    bare = tmp_path / "venv"  # NumPy and nothing of the checkout
    bare.mkdir()
    site = Path(numpy.__file__).parents[1]
    for part in site.glob("numpy*"):
        (bare / part.name).symlink_to(part)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    output = run(prefix / "bin" / "intarsia", "run", "--sim", "-n", "2", "pe.py", cwd=tmp_path, INTARSIA_PYTHON=python,
                 PYTHONPATH=bare, INTARSIA_CACHE_DIR=tmp_path / "cache")
    module = prefix / "lib" / "intarsia" / "python" / "intarsia" / "__init__.py"
    assert sorted(output.splitlines()) == [f"[pe {pe}] {module} {10 + pe}" for pe in range(2)]


def test_host_programs_by_pkg_config(prefix, flags, tmp_path):
    source, program = tmp_path / "pe.c", tmp_path / "pe"
    source.write_text('#include <nvshmem.h>\n#include <stdio.h>\n'
                      'int main(void) { nvshmem_init(); printf("%d\\n", nvshmem_my_pe() + 10); nvshmem_finalize(); }\n')
    run("gcc", source, "-o", program, *flags("--cflags", "--libs", "intarsia-simhost"))
    output = run(prefix / "bin" / "intarsia", "run", "--sim", "-n", "2", program, LD_LIBRARY_PATH=prefix / "lib")
    assert sorted(output.splitlines()) == ["[pe 0] 10", "[pe 1] 11"]


def test_the_man_page_says_what_the_help_says(prefix, tmp_path):
    page = prefix / "share" / "man" / "man1" / "intarsia.1"
    program = prefix / "bin" / "intarsia"
    assert page.read_text() == run(program, "help", "--man")
    assert ".TH INTARSIA 1" in page.read_text()
    done = subprocess.run(["groff", "-ww", "-man", "-Tascii", page], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    shown = re.sub(r"\x1b\[\d*m|.\x08", "", done.stdout)
    words = set(shown.split())
    for line in run(program, "help").splitlines():
        if command := re.match(r"  ([a-z]+)  +\S", line):
            text = run(program, "help", command[1])
            assert f"intarsia {command[1]}" in shown
            assert set(re.findall(r"(?<=\s)--[a-z-]+(?=\s)", text)) <= words
            examples = text.partition("examples:\n")[2].splitlines()
            assert all(example.strip() in shown for example in examples), command[1]


# -- and away again ----------------------------------------------------------------------------------------------------


def test_uninstalling_leaves_nothing(tmp_path):
    make = ["make", "-s", "-C", ROOT, "-o", "build", f"DESTDIR={tmp_path}/stage", "PREFIX=/usr"]
    run(*make, "install")
    foreign = tmp_path / "stage/usr/include/intarsia/of-somebody-else.h"
    foreign.write_text("")
    assert re.search(r"removed (\d\d) files", run(*make, "uninstall"))
    assert [path for path in (tmp_path / "stage").rglob("*") if not path.is_dir()] == [foreign]
    assert [path for path in (tmp_path / "stage").rglob("*intarsia*") if path.is_dir()] == [foreign.parent]
