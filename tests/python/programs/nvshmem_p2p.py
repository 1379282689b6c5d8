"""
NVSHMEM's own device functions, as a GPU gets them with transport p2p, on the simulator: the kernels of
tests/sim/nvshmem/calls.cu, linked with them. nvshmem_p2p.py KERNEL ...

What NVSHMEM's host library would do is done here: the device state, of which one kernel after the other gets a copy,
and a barrier for the kernels' own use, since NVSHMEM's needs more of that state.
"""

import struct
import sys
from ctypes import c_void_p
from pathlib import Path

import numpy as np

import intarsia
from intarsia import _gpu_asm, _gpu_lib, _lib, _link, _modules, _runtime, _units

ROOT = Path(__file__).resolve().parents[3]
ARCH = "sm_80"
STATE_SIZE = 776
BEFORE = """
#define nvshmemx_barrier_all_block meet
#define SOME_TYPES
#include <intarsia/nvshmem.h>
"""
BEHIND = """
__device__ uint64_t *meeting, rounds; // a word for each PE; how often all have met
extern "C" __device__ void meet(void) {
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t round = ++rounds;
        __threadfence_system();
        for (int pe = 0; pe < nvshmem_n_pes(); pe++)
            *(volatile uint64_t *)nvshmem_ptr(meeting + nvshmem_my_pe(), pe) = round;
        for (int pe = 0; pe < nvshmem_n_pes(); pe++)
            while (*(volatile uint64_t *)(meeting + pe) < round) {}
        __threadfence_system();
    }
    __syncthreads();
}

extern "C" __global__ void hand_over(int *heap, uint64_t *signals, unsigned *errors) {
    int me = nvshmem_my_pe(), n = nvshmem_n_pes(), thread = threadIdx.x;
    heap[THREADS + thread] = 100 * me + thread;
    __syncthreads();
    nvshmemx_putmem_signal_block(heap, heap + THREADS, 4 * THREADS, signals, 1, NVSHMEM_SIGNAL_SET, (me + 1) % n);
    if (thread == 0) nvshmem_signal_wait_until(signals, NVSHMEM_CMP_GE, 1);
    __syncthreads();
    check(errors, 1, heap[thread] == 100 * ((me + n - 1) % n) + thread);
}
"""


def kernels() -> bytes:
    calls = (ROOT / "tests" / "sim" / "nvshmem" / "calls.cu").read_text()
    return bytes(_units.Source("calls.cu", BEFORE + calls + BEHIND, "cuda", (), _units.Linking()).compiled(ARCH).ptx)


def load(ptx: bytes) -> _modules.Module:
    backend = _runtime.current()
    with _link.link("calls.ptx", ptx, _link.no_units, keep_externs=True) as linked:
        wants = _gpu_asm.wants_nvshmem([e["name"] for e in linked.report["externs"]])

    def libraries(ctx: _lib.Context) -> list[c_void_p]:
        return _gpu_asm.libraries(ctx, wants, ARCH, _gpu_lib.TRANSPORT_P2P)

    with _link.link("calls.ptx", ptx + _gpu_asm.version_text(), _link.no_units, load_libraries=libraries) as linked:
        return _modules.Module(backend, backend.load(linked.module), "calls.ptx")


def device_state(heap: intarsia.Array, bases: intarsia.Array, first: intarsia.Array) -> bytes:
    """The parts of nvshmemi_device_host_state_v1 that loads and stores need."""
    me, n = intarsia.my_pe(), intarsia.n_pes()
    state = struct.pack("<9i4x", 0, me, n, me, n, 0, 0, 0, 0)  # mype, npes, those of the node; job_connectivity
    state += struct.pack("<3Q24x", heap.data_ptr(), 1 << 40, bases.data_ptr())  # heap_base, its size, those of peers
    state += struct.pack("<Q", first.data_ptr())  # test_wait_any_start_idx_ptr
    return state.ljust(STATE_SIZE, b"\0")


def main() -> int:
    intarsia.init()
    me, n = intarsia.my_pe(), intarsia.n_pes()
    heap, signals, meeting = (intarsia.symmetric(count, "uint64") for count in (512, 64, n))
    bases = intarsia.array([heap.peer(pe).data_ptr() for pe in range(n)], "uint64")
    first, errors = intarsia.zeros(1, "uint64"), intarsia.zeros(1, "uint32")
    module = load(kernels())
    state = module.variable("nvshmemi_device_state_d")
    assert state.nbytes == STATE_SIZE, f"NVSHMEM's state has {state.nbytes} bytes"
    state.copy_from(np.frombuffer(device_state(heap, bases, first), np.uint8))
    module.variable("meeting", "uint64").copy_from([meeting.data_ptr()])
    names = sys.argv[1:]
    for name in names:
        module.entry(name)[1, 64](heap, signals, errors)
        step = int(errors.numpy()[0])
        assert step == 0, f"PE {me}: kernel {name}, step {step}"
        intarsia.barrier()
    for array in (heap, signals, meeting):
        array.free()
    print(f"PE {me} of {n}: {len(names)} kernels good")
    return 0


sys.exit(main())
