"""What Triton emits for sm_90: tensor descriptors of the host, wgmma, clusters. Each in a process of its own."""

from __future__ import annotations

import pytest

SCRIPT = """
import numpy as np
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import intarsia

intarsia.init("sim", "sm_90")


@triton.jit
def product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([i, k]), b.load([j, k]).T, acc)
    c.store([i, j], acc)


@triton.jit
def scale(x, z, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(z + i, 2 * tl.load(x + i, i < n), i < n)


def descriptor(array, block, stride=None):
    return TensorDescriptor(array, list(array.shape), [stride or array.shape[1], 1], list(block))


rng = np.random.default_rng(1)
"""

PRODUCT = """
m, n, k = 100, 72, 80  # edges are filled with zeros and not stored
x, y = (rng.integers(-4, 5, s).astype(np.float16) for s in ((m, k), (n, k)))
a, b, c = intarsia.array(x), intarsia.array(y), intarsia.zeros((m, n), np.float32)
built = product[(2, 2)](descriptor(a, (64, 64)), descriptor(b, (64, 64)), descriptor(c, (64, 64)), k, 64, 64, 64)
assert np.array_equal(c.numpy(), x.astype(np.float32) @ y.astype(np.float32).T)
assert "wgmma.mma_async" in built.asm["ptx"] and "cp.async.bulk.tensor" in built.asm["ptx"]
"""

CLUSTERS = """
values = rng.random(1000, np.float32)
x, z = intarsia.array(values), intarsia.zeros(1000, np.float32)
built = scale[(4,)](x, z, 1000, 256, num_ctas=2)
assert np.array_equal(z.numpy(), 2 * values)
assert ".reqnctapercluster 2" in built.asm["ptx"]
"""

FAR_APART = """
a, c = intarsia.zeros((64, 64), np.float16), intarsia.zeros((64, 64), np.float32)
wrong = descriptor(a, (64, 64), 1 << 41)
product[(1, 1)](wrong, descriptor(a, (64, 64)), descriptor(c, (64, 64)), 64, 64, 64, 64)
"""


@pytest.mark.parametrize("body", [PRODUCT, CLUSTERS], ids=["product", "clusters"])
def test_results_are_those_of_numpy(python, body):
    done = python(SCRIPT + body)
    assert done.returncode == 0, done.stderr


def test_a_tensor_beyond_the_limits_is_refused(python):
    done = python(SCRIPT + FAR_APART)
    assert done.returncode == 1
    assert "argument a: " in done.stderr
    assert "this tensor map has a stride that is no multiple of 16 bytes below 2^40" in done.stderr
