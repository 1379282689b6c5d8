"""intarsia sim: arguments of all kinds, and what is reported."""

import struct
from pathlib import Path

import numpy as np
import pytest

ADD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .u64 out, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u64 %rd3, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd4, %r5, 4;
    add.s64 %rd5, %rd1, %rd4;
    add.s64 %rd6, %rd2, %rd4;
    add.s64 %rd7, %rd3, %rd4;
    ld.global.f32 %f1, [%rd5];
    ld.global.f32 %f2, [%rd6];
    add.f32 %f3, %f1, %f2;
    st.global.f32 [%rd7], %f3;
DONE:
    ret;
}
"""


def store(kinds):
    """A kernel that stores its parameters, one after the other, each in 16 bytes."""
    parameters = ", ".join(f".param .{kind} p{i}" for i, kind in enumerate(kinds))
    body = "".join(f"    ld.param.{kind} %{kind}_{i}, [p{i}];\n    st.global.{kind} [%out+{16 * i}], %{kind}_{i};\n"
                   for i, kind in enumerate(kinds))
    registers = "".join(f"    .reg .{kind.replace('b8', 'b16')} %{kind}_{i};\n" for i, kind in enumerate(kinds))
    return f""".version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 out, {parameters})
{{
    .reg .b64 %out;
{registers}    ld.param.u64 %out, [out];
{body}    ret;
}}
"""


@pytest.fixture
def add(intarsia):
    """The files of a vector addition of 500 numbers; the outcome is checked with NumPy."""
    rng = np.random.default_rng(1)
    x, y = rng.random(500, dtype=np.float32), rng.random(500, dtype=np.float32)
    (intarsia.folder / "add.ptx").write_text(ADD)
    x.tofile(intarsia.folder / "x.bin")
    y.tofile(intarsia.folder / "y.bin")
    return x, y


def test_a_vector_addition(intarsia, add):
    x, y = add
    done = intarsia("sim", "add.ptx", "--entry", "add", "--grid", 4, "--block", 128, "--arg", "buf:x.bin", "--arg",
                    "buf:y.bin", "--arg", "out:2000:z.bin", "--arg", "u32:500")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert np.array_equal(np.fromfile(intarsia.folder / "z.bin", np.float32), x + y)


def test_every_copy_of_the_loop(intarsia, add):
    x, y = add
    flags = set()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            flags = set(line.split())
    copies = {"baseline": True, "x86-64-v3": "avx2" in flags, "x86-64-v4": "avx512f" in flags, "arm": False}
    for name, there in copies.items():
        done = intarsia("sim", "add.ptx", "--grid", 4, "--block", 128, "-a", "buf:x.bin", "-a", "buf:y.bin", "-a",
                        f"out:2000:{name}.bin", "-a", "u32:500", INTARSIA_SIM_ISA=name)
        if there:
            assert (done.code, done.err) == (0, "")
            assert np.array_equal(np.fromfile(intarsia.folder / f"{name}.bin", np.float32), x + y)
        else:
            assert done.code != 0 and f"INTARSIA_SIM_ISA holds '{name}'" in done.err


def test_memory_that_is_written_back_and_the_rest_left_alone(intarsia, add):
    x, y = add
    done = intarsia("sim", "add.ptx", "--grid", "2,1,1", "--block", "100", "-a", "buf:x.bin", "-a", "buf:y.bin", "-a",
                    "inout:y.bin", "-a", "u32:150")
    assert done.code == 0
    expected = y.copy()
    expected[:150] = x[:150] + y[:150]
    assert np.array_equal(np.fromfile(intarsia.folder / "y.bin", np.float32), expected)
    assert np.array_equal(np.fromfile(intarsia.folder / "x.bin", np.float32), x), "buf is not written back"


@pytest.mark.parametrize(("kind", "argument", "value"), [
    ("b32", "i32:-5", struct.pack("<i", -5)),
    ("b32", "u32:0xffffffff", b"\xff" * 4),
    ("b32", "i32:-2147483648", struct.pack("<i", -(1 << 31))),
    ("b64", "u64:18446744073709551615", b"\xff" * 8),
    ("b64", "i64:-1", b"\xff" * 8),
    ("b64", "b64:0x1122334455667788", bytes.fromhex("8877665544332211")),
    ("b16", "i16:-2", b"\xfe\xff"),
    ("b8", "u8:200", b"\xc8"),
    ("b32", "f32:1.5", struct.pack("<f", 1.5)),
    ("b32", "f32:-0", struct.pack("<f", -0.0)),
    ("b32", "f32:0.1", struct.pack("<f", 0.1)),
    ("b32", "f32:inf", struct.pack("<f", float("inf"))),
    ("b64", "f64:0.1", struct.pack("<d", 0.1)),
    ("b64", "f64:1e-3", struct.pack("<d", 1e-3)),
    ("b16", "bf16:1.0", b"\x80\x3f"),
    ("b16", "bf16:3.4e38", b"\x80\x7f"),
    ("b16", "bf16:-1e-40", b"\x01\x80"),
])
def test_scalars(intarsia, kind, argument, value):
    (intarsia.folder / "store.ptx").write_text(store([kind]))
    done = intarsia("sim", "store.ptx", "-a", "out:16:out.bin", "-a", argument)
    assert (done.code, done.err) == (0, "")
    assert (intarsia.folder / "out.bin").read_bytes()[:len(value)] == value


def test_halves_are_rounded_as_numpy_rounds_them(intarsia):
    """Ties, denormals, overflow, and doubles that would round twice on the way over float."""
    values = ["0.1", "65504", "65519.99", "65520", "1e9", "-1e9", "6.1e-5", "5.96e-8", "2.98e-8", "2.9e-8", "1e-12",
              "-0.0", "0", "2049", "2051", "1.00048828125", "1.00048828126", "1.000488281250000001", "nan", "inf"]
    (intarsia.folder / "store.ptx").write_text(store(["b16"] * len(values)))
    arguments = [word for value in values for word in ("-a", f"f16:{value}")]
    done = intarsia("sim", "store.ptx", "-a", "out:1K:out.bin", *arguments)
    assert (done.code, done.err) == (0, "")
    got = np.fromfile(intarsia.folder / "out.bin", np.uint16)[::8][:len(values)]
    with np.errstate(over="ignore"):
        expected = np.array([float(value) for value in values]).astype(np.float16).view(np.uint16)
    assert [hex(v) for v in got] == [hex(v) for v in expected]


def test_a_struct_by_value(intarsia):
    ptx = store(["b32"]).replace(".param .b32 p0", ".param .align 4 .b8 p0[12]").replace("[p0]", "[p0+8]")
    (intarsia.folder / "store.ptx").write_text(ptx)
    (intarsia.folder / "struct.bin").write_bytes(struct.pack("<iii", 1, 2, 3))
    done = intarsia("sim", "store.ptx", "-a", "out:16:out.bin", "-a", "raw:struct.bin")
    assert (done.code, done.err) == (0, "")
    assert (intarsia.folder / "out.bin").read_bytes()[:4] == struct.pack("<i", 3)


def test_zeroed_memory_and_a_cuda_source(intarsia):
    (intarsia.folder / "bug.cu").write_text("""
extern "C" __global__ void k(const int *zeros, int *out) { out[threadIdx.x] = zeros[threadIdx.x] + threadIdx.x; }
""")
    done = intarsia("sim", "bug.cu", "--block", "8", "-a", "zero:32", "-a", "out:32:out.bin")
    assert (done.code, done.err) == (0, "")
    assert list(np.fromfile(intarsia.folder / "out.bin", np.int32)) == list(range(8))


def test_dynamic_shared_memory(intarsia):
    (intarsia.folder / "k.cu").write_text("""
extern __shared__ int tile[];
extern "C" __global__ void k(int *out) {
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
""")
    common = ["sim", "k.cu", "--block", "64", "-a", "out:256:out.bin"]
    assert intarsia(*common, "--shared", "256").code == 0
    assert list(np.fromfile(intarsia.folder / "out.bin", np.int32)) == list(range(63, -1, -1))
    done = intarsia(*common, "--shared", "64")
    assert done.code == 1 and "k" in done.err, "beyond the allocation"


def test_nvshmem_is_there(intarsia):
    (intarsia.folder / "k.cu").write_text("""
#include <intarsia/nvshmem.h>
extern "C" __global__ void k(int *box, int *out) {
    nvshmem_int_p(box, 17 + nvshmem_my_pe(), nvshmem_my_pe());
    nvshmem_quiet();
    out[0] = *(volatile int *)box;
    out[1] = nvshmem_n_pes();
}
""")
    done = intarsia("sim", "k.cu", "--symmetric", "-a", "zero:4", "-a", "out:8:out.bin")
    assert (done.code, done.err) == (0, "")
    assert list(np.fromfile(intarsia.folder / "out.bin", np.int32)) == [17, 1]


def test_several_pes_exchange_memory(intarsia, program):
    (intarsia.folder / "k.cu").write_text("""
#include <intarsia/nvshmem.h>
extern "C" __global__ void k(int *box) {
    nvshmem_int_p(box, 100 + nvshmem_my_pe(), (nvshmem_my_pe() + 1) % nvshmem_n_pes());
}
""")
    run = intarsia.folder / "one"
    run.write_text(f'#!/bin/sh\nexec {program} sim k.cu --symmetric -a out:4:out$RANK.bin\n')
    run.chmod(0o755)
    done = intarsia("run", "--sim", "-n", 3, "./one")
    assert (done.code, done.err) == (0, "")
    assert [int(np.fromfile(intarsia.folder / f"out{pe}.bin", np.int32)[0]) for pe in range(3)] == [102, 100, 101]


# -- faults ----------------------------------------------------------------------------------------------------------


def test_a_fault_is_reported_and_nothing_is_written(intarsia, add):
    done = intarsia("sim", "add.ptx", "--grid", 4, "--block", 128, "-a", "buf:x.bin", "-a", "buf:y.bin", "-a",
                    "out:1996:z.bin", "-a", "u32:500")
    assert done.code == 1
    line = 1 + ADD.splitlines().index("    st.global.f32 [%rd7], %f3;")
    assert f"add.ptx:{line}" in done.err, done.err
    assert "error: " in done.err
    assert not (intarsia.folder / "z.bin").exists()


def test_an_instruction_the_simulator_does_not_have_is_named(intarsia):
    (intarsia.folder / "x.ptx").write_text(ADD.replace("add.f32 %f3, %f1, %f2;", "frobnicate.f32 %f3, %f1, %f2;"))
    done = intarsia("sim", "x.ptx", "-a", "zero:4", "-a", "zero:4", "-a", "zero:4", "-a", "u32:1")
    assert done.code == 1 and "frobnicate" in done.err and "x.ptx:" in done.err


# -- called wrongly --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "message"), [
    ([], "'add' takes 4 arguments, 0 given"),
    (["zero:4"] * 5, "'add' takes 4 arguments, 5 given"),
    (["zero:4", "zero:4", "zero:4", "u64:1"], "--arg u64:1 has 8 bytes, but parameter 3 of 'add', .u32 n, takes 4"),
    (["u32:1", "zero:4", "zero:4", "u32:1"], "--arg u32:1 has 4 bytes, but parameter 0 of 'add', .u64 x, takes 8"),
    (["zero:4", "zero:4", "zero:4", "zero:4"],
     "--arg zero:4 is an address of 8 bytes, but parameter 3 of 'add', .u32 n, takes 4"),
    (["zero:4", "zero:4", "zero:4", "i32:2147483648"], "'2147483648' is no whole number that fits i32"),
    (["zero:4", "zero:4", "zero:4", "u32:-1"], "'-1' is no whole number that fits u32"),
    (["zero:4", "zero:4", "zero:4", "u32:1.5"], "'1.5' is no whole number that fits u32"),
    (["zero:4", "zero:4", "zero:4", "u32:"], "'' is no whole number that fits u32"),
    (["zero:4", "zero:4", "zero:4", "f32:abc"], "'abc' is no number that fits f32"),
    (["zero:4", "zero:4", "zero:4", "f32:1.5x"], "'1.5x' is no number that fits f32"),
    (["zero:4", "zero:4", "zero:4", "i33:1"], "no kind of argument that is known"),
    (["zero:4", "zero:4", "zero:4", "17"], "no kind of argument that is known"),
    (["zero:many", "zero:4", "zero:4", "u32:1"], "--arg zero:many: no number of bytes"),
    (["out:4", "zero:4", "zero:4", "u32:1"], "--arg out:4: no number of bytes"),
    (["out:x:file", "zero:4", "zero:4", "u32:1"], "--arg out:x:file: no number of bytes"),
    (["buf:missing.bin", "zero:4", "zero:4", "u32:1"], "can't read 'missing.bin': No such file or directory"),
])
def test_arguments_that_do_not_fit(intarsia, add, arguments, message):
    done = intarsia("sim", "add.ptx", *[word for argument in arguments for word in ("--arg", argument)])
    assert done.code == 2 and done.out == ""
    assert message in done.err
    assert len(done.err.splitlines()) <= 2


def test_which_kernel(intarsia):
    ptx = ADD + ADD[ADD.index(".visible"):].replace("add(", "other(")
    (intarsia.folder / "two.ptx").write_text(ptx)
    done = intarsia("sim", "two.ptx")
    assert done.code == 2 and "give --entry NAME" in done.err and "add, other" in done.err
    done = intarsia("sim", "two.ptx", "--entry", "ad")
    assert done.code == 2 and "there is no kernel 'ad'" in done.err and "add, other" in done.err


def test_long_lists_are_cut(intarsia, tmp_path):
    """A module may have very many kernels, a kernel very many parameters."""
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    path = tmp_path / "many.ptx"
    path.write_text(head + "".join(f".visible .entry k{i}() {{ ret; }}\n" for i in range(30000)))
    done = intarsia("sim", path)
    assert done.code == 2 and "k0, k1, " in done.err and "k38, k39, ...\n" in done.err
    path.write_text(head + ".entry k(" + ", ".join(f".param .b8 p{i}" for i in range(4000)) + ") { ret; }\n")
    done = intarsia("sim", path)
    assert done.code == 2 and "'k' takes 4000 arguments, 0 given" in done.err
    assert "they are: p0 of 1 bytes, " in done.err and "p39 of 1 bytes, ...\n" in done.err


def test_more_threads_than_there_can_be(intarsia, add):
    done = intarsia("sim", "add.ptx", "--block", "2048", "-a", "zero:4", "-a", "zero:4", "-a", "zero:4", "-a", "u32:0")
    assert done.code == 1 and "more than 1024" in done.err
