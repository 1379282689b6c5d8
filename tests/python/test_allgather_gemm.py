"""Example 02 beyond its run: the order of the tiles, plans, the tuner, and what the kernel for Hopper compiles to."""

from __future__ import annotations

import dataclasses
import importlib
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "02-allgather-gemm"


@pytest.fixture(scope="module")
def ag_plan() -> Iterator[ModuleType]:
    sys.path.insert(0, str(EXAMPLE))
    yield importlib.import_module("ag_plan")
    sys.path.remove(str(EXAMPLE))


@pytest.fixture
def plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of the test's own; where in it plans lie."""
    monkeypatch.setenv("INTARSIA_CACHE_DIR", str(tmp_path))
    return tmp_path / "plans"


# -- the order of the tiles ------------------------------------------------------------------------------------------


def cases(count: int) -> Iterator[tuple[int, int, int, int, int]]:
    """world, tiles_m, tiles_n, chunk_tiles, group"""
    yield from [(1, 1, 1, 1, 1), (8, 32, 112, 8, 8), (2, 5, 3, 7, 4), (3, 9, 1, 4, 16)]
    draw = random.Random(3)
    for _ in range(count):
        yield draw.randint(1, 9), draw.randint(1, 20), draw.randint(1, 9), draw.randint(1, 24), draw.randint(1, 24)


def test_every_tile_is_computed_once_in_the_order_of_arrival(ag_plan):
    for world, tiles_m, tiles_n, chunk_tiles, group in cases(400):
        n_tiles = world * tiles_m * tiles_n
        places = [ag_plan.place(tile, tiles_m, tiles_n, chunk_tiles, group) for tile in range(n_tiles)]
        every = {(turn, row, column) for turn in range(world) for row in range(tiles_m) for column in range(tiles_n)}
        assert len(places) == len(every) and {(turn, row, column) for turn, _, row, column in places} == every
        assert all(chunk == row // chunk_tiles for _, chunk, row, _ in places), "a tile lies in its chunk"
        arrivals = [(turn, chunk) for turn, chunk, _, _ in places]
        assert arrivals == sorted(arrivals), "what arrives first is used first"


def test_a_band_of_rows_is_walked_down_column_by_column(ag_plan):
    places = [ag_plan.place(tile, 6, 3, 6, 4) for tile in range(18)]
    assert [(row, column) for _, _, row, column in places] == [
        *[(row, column) for column in range(3) for row in range(4)],
        *[(row, column) for column in range(3) for row in (4, 5)],
    ]


def test_both_kernels_use_that_order(ag_plan):
    hopper = importlib.import_module("ag_hopper")
    assert hopper.place_of.fn is ag_plan.place
    text = (EXAMPLE / "ag-gemm.py").read_text()
    assert "place_of = triton.jit(place)" in text
    assert text.count("place_of(tile, tiles_m, tiles_n, chunk_tiles, group)") == 1


# -- plans -----------------------------------------------------------------------------------------------------------


def test_a_plan_travels_as_numbers(ag_plan):
    problem = ag_plan.Problem(4096, 1024, 8192, 8)
    some = [ag_plan.SIMPLE, *ag_plan.variants(problem, ag_plan.HOPPER)]
    assert len(some) > 50
    for plan in some:
        assert ag_plan.Plan.of(plan.numbers()) == plan
        assert len(plan.numbers()) <= 16  # N_VOTES in the host file


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"chunk_rows": 100}, "no whole number of tiles of 128"),
        ({"push": "sm"}, "push_ctas is 0"),
        ({"stages": 5}, "bytes of shared memory, a CTA has 232448"),
        ({"stages": 0}, "positive"),
        ({"block": (64, 256, 64), "chunk_rows": 64}, "can't multiply 64 x 256"),
        ({"block": (256, 256, 64)}, "can't multiply 256 x 256"),
    ],
)
def test_a_plan_that_cant_be_followed_says_why(ag_plan, change, says):
    problem = ag_plan.Problem(4096, 1024, 8192, 8)
    assert ag_plan.HOPPER.fault(problem) is None
    assert says in dataclasses.replace(ag_plan.HOPPER, **change).fault(problem)


@pytest.mark.parametrize("given", [(100, 1024, 64, 2, 2), (128, 12, 64, 2, 2), (128, 8, 12, 2, 2), (128, 8, 8, 2, 4)])
def test_what_tma_cant_do_is_left_to_the_simple_kernel(ag_plan, given):
    problem = ag_plan.Problem(*given)
    assert "TMA wants" in ag_plan.HOPPER.fault(problem)
    plan, why = ag_plan.default(problem, True)
    assert plan.kernel == "simple" and plan.fault(problem) is None and why == "the kernel for every machine"


def test_chunks_are_whole_tiles_and_cover_the_shard(ag_plan):
    for m in (1, 128, 1000, 4096, 8192):
        sizes = ag_plan.chunk_sizes(ag_plan.Problem(m, 8, 8, 2), 128)
        assert len(sizes) == len(set(sizes)) and all(size % 128 == 0 for size in sizes)
        assert max(sizes) == -(-m // 128) * 128 and min(sizes) == 128
    assert ag_plan.chunk_sizes(ag_plan.Problem(8192, 8, 8192, 2), 128)[0] == 8 * 128


def test_the_default_overlaps_where_that_wins_and_says_where_it_cant(ag_plan):
    machine = ag_plan.model().Machine
    problem = ag_plan.Problem(4096, 8192, 8192, 8)
    plan, why = ag_plan.default(problem, True)
    assert plan.overlap and plan.fault(problem) is None and re.match(r"predicted: [\d.]+ ms overlapped, [\d.]+ ms", why)
    plan, why = ag_plan.default(problem, True, machine(slowdown=3.0))
    assert not plan.overlap and why.startswith("overlap can't win: predicted ")
    plan, why = ag_plan.default(ag_plan.Problem(4096, 8192, 8192, 1), True)
    assert not plan.overlap and "one PE: nothing to gather" in why


def test_who_pushes_depends_on_the_size(ag_plan):
    small, _ = ag_plan.default(ag_plan.Problem(256, 1024, 1024, 8), True)
    large, _ = ag_plan.default(ag_plan.Problem(8192, 8192, 8192, 8), True)
    assert (small.push, large.push) == ("sm", "engine")


def test_where_copies_take_longer_than_the_product_tiles_are_smaller(ag_plan):
    by_copies, _ = ag_plan.default(ag_plan.Problem(4096, 1024, 8192, 8), True)
    by_product, _ = ag_plan.default(ag_plan.Problem(4096, 8192, 8192, 8), True)
    assert (by_copies.block, by_product.block) == ((128, 128, 64), (128, 256, 64))


# -- tuning ----------------------------------------------------------------------------------------------------------


def test_the_tuner_finds_the_best_and_measures_no_plan_twice(ag_plan):
    problem = ag_plan.Problem(4096, 1024, 8192, 8)
    duels = []

    def ms_of(plan):
        ms = 1.0 + abs(plan.chunk_rows - 512) / 4096 + (plan.group != 16) + (plan.block != (128, 128, 64))
        return ms + (plan.push != "sm") + abs(plan.push_ctas - 16) / 100 + 9 * (not plan.overlap)

    def duel(challenger, champion):
        duels.append(challenger)
        warmth = 1 + len(duels)  # who comes later is slower, both of them
        return ms_of(challenger) * warmth, ms_of(champion) * warmth

    start, _ = ag_plan.default(problem, True)
    best, _ = ag_plan.tune(problem, start, duel)
    assert (best.chunk_rows, best.group, best.block) == (512, 16, (128, 128, 64))
    assert (best.push, best.push_ctas, best.overlap) == ("sm", 16, True)
    assert start not in duels and len(duels) == len(set(duels)) <= 40
    assert all(plan.fault(problem) is None for plan in duels)


def test_the_tuner_takes_gathering_first_where_that_is_faster(ag_plan):
    problem = ag_plan.Problem(1024, 1024, 1024, 8)
    start, _ = ag_plan.default(problem, True)
    best, ms = ag_plan.tune(problem, start, lambda *plans: tuple(2.0 if plan.overlap else 1.5 for plan in plans))
    assert not best.overlap and ms == 1.5


def test_the_tuner_keeps_what_others_dont_clearly_beat(ag_plan):
    problem = ag_plan.Problem(4096, 1024, 8192, 8)
    start, _ = ag_plan.default(problem, True)
    assert ag_plan.tune(problem, start, lambda _challenger, _champion: (0.999, 1.0)) == (start, 1.0)


def test_the_tuner_stops_in_time(ag_plan):
    measured = []
    start, _ = ag_plan.default(ag_plan.Problem(4096, 1024, 8192, 8), True)
    duel = lambda challenger, _champion: measured.append(challenger) or (1.0, 1.0)  # noqa: E731
    ag_plan.tune(ag_plan.Problem(4096, 1024, 8192, 8), start, duel, most=5)
    assert len(measured) == 5


# -- keeping plans ---------------------------------------------------------------------------------------------------


def test_a_plan_is_kept_per_problem_and_machine(ag_plan, plans):
    problem = ag_plan.Problem(4096, 1024, 8192, 8)
    assert ag_plan.kept(problem, "NVIDIA H200") == (None, "not tuned")
    plan = dataclasses.replace(ag_plan.HOPPER, chunk_rows=512, group=4)
    path = ag_plan.keep(problem, "NVIDIA H200", plan, 1.25)
    assert path == plans / "allgather-gemm-4096-1024-8192-8-2-nvidia-h200.json"
    assert plans.stat().st_mode & 0o077 == 0 and [p.name for p in plans.iterdir()] == [path.name]
    assert ag_plan.kept(problem, "NVIDIA H200") == (plan, "tuned: 1.25 ms")
    assert ag_plan.kept(problem, "NVIDIA H100")[0] is None
    assert ag_plan.kept(dataclasses.replace(problem, world=4), "NVIDIA H200")[0] is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: text.replace('"chunk_rows": 1024', '"chunk_rows": "1024"'),
        lambda text: text.replace('"chunk_rows": 1024', '"chunk_rows": 1000'),
        lambda text: text.replace('"hopper"', '"other"'),
        lambda text: text.replace('"group": 8', '"groups": 8'),
        lambda text: json.dumps({"plan": {**json.loads(text)["plan"], "block": [128, 256]}}),
    ],
)
def test_a_damaged_plan_is_none_and_says_so(ag_plan, plans, damage):
    problem = ag_plan.Problem(4096, 1024, 8192, 8)
    path = ag_plan.keep(problem, "H200", ag_plan.HOPPER, 1.0)
    text = path.read_text()
    assert damage(text) != text
    path.write_text(damage(text))
    plan, why = ag_plan.kept(problem, "H200")
    assert plan is None and str(path) in why


def test_without_a_directory_nothing_is_kept(ag_plan, monkeypatch, tmp_path):
    problem = ag_plan.Problem(4096, 1024, 8192, 8)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("INTARSIA_CACHE_DIR", str(tmp_path / "file"))
    assert ag_plan.keep(problem, "H200", ag_plan.HOPPER, 1.0) is None
    for name in ("INTARSIA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert ag_plan.folder() is None and ag_plan.keep(problem, "H200", ag_plan.HOPPER, 1.0) is None
    assert ag_plan.kept(problem, "H200") == (None, "not tuned")


# -- the example with other plans ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "options"),
    [
        (2, ["--push", "sm", "--chunk-rows", "32"]),
        (3, ["--push", "sm", "--push-ctas", "2", "-m", "100", "-k", "33", "--dtype", "float32", "--slow", "0"]),
        (4, ["--chunk-rows", "32", "-m", "100", "-n", "70", "-k", "40", "--slow", "1", "--iterations", "5"]),
        (2, ["--gather-first"]),
        (3, ["--gather-first", "--push", "sm", "--slow", "2"]),
        (1, ["--gather-first"]),
    ],
)
def test_every_way_to_push_gives_the_same(launch, n, options):
    done = launch(n, EXAMPLE / "ag-gemm.py", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"equal to NumPy's, largest difference 0\.0", done.stdout)) == n


@pytest.mark.parametrize(
    "options",
    [
        ["-m", "128", "-n", "136", "-k", "72"],
        ["-m", "256", "-n", "64", "-k", "64", "--push", "sm", "--dtype", "bfloat16", "--iterations", "1"],
    ],
)
def test_the_kernel_for_hopper(launch, options):
    """TMA, warps with roles, wgmma and the wait between them, on the simulator."""
    done = launch(2, EXAMPLE / "ag-gemm.py", "--kernel", "hopper", *options, options=("--arch", "sm_90a"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"equal to NumPy's, largest difference 0\.0", done.stdout)) == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--chunk-rows", "33"], "chunks of 33 rows are no whole number of tiles of 32"),
        (["--kernel", "hopper"], "the kernel for Hopper needs GPUs of compute capability 9.0"),
    ],
)
def test_a_plan_that_cant_be_followed_ends_the_run(launch, options, says):
    done = launch(1, EXAMPLE / "ag-gemm.py", *options)
    assert done.returncode == 1 and says in done.stderr


def test_arrays_that_dont_fit_are_refused(simulator, ag_plan, monkeypatch):
    import numpy as np

    spec = importlib.util.spec_from_file_location("ag_gemm_under_test", EXAMPLE / "ag-gemm.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, example)
    spec.loader.exec_module(example)
    op = example.AllGatherGemm(64, 32, 96, "float16")
    a, b, c = (simulator.empty(shape, np.float16) for shape in ((64, 96), (32, 96), (64, 32)))
    op(a, b, c)
    with pytest.raises(ValueError, match=r"b is \(96, 32\) with strides \(32, 1\), not \(32, 96\) row by row"):
        op(a, simulator.empty((96, 32), np.float16), c)
    with pytest.raises(ValueError, match="the elements of a have 4 bytes, not 2"):
        op(simulator.empty((64, 96), np.float32), b, c)
    hopper = importlib.import_module("ag_hopper")
    problem = ag_plan.Problem(128, 32, 96, 1)
    with pytest.raises(ValueError, match="float16, float16 and float32: this kernel wants one type"):
        wide = simulator.empty((64, 32), np.float32)
        hopper.bind(ag_plan.HOPPER, problem, a, a, b, wide, simulator.zeros(1, "int64"), 1)
    op.close()


# -- the kernel for Hopper -------------------------------------------------------------------------------------------


def compile_hopper(ag_plan: ModuleType, plan: Any, waits: bool) -> Any:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.experimental.gluon._runtime import GluonASTSource

    hopper = importlib.import_module("ag_hopper")
    rows, columns, depth = plan.block
    blocks = {"own": (rows, depth), "gathered": (rows, depth), "b": (columns, depth), "c": (rows // 2, columns // 2)}
    constants = {"stamps": None, "N_CTAS": 132, "WAITS": waits, "STAGES": plan.stages, "REGISTERS": 240}
    wide = {"signals": "*i64", "epoch": "i64"}
    names = hopper.hopper_gemm.arg_names
    signature = {name: "constexpr" if name in constants else wide.get(name, "i32") for name in names}
    for name, (height, width) in blocks.items():
        signature[name] = f"tensordesc<fp16[{height}, {width}],{hopper.shared_layout(width)!r}>"
    constexprs = {(names.index(name),): value for name, value in constants.items()}
    attrs = {(names.index(name),): [["tt.divisibility", 16]] for name in ("signals", "m", "n", "k")}
    source = GluonASTSource(hopper.hopper_gemm, signature, constexprs, attrs)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("tile", range(3))
def test_the_wait_is_inlined_and_costs_the_tensor_cores_nothing(ag_plan, tile, waits):
    from intarsia import _gpu_asm

    assert len(ag_plan.TILES) == 3
    block, stages = ag_plan.TILES[tile]
    plan = dataclasses.replace(ag_plan.HOPPER, block=block, stages=stages)
    assert plan.fault(ag_plan.Problem(4096, 1024, 8192, 8)) is None
    kernel = compile_hopper(ag_plan, plan, waits)
    ptx = kernel.asm["ptx"]
    assert ptx.count("ld.acquire.sys.global") == int(waits)
    assert ptx.count("fence.proxy.async.global") == int(waits), "TMA reads what ordinary loads have acquired"
    if waits:
        behind = ptx[ptx.index("ld.acquire.sys.global") :]
        assert behind.index("fence.proxy.async.global") < behind.index("cp.async.bulk.tensor")
        assert kernel.metadata.intarsia["report"]["calls_left"] == []
    columns = block[1]
    assert ptx.count(f"wgmma.mma_async.sync.aligned.m64n{columns}k16") == 2 * 4 * block[0] // 128
    _code, said = _gpu_asm.assemble("kernel.ptx", ptx, "sm_90a")
    entry = next(f for f in said["functions"] if f["entry"])
    assert said["advice"] == [], "neither serialised nor without its registers"
    assert (entry["spilled"], entry["stack"], entry["registers"]) == (0, 0, 168)


# -- the harness -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["ag_gemm.py", "gemm.py"])
def test_without_torch_the_benchmarks_say_so(script):
    if importlib.util.find_spec("torch") is not None:
        pytest.skip("torch is installed")
    done = subprocess.run([sys.executable, ROOT / "bench" / script], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "No module named 'torch'" in done.stderr
