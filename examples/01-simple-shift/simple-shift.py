"""Every PE puts its number on its right neighbour: kernel in Triton, communication in CUDA, memory in C."""

import ctypes
import sys

import triton

import intarsia

device = intarsia.load("simple-shift-device.cu")


@triton.jit
def shift(inbox):
    intarsia.call(device.put_right, [inbox])


def main() -> int:
    intarsia.init()
    host = intarsia.load_host("simple-shift-host.c")
    host.inbox_new.restype = ctypes.c_void_p

    address = host.inbox_new()
    shift[(1,)](intarsia.from_address(address, 1, "int32"))
    received = host.inbox_read(address)
    host.inbox_free(address)

    me, n = intarsia.my_pe(), intarsia.n_pes()
    print(f"PE {me} of {n} received {received} from its left neighbour")
    return 0 if received == (me - 1) % n else 1


if __name__ == "__main__":
    sys.exit(main())
