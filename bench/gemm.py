#!/usr/bin/env python3
"""
The product inside the all-gather GEMM (examples/02-allgather-gemm/ag_hopper.py) on one GPU, beside cuBLAS.

For each of the nine shapes the GPU multiplies what one PE of `--world` has: (world * m) x k by k x n, float16, with all
of A there. Every tile of the kernel is measured; of the best one also the wait's cost: with all signals set, chunks of
1024 rows, against the same without waits.

Configurations run in turns, in another order every round, with the L2 cache emptied in front of each and the GPU kept
busy in between: on this kind of GPU the power limit sets the clock, and who runs behind a cool kernel looks fast.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples" / "02-allgather-gemm"), str(ROOT / "bench")]

import ag_hopper  # noqa: E402
import ag_plan  # noqa: E402
from model import SHAPES  # noqa: E402

import intarsia  # noqa: E402

Calls = dict[str, Callable[[], Any]]


def timed(calls: Calls, rounds: int) -> dict[str, float]:
    """The median of each, in milliseconds."""
    flush = torch.empty(32 << 20, dtype=torch.int32, device="cuda")
    order, events = list(calls), {name: [] for name in calls}
    mixed = random.Random(11)
    for index in range(rounds + 2):
        mixed.shuffle(order)
        for name in order:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            torch.cuda._sleep(150_000)
            begin.record()
            calls[name]()
            end.record()
            if index >= 2:
                events[name].append((begin, end))
        torch.cuda.synchronize()
    return {name: statistics.median(b.elapsed_time(e) for b, e in pairs) for name, pairs in events.items()}


def name_of(plan: ag_plan.Plan) -> str:
    rows, columns, depth = plan.block
    return f"{rows}x{columns}x{depth} stages {plan.stages} part {plan.part} group {plan.group}"


def measure(shape: tuple[int, int, int], world: int, rounds: int, plans: list[ag_plan.Plan]) -> dict[str, Any]:
    m, n, k = shape
    problem = ag_plan.Problem(m, n, k, world)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    a = torch.randn(world * m, k, dtype=torch.float16, device="cuda")
    b = torch.randn(n, k, dtype=torch.float16, device="cuda")
    c, want = (torch.empty(world * m, n, dtype=torch.float16, device="cuda") for _ in range(2))
    signals = torch.full((world * 64,), 1 << 40, dtype=torch.int64, device="cuda")

    def ours(plan: ag_plan.Plan, waits: bool = False) -> Callable[[], Any]:
        bound = ag_hopper.bind(plan, problem, a[:m], a, b, c, signals, 64)
        return lambda: ag_hopper.launch(bound, 7, 0, sms, plan, waits)

    calls: Calls = {"cuBLAS": lambda: torch.matmul(a, b.T, out=want)}
    calls["cuBLAS"]()
    of_name = {}
    for plan in plans:
        plan = dataclasses.replace(plan, chunk_rows=-(-m // plan.block[0]) * plan.block[0])
        calls[name_of(plan)], of_name[name_of(plan)] = ours(plan), plan
        c.fill_(float("nan"))
        calls[name_of(plan)]()
        error = max(relative(c[i : i + m], want[i : i + m]) for i in range(0, world * m, m))
        if not error < 2e-3:
            raise SystemExit(f"{shape}, {name_of(plan)}: wrong by {error}")
    found = timed(calls, rounds)
    best = min(of_name, key=lambda name: found[name])
    chunked = dataclasses.replace(of_name[best], chunk_rows=min(1024, m))
    waits = timed({"without": ours(chunked), "with": ours(chunked, True)}, rounds) if world > 1 else None
    return {"m": m, "n": n, "k": k, "world": world, "ms": found, "best": best, "waits_ms": waits,
            "over_cublas": found["cuBLAS"] / found[best], "tflops": problem.flops / found[best] / 1e9}


def relative(got: torch.Tensor, want: torch.Tensor) -> float:
    error = torch.linalg.vector_norm((got - want).float()) / torch.linalg.vector_norm(want.float())
    return float("inf") if got.isnan().any() else error.item()


def line(row: dict[str, Any]) -> str:
    flops = row["tflops"] * row["ms"][row["best"]]
    cublas = row["ms"]["cuBLAS"]
    text = f"{row['m']:6} {row['n']:6} {row['k']:6} {row['world']:3} {cublas:9.4f} {flops / cublas:7.1f} "
    text += f"{row['ms'][row['best']]:9.4f} {row['tflops']:7.1f} {row['over_cublas']:7.3f}  {row['best']}"
    if row["waits_ms"]:
        text += f"; waits {row['waits_ms']['with'] / row['waits_ms']['without'] - 1:+.2%}"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", type=int, default=8, help="PEs of whose job this is one (default 8)")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--groups", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--out", help="a JSON file")
    given = parser.parse_args()
    intarsia.init("cuda")
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, Triton {triton.__version__}")
    print(f"{'m':>6} {'n':>6} {'k':>6} {'PEs':>3} {'cuBLAS ms':>9} {'TFLOP/s':>7} {'ours ms':>9} {'TFLOP/s':>7} "
          f"{'ratio':>7}  best of ours", flush=True)
    plans = [
        dataclasses.replace(ag_plan.HOPPER, block=block, stages=stages, part=part, group=group)
        for block, stages, part in ag_plan.TILES for group in given.groups
    ]  # fmt: skip
    rows = []
    for shape in SHAPES:
        rows.append(measure(shape, given.world, given.rounds, plans))
        print(line(rows[-1]), flush=True)
    if given.out:
        Path(given.out).write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
