"""One mistake each, by name; prints what Intarsia says of it."""

import ctypes
import os
import sys

import triton

import intarsia


def full_heap() -> None:
    intarsia.init("cuda")
    intarsia.symmetric(3 << 28, "uint32")


def two_libraries() -> None:
    """Another package has loaded its own."""
    ctypes.CDLL(sys.argv[2])
    intarsia.init("cuda")
    intarsia.symmetric(1)


def another_rank() -> None:
    """NVSHMEM is up already, as one PE of one."""
    from intarsia import _gpu, _runtime

    intarsia.init("cuda")
    _gpu.need_nvshmem(_runtime.current())
    os.environ.update(INTARSIA_PE="0", INTARSIA_N_PES="2", INTARSIA_RENDEZVOUS_FD="-1")
    _gpu._gpu_world.exchange = lambda place, make: make()
    _runtime._current = None
    intarsia.init("cuda")


def no_init() -> None:
    os.environ["INTARSIA_BACKEND"] = "cuda"
    import torch

    device = intarsia.load("regions-device.cu")
    intarsia._gpu._install()  # what a program does that has had Intarsia open before

    @triton.jit
    def vote(ballot):
        intarsia.call(device.vote, [ballot])

    vote[(1,)](torch.zeros(1, dtype=torch.int32, device="cuda"))


def bad_address() -> None:
    intarsia.init("cuda")
    module = intarsia.module(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k() { .reg .b64 %d; mov.u64 %d, 16; "
        "st.global.u64 [%d], %d; ret; }\n"
    )
    module.entry("k")[1, 1]()
    intarsia.synchronize()


def main() -> int:
    import intarsia._gpu

    try:
        globals()[sys.argv[1]]()
    except intarsia.Error as error:
        print("REFUSED:", error)
        sys.stdout.flush()
        os._exit(3)
    return 0


sys.exit(main())
