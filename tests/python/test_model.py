"""bench/model.py: what is known without measuring: limits, limiting cases, and one run computed by hand."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

MODEL = Path(__file__).resolve().parents[2] / "bench" / "model.py"


@pytest.fixture(scope="module")
def model() -> ModuleType:
    spec = importlib.util.spec_from_file_location("model_under_test", MODEL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def problem(m=4096, n=8192, k=8192, world=8):
    return SimpleNamespace(m=m, n=n, k=k, world=world, element=2)


def plan(**change):
    given = {"overlap": True, "push": "engine", "chunk_rows": 1024, "lanes": 2, "push_ctas": 0, "block": (128, 256, 64)}
    return SimpleNamespace(**{**given, **change})


def test_a_run_computed_by_hand(model):
    # 2 PEs, 2 chunks of 128 x 1000 fp16 = 256,000 bytes. At 25.6 GB/s a chunk takes 10 us: the first is there at
    # 4 (first copy's start) + 10 + 2 (signal) = 16 us, the second at 26. The product alone is 24 + 4 us: a shard 12 us,
    # a chunk 6. It begins at 4, is done with its own shard at 16, with the first chunk at 22, waits until 26, and ends
    # at 32.
    machine = model.Machine(
        link_gbs=25.6, engine_us=4.0, signal_us=2.0, launch_us=4.0, slowdown=1.0, peak_tflops=1e9, sms=100
    )
    found = model.predict(problem(256, 256, 1000, 2), plan(chunk_rows=128), machine, alone_ms=0.028)
    assert found.copy_ms == pytest.approx(0.026)
    assert found.total_ms == pytest.approx(0.032)
    # If a tile takes 8 us, the last chunk is not done before 26 + 8 + 4, however few tiles it has.
    slow = dataclasses.replace(machine, peak_tflops=100 * 2 * 128 * 256 * 1000 / 8e6)
    assert model.predict(problem(256, 256, 1000, 2), plan(chunk_rows=128), slow, 0.028).total_ms == pytest.approx(0.038)
    first = model.predict(problem(256, 256, 1000, 2), plan(chunk_rows=128, overlap=False), machine, alone_ms=0.028)
    assert first.total_ms == pytest.approx(0.026 + 0.028 + 0.004)


def test_the_product_alone_comes_in_waves(model):
    machine = model.Machine(tflops=1e9, peak_tflops=132.0, sms=132, launch_us=0.0)  # 1 TFLOP/s each
    full = problem(128 * 12, 256 * 11, 1000, 1)  # 132 tiles: one wave
    tile_ms = 2 * 128 * 256 * 1000 / 1e12 * 1e3
    assert model.gemm_ms(full, (128, 256, 64), machine) == pytest.approx(tile_ms)
    weak = dataclasses.replace(machine, tflops=66.0)
    assert model.gemm_ms(full, (128, 256, 64), weak) == pytest.approx(2 * tile_ms), "power for half of it"
    more = problem(128 * 12, 256 * 11 + 1, 1000, 1)
    assert model.gemm_ms(more, (128, 256, 64), machine) == pytest.approx(2 * tile_ms)


@pytest.mark.parametrize("push", ["engine", "sm"])
def test_never_below_the_limit_and_more_is_never_faster(model, push):
    for m, n, k in model.SHAPES:
        before = 0.0
        for world in (1, 2, 4, 8, 16, 32, 64):
            ways = plan(push=push, push_ctas=32 if push == "sm" else 0, chunk_rows=min(1024, m))
            found = model.predict(problem(m, n, k, world), ways)
            assert found.total_ms >= found.limit_ms * 0.999
            assert found.total_ms > before
            before = found.total_ms


def test_limiting_cases(model):
    many = problem(world=8)
    fast = model.Machine(link_gbs=1e9, network_gbs=1e9, engine_us=0.0, signal_us=0.0, slowdown=1.0)
    found = model.predict(many, plan(), fast)
    assert found.total_ms == pytest.approx(found.gemm_ms, rel=1e-3), "with endless links the product is all"
    slow = dataclasses.replace(fast, link_gbs=1.0)
    found = model.predict(many, plan(), slow)
    chunk = found.gemm_ms / 8 / 4
    assert found.total_ms == pytest.approx(found.copy_ms + chunk, rel=1e-2), "with slow links the copies and one chunk"
    alone = model.predict(problem(world=1), plan())
    assert alone.copy_ms == 0 and alone.total_ms == pytest.approx(alone.gemm_ms)


def test_smaller_chunks_help_until_their_signals_cost_more(model):
    small = problem(4096, 1024, 8192)  # bound by its copies
    machine = model.Machine(peak_tflops=1e9)  # no matter how long a tile takes
    times = {rows: model.predict(small, plan(chunk_rows=rows), machine).total_ms for rows in (4096, 1024, 256)}
    assert times[4096] > times[1024] > times[256]
    dear = dataclasses.replace(machine, engine_us=100.0)
    assert model.predict(small, plan(chunk_rows=128), dear).total_ms > model.predict(small, plan(), dear).total_ms


def test_other_nodes_cost_their_network(model):
    machine = model.Machine(node=8)
    eight, sixteen = (model.predict(problem(n=1024, world=world), plan(), machine) for world in (8, 16))
    per_shard_ms = 4096 * 8192 * 2 / (machine.network_gbs * 1e9) * 1e3
    assert sixteen.copy_ms - eight.copy_ms == pytest.approx(8 * per_shard_ms, rel=0.01)


def test_pushing_multiprocessors_are_missed_by_the_product(model):
    without, with_ = (
        model.predict(problem(4096, 28672, 8192), plan(push=push, push_ctas=ctas), model.Machine(slowdown=1.0))
        for push, ctas in (("engine", 0), ("sm", 33))
    )
    assert with_.total_ms / without.total_ms == pytest.approx(132 / 99, rel=0.01)


# -- the program -----------------------------------------------------------------------------------------------------


def run(*arguments):
    return subprocess.run([sys.executable, MODEL, *map(str, arguments)], capture_output=True, text=True, check=False)


def results(ours_ms):
    given = {"overlap": True, "push": "engine", "chunk_rows": 1024, "lanes": 2, "push_ctas": 0, "block": [128, 256, 64]}
    row = {"m": 4096, "n": 8192, "k": 8192, "world": 8, "gemm_ms": 6.5, "ours_ms": ours_ms}
    return {"rows": [{**row, "plan": {**given, "kernel": "hopper", "stages": 3}}]}


def test_table(model):
    done = run("table")
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 2 + len(model.SHAPES) and "2 GPUs" in lines[1] and "64 GPUs" in lines[1]
    wanted = model.predict(problem(8192, 8192, 28672, 2), plan())
    assert lines[-1].split()[:5] == ["8192,", "8192,", "28672", f"{wanted.total_ms:.3f}",
                                     f"({wanted.limit_ms / wanted.total_ms:.2f})"]


@pytest.mark.parametrize(("times", "code"), [(1.0, 0), (1.1, 0), (2.0, 1)])
def test_compare(model, tmp_path, times, code):
    wanted = model.predict(problem(), plan(), alone_ms=6.5).total_ms
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results(wanted * times)))
    done = run("compare", path)
    assert done.returncode == code
    error = done.stdout.splitlines()[1].split()[-1]
    assert float(error.rstrip("%")) == pytest.approx(100 * (1 / times - 1), abs=0.06)
    assert ("the largest error, 50.0%, is more than 25.0%" in done.stderr) == bool(code)


@pytest.mark.parametrize(("times", "code"), [(1.0, 0), (3.0, 1)])
def test_products(model, tmp_path, times, code):
    wanted = model.gemm_ms(problem(), (128, 128, 64), model.Machine())
    name = "128x128x64, 5 stages, group 8"
    row = {"m": 4096, "n": 8192, "k": 8192, "world": 8, "best": name, "tried": {name: {"ms": wanted * times}}}
    path = tmp_path / "gemm.json"
    path.write_text(json.dumps([row]))
    done = run("products", path)
    assert done.returncode == code
    assert float(done.stdout.split()[-1].rstrip("%")) == pytest.approx(100 * (1 / times - 1), abs=0.06)


def test_figures_of_the_machine_can_be_given(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results(6.6)))
    slow = run("compare", path, "--link-gbs", "10", "--most", "1000")
    assert slow.returncode == 0 and slow.stdout != run("compare", path, "--most", "1000").stdout


# -- what was measured -----------------------------------------------------------------------------------------------

RESULTS = MODEL.parent / "results"


@pytest.mark.parametrize(
    ("command", "file", "most"),
    [
        ("products", "h200-product-8.json", 0.04),
        ("products", "h200-product-2.json", 0.11),
        ("products", "h200-product-1.json", 0.11),
        ("compare", "h200-arrivals-8.json", 0.02),
    ],
)
def test_predictions_are_near_what_was_measured(command, file, most):
    done = run(command, RESULTS / file, "--most", most)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 10
