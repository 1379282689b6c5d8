#!/usr/bin/env python3
"""
A model of the overlapped run: how long an all-gather GEMM takes on 2 to 64 GPUs, from four figures of the machine.

    flow of chunks      a PE pushes its shard to one peer after the other, chunk by chunk; seen from the receiver, the
                        chunks of its turn-th neighbour come after those of all turns before. A chunk costs its bytes
                        over the link's bandwidth, and what a copy and its signal cost whatever their size.
    flow of tiles       the product is a queue of tiles in the order of arrival. It works at the rate that it has
                        alone, less the multiprocessors that push, and stands still where the next chunk is not there.
                        Behind the last chunk comes at least the time of a whole tile, and the kernel's end.

The time is when the last tile is done. It never is less than the product alone or the copies alone, the limit.

    model.py table                      predictions for the nine shapes on 2 to 64 GPUs
    model.py compare RESULTS.json       predictions beside what bench/ag_gemm.py has measured
    model.py products RESULTS.json      the product alone beside what bench/gemm.py has measured
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from dataclasses import dataclass
from typing import Any

SHAPES = (
    (1024, 1024, 1024), (4096, 1024, 8192), (4096, 8192, 8192), (4096, 28672, 8192), (4096, 8192, 28672),
    (8192, 1024, 8192), (8192, 8192, 8192), (8192, 28672, 8192), (8192, 8192, 28672),
)  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """One GPU and its links. The GPU's figures are an H200's (bench/RESULTS.md), the links' are assumptions."""

    tflops: float = 680.0  # of the product alone, sustained: what the power limit leaves
    peak_tflops: float = 760.0  # with all multiprocessors at work and power to spare
    sms: int = 132
    launch_us: float = 5.0  # a kernel's beginning and end
    link_gbs: float = 370.0  # to a peer on the same node, one direction
    node: int = 8  # GPUs of a node
    network_gbs: float = 45.0  # to a peer on another node
    engine_us: float = 4.5  # what a copy and its signal cost whatever their size
    signal_us: float = 2.0  # from the last byte sent to the wait that sees the signal
    sm_gbs: float = 30.0  # what one multiprocessor pushes
    sm_chunk_us: float = 1.5  # what a chunk costs the multiprocessor that pushes it
    slowdown: float = 1.02  # of the product while copies come in


@dataclass(frozen=True)
class Prediction:
    gemm_ms: float
    copy_ms: float
    total_ms: float

    @property
    def limit_ms(self) -> float:
        return max(self.gemm_ms, self.copy_ms)


# What smaller tiles reach of the largest tile's rate: they bring more bytes for the same work. Measured on an H200.
EFFICIENCY = {(128, 256): 1.0, (128, 128): 0.98, (128, 64): 0.57}


def efficiency(block: tuple[int, int, int]) -> float:
    return EFFICIENCY.get(block[:2], 0.5)


def tile_us(problem: Any, block: tuple[int, int, int], machine: Machine) -> float:
    """One tile on one multiprocessor."""
    return 2 * block[0] * block[1] * problem.k / (efficiency(block) * machine.peak_tflops * 1e6 / machine.sms)


def gemm_ms(problem: Any, block: tuple[int, int, int], machine: Machine) -> float:
    """The product alone: its tiles in waves, the last of which may not fill the GPU, or as power allows."""
    tiles = problem.world * math.ceil(problem.m / block[0]) * math.ceil(problem.n / block[1])
    waves_us = math.ceil(tiles / machine.sms) * tile_us(problem, block, machine)
    power_us = 2 * problem.world * problem.m * problem.n * problem.k / (efficiency(block) * machine.tflops * 1e6)
    return (max(waves_us, power_us) + machine.launch_us) / 1e3


def chunk_us(problem: Any, plan: Any, machine: Machine, rows: int, away: bool) -> float:
    """From one chunk's arrival to the next one's."""
    size = rows * problem.k * problem.element
    link = machine.network_gbs if away else machine.link_gbs
    if plan.push == "sm":
        alone = size / (min(machine.sm_gbs, link) * 1e3) + machine.sm_chunk_us
        return max(size / (link * 1e3), alone / plan.push_ctas)
    # Two lanes: while one chunk's signal is on its way, the next chunk is copied.
    return max(size / (link * 1e3) + (machine.engine_us if plan.lanes == 1 else 0), machine.engine_us)


def arrivals(problem: Any, plan: Any, machine: Machine) -> list[float]:
    """When each chunk that is not the PE's own is there, in microseconds, in the order of arrival."""
    chunks = math.ceil(problem.m / plan.chunk_rows)
    now, times = machine.engine_us if plan.push == "engine" else machine.launch_us, []
    for turn in range(1, problem.world):
        away = (turn % problem.world) // machine.node != 0  # seen from the first PE of its node
        for chunk in range(chunks):
            rows = min(plan.chunk_rows, problem.m - chunk * plan.chunk_rows)
            now += chunk_us(problem, plan, machine, rows, away)
            times.append(now + machine.signal_us)
    return times


def predict(problem: Any, plan: Any, machine: Machine | None = None, alone_ms: float | None = None) -> Prediction:
    """`alone_ms` is the product's time where it has been measured."""
    machine = machine or Machine()
    here = arrivals(problem, plan, machine)
    copies = here[-1] / 1e3 if here else 0.0
    alone = alone_ms if alone_ms is not None else gemm_ms(problem, plan.block, machine)
    if not plan.overlap:
        return Prediction(alone, copies, copies + alone + (machine.launch_us / 1e3 if here else 0))
    share = machine.sms / (machine.sms - plan.push_ctas) if here else 1.0
    work_us = (alone * 1e3 - machine.launch_us) * share
    own = work_us / problem.world
    chunks = math.ceil(problem.m / plan.chunk_rows)
    now = machine.launch_us + own * (machine.slowdown if here else 1.0)
    for index, arrival in enumerate(here):
        rows = min(plan.chunk_rows, problem.m - index % chunks * plan.chunk_rows)
        busy = machine.slowdown if now < here[-1] else 1.0
        now = max(now, arrival) + own * rows / problem.m * busy
    if here:
        now = max(now, here[-1] + tile_us(problem, plan.block, machine) + machine.launch_us)
    return Prediction(alone, copies, now / 1e3)


# -- the program -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Problem:
    m: int
    n: int
    k: int
    world: int
    element: int = 2


@dataclass(frozen=True)
class _Plan:
    overlap: bool = True
    push: str = "engine"
    chunk_rows: int = 1024
    lanes: int = 2
    push_ctas: int = 0
    block: tuple[int, int, int] = (128, 256, 64)


def table(machine: Machine) -> str:
    worlds = (2, 4, 8, 16, 32, 64)
    lines = ["predicted ms overlapped (fraction of the limit)", f"{'m, n, k of a PE':>22}"]
    lines[1] += "".join(f"{f'{world} GPUs':>17}" for world in worlds)
    for m, n, k in SHAPES:
        line = f"{f'{m}, {n}, {k}':>22}"
        for world in worlds:
            plan = _Plan(chunk_rows=min(1024, m))
            found = predict(_Problem(m, n, k, world), plan, machine)
            line += f"{f'{found.total_ms:.3f} ({found.limit_ms / found.total_ms:.2f})':>17}"
        lines.append(line)
    return "\n".join(lines)


def compare(results: dict[str, Any], machine: Machine) -> tuple[str, float]:
    """A table of predicted and measured times, and the largest error of the rows with several GPUs' worth of PEs."""
    lines = [f"{'m, n, k':>22} {'PEs':>4} {'GEMM alone':>11} {'measured':>10} {'predicted':>10} {'error':>7}"]
    worst = 0.0
    for row in results["rows"]:
        problem = _Problem(row["m"], row["n"], row["k"], row["world"])
        given = row["plan"]
        names = {field.name for field in dataclasses.fields(_Plan)}
        plan = _Plan(**{**{name: given[name] for name in names}, "block": tuple(given["block"])})
        found = predict(problem, plan, machine, row["gemm_ms"])
        error = found.total_ms / row["ours_ms"] - 1
        worst = max(worst, abs(error))
        shape = f"{problem.m}, {problem.n}, {problem.k}"
        lines.append(f"{shape:>22} {problem.world:4} {row['gemm_ms']:11.4f} {row['ours_ms']:10.4f} "
                     f"{found.total_ms:10.4f} {error:+7.1%}")
    return "\n".join(lines), worst


def compare_products(rows: list[dict[str, Any]], machine: Machine) -> tuple[str, float]:
    lines = [f"{'m, n, k':>22} {'PEs':>4} {'measured':>10} {'predicted':>10} {'error':>7}"]
    worst = 0.0
    for row in rows:
        problem = _Problem(row["m"], row["n"], row["k"], row["world"])
        high, wide, deep = map(int, row["best"].split(",")[0].split("x"))
        predicted, measured = gemm_ms(problem, (high, wide, deep), machine), row["tried"][row["best"]]["ms"]
        error = predicted / measured - 1
        worst = max(worst, abs(error))
        shape = f"{problem.m}, {problem.n}, {problem.k}"
        lines.append(f"{shape:>22} {problem.world:4} {measured:10.4f} {predicted:10.4f} {error:+7.1%}")
    return "\n".join(lines), worst


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    about = {"table": "predictions for 2 to 64 GPUs", "compare": "predictions beside measured times",
             "products": "the product alone beside measured times"}
    for name, text in about.items():
        command = commands.add_parser(name, help=text)
        for field in dataclasses.fields(Machine):
            kind = int if isinstance(field.default, int) else float
            command.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=field.default)
        if name != "table":
            command.add_argument("results", help="the JSON that the benchmark writes")
            command.add_argument("--most", type=float, default=0.25, help="error that is still taken (default 0.25)")
    given = parser.parse_args(arguments)
    machine = Machine(**{field.name: getattr(given, field.name) for field in dataclasses.fields(Machine)})
    if given.command == "table":
        print(table(machine))
        return 0
    with open(given.results) as file:
        measured = json.load(file)
    text, worst = compare(measured, machine) if given.command == "compare" else compare_products(measured, machine)
    print(text)
    if worst > given.most:
        print(f"the largest error, {worst:.1%}, is more than {given.most:.1%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
