"""Barriers and signals between PEs, in Triton kernels on the simulator."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
import triton
import triton.language as tl
from kernels import ARCHS, assemble, build, machine_code

import intarsia
from intarsia import _link

PROGRAMS = Path(__file__).resolve().parent / "programs"
ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve()


def expect_good(done, *lines):
    assert done.returncode == 0, done.stdout + done.stderr
    for line in lines:
        assert line in done.stdout, (line, done.stdout)


# -- what they do ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_barrier_hands_data_over(launch, n):
    expect_good(launch(n, PROGRAMS / "barrier_slice.py"), *(f"PE {pe} of {n}: good" for pe in range(n)))


@pytest.mark.parametrize(("kind", "group", "n"), [("split", "block", 2), ("sync", "warp", 3), ("split", "thread", 2)])
def test_rounds(launch, kind, group, n):
    done = launch(n, PROGRAMS / "barrier_rounds.py", kind, "60", group)
    expect_good(done, *(f"PE {pe} of {n}: 60 rounds of {kind} by {group}: 0 wrong, 0 calls left" for pe in range(n)))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_signals_and_queries(launch, n):
    expect_good(launch(n, PROGRAMS / "barrier_signals.py"), *(f"PE {pe} of {n}: good" for pe in range(n)))


@pytest.mark.parametrize("n", [2, 8])
def test_example_03(launch, n):
    example = ROOT / "examples" / "03-device-barrier" / "device-barrier.py"
    races = ["--check", "races"] if n == 2 else []
    done = launch(n, example, "--case", "check", "-n", "300", "--times", "2", "--slow", str(n - 1), options=races)
    expect_good(done)
    assert len(re.findall(r": equal to NumPy's, largest difference 0$", done.stdout, re.M)) == 2 * n, done.stdout


@pytest.mark.parametrize(
    ("arrive", "wait", "ordered"),
    [
        ("release", "acquire", True), ("acq_rel", "acq_rel", True), ("relaxed", "acquire", False),
        ("release", "relaxed", False), ("acquire", "release", False), ("relaxed", "relaxed", False),
    ],
)  # fmt: skip
def test_the_race_detector_agrees_with_the_orders(launch, arrive, wait, ordered):
    done = launch(2, PROGRAMS / "barrier_orders.py", arrive, wait, options=["--check", "races"])
    assert (done.returncode == 0) == ordered, done.stdout + done.stderr
    assert ordered or re.search(r"reads 4 bytes at address \S+, .* of symmetric memory, which PE \d", done.stderr)


@pytest.mark.parametrize(("kind", "group"), [("split", "block"), ("sync", "warp"), ("split", "thread")])
def test_rounds_have_no_race(launch, kind, group):
    done = launch(3, PROGRAMS / "barrier_rounds.py", kind, "8", group, options=["--check", "races"])
    expect_good(done, *(f"PE {pe} of 3: 8 rounds of {kind} by {group}: 0 wrong" for pe in range(3)))


def test_signals_have_no_race(launch):
    expect_good(launch(3, PROGRAMS / "barrier_signals.py", options=["--check", "races"]), "PE 2 of 3: good")


def test_the_first_program_of_the_document(launch, tmp_path):
    (block, *_) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "barriers.md").read_text(), re.M | re.S)
    around = """
        import numpy as np, triton, triton.language as tl, intarsia
        intarsia.init()
        me, n, size = intarsia.my_pe(), intarsia.n_pes(), 8 * 256
        x = intarsia.array(np.arange(size, dtype=np.float32) + me)
        inbox, out = intarsia.symmetric(size, "float32"), intarsia.zeros(size, "float32")
        # here
        assert np.array_equal(out.numpy(), 4 * np.arange(size) + 3 * me + (me - 1) % n)
        print(f"PE {me}: good")
    """
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(around).replace("# here\n", block))
    expect_good(launch(3, program), "PE 0: good", "PE 1: good", "PE 2: good")


# -- what becomes of them --------------------------------------------------------------------------------------------


@triton.jit
def one(comm, x, KIND: tl.constexpr, GROUP: tl.constexpr, ORDER: tl.constexpr):
    tl.store(x, 1)
    intarsia.distributed_barrier(comm, group_kind=GROUP, order=ORDER, barrier_kind=KIND)


def barrier_line() -> int:
    """Of the barrier of the kernel `one`."""
    lines = HERE.read_text().splitlines()
    return next(i for i, text in enumerate(lines, 1) if "distributed_barrier(comm, group_kind=GROUP" in text)


@pytest.fixture
def comm(simulator):
    comm = simulator.Comm(n_barriers=4, n_signals=2)
    yield comm
    if not comm._backend.closed:
        comm.free()


def ptx_of(comm, *constants) -> str:
    compiled = one.warmup(comm, intarsia.zeros(1), *constants, grid=(1,))
    return compiled.asm["ptx"]


def listing(ptx: str, tmp_path: Path) -> str:
    assemble(ptx, tmp_path, 80)
    return machine_code((tmp_path / "kernel.cubin").read_bytes(), tmp_path)


@pytest.mark.parametrize("group", ["thread", "warp", "block"])
@pytest.mark.parametrize("kind", ["arrive", "wait", "sync"])
def test_no_call_is_left(comm, kind, group):
    ptx = ptx_of(comm, kind, group, "acq_rel")
    assert not re.search(r"^\s*(@\S+\s+)?call\b", ptx, re.M)
    assert "intarsia." not in re.sub(r"//.*", "", ptx).replace("intarsia/", "")
    assert ".func" not in ptx


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kind", ["arrive", "wait", "sync"])
def test_machine_code_has_no_call(tmp_path, kind, arch):
    constants = {"KIND": kind, "GROUP": "block", "ORDER": "acq_rel"}
    kernel = build(one, {"comm": "*i64", "x": "*fp32"} | dict.fromkeys(constants, "constexpr"), arch, constants)
    code = machine_code(kernel.asm["cubin"], tmp_path)
    assert "BAR.SYNC" in code and not re.search(r"\bCALL\b|\bRET\b", code)


@pytest.mark.parametrize(
    ("kind", "order", "releases", "acquires"),
    [
        ("arrive", "acquire", 0, 0), ("arrive", "release", 1, 0), ("arrive", "acq_rel", 1, 0),
        ("wait", "acquire", 0, 1), ("wait", "release", 0, 0), ("wait", "acq_rel", 0, 1),
        ("sync", "acquire", 0, 1), ("sync", "release", 1, 0), ("sync", "acq_rel", 1, 1),
    ],
)  # fmt: skip
def test_orders_cost_what_they_order(comm, tmp_path, kind, order, releases, acquires):
    """In machine code, beside a relaxed barrier: a release is a fence, an acquire drops what the L1 cache holds."""
    ordered, relaxed = (listing(ptx_of(comm, kind, "block", o), tmp_path) for o in (order, "relaxed"))
    assert ordered.count("MEMBAR") - relaxed.count("MEMBAR") == releases
    assert ordered.count("CCTL.IVALL") - relaxed.count("CCTL.IVALL") == releases + acquires


@triton.jit
def grid_numbers(comm, box, out):
    token = intarsia.distributed_barrier(comm)
    number = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    tl.store(out + number, 1 + 0 * token)


def test_the_index_is_the_program_of_any_grid(simulator):
    comm, out = simulator.Comm(n_barriers=12), simulator.zeros(12, "int32")
    grid_numbers[(2, 3, 2)](comm, out, out)
    assert out.numpy().tolist() == [1] * 12
    with pytest.raises(intarsia.Error, match=r"uses barrier 17 of a communicator that has 12; its grid is \(2, 3, 3\)"):
        grid_numbers[(2, 3, 3)](comm, out, out)
    comm.free()


def test_a_limited_wait_is_told_at_the_line_of_the_kernel(comm):
    ptx = ptx_of(comm, "sync", "block", "acq_rel")
    with _link.link("one.ptx", ptx.encode(), _link.no_units, limit_waits=True) as linked:
        (table,) = re.findall(r"intarsia_waits\[\d+\] = \{([^}]*)\}", linked.ptx)
    lines = bytes(int(number, 0) for number in table.split(",")).decode().rstrip("\0").splitlines()
    line = barrier_line()
    assert lines and all(re.match(rf"one\t\S*/test_barriers\.py:{line}\t", text) for text in lines), lines


def test_kernels_depend_on_the_code_of_the_barriers(comm, monkeypatch):
    """Triton's cache must not give a kernel with the barriers of an older version."""
    from intarsia import _barriers

    before, one.hash = one.cache_key, None
    assert one.cache_key == before
    monkeypatch.setattr(_barriers.Operation, "cache_key", property(lambda self: "of another version"))
    one.hash = None
    assert one.cache_key != before
    one.hash = None


def test_kernels_depend_on_what_they_are_compiled_for(comm):
    from intarsia import _driver

    simulated = one.cache_key
    _driver.deactivate()
    try:
        assert one.cache_key != simulated
    finally:
        _driver.activate()
    assert one.cache_key == simulated


def test_operations_are_for_kernels(comm):
    with pytest.raises(intarsia.Error, match=r"intarsia\.signal_wait is for kernels: call it inside"):
        intarsia.signal_wait(comm, 0, 1)


# -- what is refused -------------------------------------------------------------------------------------------------


def refused(kernel, comm, *args) -> str:
    with pytest.raises(intarsia.Error) as caught:
        kernel.warmup(comm, *args, grid=(1,))
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "group", "order", "message", "hint"),
    [
        ("meet", "block", "acq_rel", "barrier_kind can't be 'meet'",
         "barrier_kind may be 'arrive' or 'wait' or 'sync'"),
        ("sync", "cta", "acq_rel", "group_kind can't be 'cta'", "group_kind may be 'thread' or 'warp' or 'block'"),
        ("sync", "block", "seq_cst", "order can't be 'seq_cst'",
         "order may be 'relaxed' or 'acquire' or 'release' or 'acq_rel'"),
        ("sync", "tile_span", "acq_rel",
         "group_kind can't be 'tile_span': a span of tiles needs three numbers that the barrier can't carry yet",
         "group_kind may be 'thread' or 'warp' or 'block'"),
        ("sync", "lanes", "acq_rel",
         "group_kind can't be 'lanes': a set of lanes needs a mask that the barrier can't carry yet",
         "group_kind may be 'thread' or 'warp' or 'block'"),
    ],
)  # fmt: skip
def test_names_are_checked_when_the_kernel_is_compiled(comm, kind, group, order, message, hint):
    text = refused(one, comm, intarsia.zeros(1), kind, group, order)
    assert text.startswith(f"{HERE}:{barrier_line()}:5: error: {message}")
    assert f"hint: {hint}" in text


@triton.jit
def in_space(comm, SPACE: tl.constexpr):
    intarsia.distributed_barrier(comm, space=SPACE)


@triton.jit
def multicast(comm):
    intarsia.distributed_barrier(comm, multimem=True)


@triton.jit
def by(comm, PROVIDER: tl.constexpr):
    intarsia.distributed_barrier(comm, barrier_provider=PROVIDER)


@triton.jit
def at(comm, INDEX: tl.constexpr):
    intarsia.distributed_barrier(comm, index=INDEX)


@triton.jit
def at_block(comm):
    intarsia.distributed_barrier(comm, index=tl.arange(0, 4))


@triton.jit
def at_wide(comm, index: tl.int64):
    intarsia.distributed_barrier(comm, index=index)


@triton.jit
def no_comm(comm):
    intarsia.distributed_barrier(5)


@triton.jit
def bad_op(comm):
    intarsia.signal(comm, 0, 0, "or", 1)


@triton.jit
def bad_cmp(comm):
    intarsia.signal_wait(comm, 0, 1, "~=")


@triton.jit
def bad_pointer(comm):
    intarsia.peer_ptr(comm, 7, 0)


@pytest.mark.parametrize(
    ("kernel", "args", "message"),
    [
        (in_space, ["node"], "space can't be 'node': it is the same as 'device'"),
        (in_space, ["cluster"], "space can't be 'cluster': a barrier between the CTAs of a cluster is none between"),
        (in_space, ["moon"], "space can't be 'moon'"),
        (multicast, [], "multimem=True can't be used: the simulator has no multicast memory"),
        (by, ["nccl"], "barrier_provider can't be 'nccl'"),
        (at, [-1], "there is no barrier -1"),
        (at, [2.5], "the index is a float, and must be an integer"),
        (at_block, [], "the index is <['4'], int32>, and must be an integer"),
        (at_wide, [1 << 40], "the index is int64, and must be int32"),
        (no_comm, [], "the communicator is a int, and must be a pointer"),
        (bad_op, [], "op can't be 'or'"),
        (bad_cmp, [], "cmp can't be '~='"),
        (bad_pointer, [], "peer_ptr takes a pointer to symmetric memory, not a int"),
    ],
)
def test_arguments_are_checked_when_the_kernel_is_compiled(comm, kernel, args, message):
    text = refused(kernel, comm, *args)
    assert f"error: {message}" in text, text
    assert text.startswith(f"{HERE}:")


def test_an_index_is_checked_at_the_launch(comm):
    with pytest.raises(intarsia.Error, match=r"kernel 'at' uses barrier 4 of a communicator that has 4; its grid is"):
        at[(1,)](comm, 4)
    with pytest.raises(intarsia.Error, match=r"uses barrier 4 of a communicator that has 4; its grid is \(5, 1, 1\)"):
        in_space[(5,)](comm, "device")
    in_space[(4,)](comm, "device")


@triton.jit
def some_meet(comm, out, EARLY: tl.constexpr):
    if EARLY:
        if tl.program_id(0) >= 4:
            return
        intarsia.distributed_barrier(comm)
    elif tl.program_id(0) < 4:
        intarsia.distributed_barrier(comm)
    tl.store(out + tl.program_id(0), 1)


@triton.jit
def loop_meets(comm, n):
    for _ in range(n):
        intarsia.distributed_barrier(comm, index=4)


def test_a_launch_is_refused_only_for_barriers_that_it_comes_to(comm):
    out = intarsia.zeros(8, "int32")
    some_meet[(8,)](comm, out, False)
    assert out.numpy().tolist() == [1] * 8
    out.zero_()
    some_meet[(8,)](comm, out, True)
    assert out.numpy().tolist() == [1] * 4 + [0] * 4
    loop_meets[(1,)](comm, 0)
    intarsia.synchronize()


def test_a_freed_communicator_is_refused(simulator):
    comm = simulator.Comm()
    assert repr(comm) == "<intarsia communicator of PEs (0,), 1 barriers, 0 signals>"
    comm.free()
    assert repr(comm).startswith("<intarsia freed communicator")
    with pytest.raises(intarsia.Error, match=r"the communicator of PEs \(0,\) was freed"):
        in_space[(1,)](comm, "device")
    with pytest.raises(intarsia.Error, match="was freed"):
        comm.free()


def test_a_communicator_that_is_dropped_is_told(simulator):
    comm = simulator.Comm()
    with pytest.warns(intarsia.Warning, match="a communicator was dropped without free"):
        del comm


def test_pes_that_want_different_communicators_are_told(launch):
    program = "import intarsia\nintarsia.init()\nintarsia.Comm(n_barriers=2 + intarsia.my_pe())\n"
    done = launch(2, program)
    assert done.returncode != 0
    told = re.search(r"PE \d asked for \d+ bytes aligned to 256 at (\S+), but PE \d asked for \d+", done.stderr)
    assert told and told[1].endswith("script.py:3"), done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_barriers": 0}, "a communicator without barriers and signals is of no use"),
        ({"n_barriers": -1}, "-1 is no number of barriers"),
        ({"n_barriers": 1.5}, "1.5 is no number of barriers"),
        ({"n_barriers": 1, "n_signals": 1 << 40}, "1099511627776 is no number of signals"),
        ({"team": []}, "a team has at least one PE"),
        ({"team": [1]}, "there is no PE 1 for the team; there are 1"),
        ({"team": ["a"]}, "'a' is no PE"),
    ],
)
def test_what_makes_no_communicator(simulator, options, message):
    with pytest.raises(intarsia.Error) as caught:
        simulator.Comm(**options)
    assert message in str(caught.value)
