"""
All-gather and GEMM in one: each PE multiplies its own shard of A at once and every other as it arrives.

PE p holds a shard of A (m x k) and a shard of B (n x k), and computes C = concat(A) @ B_p^T, (n_pes * m) x n.

Two kernels do the same, in the same order: `ag_gemm` below, for every machine and for the simulator, and `hopper_gemm`
in ag_hopper.py, for speed. Which one, in what chunks and who moves them is a plan (ag_plan.py).
"""

import argparse
import contextlib
import ctypes
import dataclasses
import os
import sys
import time

import numpy as np
import triton
import triton.language as tl
from ag_plan import HOPPER, PUSHES, SIMPLE, Plan, Problem, default, keep, kept, place, tune

import intarsia

device = intarsia.load("ag-gemm-device.cu")
place_of = triton.jit(place)

MOST_BOUND = 16  # sets of arrays whose TMA descriptors are kept
TYPES = {"float16": np.float16, "bfloat16": intarsia.bfloat16, "float32": np.float32}


@triton.jit(do_not_specialize=["epoch"])
def ag_gemm(
    a, workspace, b, c, signals, epoch: tl.int64, m, n, k, me, n_pes, signal_row, chunk_tiles, group,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, N_CTAS: tl.constexpr,
):  # fmt: skip
    """Persistent: the tiles of all shards, this PE's own first, then in the order in which the others push theirs."""
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    here, token = 0, 0
    for tile in range(tl.program_id(0), n_pes * tiles_m * tiles_n, N_CTAS):
        turn, chunk, row, column = place_of(tile, tiles_m, tiles_n, chunk_tiles, group)
        shard = (me + turn) % n_pes
        if turn == 0:
            shard_ptr = a
        else:
            at = turn * signal_row + chunk
            if at != here:  # once per chunk
                token = device.wait_chunk(signals, shard * signal_row + chunk, epoch, sync=False)
            here = at
            shard_ptr = intarsia.after(workspace, token) + shard.to(tl.int64) * m * k

        rows, columns, inner = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            depth = start + inner
            x = tl.load(shard_ptr + rows[:, None] * k + depth, mask=(rows[:, None] < m) & (depth < k), other=0.0)
            y = tl.load(b + columns[None, :] * k + depth[:, None], mask=(columns < n) & (depth[:, None] < k), other=0.0)
            acc = tl.dot(x, y, acc, input_precision="ieee")
        out = c + (shard.to(tl.int64) * m + rows[:, None]) * n + columns
        tl.store(out, acc.to(c.dtype.element_ty), mask=(rows[:, None] < m) & (columns < n))


@triton.jit(do_not_specialize=["epoch", "me", "n_pes"])
def push_shard(
    shard, workspace, signals, epoch: tl.int64, shard_bytes: tl.int64, chunk_bytes: tl.int64, me, n_pes, signal_row,
    N_CTAS: tl.constexpr,
):  # fmt: skip
    """The producer on multiprocessors: whole chunks, one CTA each, first for the PE that needs them first."""
    n_chunks = tl.cdiv(shard_bytes, chunk_bytes).to(tl.int32)
    for i in range(tl.program_id(0), (n_pes - 1) * n_chunks, N_CTAS):
        peer, chunk = (me - 1 - i // n_chunks + n_pes) % n_pes, i % n_chunks
        at = chunk * chunk_bytes
        to = workspace + me * shard_bytes + at
        size = min(shard_bytes - at, chunk_bytes)
        device.push_chunk(to, shard + at, size, signals + me * signal_row + chunk, epoch, peer, sync=False)


@triton.jit
def note_time(stamps, index):
    device.stamp(stamps, index, sync=False)


def simulated() -> bool:
    return str(triton.runtime.driver.active.get_current_device()).startswith("sim")


class AllGatherGemm:
    """For shards of one shape and type; `__call__` is one iteration, and the same on all PEs."""

    def __init__(self, m: int, n: int, k: int, dtype: str, plan: Plan | None = None) -> None:
        """Collective. Without a plan: the one that the tuner left for this machine, or a default; `why` says which."""
        self.dtype, self.epoch = TYPES[dtype], 0
        self.me, self.n_pes = intarsia.my_pe(), intarsia.n_pes()
        self.problem = Problem(m, n, k, self.n_pes, 4 if dtype == "float32" else 2)
        self.on_gpu = not simulated()
        self.machine, self.sms, self.spare = _machine() if self.on_gpu else ("simulator", 4, 0)
        self.host = intarsia.load_host("ag-gemm-host.c")
        for name in ("ag_workspace", "ag_signals", "ag_lane"):
            getattr(self.host, name).restype = ctypes.c_void_p
        self.row_bytes = k * self.problem.element
        self.most_chunks = triton.cdiv(m, SIMPLE.block[0])
        opened = self.host.ag_open(m * self.row_bytes, self.most_chunks)
        self._done(opened, "there is no symmetric memory for the workspace")
        # Its wait acquires what the copy engines and multiprocessors of others write, not what a network card does.
        is_hopper = triton.runtime.driver.active.get_current_target().arch == 90
        self.has_hopper = is_hopper and bool(self.host.ag_all_near())
        self._bound: dict[tuple, tuple] = {}
        self.plan, self.why = (plan, "given") if plan else self._find_plan()
        if fault := self.plan.fault(self.problem):
            raise ValueError(f"this plan can't be followed: {fault}")

    def _find_plan(self) -> tuple[Plan, str]:
        """What PE 0 finds: PEs that follow different plans would wait for chunks that never come."""
        plan, why = kept(self.problem, self.machine)
        if plan is None or (plan.kernel == "hopper" and not self.has_hopper):
            plan, other = default(self.problem, self.has_hopper and self.on_gpu)
            why = f"{other} ({why})"
        return Plan.of(self.agree(plan.numbers())), why

    # -- agreeing --

    def agree(self, numbers: list[int]) -> list[int]:
        """Collective: PE 0's numbers."""
        return self.largest(numbers if self.me == 0 else [-1] * len(numbers))

    def largest(self, numbers: list[int]) -> list[int]:
        """Collective: of each the largest of all PEs."""
        if self.n_pes == 1:
            return numbers
        values = np.array(numbers, np.int64)
        self._done(self.host.ag_largest(values, len(numbers)), "the PEs can't agree: a copy has failed")
        return values.tolist()

    @staticmethod
    def _done(result: int, otherwise: str) -> None:
        if result:
            raise RuntimeError(otherwise)

    # -- one iteration --

    def __call__(self, a, b, c) -> None:
        self.run(self.plan, a, b, c)

    def run(self, plan: Plan, a, b, c, stamps=None) -> None:
        """One iteration by a plan, behind what the stream has; `a` may be overwritten by what the stream gets next."""
        self._check_arrays(a, b, c)
        self.epoch += 1
        stream, lanes = self._fork(plan)
        if plan.push == "sm":  # before the product takes the multiprocessors
            self._push_by_sms(plan, a)
        if plan.overlap:
            self._multiply(plan, a, b, c, stamps)  # before the copies: giving orders for those takes a while
        if plan.push == "engine":
            self._push_by_engine(plan, a, lanes)
        if not plan.overlap:
            if self.n_pes > 1:
                self._wait_all(plan, a, stream)
            self._multiply_gathered(plan, a, b, c)
        self._done(self.host.ag_join(lanes, stream), "the streams did not take an event")

    def _check_arrays(self, a, b, c) -> None:
        """Copies and TMA go by addresses: what is no m x k, n x k and (PEs * m) x n, row by row, would go unnoticed."""
        p = self.problem
        for name, x, shape in (("a", a, (p.m, p.k)), ("b", b, (p.n, p.k)), ("c", c, (p.world * p.m, p.n))):
            if tuple(x.shape) != shape or tuple(x.stride()) != (shape[1], 1):
                raise ValueError(f"{name} is {tuple(x.shape)} with strides {tuple(x.stride())}, not {shape} row by row")
            if x.element_size() != p.element and name != "c":
                raise ValueError(f"the elements of {name} have {x.element_size()} bytes, not {p.element}")

    def gather(self, plan: Plan, a) -> None:
        """The copies alone: pushes this PE's shard and waits for the others'."""
        self.epoch += 1
        stream, lanes = self._fork(plan)
        if plan.push == "sm":
            self._push_by_sms(plan, a)
        else:
            self._push_by_engine(plan, a, lanes)
        self._wait_all(plan, None, stream)
        self._done(self.host.ag_join(lanes, stream), "the streams did not take an event")

    def _fork(self, plan: Plan) -> tuple[int, int]:
        stream = _stream() if self.on_gpu else 0
        lanes = plan.lanes if plan.push == "engine" else 1
        self._done(self.host.ag_fork(lanes, stream), "the streams did not take an event")
        return stream, lanes

    def _push_by_engine(self, plan: Plan, a, lanes: int) -> None:
        size = plan.chunk_rows * self.row_bytes
        self._done(self.host.ag_push(a, self.epoch, size, lanes), "the copy engine did not take the shard")

    def _wait_all(self, plan: Plan, own, stream: int) -> None:
        n_chunks = triton.cdiv(self.problem.m, plan.chunk_rows)
        self._done(self.host.ag_wait_all(own, self.epoch, n_chunks, stream), "the stream did not take the copy")

    def ctas(self, plan: Plan) -> int:
        """Those of the product."""
        return self.sms - (max(plan.push_ctas, self.spare) if self.n_pes > 1 else 0)

    def _workspace(self) -> intarsia.Array:
        return intarsia.from_address(
            self.host.ag_workspace(self.epoch), (self.n_pes * self.problem.m, self.problem.k), self.dtype
        )

    def _signals(self) -> intarsia.Array:
        return intarsia.from_address(self.host.ag_signals(), (self.n_pes, self.most_chunks), "int64")

    def _multiply(self, plan: Plan, a, b, c, stamps=None) -> None:
        p, (bm, bn, bk) = self.problem, plan.block
        n_ctas = self.ctas(plan)
        if plan.kernel == "hopper":
            import ag_hopper

            key = (plan, self.epoch % 2, *(x.data_ptr() for x in (a, b, c)))
            if key not in self._bound:
                if len(self._bound) == MOST_BOUND:  # the oldest: descriptors keep their arrays alive
                    del self._bound[next(iter(self._bound))]
                gathered, signals = self._workspace(), self._signals()
                self._bound[key] = ag_hopper.bind(plan, p, a, gathered, b, c, signals, self.most_chunks)
            ag_hopper.launch(self._bound[key], self.epoch, self.me, n_ctas, plan, self.n_pes > 1, stamps)
            return
        ag_gemm[(n_ctas,)](
            a, self._workspace(), b, c, self._signals(), self.epoch, p.m, p.n, p.k, self.me, self.n_pes,
            self.most_chunks, plan.chunk_rows // bm, plan.group,
            BM=bm, BN=bn, BK=bk, N_CTAS=n_ctas, num_stages=plan.stages,
        )  # fmt: skip

    def _multiply_gathered(self, plan: Plan, a, b, c) -> None:
        """By the library; where there is none by our own kernel, which finds all signals set."""
        if self.on_gpu:
            import torch

            torch.matmul(_torch(self._workspace() if self.n_pes > 1 else a), _torch(b).T, out=_torch(c))
        else:
            self._multiply(plan, a, b, c)

    def _push_by_sms(self, plan: Plan, a) -> None:
        p = self.problem
        if self.n_pes == 1:
            return
        with _on(self.host.ag_lane(0)) if self.on_gpu else contextlib.nullcontext():
            push_shard[(plan.push_ctas,)](
                _bytes(a), _bytes(self._workspace()), self._signals(), self.epoch, p.m * self.row_bytes,
                plan.chunk_rows * self.row_bytes, self.me, self.n_pes, self.most_chunks, plan.push_ctas,
                num_warps=32,
            )  # fmt: skip

    # -- tuning --

    def tune(self, a, b, c, repeats: int = 7) -> float:
        """Collective: finds the best plan, keeps it on disk, follows it from now on. Returns its milliseconds."""

        def duel(*plans: Plan) -> tuple[float, float]:
            times = [[self.time_of(lambda p=p: self.run(p, a, b, c)) for p in plans] for _ in range(repeats + 1)][1:]
            middle = [int(sorted(column)[repeats // 2] * 1e6) for column in zip(*times)]
            one, other = self.largest(middle)
            return one / 1e6, other / 1e6

        self.plan, ms = tune(self.problem, self.plan, duel)
        self.why = f"tuned: {ms:.4f} ms"
        if self.me == 0:
            keep(self.problem, self.machine, self.plan, ms)
        return ms

    def time_of(self, call) -> float:
        """Milliseconds of one call, by the GPU's clock; PEs start together, and give their orders while GPUs sleep."""
        import torch

        intarsia.barrier()
        torch.cuda._sleep(400_000)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def close(self) -> None:
        self._done(self.host.ag_close(), "something that was launched has failed")


# -- torch on GPUs ---------------------------------------------------------------------------------------------------


def _machine() -> tuple[str, int, int]:
    """
    The GPU's name, its multiprocessors, and how many of them the product must leave alone: some, where PEs share the
    GPU. Copies between them may need multiprocessors, and the product that waits for those copies gives none away.
    """
    import torch

    about = torch.cuda.get_device_properties(torch.cuda.current_device())
    shared = int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > torch.cuda.device_count()
    return about.name, about.multi_processor_count, 8 if shared else 0


def _stream() -> int:
    import torch

    return torch.cuda.current_stream().cuda_stream


def _on(stream: int):
    import torch

    return torch.cuda.stream(torch.cuda.ExternalStream(stream))


def _torch(x):
    return x.torch() if isinstance(x, intarsia.Array) else x


def _bytes(x):
    if isinstance(x, intarsia.Array):
        return x.view((x.nbytes,), "uint8")
    import torch

    return x.view(-1).view(torch.uint8)


# -- the comparison with NumPy ---------------------------------------------------------------------------------------


def values(seed: int, shape: tuple[int, int]) -> np.ndarray:
    """The same on every PE, and such that products and sums are exact in every type."""
    return (np.random.default_rng(seed).integers(-8, 9, shape) / 8).astype(np.float32)


def check(op: AllGatherGemm, dtype: str, iterations: int, slow_pe: int) -> bool:
    """Runs all iterations without waiting in between, then compares each with NumPy."""
    me, n_pes, p = op.me, op.n_pes, op.problem
    b = values(1000 + me, (p.n, p.k))
    b_there = intarsia.array(b, TYPES[dtype])
    shards = [[values(100 * i + pe, (p.m, p.k)) for pe in range(n_pes)] for i in range(iterations)]
    mine = [intarsia.array(shard[me], TYPES[dtype]) for shard in shards]
    result_type = TYPES[dtype] if op.plan.kernel == "hopper" or (op.on_gpu and not op.plan.overlap) else np.float32
    results = [intarsia.empty((n_pes * p.m, p.n), result_type) for _ in range(iterations)]
    for a, c in zip(mine, results):
        if me == slow_pe:
            time.sleep(0.05)
        op(a, b_there, c)
    rounded = [intarsia.array(np.concatenate(a) @ b.T, result_type).numpy() for a in shards]
    differences = [np.abs(c.numpy().astype(np.float32) - want).max() for c, want in zip(results, rounded)]
    good = max(differences) == 0
    print(
        f"PE {me} of {n_pes}: {iterations} times ({n_pes} * {p.m} x {p.k}) @ ({p.n} x {p.k})^T in {dtype}: "
        f"{'equal to' if good else 'NOT equal to'} NumPy's, largest difference {max(differences)}"
    )
    return good


def plan_from(given: argparse.Namespace, op: AllGatherGemm) -> Plan:
    """The plan with what the command line says instead."""
    plan = op.plan
    if given.kernel:
        plan = HOPPER if given.kernel == "hopper" else SIMPLE
        if given.kernel == "hopper" and not op.has_hopper:
            raise SystemExit("the kernel for Hopper needs GPUs of compute capability 9.0 in reach of each other")
    if given.chunk_rows:
        plan = dataclasses.replace(plan, chunk_rows=given.chunk_rows)
    if given.push:
        plan = dataclasses.replace(plan, push=given.push)
    if given.push_ctas or (plan.push == "sm" and not plan.push_ctas):
        plan = dataclasses.replace(plan, push_ctas=given.push_ctas or (16 if op.on_gpu else 1))
    if given.gather_first:
        plan = dataclasses.replace(plan, overlap=False)
    if given.stages:
        plan = dataclasses.replace(plan, stages=given.stages)
    if fault := plan.fault(op.problem):
        raise SystemExit(f"this plan can't be followed: {fault}")
    return plan


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=["check"], default="check", help="compare with NumPy")
    parser.add_argument("-m", type=int, default=96, help="rows of A on each PE")
    parser.add_argument("-n", type=int, default=64, help="rows of B on each PE")
    parser.add_argument("-k", type=int, default=64)
    parser.add_argument("--dtype", choices=TYPES, default="float16")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--slow", type=int, default=-1, metavar="PE", help="a PE that is late in every iteration")
    plan = parser.add_argument_group("the plan", "what is not said is as the tuner left it, or as the model has it")
    plan.add_argument("--kernel", choices=["simple", "hopper"])
    plan.add_argument("--push", choices=PUSHES, help="who moves the chunks: copy engines or multiprocessors")
    plan.add_argument("--push-ctas", type=int, metavar="N", help="multiprocessors that the product leaves to pushing")
    plan.add_argument("--chunk-rows", type=int, metavar="N", help="rows of A behind one signal")
    plan.add_argument("--gather-first", action="store_true", help="no overlap")
    plan.add_argument("--stages", type=int, metavar="N", help="of the software pipeline")
    given = parser.parse_args()
    intarsia.init()
    op = AllGatherGemm(given.m, given.n, given.k, given.dtype)
    op.plan = plan_from(given, op)
    good = check(op, given.dtype, given.iterations, given.slow)
    op.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
