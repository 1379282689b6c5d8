"""
What an all-gather GEMM does for one problem, and in which order: plans, how they are found and kept, and the order of
the tiles.

A plan without tuning comes from the model of the run (bench/model.py). The tuner measures the neighbours of that plan
and keeps the best in a file of the user's cache directory; all PEs must follow the same plan, so one of them reads it
and tells the others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

# -- the order of the tiles ------------------------------------------------------------------------------------------


def place(tile, tiles_m, tiles_n, chunk_tiles, group):
    """
    Where the tile with number `tile` is: the turn of its shard, its chunk in the shard, its row and column of tiles.

    Shards come in turn, the PE's own is turn 0, and within a shard its chunks of `chunk_tiles` rows of tiles: the order
    in which they arrive. Within a chunk `group` rows of tiles are walked down column by column, so that what is in the
    L2 cache is used again. Plain arithmetic: kernels compile this function, and tests call it.
    """
    turn = tile // (tiles_m * tiles_n)
    tile = tile % (tiles_m * tiles_n)
    chunk = tile // (chunk_tiles * tiles_n)
    tile = tile % (chunk_tiles * tiles_n)
    rows = min(tiles_m - chunk * chunk_tiles, chunk_tiles)
    band = tile // (group * tiles_n)
    tile = tile % (group * tiles_n)
    height = min(rows - band * group, group)
    row = chunk * chunk_tiles + band * group + tile % height
    return turn, chunk, row, tile // height


# -- plans -----------------------------------------------------------------------------------------------------------

KERNELS = ("simple", "hopper")
PUSHES = ("engine", "sm")
SHARED_BYTES = 232448  # what a CTA may have on Hopper
MARGIN = 0.005  # by which another plan must be faster to be taken


@dataclass(frozen=True)
class Problem:
    """Each PE has m x k of A and n x k of B."""

    m: int
    n: int
    k: int
    world: int
    element: int = 2  # bytes

    @property
    def flops(self) -> float:
        return 2.0 * self.world * self.m * self.n * self.k


@dataclass(frozen=True)
class Plan:
    kernel: str  # one of KERNELS
    overlap: bool  # False: gather first, then a product by the library
    push: str  # one of PUSHES: who moves the chunks, the copy engines or a few multiprocessors
    chunk_rows: int  # rows of A behind one signal, a multiple of the rows of a tile
    lanes: int  # streams that the copies take in turns
    push_ctas: int  # multiprocessors that are left to pushing; the product does without them
    block: tuple[int, int, int]  # rows, columns and depth of a tile
    stages: int
    group: int  # rows of tiles that are walked down together

    def numbers(self) -> list[int]:
        """For telling it to other PEs."""
        names = [KERNELS.index(self.kernel), int(self.overlap), PUSHES.index(self.push)]
        return [*names, self.chunk_rows, self.lanes, self.push_ctas, *self.block, self.stages, self.group]

    @staticmethod
    def of(numbers: Sequence[int]) -> Plan:
        kernel, overlap, push, chunk_rows, lanes, push_ctas, rows, columns, depth, *rest = numbers
        names = (KERNELS[kernel], bool(overlap), PUSHES[push])
        return Plan(*names, chunk_rows, lanes, push_ctas, (rows, columns, depth), *rest)

    def fault(self, problem: Problem) -> str | None:
        """Why it can't be followed for this problem, or None."""
        rows, columns, depth = self.block
        if min(self.numbers()[3:5] + self.numbers()[6:]) < 1 or self.push_ctas < 0:
            return "every number in it must be positive"
        if self.kernel not in KERNELS or self.push not in PUSHES:
            return f"its kernel is one of {KERNELS}, its push one of {PUSHES}"
        if self.chunk_rows % rows:
            return f"chunks of {self.chunk_rows} rows are no whole number of tiles of {rows}"
        if self.push == "sm" and not self.push_ctas:
            return "nobody pushes: push_ctas is 0"
        if self.kernel == "hopper":
            if problem.m % rows or problem.k % 8 or problem.n % 8 or problem.element != 2:
                return f"TMA wants 2-byte elements, m in whole tiles of {rows}, k and n in multiples of 8"
            if rows % 128 or rows * columns > 128 * 256:
                return f"two warpgroups can't multiply {rows} x {columns}: 128 rows, or more, and at most 32768 sums"
            bytes_used = 2 * (self.stages * (rows + columns) * depth + rows * columns) + 16 * self.stages
            if bytes_used > SHARED_BYTES:
                return f"it needs {bytes_used} bytes of shared memory, a CTA has {SHARED_BYTES}"
        return None


def hopper_fits(problem: Problem) -> bool:
    return HOPPER.fault(problem) is None


SIMPLE = Plan("simple", True, "engine", 64, 1, 0, (32, 32, 32), 3, 8)
HOPPER = Plan("hopper", True, "engine", 1024, 2, 0, (128, 256, 64), 3, 8)

# Tiles of the Hopper kernel and their stages, best first on an H200 (bench/RESULTS.md); the last for small problems.
TILES = (((128, 256, 64), 3), ((128, 128, 64), 5), ((128, 64, 64), 6))


def model() -> ModuleType:
    """bench/model.py, which predicts times."""
    path = Path(__file__).resolve().parents[2] / "bench" / "model.py"
    spec = importlib.util.spec_from_file_location("intarsia_bench_model", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"the model of the run is not at {path}")
    if spec.name not in sys.modules:
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    return sys.modules[spec.name]


def chunk_sizes(problem: Problem, rows: int) -> list[int]:
    """
    Sizes of chunks worth a look: a shard in 1, 2, 4 ... equal parts, down to one row of tiles. First come those near
    as many rows of tiles as are walked down together: smaller chunks make B be read more often.
    """
    tiles = -(-problem.m // rows)
    sizes = {-(-tiles // parts) * rows for parts in (1 << i for i in range(tiles.bit_length()))}
    return sorted(sizes, key=lambda size: abs(math.log2(size / (HOPPER.group * rows))))


def variants(problem: Problem, base: Plan) -> Iterable[Plan]:
    """Plans with other tiles, and that push differently, in the order of preference when times are equal."""
    pushes = [("engine", 0, lanes) for lanes in (2, 1)] + [("sm", ctas, 1) for ctas in (8, 16, 32)]
    for overlap, (block, stages) in [(True, tile) for tile in TILES] + [(False, TILES[0])]:
        tiled = dataclasses.replace(base, overlap=overlap, block=block, stages=stages)
        for push, ctas, lanes in pushes:
            for chunk_rows in chunk_sizes(problem, block[0]):
                yield dataclasses.replace(tiled, push=push, push_ctas=ctas, lanes=lanes, chunk_rows=chunk_rows)


def default(problem: Problem, hopper: bool, machine: object = None) -> tuple[Plan, str]:
    """The plan that the model thinks fastest, and why in a sentence."""
    if not hopper or not hopper_fits(problem):
        rows = SIMPLE.block[0]
        chunk_rows = min(2, -(-problem.m // rows)) * rows
        return dataclasses.replace(SIMPLE, chunk_rows=chunk_rows), "the kernel for every machine"
    if problem.world == 1:
        whole = dataclasses.replace(HOPPER, overlap=False, chunk_rows=-(-problem.m // 128) * 128)
        return whole, "one PE: nothing to gather, a product by the library"
    predict = model()
    machine = machine or predict.Machine()
    timed = [(predict.predict(problem, plan, machine).total_ms, plan) for plan in variants(problem, HOPPER)]
    nearly = 1.01 * min(ms for ms, _ in timed)
    best_ms, best = next((ms, plan) for ms, plan in timed if ms <= nearly)  # what differs by less is not known
    other_ms = min(ms for ms, plan in timed if plan.overlap != best.overlap)
    if best.overlap:
        return best, f"predicted: {best_ms:.3f} ms overlapped, {other_ms:.3f} ms gathered first"
    return best, f"overlap can't win: predicted {best_ms:.3f} ms gathered first, {other_ms:.3f} ms overlapped"


# -- tuning ----------------------------------------------------------------------------------------------------------


Duel = Callable[[Plan, Plan], tuple[float, float]]


def tune(problem: Problem, start: Plan, duel: Duel, most: int = 40) -> tuple[Plan, float]:
    """
    The best of at most `most` plans around `start`, and its milliseconds.

    One choice after the other, each from the best so far: gathering first, the tile and its group, who pushes, the size
    of chunks. `duel(challenger, champion)` gives the milliseconds of both, measured in turns: a GPU that gets warm gets
    slower, and must not favour those that came first. It must give all PEs the same, then all come to the same plan.
    """
    champion, champion_ms = start, 0.0
    seen = {start}

    def challenge(plans: Iterable[Plan]) -> None:
        nonlocal champion, champion_ms
        for plan in plans:
            if plan in seen or plan.fault(problem) is not None or len(seen) > most:
                continue
            seen.add(plan)
            ms, champion_ms = duel(plan, champion)
            if ms < champion_ms * (1 - MARGIN):
                champion, champion_ms = plan, ms

    challenge([dataclasses.replace(start, overlap=not start.overlap)])
    challenge(tile_variants(champion))
    if problem.world > 1:
        ways = [("engine", 0, 1), ("engine", 0, 2), ("sm", 8, 1), ("sm", 16, 1), ("sm", 32, 1)]
        challenge([dataclasses.replace(champion, push=p, push_ctas=c, lanes=s) for p, c, s in ways])
        challenge([dataclasses.replace(champion, chunk_rows=n) for n in chunk_sizes(problem, champion.block[0])])
        challenge([dataclasses.replace(champion, overlap=not champion.overlap)])
    return champion, champion_ms


def tile_variants(plan: Plan) -> Iterable[Plan]:
    """The same with other tiles of our own product; chunks stay at least as large as they are."""
    if plan.kernel != "hopper" or not plan.overlap:
        return
    for block, stages in TILES:
        for group in (8, 16):
            rows = -(-plan.chunk_rows // block[0]) * block[0]
            yield dataclasses.replace(plan, block=block, stages=stages, group=group, chunk_rows=rows)



# -- keeping plans ---------------------------------------------------------------------------------------------------


def folder() -> Path | None:
    """Where plans are kept: in the directory that also holds compiled device files; None if there is none."""
    if given := os.environ.get("INTARSIA_CACHE_DIR"):
        return Path(given) / "plans"
    if (given := os.environ.get("XDG_CACHE_HOME", "")).startswith("/"):
        return Path(given) / "intarsia" / "plans"
    if given := os.environ.get("HOME"):
        return Path(given) / ".cache" / "intarsia" / "plans"
    return None


def file_of(problem: Problem, machine: str) -> Path | None:
    where = folder()
    slug = re.sub(r"[^a-z0-9]+", "-", machine.lower()).strip("-")
    p = problem
    return where and where / f"allgather-gemm-{p.m}-{p.n}-{p.k}-{p.world}-{p.element}-{slug}.json"


def keep(problem: Problem, machine: str, plan: Plan, ms: float) -> Path | None:
    """Writes it aside and renames it into place. Returns where it is, None if it can't be kept."""
    path = file_of(problem, machine)
    if path is None:
        return None
    text = json.dumps({"plan": dataclasses.asdict(plan), "ms": ms, "machine": machine}, indent=1)
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, aside = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        with os.fdopen(fd, "w") as out:
            out.write(text)
        os.replace(aside, path)
        return path
    return None


def kept(problem: Problem, machine: str) -> tuple[Plan | None, str]:
    """The plan that the tuner has left, and what to say about it. A file that holds no plan counts as none."""
    path = file_of(problem, machine)
    if path is None or not path.is_file():
        return None, "not tuned"
    try:
        given = json.loads(path.read_text())
        values = {**given["plan"], "block": tuple(given["plan"]["block"])}
        plan = Plan(**values)
        numbers = plan.numbers()
        if not all(isinstance(x, int) for x in numbers) or len(plan.block) != 3:
            raise ValueError("a number is none")
        fault = plan.fault(problem)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return None, f"{path} holds no plan: {error}"
    if fault is not None:
        return None, f"the plan in {path} is of no use: {fault}"
    return plan, f"tuned: {given.get('ms')} ms"
