"""One PE is gone while the other's kernel waits for its signal."""

import os

import triton

import intarsia

device = intarsia.load("regions-device.cu")


@triton.jit(do_not_specialize=["round"])
def receive(flag, round):
    intarsia.call(device.wait, [flag, round])


intarsia.init()
flag = intarsia.symmetric(1, "uint64")
if intarsia.my_pe() == 1:
    os._exit(7)
receive[(1,)](flag, 1 << 40)
intarsia.synchronize()
