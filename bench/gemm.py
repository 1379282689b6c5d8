#!/usr/bin/env python3
"""
The product inside the all-gather GEMM (examples/02-allgather-gemm/ag_hopper.py) on one GPU, beside cuBLAS.

For each of the nine shapes the GPU multiplies what one PE of `--world` has: (world * m) x k by k x n, float16, with all
of A there. Every tile of the kernel is measured; of the best one also the wait's cost: with all signals set, chunks of
1024 rows, against the same without waits.

Each runs in turns with cuBLAS, and is compared with the cuBLAS of its own turns: the power limit sets the clock, and
who runs behind a cool kernel looks fast. In front of each run the L2 cache is emptied.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import time
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

Call = Callable[[], Any]
Shape = tuple[int, int, int]


def pairs(one: Call, other: Call, seconds: float) -> tuple[float, float]:
    """The medians of two that run in turns for about so long, in milliseconds."""
    flush = torch.empty(32 << 20, dtype=torch.int32, device="cuda")
    found: list[list[float]] = [[], []]

    def once(call: Call) -> tuple[torch.cuda.Event, torch.cuda.Event]:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        torch.cuda._sleep(150_000)
        begin.record()
        call()
        end.record()
        return begin, end

    began = time.monotonic()
    while time.monotonic() - began < seconds or len(found[0]) < 10:
        events = [[once(call) for call in (one, other)] for _ in range(5)]
        torch.cuda.synchronize()
        for times in events:
            for index, (begin, end) in enumerate(times):
                found[index].append(begin.elapsed_time(end))
    # The first ones warm up.
    return statistics.median(found[0][3:]), statistics.median(found[1][3:])


def name_of(plan: ag_plan.Plan) -> str:
    rows, columns, depth = plan.block
    return f"{rows}x{columns}x{depth}, {plan.stages} stages, group {plan.group}"


def measure(shape: Shape, world: int, seconds: float, plans: list[ag_plan.Plan]) -> dict[str, Any]:
    m, n, k = shape
    problem = ag_plan.Problem(m, n, k, world)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    a = torch.randn(world * m, k, dtype=torch.float16, device="cuda")
    b = torch.randn(n, k, dtype=torch.float16, device="cuda")
    c, want = (torch.empty(world * m, n, dtype=torch.float16, device="cuda") for _ in range(2))
    signals = torch.full((world * 64,), 1 << 40, dtype=torch.int64, device="cuda")

    def ours(plan: ag_plan.Plan, waits: bool = False) -> Call:
        bound = ag_hopper.bind(plan, problem, a[:m], a, b, c, signals, 64)
        return lambda: ag_hopper.launch(bound, 7, 0, sms, plan, waits)

    def cublas() -> Any:
        return torch.matmul(a, b.T, out=want)

    cublas()
    tried: dict[str, Any] = {}
    of_name = {}
    small = world * m * n < 2 * sms * 128 * 256  # what less than two waves of the largest tile cover
    for plan in plans:
        if plan.block[0] * plan.block[1] < 128 * 128 and not small:
            continue
        plan = dataclasses.replace(plan, chunk_rows=-(-m // plan.block[0]) * plan.block[0])
        name, call = name_of(plan), ours(plan)
        c.fill_(float("nan"))
        call()
        error = max(relative(c[i : i + m], want[i : i + m]) for i in range(0, world * m, m))
        if not error < 2e-3:
            raise SystemExit(f"{shape}, {name}: wrong by {error}")
        cublas_ms, ms = pairs(cublas, call, seconds)
        of_name[name], tried[name] = plan, {"cublas_ms": cublas_ms, "ms": ms, "over_cublas": cublas_ms / ms}
    best = min(tried, key=lambda name: tried[name]["ms"])
    row = {"m": m, "n": n, "k": k, "world": world, "best": best, "tried": tried, "waits": None}
    if world > 1:
        chunked = dataclasses.replace(of_name[best], chunk_rows=min(1024, m))
        without, with_ = pairs(ours(chunked), ours(chunked, True), seconds)
        row["waits"] = with_ / without - 1
    return row


def relative(got: torch.Tensor, want: torch.Tensor) -> float:
    error = torch.linalg.vector_norm((got - want).float()) / torch.linalg.vector_norm(want.float())
    return float("inf") if got.isnan().any() else error.item()


def line(row: dict[str, Any]) -> str:
    best = row["tried"][row["best"]]
    tera = 2e-9 * row["world"] * row["m"] * row["n"] * row["k"]
    text = f"{row['m']:6} {row['n']:6} {row['k']:6} {row['world']:3} "
    text += f"{best['cublas_ms']:9.4f} {tera / best['cublas_ms']:7.1f} {best['ms']:9.4f} {tera / best['ms']:7.1f} "
    text += f"{best['over_cublas']:7.3f} " + (f"{row['waits']:+7.2%}" if row["waits"] is not None else " " * 7)
    return f"{text}  {row['best']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", type=int, default=8, help="PEs of whose job this is one (default 8)")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each pair (default 0.3)")
    parser.add_argument("--all", action="store_true", help="print every tile, not only the best")
    parser.add_argument("--out", help="a JSON file")
    given = parser.parse_args()
    intarsia.init("cuda")
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, Triton {triton.__version__}")
    print(f"{'m':>6} {'n':>6} {'k':>6} {'PEs':>3} {'cuBLAS ms':>9} {'TFLOP/s':>7} {'ours ms':>9} {'TFLOP/s':>7} "
          f"{'ratio':>7} {'waits':>7}  best of ours", flush=True)
    plans = list(ag_plan.tile_variants(ag_plan.HOPPER))
    rows = []
    for shape in SHAPES:
        rows.append(measure(shape, given.world, given.seconds, plans))
        print(line(rows[-1]), flush=True)
        for name, found in rows[-1]["tried"].items() if given.all else ():
            print(f"{found['cublas_ms']:34.4f} {found['ms']:17.4f} {found['over_cublas']:15.3f} {'':8} {name}")
    if given.out:
        Path(given.out).write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
