"""PE 1 never comes to barrier 3, and there is a limit of a second for waits."""

import triton

import intarsia


@triton.jit
def meet(comm):
    intarsia.distributed_barrier(comm, index=3)


intarsia.init(wait_limit=1.0)
comm = intarsia.Comm(n_barriers=4)
if intarsia.my_pe() == 0:
    meet[(1,)](comm)
    intarsia.synchronize()
intarsia.barrier()
