"""A barrier that is not there, or a wait without an arrive: known in the kernel only. beyond.py index|order"""

import sys

import triton

import intarsia


@triton.jit
def beyond(comm, index):
    intarsia.distributed_barrier(comm, index=index)


@triton.jit
def out_of_order(comm):
    intarsia.distributed_barrier(comm, barrier_kind="wait")


intarsia.init()
comm = intarsia.Comm(n_barriers=3)
if sys.argv[1] == "index":
    beyond[(2,)](comm, 7)
else:
    out_of_order[(1,)](comm)
intarsia.synchronize()
