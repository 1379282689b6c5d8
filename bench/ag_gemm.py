#!/usr/bin/env python3
"""
All-gather GEMM (examples/02-allgather-gemm) beside torch's, on the nine shapes; under torchrun:

    torchrun --nproc_per_node=8 bench/ag_gemm.py --tune --out results/8-gpus

For every shape: first the products of `--iterations` random problems are compared with torch's, a PE chosen at random
being late each time; then times are taken, each the median of `--repeats` after a warm-up, averaged over the PEs.

    torch       NCCL's all-gather, then torch.matmul
    cuBLAS      torch.matmul of all of A, nothing to gather
    GEMM        our kernel on all of A, nothing to wait for
    copy        the pushes alone, until all has arrived
    limit       the longer of GEMM and copy: nothing that overlaps them is faster
    ours        the operator
    speed-up    torch over ours
    fraction    limit over ours
    orders      what a call of the operator costs the CPU, in microseconds

NCCL takes no two ranks on one GPU. Where PEs share one, "torch" is our gathering and torch.matmul, and says so; PEs
then take turns on the GPU, and times mean little.

Written: OUT.csv, OUT.json (for `bench/model.py compare`), OUT.png, and with `--timeline` OUT.trace.json, one iteration
for chrome://tracing or Perfetto: copies, waits and tiles of every PE.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import datetime
import importlib.util
import json
import os
import random
import statistics
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # streams that wait must not hold up others

import torch
import triton

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "02-allgather-gemm"
sys.path[:0] = [str(EXAMPLE), str(ROOT / "bench")]

from model import SHAPES  # noqa: E402

import intarsia  # noqa: E402

Shape = tuple[int, int, int]

COLUMNS = (
    ("torch_ms", "torch", "9.4f"), ("cublas_ms", "cuBLAS", "9.4f"), ("gemm_ms", "GEMM", "9.4f"),
    ("copy_ms", "copy", "9.4f"), ("limit_ms", "limit", "9.4f"), ("ours_ms", "ours", "9.4f"),
    ("speed_up", "speed-up", "8.3f"), ("fraction", "fraction", "8.3f"), ("orders_us", "orders", "6.0f"),
    ("error", "error", "8.1e"),
)  # fmt: skip


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ag_gemm_example", EXAMPLE / "ag-gemm.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# -- who we are ------------------------------------------------------------------------------------------------------


class World:
    """The PEs, and how torch gathers among them."""

    def __init__(self) -> None:
        self.rank, self.size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        local = int(os.environ.get("LOCAL_RANK", self.rank))
        here = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        self.shared = here > torch.cuda.device_count()
        torch.cuda.set_device(local % torch.cuda.device_count())
        if self.size > 1:
            backend = "gloo" if self.shared else "nccl"
            torch.distributed.init_process_group(backend)
        intarsia.init("cuda")

    @property
    def reference(self) -> str:
        if self.size == 1:
            return "torch.matmul (one PE, nothing to gather)"
        if self.shared:
            return "our gathering, then torch.matmul (NCCL takes no two ranks on one GPU)"
        return "NCCL's all-gather, then torch.matmul"

    def mean(self, ms: float) -> float:
        if self.size == 1:
            return ms
        value = torch.tensor([ms], device="cpu" if self.shared else "cuda", dtype=torch.float64)
        torch.distributed.all_reduce(value)
        return value.item() / self.size

    def gather_lists(self, mine: list[Any]) -> list[Any]:
        if self.size == 1:
            return mine
        everybody: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(everybody, mine)
        return [item for part in everybody for item in part]


# -- one shape -------------------------------------------------------------------------------------------------------


def shard(m: int, k: int, iteration: int, pe: int) -> torch.Tensor:
    """The same on every PE."""
    make = torch.Generator("cuda").manual_seed(1000 * iteration + pe)
    return torch.randn(m, k, dtype=torch.float16, device="cuda", generator=make)


def check(op: Any, world: World, b: torch.Tensor, iterations: int) -> float:
    """The largest relative error of some iterations that nobody waits between, a PE being late at random in each."""
    p = op.problem
    late = random.Random(5)
    errors = torch.zeros(iterations, device="cuda")
    c = torch.empty(world.size * p.m, p.n, dtype=torch.float16, device="cuda")
    for i in range(iterations):
        mine = shard(p.m, p.k, i, world.rank)
        c.fill_(float("nan"))
        who, how, long = late.randrange(world.size), late.choice(["gpu", "host"]), late.uniform(0.2, 3)
        if who == world.rank and how == "gpu":
            torch.cuda._sleep(int(long * 1.7e6))
        elif who == world.rank:
            time.sleep(long / 1e3)
        op(mine, b, c)
        whole = torch.cat([shard(p.m, p.k, i, pe) for pe in range(world.size)])
        want = torch.matmul(whole, b.T)
        errors[i] = torch.linalg.vector_norm((c - want).float()) / torch.linalg.vector_norm(want.float())
        del mine, whole, want  # the streams know: the operator ends with a join
    worst = errors.max().item()
    return float("nan") if errors.isnan().any() else worst


def medians_ms(world: World, op: Any, calls: dict[str, Any], repeats: int) -> dict[str, float]:
    """
    Of each call every PE's median, averaged over the PEs. Calls run in turns, so that a GPU that gets warm slows all of
    them; in front of each the L2 cache is emptied.
    """
    flush = torch.empty(32 << 20, dtype=torch.int32, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in calls}
    for index in range(repeats + 3):
        for name, call in calls.items():
            flush.zero_()
            ms = op.time_of(call)
            if index >= 3:
                times[name].append(ms)
    return {name: world.mean(statistics.median(column)) for name, column in times.items()}


def orders_us(op: Any, call: Any, repeats: int) -> float:
    """What a call costs the CPU, the GPU being busy with something else."""
    times = []
    for _ in range(repeats + 1):
        intarsia.barrier()
        torch.cuda._sleep(3_000_000)
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:]) * 1e6


def gemm_alone(op: Any, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, me: int) -> Any:
    """Our kernel on all of A, with nothing to wait for."""
    import ag_hopper

    plan, p = op.plan, op.problem
    own = a[me * p.m : (me + 1) * p.m]
    signals = torch.zeros(1, dtype=torch.int64, device="cuda")
    bound = ag_hopper.bind(plan, p, own, a, b, c, signals, 1)
    return lambda: ag_hopper.launch(bound, 1, me, op.sms, plan, False)


def torch_way(op: Any, world: World, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Any:
    p = op.problem
    whole = torch.empty(world.size * p.m, p.k, dtype=torch.float16, device="cuda")
    if world.size == 1:
        return lambda: torch.matmul(a, b.T, out=c)
    if world.shared:
        first = dataclasses.replace(op.plan, overlap=False, push="engine")
        return lambda: op.run(first, a, b, c)

    def call() -> None:
        torch.distributed.all_gather_into_tensor(whole, a)
        torch.matmul(whole, b.T, out=c)

    return call


def measure(example: ModuleType, world: World, shape: Shape, given: argparse.Namespace) -> dict[str, Any]:
    m, n, k = shape
    op = example.AllGatherGemm(m, n, k, "float16")
    make = torch.Generator("cuda").manual_seed(world.rank + 77)
    b = torch.randn(n, k, dtype=torch.float16, device="cuda", generator=make)
    a = shard(m, k, 0, world.rank)
    c = torch.empty(world.size * m, n, dtype=torch.float16, device="cuda")
    if given.tune:
        op.tune(a, b, c)
    error = check(op, world, b, given.iterations)
    row: dict[str, Any] = {"m": m, "n": n, "k": k, "world": world.size, "error": error, "right": error < 2e-3}
    row |= {"plan": dataclasses.asdict(op.plan), "why": op.why}
    if not given.only_check:
        row |= times(op, world, a, b, c, given.repeats)
    op.close()
    return row


def times(op: Any, world: World, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, repeats: int) -> dict[str, float]:
    p = op.problem
    whole = torch.cat([shard(p.m, p.k, 0, pe) for pe in range(world.size)])
    calls = {
        "torch_ms": torch_way(op, world, a, b, c),
        "cublas_ms": lambda: torch.matmul(whole, b.T, out=c),
        "ours_ms": lambda: op(a, b, c),
        "copy_ms": lambda: op.gather(op.plan, a),
    }
    hopper = op.plan.kernel == "hopper"
    calls["gemm_ms"] = gemm_alone(op, whole, b, c, world.rank) if hopper else calls["cublas_ms"]
    found = medians_ms(world, op, calls, repeats)
    found["orders_us"] = world.mean(orders_us(op, calls["ours_ms"], repeats))
    if world.size == 1:
        found["copy_ms"] = 0.0
    found["limit_ms"] = max(found["gemm_ms"], found["copy_ms"])
    found["speed_up"] = found["torch_ms"] / found["ours_ms"]
    found["fraction"] = found["limit_ms"] / found["ours_ms"]
    return found


# -- the timeline ----------------------------------------------------------------------------------------------------


def timeline(example: ModuleType, world: World, shape: Shape) -> list[dict[str, Any]]:
    """The events of this PE, in microseconds of its GPU's clock since the beginning."""
    m, n, k = shape
    op = example.AllGatherGemm(m, n, k, "float16")
    if op.plan.kernel != "hopper":
        raise SystemExit("the timeline is made by the kernel for Hopper, which this shape or GPU does not get")
    op.plan = dataclasses.replace(op.plan, overlap=True)
    b = torch.randn(n, k, dtype=torch.float16, device="cuda")
    a = shard(m, k, 0, world.rank)
    c = torch.empty(world.size * m, n, dtype=torch.float16, device="cuda")
    plan = op.plan
    rows, columns = plan.block[0], plan.block[1]
    tiles = world.size * triton.cdiv(m, rows) * triton.cdiv(n, columns)
    for _ in range(3):
        stamps = torch.zeros(tiles * 3 + 1, dtype=torch.int64, device="cuda")
        example.note_time[(1,)](stamps, tiles * 3, num_warps=1)
        op.run(plan, a, b, c, stamps)  # compiled, and everybody is warm
    stamps.zero_()
    copies = (world.size - 1) * triton.cdiv(m, plan.chunk_rows) if plan.push == "engine" else 0
    intarsia.barrier()
    example.note_time[(1,)](stamps, tiles * 3, num_warps=1)
    op.host.ag_time_copies(copies, example._stream())
    op.run(plan, a, b, c, stamps)
    torch.cuda.synchronize()
    events = tile_events(stamps.cpu().tolist(), world.rank, op.ctas(plan))
    events += copy_events(op, copies, world, triton.cdiv(m, plan.chunk_rows))
    op.close()
    return events


def event(name: str, pe: int, row: str, begin: float, end: float, **about: Any) -> dict[str, Any]:
    took = max(end - begin, 0)
    return {"name": name, "ph": "X", "pid": f"PE {pe}", "tid": row, "ts": begin, "dur": took, "args": about}


def tile_events(stamps: list[int], pe: int, n_ctas: int) -> list[dict[str, Any]]:
    """Of each tile the wait in front of it, if there was one, and its computation, behind the tile before."""
    begin = stamps[-1]
    events, done = [], [0.0] * n_ctas
    for tile in range(len(stamps) // 3):
        waits, loads, computed = ((stamp - begin) / 1e3 if stamp else 0.0 for stamp in stamps[3 * tile : 3 * tile + 3])
        cta = tile % n_ctas
        if waits:
            events.append(event("wait", pe, f"CTA {cta:03} loader", waits, loads, tile=tile))
        events.append(event(f"tile {tile}", pe, f"CTA {cta:03}", max(loads, done[cta]), computed, tile=tile))
        done[cta] = computed
    return events


def copy_events(op: Any, copies: int, world: World, n_chunks: int) -> list[dict[str, Any]]:
    if not copies:
        return []
    import ctypes

    ms = (ctypes.c_float * (2 * copies))()
    count = op.host.ag_copy_times(ms, 2 * copies)
    if count != 2 * copies:
        raise RuntimeError(f"{count} of {2 * copies} times of copies came back")
    events = []
    for i in range(copies):
        peer = (world.rank - 1 - i // n_chunks) % world.size
        lane = f"copies, lane {i % op.plan.lanes}"
        name = f"chunk {i % n_chunks} to PE {peer}"
        events.append(event(name, world.rank, lane, ms[2 * i] * 1e3, ms[2 * i + 1] * 1e3))
    return events


# -- the producer alone ----------------------------------------------------------------------------------------------


def producer(example: ModuleType, world: World, repeats: int) -> list[dict[str, Any]]:
    """How fast PE 0 pushes a shard of 64 MiB to PE 1, in chunks, by each way; the others do nothing meanwhile."""
    m, k = 4096, 8192
    rows = []
    op = example.AllGatherGemm(m, 1024, k, "float16")
    a = shard(m, k, 0, world.rank)
    ways = [("engine", 0, 1), ("engine", 0, 2), ("sm", 8, 1), ("sm", 16, 1), ("sm", 32, 1), ("sm", 64, 1)]
    for push, ctas, lanes in ways:
        for chunk_rows in (4096, 1024, 256, 128):
            plan = dataclasses.replace(op.plan, push=push, push_ctas=ctas, lanes=lanes, chunk_rows=chunk_rows)
            seconds = [one_push(op, plan, a, world) for _ in range(repeats + 1)][1:]
            if world.rank == 0:
                gbs = a.nbytes * (world.size - 1) / statistics.median(seconds) / 1e9
                rows.append({"push": push, "ctas": ctas, "lanes": lanes, "chunk_rows": chunk_rows, "gbs": gbs})
                print(f"producer: {push:6} {ctas:3} CTAs, {lanes} lanes, chunks of {chunk_rows:5} rows "
                      f"({chunk_rows * k * 2 / 2**20:5.1f} MiB): {gbs:8.1f} GB/s", flush=True)
    op.close()
    return rows


def one_push(op: Any, plan: Any, a: torch.Tensor, world: World) -> float:
    """Seconds until the pushes of PE 0 are done, by events around them."""
    intarsia.barrier()
    op.epoch += 1
    if world.rank == 0:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(2_000_000)  # orders for the copies are given meanwhile
        begin.record()
        stream, lanes = op._fork(plan)
        if plan.push == "sm":
            op._push_by_sms(plan, a)
        else:
            op._push_by_engine(plan, a, lanes)
        op.host.ag_join(lanes, stream)
        end.record()
        end.synchronize()
    intarsia.barrier()
    return begin.elapsed_time(end) / 1e3 if world.rank == 0 else 0.0


# -- what is written -------------------------------------------------------------------------------------------------


def line(row: dict[str, Any]) -> str:
    text = f"{row['m']:6} {row['n']:6} {row['k']:6} "
    return text + " ".join(f"{row[name]:{kind}}" if name in row else " " * 9 for name, _, kind in COLUMNS)


def heading() -> str:
    titles = " ".join(f"{title:>{int(kind.split('.')[0])}}" for _, title, kind in COLUMNS)
    return f"{'m':>6} {'n':>6} {'k':>6} {titles}"


def save(out: str, results: dict[str, Any], png: bool) -> None:
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(f"{out}.json").write_text(json.dumps(results, indent=1))
    names = ["m", "n", "k", "world", *(name for name, _, _ in COLUMNS), "right"]
    with open(f"{out}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(results["rows"])
    if png:
        draw(f"{out}.png", results)


def draw(path: str, results: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    titles = ["m", "n", "k"]
    titles += [f"{title}, {name[-2:]}" if name[-3:] in ("_ms", "_us") else title for name, title, _ in COLUMNS]
    cells = [
        [f"{row[x]}" for x in "mnk"]
        + [f"{row[name]:{kind.lstrip('0123456789')}}" if name in row else "" for name, _, kind in COLUMNS]
        for row in results["rows"]
    ]
    figure, axes = pyplot.subplots(figsize=(13, 0.8 + 0.32 * len(cells)))
    axes.axis("off")
    axes.set_title(f"All-gather GEMM, fp16, {results['world']} PEs on {results['gpu']}; torch: {results['reference']}",
                   fontsize=9)
    drawn = axes.table(cellText=cells, colLabels=titles, loc="center", cellLoc="right")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(8)
    drawn.scale(1, 1.25)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    pyplot.close(figure)


def about(world: World) -> dict[str, Any]:
    from intarsia import _gpu_asm

    return {
        "date": datetime.date.today().isoformat(), "gpu": torch.cuda.get_device_name(), "world": world.size,
        "gpus": torch.cuda.device_count(), "torch": torch.__version__, "triton": triton.__version__,
        "nvshmem": _gpu_asm.version(), "reference": world.reference,
    }  # fmt: skip


def shapes_of(text: str) -> tuple[Shape, ...]:
    if text == "all":
        return SHAPES
    return tuple((int(m), int(n), int(k)) for m, n, k in (part.split(",") for part in text.split()))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=shapes_of, default=SHAPES, help="such as '4096,1024,8192 8192,8192,8192'")
    parser.add_argument("--out", default="ag_gemm", help="where to write, without ending (default ag_gemm)")
    parser.add_argument("--iterations", type=int, default=20, help="that are compared (default 20)")
    parser.add_argument("--repeats", type=int, default=20, help="of each time (default 20)")
    parser.add_argument("--tune", action="store_true", help="find the best plan first, and keep it")
    parser.add_argument("--only-check", action="store_true", help="take no times")
    parser.add_argument("--producer", action="store_true", help="the bandwidth of pushes from PE 0 as well")
    parser.add_argument("--timeline", type=shapes_of, metavar="SHAPE", help="trace one iteration of this shape")
    parser.add_argument("--no-png", action="store_true", help="no picture; it needs matplotlib")
    given = parser.parse_args()
    if not given.no_png and importlib.util.find_spec("matplotlib") is None:
        parser.error("matplotlib is not installed: pip install -r tools/requirements-bench.txt, or --no-png")
    return given


def main() -> int:
    given = arguments()
    world = World()
    example = load_example()
    results = about(world) | {"rows": []}
    if world.rank == 0:
        print(f"{results['gpu']}, {world.size} PEs, torch {results['torch']}, Triton {results['triton']}, "
              f"NVSHMEM {results['nvshmem']}; torch: {world.reference}\n{heading()}", flush=True)
    for shape in given.shapes:
        row = measure(example, world, shape, given)
        right = world.gather_lists([row["right"]])
        row["right"], row["wrong_pes"] = all(right), [pe for pe, good in enumerate(right) if not good]
        results["rows"].append(row)
        if world.rank == 0:
            wrong = "" if row["right"] else f"  WRONG on {row['wrong_pes']}"
            print(f"{line(row)}{wrong}  {row['why']}", flush=True)
    if given.producer and world.size > 1:
        results["producer"] = producer(example, world, given.repeats)
    events = [e for shape in given.timeline or () for e in world.gather_lists(timeline(example, world, shape))]
    if world.rank == 0:
        save(given.out, results, not given.no_png)
        if events:
            Path(f"{given.out}.trace.json").write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))
    if world.size > 1:
        torch.distributed.destroy_process_group()
    return 0 if all(row["right"] for row in results["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
