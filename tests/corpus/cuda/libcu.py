"""The CUDA C++ standard library."""

import numpy as np
from cases import full, given, rand
from cuda_cases import case

case("barriers", lambda out, x, n: {"out": (x.reshape(-1, 256)[:, ::-1] + x.reshape(-1, 256)[:, :1]).ravel()}, block=256,
     out=full(1024), x=rand(1024), n=1024)
for n in (1, 2, 7):
    case("pipeline", lambda out, x, n: {"out": x.reshape(-1, 128)[:n].sum(0)}, tag=f"n{n}", block=128, tol=1e-6, out=full(128),
         x=rand(7 * 128), n=n)


def atomics(i, f, u, c):
    most = max(u[0], np.uint64(7))
    return {"i": [i[0] + 1, i[0] + 1 + 3], "f": f + np.float32(0.5), "u": [most * np.uint64(2)], "c": [1, 1, 2, 3]}


case("atomics", atomics, i=given([41, 0], "i32"), f=rand(1), u=given([3], "u64"), c=given([200, 1, 2, 3], "u8"))
case("atomics", atomics, tag="large", i=given([41, 0], "i32"), f=rand(1), u=given([1 << 50], "u64"), c=given([0, 1, 2, 3], "u8"))


def containers(out, z, w):
    z, w = z.astype("f8").view("c16").ravel(), w.view("c16").ravel()
    size = abs(z[1])
    z, w = z.copy(), w.copy()
    z[0] = z[0] * z[0] / complex(10 + out[0], 1)
    w[0] = w[0] * w[1]
    return {"z": z.view("f8").astype("f4").reshape(-1, 2), "w": w.view("f8").reshape(-1, 2), "out": [out[0], 2 + size]}


case("containers", containers, tol=1e-6, out=given([2.5, 0], "fp32"), z=rand((2, 2)), w=rand((2, 2), "fp64"))
