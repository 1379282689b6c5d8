"""
Barriers through FlagCX's functions, with a double of an installation: what tests/python/flagcx says, compiled here.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import triton
import triton.language as tl

import intarsia
from intarsia import _units

DOUBLE = Path(__file__).resolve().parent / "flagcx"


def install(folder: Path, *options: str) -> Path:
    """The double, as FlagCX would be installed."""
    source = _units.Source(str(DOUBLE / "device.cu"), None, "cuda", [*options, "-no-lineinfo"])
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "libflagcx_device.ptx").write_bytes(source.compiled("sm_80").ptx)
    shutil.copytree(DOUBLE / "include", folder / "include")
    return folder


@pytest.fixture(scope="module")
def intra(tmp_path_factory):
    return intarsia.flagcx(install(tmp_path_factory.mktemp("intra") / "flagcx", "-DWITH_INTRA", "-DWITH_TEAM"))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = install(tmp_path_factory.mktemp("world") / "flagcx", "-DWITH_INTRA", "-DWITH_TEAM")
    return intarsia.flagcx(folder, team="world")


@triton.jit
def barriers(log, n, PROVIDER: tl.constexpr):
    intarsia.distributed_barrier(log, barrier_provider=PROVIDER, barrier_kind="arrive", order="release", index=n)
    intarsia.distributed_barrier(log, barrier_provider=PROVIDER, barrier_kind="wait", order="acquire", multimem=False)
    intarsia.distributed_barrier(log, barrier_provider=PROVIDER, order="relaxed", index=9)
    intarsia.distributed_barrier(log, barrier_provider=PROVIDER, group_kind="warp", index=1)
    intarsia.distributed_barrier(log, barrier_provider=PROVIDER, group_kind="thread", index=1)


@triton.jit
def multicast(log, PROVIDER: tl.constexpr):
    intarsia.distributed_barrier(log, barrier_provider=PROVIDER, multimem=True)


def run(kernel, *args):
    log = intarsia.zeros(256, "int32")
    compiled = kernel[(1,)](log, *args)
    assert compiled.metadata.intarsia["report"]["calls_left"] == []
    assert "call" not in compiled.asm["ptx"].replace("calls", "")
    words = log.numpy()
    return words[1 : 1 + 8 * words[0]].reshape(-1, 8)[:, :7].tolist()


def test_each_kind_becomes_its_function(simulator, intra):
    assert run(barriers, 5, intra) == [  # group, index, multimem, order
        [10, 2, 5, 0, 2, 0, 0],
        [11, 2, 0, 0, 1, 0, 0],
        [12, 2, 9, 0, 0, 0, 0],
        [12, 1, 1, 0, 3, 0, 0],
        [12, 0, 1, 0, 3, 0, 0],
    ]
    assert run(multicast, intra) == [[12, 2, 0, 1, 3, 0, 0]]


def test_functions_with_a_team(simulator, world):
    assert run(barriers, 5, world) == [  # team, index, context, group, order, scope
        [20, 2, 5, 0, 2, 2, 0],
        [21, 2, 0, 0, 2, 1, 0],
        [22, 2, 9, 0, 2, 0, 0],
        [22, 2, 1, 0, 1, 3, 0],
        [22, 2, 1, 0, 0, 3, 0],
    ]
    with pytest.raises(intarsia.Error, match="the barrier provider 'flagcx_team' does not use multicast memory"):
        run(multicast, world)


def test_a_library_with_teams_only_is_used_for_the_node(simulator, tmp_path):
    provider = intarsia.flagcx(install(tmp_path / "flagcx", "-DWITH_TEAM"))
    assert run(barriers, 5, provider)[0] == [20, 0, 5, 0, 2, 2, 0]


def test_what_is_missing_or_different_is_named(tmp_path):
    with pytest.raises(intarsia.Error, match=r"does not define flagcxIntraBarrierSyncS"):
        intarsia.flagcx(install(tmp_path / "a", "-DWITH_INTRA", "-DWITHOUT_SYNC"))
    with pytest.raises(intarsia.Error, match=r"does not define flagcxDevBarrierArrive") as caught:
        intarsia.flagcx(install(tmp_path / "b", "-DWITH_INTRA"), team="inter")
    assert "flagcxDevBarrierSync" in str(caught.value)
    wanted = r"flagcxDevBarrierWait in '.*' takes \(\.b64(, \.b32){5}\), and barriers are lowered to calls with"
    with pytest.raises(intarsia.Error, match=wanted):
        intarsia.flagcx(install(tmp_path / "c", "-DWITH_OLD_TEAM"), team="inter")


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("-DGROUP_WARP=7", "FlagCX's headers give FLAGCX_COOP_WARP the value 7, and barriers are lowered with 1"),
        ("-DORDER_RELEASE=9", "give flagcxDeviceMemoryOrderRelease the value 9, and barriers are lowered with 2"),
        ("-DNO_TILE_SPAN", "FLAGCX_COOP_TILE_SPAN"),
    ],
)
def test_headers_with_other_values_are_refused(tmp_path, option, says):
    folder = install(tmp_path / "flagcx", "-DWITH_INTRA")
    with pytest.raises(intarsia.Error) as caught:
        intarsia.flagcx(folder, options=[option])
    assert says in str(caught.value)


def test_values_of_teams_matter_only_with_a_team(tmp_path):
    folder = install(tmp_path / "flagcx", "-DWITH_INTRA", "-DWITH_TEAM")
    intarsia.flagcx(folder, options=["-DTEAM_WORLD=3"])
    with pytest.raises(intarsia.Error, match="FLAGCX_TEAM_WORLD the value 3, and barriers are lowered with 2"):
        intarsia.flagcx(folder, team="world", options=["-DTEAM_WORLD=3"])


def test_what_is_no_installation(tmp_path):
    with pytest.raises(intarsia.Error, match=r"there is no FlagCX in .*: it is no folder"):
        intarsia.flagcx(tmp_path / "nowhere")
    with pytest.raises(intarsia.Error, match=r"has no header of FlagCX, flagcx_device_enums\.h; headers= says where"):
        intarsia.flagcx(tmp_path)
    shutil.copytree(DOUBLE / "include", tmp_path / "include")
    with pytest.raises(intarsia.Error, match="has no device code of FlagCX, libflagcx_device"):
        intarsia.flagcx(tmp_path)
    with pytest.raises(intarsia.Error, match="there is no team 'local'; there are 'intra', 'inter', 'world'"):
        intarsia.flagcx(tmp_path, team="local")


def test_the_name_alone_says_where_to_go_on(simulator):
    @triton.jit
    def kernel(log):
        intarsia.distributed_barrier(log, barrier_provider="flagcx")

    with pytest.raises(intarsia.Error, match="barrier_provider 'flagcx' needs an installation of FlagCX"):
        run(kernel)


@pytest.mark.skipif(not shutil.which("clang") or not shutil.which("llc"), reason="there is no clang or no llc")
def test_bitcode(simulator, tmp_path):
    folder = tmp_path / "flagcx"
    (folder / "lib").mkdir(parents=True)
    shutil.copytree(DOUBLE / "include", folder / "include")
    command = ["clang", "--target=nvptx64-nvidia-cuda", "-O1", "-emit-llvm", "-c", str(DOUBLE / "device.c")]
    subprocess.run([*command, "-o", str(folder / "lib" / "libflagcx_device.bc")], check=True)
    provider = intarsia.flagcx(folder)
    assert run(multicast, provider) == [[12, 2, 0, 1, 3, 0, 0]]
