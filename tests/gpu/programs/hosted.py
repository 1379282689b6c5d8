"""A host file in CUDA C++, with a kernel of its own that calls NVSHMEM's device functions."""

import ctypes

import intarsia

intarsia.init()
host = intarsia.load_host("hosted-host.cu")
host.ring.restype = ctypes.c_int
me, n = intarsia.my_pe(), intarsia.n_pes()
got = host.ring(1000 + me)
assert got == 1000 + (me - 1) % n, got
print(f"PE {me}: the host file's kernel sent and received {got}")
