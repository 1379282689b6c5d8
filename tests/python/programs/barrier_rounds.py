"""
Rounds of a barrier with the data checked in each, in Triton: sync, or arrive, work, wait; PE 0 works longer.

    barrier_rounds.py KIND ROUNDS GROUP      KIND is sync or split, GROUP is block, warp or thread
"""

import sys

import triton
import triton.language as tl

import intarsia

N, PROGRAMS = 64, 2


@triton.jit
def rounds(comm, box, errors, n_rounds, work, SPLIT: tl.constexpr, GROUP: tl.constexpr, N: tl.constexpr):
    rank, size = intarsia.comm_rank(comm), intarsia.comm_size(comm)
    places = tl.program_id(0) * N + tl.arange(0, N)
    half_size = tl.num_programs(0) * N
    right = intarsia.peer_ptr(comm, box, (rank + 1) % size)
    left = (rank + size - 1) % size
    bad = tl.zeros((N,), tl.int32)
    total = 0
    for round in range(1, n_rounds + 1):
        half = round % 2 * half_size
        tl.store(right + half + places, round * 7 + rank * 1000000 + places)
        if SPLIT:
            intarsia.distributed_barrier(comm, group_kind=GROUP, barrier_kind="arrive", order="release")
            for i in range(work):
                total += i * round
            token = intarsia.distributed_barrier(comm, group_kind=GROUP, barrier_kind="wait", order="acquire")
        else:
            token = intarsia.distributed_barrier(comm, group_kind=GROUP)
        if GROUP != "block":
            tl.debug_barrier()  # the rest of the program does not wait by itself
        seen = tl.load(intarsia.after(box, token) + half + places)
        bad += (seen != round * 7 + left * 1000000 + places).to(tl.int32)
    tl.store(errors + places, bad + (total == -1))


def main() -> int:
    kind, n_rounds, group = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    intarsia.init()
    me, n = intarsia.my_pe(), intarsia.n_pes()
    comm = intarsia.Comm(n_barriers=PROGRAMS)
    box, errors = intarsia.symmetric(2 * PROGRAMS * N, "int32"), intarsia.zeros(PROGRAMS * N, "int32")
    work = 2000 if me == 0 else 0
    kernel = rounds[(PROGRAMS,)](comm, box, errors, n_rounds, work, kind == "split", group, N, num_warps=2)
    bad = int(errors.numpy().sum())
    calls = kernel.metadata.intarsia["report"]["calls_left"]
    intarsia.barrier()
    comm.free()
    box.free()
    print(f"PE {me} of {n}: {n_rounds} rounds of {kind} by {group}: {bad} wrong, {len(calls)} calls left")
    return 1 if bad or calls else 0


if __name__ == "__main__":
    sys.exit(main())
