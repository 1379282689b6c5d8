"""Signals and queries in Triton, with the team in an order of its own."""

import sys

import numpy as np
import triton
import triton.language as tl

import intarsia

N = 128


@triton.jit
def pass_on(comm, cells, sums, N: tl.constexpr):
    """Around the ring of ranks: each adds its number and hands on; then rank 0 lets all go on, by adding."""
    rank, size = intarsia.comm_rank(comm), intarsia.comm_size(comm)
    places, token = tl.arange(0, N), tl.zeros((), tl.int32)
    following = (rank + 1) % size
    if rank > 0:
        token = intarsia.signal_wait(comm, 0, 1, "eq")
    there = intarsia.peer_ptr(comm, cells, following)
    mine = tl.load(intarsia.after(cells, token) + places)
    if rank == 0:
        mine = tl.zeros((N,), tl.int32)
    tl.store(there + places, mine + rank + places)
    intarsia.signal(comm, following, tl.where(following == 0, 1, 0), "set", 1)
    if rank == 0:
        done = intarsia.signal_wait(comm, 1, 0, "ne")
        tl.store(sums + places, tl.load(intarsia.after(cells, done) + places))
        for r in range(size):
            intarsia.signal(comm, r, 2, "add", r + 5)
    intarsia.signal_wait(comm, 2, rank + 4, "gt")
    intarsia.signal_wait(comm, 2, rank + 5, "ge")
    intarsia.signal_wait(comm, 2, rank + 5, "le")
    intarsia.signal_wait(comm, 2, rank + 6, "lt")


@triton.jit
def who(comm, out):
    tl.store(out, intarsia.comm_rank(comm))
    tl.store(out + 1, intarsia.comm_size(comm))
    tl.store(out + 2, intarsia.comm_local_rank(comm))
    tl.store(out + 3, intarsia.comm_local_size(comm))


intarsia.init()
me, n = intarsia.my_pe(), intarsia.n_pes()
team = list(reversed(range(n)))[: max(n - 1, 1)]  # PE 0 is left out, if there are others
comm = intarsia.Comm(n_barriers=0, n_signals=3, team=team)
cells, sums, out = intarsia.symmetric(N, "int32"), intarsia.zeros(N, "int32"), intarsia.zeros(4, "int32")
assert comm.team == tuple(team) and comm.size == comm.local_size == len(team) and comm.member == (me in team)
if comm.member:
    assert comm.rank == comm.local_rank == team.index(me)
    pass_on[(1,)](comm, cells, sums, N)
    who[(1,)](comm, out)
    assert out.numpy().tolist() == [comm.rank, len(team), comm.rank, len(team)]
    if comm.rank == 0:
        expected = sum(range(len(team))) + len(team) * np.arange(N)
        assert np.array_equal(sums.numpy(), expected), sums.numpy()
        following = comm.peer(cells, 1 % len(team))
        assert following.numpy()[3] == (3 if len(team) > 1 else expected[3])
    refused = None
else:
    try:
        who[(1,)](comm, out)
        refused = "nothing"
    except intarsia.Error as error:
        refused = str(error)
    assert refused == f"PE {me} is no member of the team {comm.team}, so its kernels can't use {comm}", refused
intarsia.barrier()
comm.free()
cells.free()
print(f"PE {me} of {n}: good")
sys.exit(0)
