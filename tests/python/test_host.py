"""Host files: compiled with the machine's compiler against the real names, loaded, called; and what is refused."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest

HOST = """
#include <stdint.h>
#include <cuda_runtime.h>
#include <nvshmem.h>

int add(int a, int64_t b) { return a + (int)b; }
double half_of(double x) { return x / 2; }
int length(const char *s) { int n = 0; while (s[n]) n++; return n; }
int is_null(const void *p) { return p == 0; }
int64_t sum(const int32_t *host, int n) { int64_t s = 0; for (int i = 0; i < n; i++) s += host[i]; return s; }
int fill(int *device, int n, int value) {
    for (int i = 0; i < n; i++)
        if (cudaMemcpy(device + i, &value, sizeof value, cudaMemcpyHostToDevice) != cudaSuccess) return 1;
    return 0;
}
void *symmetric(size_t bytes) { return nvshmem_malloc(bytes); }
void release(void *p) { nvshmem_free(p); }
int me_of_n(void) { return nvshmem_my_pe() * 100 + nvshmem_n_pes(); }
static int hidden(void) { return 1; }
int (*keep)(void) = hidden;
"""


@pytest.fixture
def write(tmp_path):
    def to(text: str, name: str = "test-host.c") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return to


def test_calls(simulator, write):
    host = simulator.load_host(write(HOST))
    assert host.add(2, 3) == 5 and host.add(-2, -(1 << 40)) == -2
    host.half_of.restype = ctypes.c_double
    assert host.half_of(5.0) == 2.5
    assert host.length("four") == 4 and host.length(b"five!") == 5
    assert host.is_null(None) == 1
    host.sum.restype = ctypes.c_int64
    assert host.sum(np.full(3, 1 << 30, np.int32), 3) == 3 << 30
    assert host.me_of_n() == 1
    with pytest.raises(TypeError, match="argument 2 is a list, which C can't take"):
        host.add(1, [2])


def test_numbers_and_arrays_of_numpy(simulator, write):
    host = simulator.load_host(write(HOST))
    host.sum.restype = ctypes.c_int64
    host.half_of.restype = ctypes.c_double
    numbers = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert host.sum(numbers, np.int64(12)) == 66 and host.add(np.int32(-2), np.uint8(5)) == 3
    assert host.half_of(np.float32(5)) == 2.5
    for gaps in (numbers[:, ::2], numbers.T, numbers[::-1]):
        with pytest.raises(simulator.Error, match="argument 1 is an array with gaps, or in another order"):
            host.sum(gaps, gaps.size)
        assert host.sum(np.ascontiguousarray(gaps), gaps.size) == gaps.sum()
    for large in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(simulator.Error, match=f"argument 2 is {large}, which has more than 64 bits"):
            host.add(1, large)
    assert host.add(1, (1 << 64) - 1) == 0


@pytest.mark.parametrize("where", [None, "/dev/null", "/proc/nothing"])
def test_without_a_cache_directory(python, write, tmp_path, where):
    """One warning, and nothing stays."""
    path = write("int two(void) { return 2; }\n")
    (tmp_path / "tmp").mkdir()
    variables = {"HOME": "", "XDG_CACHE_HOME": "", "INTARSIA_CACHE_DIR": where or "", "TMPDIR": f"{tmp_path}/tmp"}
    done = python(f"import intarsia\nintarsia.init()\nprint(intarsia.load_host({str(path)!r}).two())", env=variables)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    assert done.stderr.count("compiled without a cache") == 1 and "script.py:3: Warning: " in done.stderr
    assert (where or "there is no cache: none of") in done.stderr
    assert list((tmp_path / "tmp").iterdir()) == []


def test_device_and_symmetric_memory(simulator, write):
    host = simulator.load_host(write(HOST))
    array = simulator.zeros(5, "int32")
    assert host.fill(array, 5, 7) == 0
    assert array.numpy().tolist() == [7] * 5
    host.symmetric.restype = ctypes.c_void_p
    address = host.symmetric(64)
    view = simulator.from_address(address, 16, "int32").copy_from(np.arange(16))
    assert view.numpy().sum() == 120
    host.release(address)


def test_cpp(simulator, write):
    path = write('#include <vector>\nextern "C" int three() { return std::vector<int>(3).size(); }\nint mangled();\n'
                 "int mangled() { return 1; }\n", "test-host.cpp")  # fmt: skip
    host = simulator.load_host(path)
    assert host.three() == 3
    with pytest.raises(simulator.Error, match=r'defines no function mangled .* needs extern "C"'):
        host.mangled()


def test_hidden_and_missing_functions(simulator, write):
    host = simulator.load_host(write(HOST))
    for name in ("hidden", "nothing_like_it"):
        with pytest.raises(simulator.Error, match=f"defines no function {name} that is visible"):
            getattr(host, name)


def test_the_cache(simulator, write, monkeypatch, tmp_path):
    monkeypatch.setenv("INTARSIA_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "host"
    path = write('#include "value.h"\nint value(void) { return VALUE; }\n')
    header = write("#define VALUE 1\n", "value.h")
    assert simulator.load_host(path).value() == 1
    assert simulator.load_host(path).value() == 1
    assert len(list(folder.iterdir())) == 1
    assert (folder.stat().st_mode & 0o777) == 0o700
    header.write_text("#define VALUE 2\n")
    assert simulator.load_host(path).value() == 2
    assert simulator.load_host(path, options=["-DEXTRA"]).value() == 2
    assert len(list(folder.iterdir())) == 3


def test_options(simulator, write):
    host = simulator.load_host(write("int value(void) { return VALUE; }\n"), options=["-DVALUE=42"])
    assert host.value() == 42


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int f(void) {\n    return 1 +;\n}\n", r"test-host\.c:2:\d+: error: expected expression"),
        ("int f(void) {\n    return nvshmem_put_it();\n}\n", r"test-host\.c:2:\d+: error: .*nvshmem_put_it"),
        ("int lost(void);\nint f(void) { return lost(); }\n", r"uses what nothing here provides: lost\n"),
        ("#include <no_such_header.h>\n", r"test-host\.c:1:\d+: .*no_such_header\.h"),
    ],
)
def test_what_does_not_compile_is_told_with_its_line(simulator, write, text, message):
    with pytest.raises(simulator.Error, match=message):
        simulator.load_host(write(text))


def test_a_failed_compilation_leaves_nothing(simulator, write, monkeypatch, tmp_path):
    monkeypatch.setenv("INTARSIA_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(simulator.Error):
        simulator.load_host(write("int lost(void);\nint f(void) { return lost(); }\n"))
    assert list((tmp_path / "cache" / "host").iterdir()) == []


def test_wrong_files_and_compilers(simulator, write, monkeypatch):
    with pytest.raises(simulator.Error, match="doesn't exist"):
        simulator.load_host("none-host.c")
    with pytest.raises(simulator.Error, match="is no host file by its name"):
        simulator.load_host(write("", "test-host.py"))
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with pytest.raises(simulator.Error, match="CC names no-such-compiler -O2, which is no program"):
        simulator.load_host(write(HOST))
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(simulator.Error, match=r"there is no compiler for .*: install one of cc, gcc, clang, or set CC"):
        simulator.load_host(write(HOST))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_both_compilers(simulator, write, monkeypatch, compiler):
    monkeypatch.setenv("CC", compiler)
    assert simulator.load_host(write(HOST)).add(1, 2) == 3
    assert os.environ["CC"] == compiler


def test_a_place_where_nvshmem_is_not(tmp_path, monkeypatch):
    import intarsia
    from intarsia import _gpu_host

    monkeypatch.setenv("INTARSIA_NVSHMEM", str(tmp_path))
    with pytest.raises(intarsia.Error, match=f"{tmp_path}, which is neither libnvshmem_host.so.3 nor the directory"):
        _gpu_host._nvshmem_library()
    (tmp_path / "libnvshmem_host.so.3").touch()
    assert _gpu_host._nvshmem_library() == tmp_path / "libnvshmem_host.so.3"
