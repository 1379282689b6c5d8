"""Every call of the backend, on one PE, against NumPy."""

import numpy as np

import intarsia

PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .global .align 4 .u32 counter = 7;
.visible .entry scale(.param .u64 p, .param .f32 by, .param .u32 n)
{
    .reg .pred %q; .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .f32 %f<4>;
    ld.param.u64 %d1, [p]; ld.param.f32 %f1, [by]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %q, %r5, %r1;
    @%q ret;
    mul.wide.u32 %d2, %r5, 4; add.s64 %d3, %d1, %d2;
    ld.global.f32 %f2, [%d3]; mul.f32 %f3, %f2, %f1; st.global.f32 [%d3], %f3;
    ret;
}
"""


def main() -> None:
    intarsia.init("cuda")
    assert (intarsia.my_pe(), intarsia.n_pes()) == (0, 1)
    values = np.random.default_rng(1).random(1000, np.float32)
    module = intarsia.module(PTX)
    x = intarsia.array(values)
    module.entry("scale")[8, 128](x, 2.5, 1000)
    assert np.array_equal(x.numpy(), values * np.float32(2.5))
    assert module.variable("counter", "uint32").numpy().tolist() == [7]
    y = intarsia.zeros(1000)
    assert not y.numpy().any()
    y.copy_from(x)
    assert np.array_equal(y.numpy(), x.numpy())
    tensor = x.torch()
    assert tensor.data_ptr() == x.data_ptr() and tensor.is_cuda
    tensor.mul_(2)
    intarsia.synchronize()
    assert np.array_equal(x.numpy(), values * np.float32(5))
    half = intarsia.array(values, "bfloat16").torch()
    assert str(half.dtype) == "torch.bfloat16" and half.shape == (1000,)
    try:
        module.entry("missing")
    except intarsia.Error as error:
        assert "no kernel called 'missing'" in str(error)
    else:
        raise AssertionError("found a kernel that is not there")
    symmetric = intarsia.symmetric(64, "int32")
    assert symmetric.peer(0).data_ptr() == symmetric.data_ptr()
    assert not symmetric.torch().cpu().any()
    symmetric.free()
    intarsia.finalize()
    print("backend ok")


main()
