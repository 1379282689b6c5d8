"""Adds two vectors in a Triton kernel whose whole body is CUDA C++."""

import sys

import numpy as np
import triton
import triton.language as tl

import intarsia

device = intarsia.load("vector-add-device.cu")


@triton.jit
def vector_add(a, b, c, n, BLOCK: tl.constexpr):
    intarsia.call(device.vector_add, [a, b, c, n, tl.program_id(0) * BLOCK, BLOCK])


def check(n: int, block: int = 256) -> bool:
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, n), dtype=np.float32)
    c = intarsia.array(np.full(n, np.nan, np.float32))
    vector_add[(triton.cdiv(n, block),)](intarsia.array(a), intarsia.array(b), c, n, block)
    equal = np.array_equal(c.numpy(), a + b)
    print(f"{n} elements in blocks of {block}: {'equal to' if equal else 'NOT equal to'} NumPy's a + b")
    return equal


if __name__ == "__main__":
    intarsia.init()
    results = [check(n) for n in (1, 255, 1000, 4099)]
    sys.exit(0 if all(results) else 1)
