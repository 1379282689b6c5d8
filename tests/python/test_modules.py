"""Bare PTX: linked, loaded, launched by name, and checked against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

AXPY = """
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .f32 offset[2] = {0f3F800000, 0f40000000};

.visible .entry axpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n, .param .u64 big, .param .u8 small)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<6>;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r1;
    @%p ret;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [a];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd1, %rd1, %rd3;
    add.u64 %rd2, %rd2, %rd3;
    ld.global.f32 %f2, [%rd1];
    ld.global.f32 %f3, [offset+4];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd2], %f4;
    ret;
}
"""


@pytest.fixture
def axpy(simulator):
    return simulator.module(AXPY).entry("axpy")


def test_launch(simulator, axpy):
    assert axpy.param_sizes == (8, 8, 4, 4, 8, 1)
    n = 1000
    x = np.random.default_rng(1).standard_normal(n, np.float32)
    y = simulator.array(np.full(n + 5, -1, np.float32))
    axpy[(n + 127) // 128, 128](simulator.array(x), y, 0.5, n, 1 << 63, 255)
    result = y.numpy()
    np.testing.assert_array_equal(result[:n], np.float32(0.5) * x + np.float32(2))
    assert (result[n:] == -1).all()


def test_from_a_file_and_shapes_as_tuples(simulator, tmp_path):
    path = tmp_path / "axpy.ptx"
    path.write_text(AXPY)
    x, y = simulator.array(np.ones(4, np.float32)), simulator.zeros(4)
    simulator.module(path).entry("axpy")[(1, 1, 1), (4,), 1024](x, y, np.float32(3), np.uint32(4), np.int64(0), True)
    np.testing.assert_array_equal(y.numpy(), [5, 5, 5, 5])


def test_variables(simulator):
    module = simulator.module(AXPY)
    offset = module.variable("offset", "float32")
    np.testing.assert_array_equal(offset.numpy(), [1, 2])
    offset.copy_from([0, 10])
    x, y = simulator.array(np.ones(1, np.float32)), simulator.zeros(1)
    module.entry("axpy")[1, 1](x, y, 1.0, 1, 0, 0)
    assert y.numpy()[0] == 11


GOOD = ("x", "y", 1.0, 4, 0, 0)


@pytest.mark.parametrize(
    ("index", "value", "message"),
    [
        (0, np.zeros(4, np.float32), r"parameter 1 of axpy has 8 bytes, an array on the host"),
        (2, 3.5j, r"parameter 3 of axpy has 4 bytes, a complex was given"),
        (2, np.float64(1), r"parameter 3 of axpy has 4 bytes, a float64 was given"),
        (3, 1 << 32, r"parameter 4 of axpy has 4 bytes, 4294967296, which has more, was given"),
        (3, "y", r"parameter 4 of axpy has 4 bytes, an array, whose address has 8 bytes, was given"),
        (4, np.int32(1), r"parameter 5 of axpy has 8 bytes, a int32 was given"),
        (5, 256, r"parameter 6 of axpy has 1 bytes, 256, which has more, was given"),
        (5, 1.0, r"parameter 6 of axpy has 1 bytes, a float was given"),
        (0, b"1234", r"parameter 1 of axpy has 8 bytes, a structure of 4 bytes was given"),
    ],
)
def test_wrong_parameters(simulator, axpy, index, value, message):
    arrays = {"x": simulator.zeros(4), "y": simulator.zeros(4)}
    given = [arrays.get(v, v) if isinstance(v, str) else v for v in GOOD]
    given[index] = arrays.get(value, value) if isinstance(value, str) else value
    with pytest.raises(simulator.Error, match=message):
        axpy[1, 4](*given)


def test_wrong_launches(simulator, axpy):
    with pytest.raises(simulator.Error, match="axpy takes 6 parameters, 1 were given"):
        axpy[1, 4](simulator.zeros(4))
    with pytest.raises(simulator.Error, match="a launch of axpy is written axpy"):
        axpy[1](1)
    with pytest.raises(simulator.Error, match="the block is one to three positive numbers"):
        axpy[1, 0](1)
    with pytest.raises(simulator.Error, match="shared memory can't be negative: -1"):
        axpy[1, 1, -1](1)
    x = simulator.zeros(4)
    with pytest.raises(simulator.Error, match="4294967295 bytes of shared memory per CTA, the device has"):
        axpy[1, 4, (1 << 32) + 5](x, x, 1.0, 4, 0, 0)


def test_unknown_names(simulator, tmp_path):
    module = simulator.module(AXPY)
    with pytest.raises(simulator.Error, match="axpz"):
        module.entry("axpz")
    with pytest.raises(simulator.Error, match="missing"):
        module.variable("missing")
    with pytest.raises(simulator.Error, match=r"none\.ptx can't be read: No such file"):
        simulator.module(tmp_path / "none.ptx")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (AXPY.replace("%r3, %r4;", "%r3, %r99;"), r"module\.ptx:17:31: error: '%r99' is outside of '%r<6>'"),
        (AXPY[: len(AXPY) // 2], "error"),
        (AXPY.replace("@%p ret;", "call lost;").replace(".visible .g", ".extern .func lost;\n.visible .g"), "lost"),
        (AXPY.replace("@%p ret;", "intarsia.call (%r1), 0123456789abcdef::f, ();"),
         r"region of unit 0123456789abcdef, whose source is not known here.*intarsia link"),
        ("\n\n", "error"),
    ],
)  # fmt: skip
def test_bad_ptx(simulator, text, message):
    with pytest.raises(simulator.Error, match=message):
        simulator.module(text)


def test_a_fault_is_an_error_with_the_kernels_name(simulator, axpy):
    x = simulator.zeros(4)
    axpy[1, 64](x, x, 1.0, 64, 0, 0)
    with pytest.raises(simulator.Error, match="axpy"):
        simulator.synchronize()
