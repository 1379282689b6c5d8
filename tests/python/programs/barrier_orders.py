"""Data handed over by an arrive and a wait of the given orders: barrier_orders.py ARRIVE WAIT"""

import sys

import triton
import triton.language as tl

import intarsia


@triton.jit
def hand_over(comm, box, out, ARRIVE: tl.constexpr, WAIT: tl.constexpr):
    places = tl.arange(0, 32)
    right = (intarsia.comm_rank(comm) + 1) % intarsia.comm_size(comm)
    tl.store(intarsia.peer_ptr(comm, box, right) + places, places)
    intarsia.distributed_barrier(comm, barrier_kind="arrive", order=ARRIVE)
    token = intarsia.distributed_barrier(comm, barrier_kind="wait", order=WAIT)
    tl.store(out + places, tl.load(intarsia.after(box, token) + places))


intarsia.init()
comm, box, out = intarsia.Comm(), intarsia.symmetric(32, "int32"), intarsia.zeros(32, "int32")
hand_over[(1,)](comm, box, out, *sys.argv[1:], num_warps=1)
intarsia.barrier()
comm.free()
box.free()
