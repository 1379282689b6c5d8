"""Products of matrices: nvcuda::wmma, and mma, ldmatrix and movmatrix as inline assembly."""

import numpy as np
from cases import full, given, ints, rand
from cuda_cases import case

case("half_tiles", lambda a, b, c, lda: {"c": 2 * a.astype("f4") @ b.astype("f4").T}, block=32, tol=1e-5, a=rand((16, 48), "fp16"),
     b=rand((16, 48), "fp16"), c=full((16, 16)), lda=48)


def other_tiles(a, s, b, d, hc, ic, fc, dc):
    a, b = a.astype("f4"), b.astype("f4")
    half = a.ravel()[:512].reshape(16, 32).T @ a.ravel()[:128].reshape(16, 8) + hc.astype("f4").reshape(32, 8)
    whole = s.astype("i8").reshape(16, 16)
    bfloat = (b.reshape(16, 16) @ b.reshape(16, 16)).astype("f4").ravel()
    # tf32 keeps ten bits of the mantissa, rounded to nearest, ties away from zero
    tf = ((bfloat[:128].view("u4") + 0x1000) & 0xFFFFE000).view("f4").reshape(16, 8)
    double = d.reshape(8, 4)
    return {"hc": half.T.ravel(), "ic": (whole @ whole.T + 3).ravel(), "fc": (1 + tf.astype("f8") @ tf.astype("f8").T).ravel(),
            "dc": (double @ double.T).ravel()}


case("other_tiles", other_tiles, block=32, tol=4e-3, a=rand(512, "fp16"), s=ints(256, "i8", -128, 128), b=rand(256, "bf16"),
     d=rand(32, "fp64"), hc=rand(256, "fp16"), ic=full(256, 0, "i32"), fc=full(256), dc=full(64, 0, "fp64"))

LANE = np.arange(32)
G, T = LANE // 4, LANE % 4


def spread(c):
    """A 16 by 8 accumulator as threads hold it: (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1)."""
    return np.stack([c[G, 2 * T], c[G, 2 * T + 1], c[G + 8, 2 * T], c[G + 8, 2 * T + 1]], 1)


def words(m):
    """An 8 by 8 matrix of 16-bit elements as a register of each thread."""
    return np.ascontiguousarray(m).view("u4").ravel()


def bits_of(words):
    return np.unpackbits(words.view("u1"), bitorder="little").reshape(words.shape[0], -1)


def quarter(regs, per_thread):
    """Four registers of operand A as a matrix: a0 is (g, t), a1 (g+8, t), a2 and a3 the same in the right half."""
    parts = [r.reshape(8, 4, 1).view(per_thread).reshape(8, -1) for r in regs]
    return np.block([[parts[0], parts[2]], [parts[1], parts[3]]])


def columns(regs, per_thread):
    """Two registers of operand B, whose threads hold parts of columns."""
    return np.concatenate([r.reshape(8, 4, 1).view(per_thread).reshape(8, -1) for r in regs], 1).T


def raw(x, out, iout, dout):
    rows = x.view("u2").reshape(64, 8)
    a = [words(rows[8 * k : 8 * k + 8]) for k in range(4)]
    b = [words(rows[1 + 8 * k : 9 + 8 * k].T) for k in range(2)]
    halves = [m.astype("f8") for m in (quarter(a, "f2"), columns(b, "f2"))]
    cut = [m & np.uint32(0xFFFFE000) for m in (quarter(a, "u4"), columns(b, "u4"))]
    c = halves[0] @ halves[1] + cut[0].view("f4").astype("f8") @ cut[1].view("f4").astype("f8")
    d = np.array([[1, 2], [3, 4]])[np.ix_(np.arange(16) // 8, np.arange(8) % 2)]
    d = d + quarter(a, "i1").astype("i8") @ columns(b, "u1").astype("i8")
    ones_a = np.block([[bits_of(a[k].reshape(8, 4)) for k in (0, 2)], [bits_of(a[k].reshape(8, 4)) for k in (1, 3)]])
    ones_b = np.concatenate([bits_of(b[k].reshape(8, 4)) for k in (0, 1)], 1).T
    d = d + ones_a.astype("i8") @ ones_b.astype("i8")
    turned = words(rows[24:32].T)
    return {"out": spread(c).ravel(), "iout": np.concatenate([spread(d).ravel(), turned.view("i4")]), "dout": np.full(32, 8 * dout[0] ** 2)}


BITS = np.random.default_rng(5).uniform(-2, 2, 512).astype("f2").view("u4")
case("raw", raw, block=32, tol=1e-4, x=given(BITS, "u32"), out=full(128), iout=full(160, 0, "i32"), dout=full(32, 1.5, "fp64"))
case("sparse", refuses=".sp", block=32, x=given(BITS, "u32"), out=full(128))
