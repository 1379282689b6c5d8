"""
Barriers between PEs inside kernels, arrive and wait apart, with work between them.

    ring       an all-reduce around the ring in one kernel: 2 (n_pes - 1) steps, a barrier in each
    pipeline   two kernels: one pushes and arrives, the next computes, and waits only when it needs what was pushed
"""

import argparse
import ctypes
import sys
import time

import numpy as np
import triton
import triton.language as tl

import intarsia

device = intarsia.load("device-barrier-device.cu")


@triton.jit
def ring_all_reduce(comm, x, inbox, n, BLOCK: tl.constexpr):
    """
    x becomes the sum over all PEs. It has a segment of n elements for each PE; a program does BLOCK of each.

    In each step a program gives its right neighbour a part and takes one from the left: first sums, each longer by
    one, then finished segments. The inbox has two halves that are used in turn, so that one barrier in each step is
    enough: a half is written again two steps later, behind a barrier at which the reader has arrived after reading.
    """
    me, n_pes = intarsia.comm_rank(comm), intarsia.comm_size(comm)
    right_inbox = intarsia.peer_ptr(comm, inbox, (me + 1) % n_pes)
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    part = tl.load(x + me * n + places, mask=inside)
    for step in range(2 * (n_pes - 1)):
        half = step % 2 * n
        tl.store(right_inbox + half + places, part, mask=inside)
        intarsia.distributed_barrier(comm, barrier_kind="arrive", order="release")
        mine = x + (me + 2 * n_pes - step - 1) % n_pes * n + places  # the segment that comes
        if step < n_pes - 1:  # work that needs nobody: what this PE adds to it
            own = tl.load(mine, mask=inside)
        else:  # or to put away the one that was sent
            tl.store(x + (me + 2 * n_pes - step) % n_pes * n + places, part, mask=inside)
            own = tl.zeros((BLOCK,), tl.float32)
        token = intarsia.distributed_barrier(comm, barrier_kind="wait", order="acquire")
        part = own + tl.load(intarsia.after(inbox, token) + half + places, mask=inside)
    if n_pes > 1:
        tl.store(x + (me + 2) % n_pes * n + places, part, mask=inside)


@triton.jit
def produce(comm, mailbox, x, y, n, BLOCK: tl.constexpr):
    """y = 2 x + 1 here, and in the right neighbour's mailbox."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + places, 2 * tl.load(x + places, mask=places < n) + 1, mask=places < n)
    device.push_right(comm, mailbox, y, n, BLOCK)  # what the tile program wrote is visible to it


@triton.jit
def consume(comm, mailbox, x, z, n, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    """z = what the left neighbour has produced + sum of i x, computed while that is on its way."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + places, mask=places < n)
    work = tl.zeros((BLOCK,), tl.float32)
    for i in range(ROUNDS):
        work += i * value
    token = device.wait_left(comm, sync=False)
    arrived = tl.load(intarsia.after(mailbox, token) + places, mask=places < n)
    tl.store(z + places, work + arrived, mask=places < n)


def values(seed: int, n: int) -> np.ndarray:
    """The same on every PE, and such that sums are exact."""
    return np.random.default_rng(seed).integers(-64, 65, n).astype(np.float32)


def same(what: str, results: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    worst = max(float(np.abs(result - e).max()) for result, e in zip(results, expected, strict=True))
    words = "equal to" if worst == 0 else "NOT equal to"
    print(f"PE {intarsia.my_pe()} of {intarsia.n_pes()}: {what}: {words} NumPy's, largest difference {worst:g}")
    return worst == 0


class Inbox:
    """Symmetric memory from the host file."""

    def __init__(self, n: int) -> None:
        self.host = intarsia.load_host("device-barrier-host.c")
        self.host.inbox_new.restype = ctypes.c_void_p
        self.array = intarsia.from_address(self.host.inbox_new(4 * n), n, "float32")

    def half(self, number: int) -> intarsia.Array:
        n = self.array.size // 2
        return self.array.view(n, offset=number % 2 * n)

    def free(self) -> None:
        if self.host.inbox_free(self.array):
            raise RuntimeError("a kernel failed")


def check_ring(n: int, block: int, times: int, slow_pe: int) -> bool:
    """Several all-reduces one after the other, without waiting in between."""
    me, n_pes = intarsia.my_pe(), intarsia.n_pes()
    programs = triton.cdiv(n, block)
    comm, inbox = intarsia.Comm(programs), Inbox(2 * n)
    given = [[values(100 * i + pe, n_pes * n) for pe in range(n_pes)] for i in range(times)]
    buffers = [intarsia.array(g[me]) for g in given]
    for x in buffers:
        if me == slow_pe:
            time.sleep(0.02)
        ring_all_reduce[(programs,)](comm, x, inbox.array, n, block)
    results = [x.numpy() for x in buffers]
    inbox.free()
    comm.free()
    return same(f"{times} all-reduces of {n_pes} * {n}", results, [np.sum(g, axis=0) for g in given])


def check_pipeline(n: int, block: int, times: int, slow_pe: int) -> bool:
    me, n_pes, rounds = intarsia.my_pe(), intarsia.n_pes(), 5
    left, programs = (me - 1) % n_pes, triton.cdiv(n, block)
    comm, mailbox = intarsia.Comm(programs), Inbox(2 * n)
    given = [values(i, n_pes * n).reshape(n_pes, n) for i in range(times)]
    y, results = intarsia.empty(n), [intarsia.empty(n) for _ in range(times)]
    for i, (x, z) in enumerate(zip(given, results, strict=True)):
        if me == slow_pe:
            time.sleep(0.02)
        mine = intarsia.array(x[me])
        produce[(programs,)](comm, mailbox.half(i), mine, y, n, block)
        consume[(programs,)](comm, mailbox.half(i), mine, z, n, rounds, block)
    there = [z.numpy() for z in results]
    mailbox.free()
    comm.free()
    work = sum(range(rounds))
    return same(f"{times} rounds of the pipeline", there, [2 * x[left] + 1 + work * x[me] for x in given])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=["check", "ring", "pipeline"], default="check", help="both, or one of them")
    parser.add_argument("-n", type=int, default=700, help="elements of a segment")
    parser.add_argument("--block", type=int, default=256, help="elements of a program")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--slow", type=int, default=0, help="the PE that comes late each time")
    args = parser.parse_args()
    intarsia.init()
    good = True
    if args.case in ("check", "ring"):
        good &= check_ring(args.n, args.block, args.times, args.slow)
    if args.case in ("check", "pipeline"):
        good &= check_pipeline(args.n, args.block, args.times, args.slow)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
