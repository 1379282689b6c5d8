#!/usr/bin/env python3
"""
The overlap on one GPU: the product of one PE of many, whose chunks arrive when bench/model.py says that links would
bring them. One multiprocessor runs a kernel that sets the signals at those times; nothing is copied.

What this shows: how well the kernel keeps up with arrivals, against the limit max(product alone, last arrival), and
whether the model predicts it. What it doesn't: copies that take memory bandwidth, and links.

OUT.json can be given to `bench/model.py compare`, with the same figures of the machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples" / "02-allgather-gemm"), str(ROOT / "bench")]

import ag_hopper  # noqa: E402
import ag_plan  # noqa: E402
import model  # noqa: E402

import intarsia  # noqa: E402

device = intarsia.load("arrivals-device.cu")
ROW = 64  # signals of a shard


@triton.jit(do_not_specialize=["n", "epoch"])
def feed(signals, which, at_ns, n, epoch):
    device.feed(signals, which, at_ns, n, epoch.to(tl.int64), sync=False)


def schedule(problem: ag_plan.Problem, plan: ag_plan.Plan, machine: model.Machine) -> tuple[list[int], list[float]]:
    """Which signal is set when, in microseconds, for PE 0."""
    times = model.arrivals(problem, plan, machine)
    chunks = -(-problem.m // plan.chunk_rows)
    return [(1 + i // chunks) * ROW + i % chunks for i in range(len(times))], times


def medians_ms(prepare: Callable[[], Any], calls: list[Callable[[], Any]], repeats: int) -> list[float]:
    """
    Of each call, in turns. In front of each `prepare`, the L2 cache emptied, and the GPU asleep while the CPU gives
    orders.
    """
    flush = torch.empty(32 << 20, dtype=torch.int32, device="cuda")
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats + 3):
        for call, column in zip(calls, times):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            prepare()
            flush.zero_()
            torch.cuda._sleep(400_000)
            begin.record()
            call()
            end.record()
            end.synchronize()
            column.append(begin.elapsed_time(end))
    return [statistics.median(column[3:]) for column in times]


def measure(shape: tuple[int, int, int], world: int, machine: model.Machine, repeats: int) -> dict[str, Any]:
    m, n, k = shape
    problem = ag_plan.Problem(m, n, k, world)
    plan, why = ag_plan.default(problem, True, machine)
    plan = dataclasses.replace(plan, overlap=True)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    a = torch.randn(world * m, k, dtype=torch.float16, device="cuda")
    b = torch.randn(n, k, dtype=torch.float16, device="cuda")
    c = torch.empty(world * m, n, dtype=torch.float16, device="cuda")
    signals = torch.zeros(world * ROW, dtype=torch.int64, device="cuda")
    which, times = schedule(problem, plan, machine)
    whose = torch.tensor(which, dtype=torch.int32, device="cuda")
    at_ns = torch.tensor([round(us * 1e3) for us in times], dtype=torch.int64, device="cuda")
    bound = ag_hopper.bind(plan, problem, a[:m], a, b, c, signals, ROW)
    side, fork = torch.cuda.Stream(), torch.cuda.Event()

    def product(waits: bool) -> None:
        ag_hopper.launch(bound, 1, 0, sms - max(plan.push_ctas, 1), plan, waits)

    def overlapped() -> None:
        fork.record()
        with torch.cuda.stream(side):
            fork.wait()
            feed[(1,)](signals, whose, at_ns, len(which), 1, num_warps=1)
        product(True)

    # The feeder and the kernel that waits for it are loaded before the one has to wait for the other.
    feed[(1,)](signals, whose, at_ns, len(which), 1, num_warps=1)
    product(True)
    c.fill_(float("nan"))
    signals.zero_()
    overlapped()
    missing = bool((signals.view(world, ROW).sum(1)[1:] != -(-m // plan.chunk_rows)).any())
    want = torch.matmul(a[-m:], b.T).float()
    wrong = (torch.linalg.vector_norm(c[-m:].float() - want) / torch.linalg.vector_norm(want)).item()
    if missing or not wrong < 2e-3:
        raise SystemExit(f"{shape}: signals are missing or the product is wrong by {wrong}")
    alone = partial(ag_hopper.launch, bound, 1, 0, sms, plan, False)
    ours_ms, gemm_ms = medians_ms(signals.zero_, [overlapped, alone], repeats)
    found = model.predict(problem, plan, machine, gemm_ms)
    limit_ms = max(gemm_ms, found.copy_ms)
    return {"m": m, "n": n, "k": k, "world": world, "plan": dataclasses.asdict(plan), "why": why, "gemm_ms": gemm_ms,
            "copy_ms": found.copy_ms, "limit_ms": limit_ms, "ours_ms": ours_ms, "fraction": limit_ms / ours_ms,
            "predicted_ms": found.total_ms, "gathered_first_ms": found.copy_ms + gemm_ms}


def line(row: dict[str, Any]) -> str:
    text = f"{row['m']:6} {row['n']:6} {row['k']:6} {row['gemm_ms']:9.4f} {row['copy_ms']:9.4f} {row['limit_ms']:9.4f} "
    text += f"{row['ours_ms']:9.4f} {row['fraction']:8.3f} {row['predicted_ms']:9.4f} "
    text += f"{row['predicted_ms'] / row['ours_ms'] - 1:+7.1%} {row['gathered_first_ms'] / row['ours_ms']:6.2f}"
    return f"{text}  {row['plan']['push']}, chunks of {row['plan']['chunk_rows']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", type=int, default=8, help="PEs of whose job this is one (default 8)")
    parser.add_argument("--link-gbs", type=float, default=model.Machine().link_gbs, help="of the links")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", help="a JSON file")
    given = parser.parse_args()
    intarsia.init("cuda")
    machine = dataclasses.replace(model.Machine(), link_gbs=given.link_gbs)
    print(f"{torch.cuda.get_device_name(0)}, one PE of {given.world}, chunks arrive at {given.link_gbs} GB/s")
    print(f"{'m':>6} {'n':>6} {'k':>6} {'GEMM ms':>9} {'arrivals':>9} {'limit':>9} {'ours':>9} {'fraction':>8} "
          f"{'predicted':>9} {'error':>7} {'first':>6}", flush=True)
    rows = []
    for shape in model.SHAPES:
        rows.append(measure(shape, given.world, machine, given.repeats))
        print(line(rows[-1]), flush=True)
    if given.out:
        Path(given.out).write_text(json.dumps({"rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
