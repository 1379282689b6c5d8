"""The corpus's own machinery: small floats, comparison, workers, headers; and the hand-written PTX through the parser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import cases  # noqa: E402
import cuda_cases  # noqa: E402
import generate  # noqa: E402
import roundtrip  # noqa: E402
import tools  # noqa: E402
from workers import Pool  # noqa: E402

LIBRARY = Path(os.environ.get("INTARSIA_LIBRARY", roundtrip.ROOT / "build/release/lib/libintarsia.so"))


@pytest.mark.parametrize("name", ["bf16", "fp8e4nv", "fp8e5"])
def test_small_floats_hold_their_own_values(name: str) -> None:
    kind = cases.DTYPES[name]
    bits = np.arange(1 << 8 * kind.itemsize, dtype=kind.store)
    values = kind.decode(bits)
    number = ~np.isnan(values) & np.isfinite(values)
    assert (kind.encode(values[number]) == bits[number]).all()


def test_small_floats_round_to_nearest_even() -> None:
    e5, e4, bf = (cases.DTYPES[n] for n in ("fp8e5", "fp8e4nv", "bf16"))
    # 18 lies between 16 and 20, 22 between 20 and 24; the even ones have a mantissa that ends in 0.
    assert e5.round(np.array([18.0, 22.0, 18.1, -18.0, 1e9, 2.0**-17])).tolist() == [16, 24, 20, -16, 57344, 0]
    # Three bits of mantissa: 17 between 16 and 18, 19 between 18 and 20. 448 is the largest.
    assert e4.round(np.array([17.0, 19.0, 500.0, 2.0**-9, 2.0**-10])).tolist() == [16, 20, 448, 2.0**-9, 0]
    assert bf.round(np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8])).tolist() == [1, 1 + 2.0**-6]
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves) & (np.abs(halves) < 57344)].astype(np.float64)
    got = e5.round(halves)
    scale = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(np.abs(halves), 2.0**-30))), -14) - 2)
    assert (got == np.rint(halves / scale) * scale).all()


def test_compare_tells_the_first_difference() -> None:
    a = np.array([[1.0, 2.0], [3.0, np.nan]])
    assert cases.compare(a, a, 0) is None
    assert cases.compare(a, a + 1e-3, 1e-2) is None
    fault = cases.compare(a, a + [[0, 0], [1, 0]], 1e-2)
    assert fault is not None and fault.startswith("[1, 0] is") and "1 of 4 differ" in fault
    assert cases.compare(np.array([1]), np.array([2]), 10) is not None, "integers have no tolerance"
    assert cases.compare(np.array([1.0]), np.array([np.nan]), 10) is not None
    assert cases.compare(np.zeros(2), np.zeros(3), 1) is not None


def end_or_double(job: int) -> int:
    if job == 13:
        os._exit(3)
    if job == 14:
        raise ValueError("fourteen")
    return 2 * job


def test_a_worker_that_dies_costs_one_job() -> None:
    results = {job: (error, answer) for job, error, answer in Pool(2, end_or_double).run([1, 13, 2, 14, 3])}
    assert {j: r[1] for j, r in results.items() if r[0] is None} == {1: 2, 2: 4, 3: 6}
    assert "status 3" in results[13][0]
    assert results[14][0] == "ValueError: fourteen"


def test_headers_make_one_job_a_producer_and_target(tmp_path: Path) -> None:
    source = tmp_path / "x.cu"
    source.write_text("// corpus: nvrtc nvcc; sm_80 sm_90a; -std=c++17\n// corpus two: nvcc; sm_80; -G -c\n__device__ int x;\n")
    jobs = generate.header_jobs(source)
    assert [j.file for j in jobs] == ["nvrtc/x.sm_80.ptx", "nvrtc/x.sm_90a.ptx", "nvcc/x.sm_80.ptx", "nvcc/x.sm_90a.ptx",
                                      "nvcc/x_two.sm_80.ptx"]
    assert jobs[-1].flags == ["rdc", "debug"] and jobs[-1].options == ["-G"]
    source.write_text("__device__ int x;\n")
    with pytest.raises(SystemExit, match="no line"):
        generate.header_jobs(source)


def test_the_corpus_is_as_wide_as_it_says() -> None:
    pytest.importorskip("triton")
    names = {c.name for c in cases.load()}
    kernels = {c.kernel.__name__ for c in cases.CASES}
    assert len(names) == len(cases.CASES) and len(kernels) >= 100
    assert all(c.reference or c.check_with or c.faults for c in cases.CASES)
    assert {t for c in cases.CASES for t in c.targets} == set(cases.TARGETS)


def test_a_case_compiles_without_ptxas() -> None:
    pytest.importorskip("triton")
    entry = next(c for c in cases.load() if c.name == "reduce.dot_product")
    ptx, facts = cases.compile_ptx(entry, cases.SM80)
    assert ".visible .entry dot_product" in ptx and facts["num_warps"] == 4 and facts["shared"] > 0


@pytest.mark.parametrize("path", sorted((HERE / "ptx").glob("*.ptx")), ids=lambda p: p.stem)
@pytest.mark.parametrize("rename", [False, True], ids=["as it is", "renamed"])
def test_hand_written_files_keep_their_machine_code(path: Path, rename: bool, tmp_path: Path) -> None:
    if not tools.assemblers():
        pytest.skip("there is no ptxas")
    assert LIBRARY.exists(), f"{LIBRARY} is not built"
    item = roundtrip.Item(path, "hand", roundtrip.given_flags(path))
    renamer = roundtrip.build_renamer(str(tmp_path)) if rename else None
    outcome, detail = roundtrip.check(item, str(LIBRARY), renamer, True, tmp_path)
    assert outcome in roundtrip.FINE, f"{outcome}: {detail}"


def test_a_case_runs_on_the_simulator() -> None:
    pytest.importorskip("triton")
    command = [sys.executable, str(HERE / "run_sim.py"), "--library", str(LIBRARY), "--only"]
    done = subprocess.run([*command, "control.asserted*"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "2 of 2 cases passed" in done.stdout, done.stdout + done.stderr
    assert subprocess.run([*command, "no such case"], capture_output=True, check=False).returncode == 1


# What NVRTC compiles fast, and what has one case of each kind: values, text, faults, refusals.
QUICK = ["basics", "control", "intrinsics", "memory", "textures", "warp", "cooperative", "tensorcore"]


def test_cuda_cases_run_on_the_simulator(tmp_path: Path) -> None:
    if tools.nvrtc() is None:
        pytest.skip("there is no NVRTC")
    jobs = [j for name in QUICK for j in generate.header_jobs(cuda_cases.FOLDER / f"{name}.cu")]
    jobs = [j for j in jobs if j.file == f"nvrtc/{Path(j.source).stem}.sm_80.ptx"]
    assert len(jobs) == len(QUICK) and generate.build(jobs, tmp_path, 1, whole=False) == []
    command = [sys.executable, str(HERE / "run_sim.py"), "--library", str(LIBRARY), "--corpus", str(tmp_path), "--only", "cuda/*", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    result = re.search(r"(\d+) of (\d+) cases passed, 0 refused by name, 0 failed", done.stdout)
    assert done.returncode == 0 and result and result[1] == result[2] and int(result[1]) > 60, done.stdout + done.stderr


def test_a_cuda_case_that_fails_is_told(tmp_path: Path) -> None:
    build = cuda_cases.Build("hand/x.sm_80.ptx", "sm_80", tmp_path / "x.ptx")
    build.path.write_text(".visible .entry k(\n)\n.weak .entry other(\n)\n")
    assert build.kernels == {"k", "other"}

    def made(**more: Any) -> cuda_cases.CudaCase:
        given = {"reference": lambda x, n, **_: {"x": x + n}, "check_with": None, "faults": None}
        return cuda_cases.CudaCase("cuda/x.k", "k", {"n": 3}, (1,), {}, (), tolerance=0, source=HERE, **{**given, **more})

    assert made().fits(build) and not made(but="hand/*").fits(build) and not made(builds="nvcc/*").fits(build)
    before = {"x": np.arange(4)}
    assert made().check_all(before, {"x": np.arange(4) + 3}, "") is None
    assert made().check_all(before, {"x": np.arange(4) + 2}, "") == "x[0] is np.int64(2), expected np.int64(3) (4 of 4 differ)"
    assert made().check_all(before, {"x": np.arange(4) + 3}, "a") == "printed 'a', expected nothing"
    assert made(prints=lambda x, n: str(n)).check_all(before, {"x": np.arange(4) + 3}, "4") == "printed '4', expected '3'"
    with pytest.raises(ValueError, match="nothing to be checked against"):
        cuda_cases.case("k")


def test_units_of_the_last_place() -> None:
    one = np.array([1.0, 1 + 2**-23, 2.0**-149, np.inf, np.nan, 1.0, -np.inf], np.float32)
    want = np.array([1.0, 1.0, 0.0, 3.5e38, np.nan, np.nan, 1.0])
    far = cuda_cases.ulps(one, want)
    assert far[:5].tolist() == [0, 1, 1, 0, 0] and np.isinf(far[5]) and far[6] > 1e9
    assert cuda_cases.within(1, one[:3], want[:3]) is None
    fault = cuda_cases.within(0.5, one[:2], want[:2], np.array([5.0, 7.0]))
    assert fault is not None and fault.startswith("1.00 ulp off at [1] (np.float64(7.0))")


def test_a_wrong_outcome_is_told() -> None:
    entry = cases.Case("x.y", None, {"n": 3}, (1,), {}, (), lambda x, n, **_: {"x": x + n}, None, 0, None, HERE)
    before = {"x": np.arange(4)}
    assert entry.check(before, {"x": np.arange(4) + 3}) is None
    assert entry.check(before, {"x": np.arange(4) + 4}) == "x[0] is np.int64(4), expected np.int64(3) (4 of 4 differ)"
