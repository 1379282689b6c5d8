"""Every program of every PE writes into its right neighbour's memory; the barrier makes it readable there."""

import sys

import numpy as np
import triton
import triton.language as tl

import intarsia

N, PROGRAMS = 128, 3


@triton.jit
def shift(comm, box, out, N: tl.constexpr):
    rank, size = intarsia.comm_rank(comm), intarsia.comm_size(comm)
    places = tl.program_id(0) * N + tl.arange(0, N)
    right = intarsia.peer_ptr(comm, box, (rank + 1) % size)
    tl.store(right + places, places + 1000 * rank)
    intarsia.distributed_barrier(comm)
    tl.store(out + places, tl.load(box + places))


intarsia.init()
me, n = intarsia.my_pe(), intarsia.n_pes()
comm = intarsia.Comm(n_barriers=PROGRAMS)
box, out = intarsia.symmetric(PROGRAMS * N, "int32"), intarsia.zeros(PROGRAMS * N, "int32")
kernel = shift[(PROGRAMS,)](comm, box, out, N)
assert not kernel.metadata.intarsia["report"]["calls_left"], "the barrier is inlined"
good = np.array_equal(out.numpy(), np.arange(PROGRAMS * N) + 1000 * ((me - 1) % n))
comm.free()
box.free()
print(f"PE {me} of {n}: {'good' if good else 'BAD'}")
sys.exit(not good)
