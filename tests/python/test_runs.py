"""Kernels on the simulator through stock Triton, on one and on several PEs, and the examples as a user runs them."""

from __future__ import annotations

import re
import signal

import numpy as np
import pytest
import triton
import triton.language as tl

import intarsia

unit = intarsia.load(source=r"""
extern "C" __device__ void scale(float *p, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= by;
}
extern "C" __device__ int first_lane(void) { return threadIdx.x % 32 == 0; }
extern "C" __device__ void out_of_bounds(int *p) {
    p[1000] = 1;
}
template <class T> __device__ T twice(T x) { return x + x; }
""")
twice_double = unit.instance("twice<double>")


@triton.jit
def mixed(x, y, n, by, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
    token = intarsia.call(unit.scale, [y, n, by])
    tl.debug_barrier()
    tl.store(y + i, tl.load(intarsia.after(y, token) + i, mask=i < n) - 1, mask=i < n)


def test_tile_code_and_region_together(simulator):
    n = 1000
    values = np.random.default_rng(0).standard_normal(n, np.float32)
    y = simulator.array(np.full(n + 24, 7, np.float32))
    mixed[(triton.cdiv(n, 128),)](simulator.array(values), y, n, 3.0, 128, num_warps=4)
    result = y.numpy()
    np.testing.assert_allclose(result[:n], (values + 1) * np.float32(3) - 1, rtol=1e-6)
    assert (result[n:] == 7).all()


@triton.jit
def arguments(out, nothing, pair, flag, n, wide, f, K: tl.constexpr):
    total = pair[0] + pair[1] + n + wide + K
    if flag:
        total += 1000
    if nothing is None:
        total += 10000
    tl.store(out, total.to(tl.float64) + twice_double(f.to(tl.float64)))


def test_all_kinds_of_launch_arguments(simulator):
    out = simulator.zeros(1, "float64")
    arguments[(1,)](out, None, (2, 3), True, 5, 1 << 40, 0.25, K=7)
    assert out.numpy()[0] == 2 + 3 + 5 + (1 << 40) + 7 + 1000 + 10000 + 0.5


narrow = intarsia.load(source=r"""
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __device__ int quarters(__half x) { return (int)(__half2float(x) * 4); }
extern "C" __device__ int eighths(__nv_bfloat16 x) { return (int)(__bfloat162float(x) * 8); }
extern "C" __device__ __half half_and(float x) { return __float2half(x + 0.5f); }
extern "C" __device__ __nv_bfloat16 brain_and(float x) { return __float2bfloat16(x + 0.25f); }
extern "C" __device__ int8_t negate(int8_t x) { return -x; }
extern "C" __device__ int above(uint8_t x) { return x; }
extern "C" __device__ uint64_t triple(uint64_t x) { return x * 3; }
extern "C" __device__ bool differs(bool a, bool b) { return a != b; }
""")


@triton.jit
def narrow_types(out, x, f):
    tl.store(out + 0, narrow.quarters(f.to(tl.float16)))
    tl.store(out + 1, narrow.eighths(f.to(tl.bfloat16)))
    tl.store(out + 2, intarsia.call(narrow.half_and, [f], dtype=tl.float16))
    if x > 0:  # under a guard, if the compiler makes it one
        tl.store(out + 3, intarsia.call(narrow.brain_and, [f], dtype=tl.bfloat16))
    tl.store(out + 4, intarsia.call(narrow.negate, [x.to(tl.int8)], dtype=tl.int8))
    tl.store(out + 5, narrow.above((-x).to(tl.uint8)))
    tl.store(out + 6, narrow.triple(x.to(tl.uint64) << 33))
    tl.store(out + 7, narrow.differs(x > 3, True))
    tl.store(out + 8, narrow.differs(x > 30, True))


def test_narrow_types_go_in_and_come_out(simulator):
    out = simulator.zeros(9, "float64")
    narrow_types[(1,)](out, 5, 1.5)
    assert out.numpy().tolist() == [6, 12, 2, 1.75, -5, 251, 15 << 33, 0, 1]


def test_a_callable_grid_and_warmup(simulator):
    x = simulator.array(np.ones(256, np.float32))
    y = simulator.zeros(256)
    mixed[lambda meta: (256 // meta["BLOCK"],)](x, y, 256, 2.0, BLOCK=128)
    assert (y.numpy() == 3).all()


@triton.jit
def store_one(x):
    tl.store(x, 1.0)


@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def tuned(x, y, n, by, BLOCK: tl.constexpr):
    mixed(x, y, n, by, BLOCK)


def test_kernels_are_loaded_ahead(simulator):
    @triton.jit
    def put(p, x):
        tl.store(p, x)

    p = intarsia.zeros(4, "int32")
    compiled = put.warmup(p, 5, grid=(1,))
    assert compiled.module is None
    intarsia.prepare(compiled)
    loaded = compiled.module
    assert loaded is not None
    assert put[(1,)](p, 5).module is loaded
    assert p.numpy().tolist() == [5, 0, 0, 0]
    with pytest.raises(intarsia.Error, match="is no compiled kernel"):
        intarsia.prepare(put)


def test_autotuning_takes_the_first_configuration(simulator):
    y = simulator.zeros(128)
    tuned[lambda meta: (128 // meta["BLOCK"],)](simulator.array(np.ones(128, np.float32)), y, 128, 2.0)
    assert (y.numpy() == 3).all() and tuned.best_config.kwargs == {"BLOCK": 128}


def test_the_interpreter_is_refused(python):
    script = """
import intarsia
unit = intarsia.load(source='extern "C" __device__ void f(int *p) { *p = 1; }')
"""
    done = python(script, env={"TRITON_INTERPRET": "1"})
    assert done.returncode == 1 and "can't run in Triton's interpreter" in done.stderr, done.stderr


@triton.jit
def only_region(p):
    unit.out_of_bounds(p)


def test_a_fault_names_kernel_source_line_and_the_way_there(simulator):
    only_region[(1,)](simulator.zeros(4, "int32"))
    with pytest.raises(simulator.Error, match="only_region") as caught:
        simulator.synchronize()
    assert "PE 0" in str(caught.value)
    (diagnostic,) = caught.value.diagnostics
    _, source, call = diagnostic.places  # and no second way there, by lines of the PTX
    assert (source.file.endswith("source.cu"), source.label) == (True, "source line")
    assert (call.file, call.label) == (__file__, "inlined at this source line")


class Tensor:
    """As a torch tensor on the CPU looks to Triton."""

    dtype = "float32"

    def __init__(self):
        self._values = np.zeros(16, np.float32)

    def data_ptr(self):
        return self._values.ctypes.data


def test_memory_of_the_host_is_refused(simulator):
    with pytest.raises(simulator.Error, match=r"argument p, a .*Tensor, is not in device memory of the simulator"):
        only_region[(1,)](Tensor())


def test_two_architectures(python):
    script = """
import intarsia, triton
intarsia.init(arch="sm_90")
print(triton.runtime.driver.active.get_current_target().arch)
try:
    intarsia.init(arch="sm_80")
except intarsia.Error as error:
    print(error)
intarsia.finalize()
intarsia.init()
print(triton.runtime.driver.active.get_current_target().arch)
"""
    done = python(script)
    assert done.stdout.splitlines() == [
        "90", "the backend is open for sm_90; call intarsia.finalize() before sm_80", "80",
    ], done.stderr  # fmt: skip


WRITES_TOO_FAR = """
import intarsia, triton
unit = intarsia.load(source='extern "C" __device__ void f(int *p) { p[1000] = 1; }')
@triton.jit
def kernel(p):
    unit.f(p)
x = intarsia.zeros(4, "int32")
kernel[(1,)](x)
"""


def test_a_fault_that_nobody_waits_for_is_no_success(python):
    done = python(WRITES_TOO_FAR + "del x\n")
    assert done.returncode == 1 and "kernel" in done.stderr


def test_a_fault_that_was_caught_is_the_programs_own_affair(python):
    script = WRITES_TOO_FAR + """
try:
    intarsia.synchronize()
except intarsia.Error as error:
    print("caught", len(error.diagnostics))
del x
"""
    done = python(script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "caught 1\n", "")


def test_a_grid_of_more_than_32_bits_is_too_large(simulator):
    x = simulator.zeros(1)
    message = r"kernel 'store_one' can't be launched: the grid is larger than 2147483647"
    with pytest.raises(intarsia.Error, match=message):
        store_one[(1 << 33,)](x)


ENDLESS = """
import sys, time, intarsia, triton
unit = intarsia.load(source='extern "C" __device__ void f(volatile int *p) { while (*p >= 0) *p = (*p + 1) & 255; }')
@triton.jit
def kernel(p):
    unit.f(p)
x = intarsia.zeros(4, "int32")
if intarsia.my_pe() == 0:
    kernel[(1,)](x)
try:
    print("launched", flush=True)  # the signal may come as soon as this is read
    intarsia.barrier() if intarsia.my_pe() else intarsia.synchronize()
except KeyboardInterrupt:
    print("interrupted in time", flush=True)
    raise
"""


@pytest.mark.parametrize("n", [1, 2])
def test_ctrl_c_ends_a_wait(start, n):
    """Both for a kernel without end and, of two PEs, for one that does not come; nothing waits for the grace time."""
    with start(n, ENDLESS, "--grace", "100") as job:
        for _ in range(n):
            assert "launched" in job.stdout.readline()
        job.send_signal(signal.SIGINT)
        try:
            out, err = job.communicate(timeout=60)
        finally:
            job.terminate()
    assert "interrupted in time" in out and "KeyboardInterrupt\n" in err, err  # the first PE to end may end the other
    assert job.returncode == 128 + signal.SIGINT


# -- threads -----------------------------------------------------------------------------------------------------------

THREADS = """
import ctypes, threading, intarsia
ptx = '''
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 n) {
.reg .u64 %a, %b; .reg .u32 %i, %n, %v; .reg .pred %p;
ld.param.u64 %a, [p]; ld.param.u32 %n, [n]; mov.u32 %i, 0;
mov.u32 %v, %tid.x; mul.wide.u32 %b, %v, 4; add.u64 %b, %a, %b;
L: red.global.add.u32 [%b], 1; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra L; ret; }
.visible .entry wait(.param .u64 p) {
.reg .u64 %a; .reg .u32 %v; .reg .pred %p; ld.param.u64 %a, [p];
L: ld.volatile.global.u32 %v, [%a]; setp.eq.u32 %p, %v, 0; @%p bra L; ret; }
'''
intarsia.init()
module = intarsia.module(ptx)
add, wait = module.entry("add"), module.entry("wait")


def fails(text, call):
    try:
        call()
    except intarsia.Error as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(text)


def work(k, problems):
    try:
        for r in range(40):
            a, n = intarsia.zeros(32, "uint32"), 1 + 7 * (k + r) % 50
            add[2, 32](a, n)
            fails("has no room for", lambda: intarsia.empty(1 << 50))
            fails("a block dimension is more than 1024", lambda: add[1, 2000](a, 1))
            fails("takes 2 parameters", lambda: add[1, 1](a))
            assert (a.numpy() == 2 * n).all()
    except BaseException as error:
        problems.append(repr(error))


def together(*targets):
    threads = [threading.Thread(target=t) for t in targets]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


problems = []
together(*(lambda k=k: work(k, problems) for k in range(4)))
assert not problems, problems
flag = intarsia.zeros(4, "uint32")
intarsia.synchronize()
wait[1, 1](flag)


def go_on():  # a call, while the other thread waits
    other = intarsia.empty(4, "uint32")
    fails("has no room for", lambda: intarsia.empty(1 << 50))
    ctypes.c_uint32.from_address(flag.data_ptr()).value = 1


together(intarsia.synchronize, go_on)
print("good")
"""


def test_threads_that_call_at_the_same_time(python):
    """Each is told what went wrong with its own calls, and one that waits does not keep the others from calling."""
    done = python(THREADS)
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr


ENDED = """
import threading, time, intarsia
module = intarsia.module('''
.version 7.0
.target sm_80
.address_size 64
.visible .entry wait(.param .u64 p) {
.reg .u64 %a; .reg .u32 %v; .reg .pred %p; ld.param.u64 %a, [p];
L: ld.volatile.global.u32 %v, [%a]; setp.eq.u32 %p, %v, 0; @%p bra L; ret; }
''')
flag = intarsia.zeros(4, "uint32")
intarsia.synchronize()
helper = threading.Thread(target=time.sleep, args=(1,))
helper.start()
module.entry("wait")[1, 1](flag)
began = time.monotonic()
try:
    intarsia.synchronize()
except intarsia.Error as error:
    assert "deadlock: no PE can go on" in str(error), error
    assert not helper.is_alive() and time.monotonic() - began > 0.5, "not while the thread may do something"
    print("good")
"""


def test_a_thread_that_ends_leaves_nobody_to_help(python):
    done = python(ENDED)
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr


# -- several PEs -------------------------------------------------------------------------------------------------------

SYMMETRIC = """
import numpy as np, triton, triton.language as tl, intarsia
unit = intarsia.load(source='''
#include <intarsia/nvshmem.h>
extern "C" __device__ void put_all(int *dest, int n) {
    int me = nvshmem_my_pe();
    for (int pe = threadIdx.x; pe < n; pe += blockDim.x) nvshmem_int_p(dest + me, 100 * me + pe, pe);
}
''')
@triton.jit
def kernel(p, n):
    unit.put_all(p, n)
intarsia.init()
me, n = intarsia.my_pe(), intarsia.n_pes()
x = intarsia.symmetric(n, "int32")
kernel[(1,)](x, n)
intarsia.barrier()
assert x.numpy().tolist() == [100 * pe + me for pe in range(n)], x.numpy()
assert x.peer((me + 1) % n).numpy().tolist() == [100 * pe + (me + 1) % n for pe in range(n)]
intarsia.barrier()
x.free()
intarsia.finalize()
print("PE", me, "of", n, "fine")
"""


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_symmetric_arrays_between_pes(launch, n):
    done = launch(n, SYMMETRIC)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"PE (\d) of (\d) fine", done.stdout)) == [(str(i), str(n)) for i in range(n)]


def test_an_error_on_one_pe_ends_all(launch):
    script = SYMMETRIC.replace("kernel[(1,)](x, n)", "kernel[(1,)](x, n if me else n + 1000)")
    done = launch(3, script)
    assert done.returncode != 0 and "kernel" in done.stderr + done.stdout


def test_sizes_that_differ_are_found_with_both_places(launch):
    script = """
import intarsia
intarsia.init()
if intarsia.my_pe() == 1:
    x = intarsia.symmetric(64)
else:
    x = intarsia.symmetric(65)
"""
    done = launch(2, script)
    output = done.stdout + done.stderr
    assert done.returncode != 0
    one, other = r"260 bytes aligned to 256 at \S+\.py:7", r"256 bytes aligned to 256 at \S+\.py:5"
    assert re.search(f"PE 0 asked for {one}, but PE 1 asked for {other}\n", output)
    assert re.search(f"PE 1 asked for {other}, but PE 0 asked for {one}\n", output)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_simple_shift(launch, root, n):
    done = launch(n, root / "examples" / "01-simple-shift" / "simple-shift.py")
    assert done.returncode == 0, done.stdout + done.stderr
    for me in range(n):
        assert f"PE {me} of {n} received {(me - 1) % n} from its left neighbour" in done.stdout


def test_vector_add(python, launch, root):
    script = root / "examples" / "00-vector-add" / "vector-add.py"
    for done in (python(script), launch(1, script)):
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(re.findall(r"\d+ elements in blocks of 256: equal to NumPy's a \+ b", done.stdout)) == 4


@pytest.mark.parametrize(
    ("n", "options", "arguments"),
    [
        (1, [], []),
        (2, [], ["--width", "16", "--tokens", "33"]),
        (3, ["--check", "races"], ["--experts", "1", "--top", "3", "--tokens", "9"]),
        (4, [], ["--experts", "3", "--top", "4", "--width", "5", "--times", "5"]),
    ],
)
def test_expert_dispatch(launch, root, n, options, arguments):
    done = launch(n, root / "examples" / "04-expert-dispatch" / "expert-dispatch.py", *arguments, options=options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": equal to NumPy's") == n


@pytest.mark.parametrize(
    ("n", "dtype", "options"),
    [
        (2, "float16", []),
        (3, "bfloat16", ["-m", "70", "-n", "37", "-k", "45", "--iterations", "10"]),
        (4, "float16", ["-m", "33", "-n", "5", "-k", "7", "--slow", "1", "--iterations", "5"]),
        (8, "bfloat16", ["-m", "16", "-n", "16", "-k", "32"]),
    ],
)
def test_allgather_gemm(launch, root, n, dtype, options):
    script = root / "examples" / "02-allgather-gemm" / "ag-gemm.py"
    done = launch(n, script, "--dtype", dtype, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(rf"{dtype}: equal to NumPy's, largest difference 0\.0", done.stdout)) == n
