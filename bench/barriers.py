"""
Latency of a barrier between PEs inside a kernel, ours and NVSHMEM's side by side in one run:

    intarsia run -n 2 bench/barriers.py [--rounds 2000] [--repeats 9]
    torchrun --nproc_per_node=2 bench/barriers.py

One CTA per PE goes through `rounds` barriers. The time of a round is that of a launch with all rounds less that of one
with a tenth of them, over the difference of the rounds, on PE 0; kinds take turns, and the median of the repeats is
told with the smallest and the largest. Before it is measured, every kind that orders data is checked to do so.
"""

from __future__ import annotations

import argparse
import statistics
import sys

import torch
import triton
import triton.language as tl

import intarsia

device = intarsia.load("barrier-device.cu")

SYNC, SPLIT, RELAXED, WARP, THREAD, SIGNALS, SYNC_ALL, BARRIER_ALL = (tl.constexpr(i) for i in range(8))
KINDS = {
    "intarsia, sync, block, acq_rel": SYNC,
    "intarsia, arrive + wait, block": SPLIT,
    "intarsia, sync, block, relaxed": RELAXED,
    "intarsia, sync, warp, acq_rel": WARP,
    "intarsia, sync, thread, acq_rel": THREAD,
    "intarsia, signal to the right + signal_wait": SIGNALS,
    "nvshmemx_sync_all_block": SYNC_ALL,
    "nvshmemx_barrier_all_block": BARRIER_ALL,
}
UNORDERED = (RELAXED, SYNC_ALL)


@triton.jit(do_not_specialize=["first", "n_rounds"])
def rounds(comm, cells, wrong, first, n_rounds, KIND: tl.constexpr, CHECK: tl.constexpr):
    """With CHECK each round's number is put into the right neighbour's cell and looked for in one's own."""
    right = (intarsia.comm_rank(comm) + 1) % intarsia.comm_size(comm)
    there = intarsia.peer_ptr(comm, cells, right)
    bad = 0
    for i in range(n_rounds):
        if CHECK:
            tl.store(there + i % 2, i + 1)
        token = 0
        if KIND == SYNC:
            token = intarsia.distributed_barrier(comm)
        elif KIND == SPLIT:
            intarsia.distributed_barrier(comm, barrier_kind="arrive", order="release")
            token = intarsia.distributed_barrier(comm, barrier_kind="wait", order="acquire")
        elif KIND == RELAXED:
            token = intarsia.distributed_barrier(comm, order="relaxed")
        elif KIND == WARP:
            token = intarsia.distributed_barrier(comm, group_kind="warp")
        elif KIND == THREAD:
            token = intarsia.distributed_barrier(comm, group_kind="thread")
        elif KIND == SIGNALS:
            intarsia.signal(comm, right, 0, "set", first + i + 1)
            token = intarsia.signal_wait(comm, 0, first + i + 1)
        elif KIND == SYNC_ALL:
            token = intarsia.call(device.sync_all, [], sync=False)
        else:
            token = intarsia.call(device.barrier_all, [], sync=False)
        if CHECK:
            tl.debug_barrier()
            bad += (tl.load(intarsia.after(cells, token) + i % 2) != i + 1).to(tl.int32)
            tl.debug_barrier()
    tl.store(wrong, bad)


class Bench:
    def __init__(self) -> None:
        self.comm = intarsia.Comm(n_barriers=1, n_signals=1)
        self.cells, self.wrong = intarsia.symmetric(2, "int32"), intarsia.zeros(1, "int32")
        self.signalled = 0

    def run(self, kind: tl.constexpr, n_rounds: int, check: bool = False) -> float:
        """Milliseconds of a launch; all PEs begin together."""
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        intarsia.barrier()
        begin.record()
        rounds[(1,)](self.comm, self.cells, self.wrong, self.signalled, n_rounds, kind.value, check)
        end.record()
        end.synchronize()
        if kind is SIGNALS:
            self.signalled += n_rounds
        return begin.elapsed_time(end)

    def check(self, kind: tl.constexpr) -> None:
        self.cells.zero_()
        intarsia.barrier()
        self.run(kind, 200, check=True)
        if self.wrong.numpy()[0]:
            raise AssertionError(f"kind {kind.value} handed over {self.wrong.numpy()[0]} wrong values of 200")
        intarsia.barrier()

    def free(self) -> None:
        self.comm.free()
        self.cells.free()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()
    intarsia.init()
    me, n = intarsia.my_pe(), intarsia.n_pes()
    bench, times = Bench(), {name: [] for name in KINDS}
    for kind in KINDS.values():
        # A signal around the ring orders what the left neighbour did, and that is all that is looked at with 2 PEs.
        if kind not in UNORDERED and (kind is not SIGNALS or n <= 2):
            bench.check(kind)
        for n_rounds in (args.rounds, args.rounds // 10):
            bench.run(kind, n_rounds)
    for _ in range(args.repeats):
        for name, kind in KINDS.items():
            long, short = bench.run(kind, args.rounds), bench.run(kind, args.rounds // 10)
            times[name].append(1e3 * (long - short) / (args.rounds - args.rounds // 10))
    bench.free()
    if me == 0:
        gpus = len({torch.cuda.get_device_properties(i).uuid for i in range(torch.cuda.device_count())})
        print(f"{n} PEs, {gpus} GPU(s) in sight, {torch.cuda.get_device_name()}; {args.rounds} rounds, "
              f"{args.repeats} repeats; microseconds for a round\n")
        base = statistics.median(times["nvshmemx_sync_all_block"])
        print("| barrier | median | smallest | largest | sync_all = 1 |\n| --- | ---: | ---: | ---: | ---: |")
        for name, values in times.items():
            median = statistics.median(values)
            print(f"| {name} | {median:.2f} | {min(values):.2f} | {max(values):.2f} | {median / base:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
