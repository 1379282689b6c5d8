"""Puts with a signal, waits and atomics of NVSHMEM inside Triton kernels, against what must arrive."""

import sys

import numpy as np
import triton
import triton.language as tl

import intarsia

device = intarsia.load("regions-device.cu")


@triton.jit(do_not_specialize=["round"])
def send(out, inp, flag, round):
    intarsia.call(device.ring, [out, inp, flag, round.to(tl.int64)])


@triton.jit(do_not_specialize=["round"])
def receive(out, flag, round, result):
    token = intarsia.call(device.wait, [flag, round.to(tl.int64)])
    at = tl.arange(0, 256)
    x = tl.load(intarsia.after(out, token) + at)
    tl.store(result + at, x + 1)


@triton.jit
def vote(ballot):
    intarsia.call(device.vote, [ballot])


@triton.jit
def pass_on(word):
    intarsia.call(device.pass_on, [word])


def main() -> int:
    intarsia.init(transport=sys.argv[1])
    me, n = intarsia.my_pe(), intarsia.n_pes()
    left = (me - 1) % n
    out, flag = intarsia.symmetric(256, "int32"), intarsia.symmetric(1, "uint64")
    inp, result = intarsia.empty(256, "int32"), intarsia.zeros(256, "int32")
    for round in range(1, 6):
        inp.copy_from(np.arange(256, dtype=np.int32) + 1000 * me + round)
        send[(1,)](out, inp, flag, round)
        receive[(1,)](out, flag, round, result)
        assert result.numpy().tolist() == [i + 1000 * left + round + 1 for i in range(256)], round
        intarsia.barrier()
    ballot = intarsia.symmetric(1, "uint32")
    vote[(1,)](ballot)
    intarsia.barrier()
    if me == 0:
        assert ballot.numpy().tolist() == [(1 << n) - 1]
    word = intarsia.symmetric(1, "int32")
    pass_on[(1,)](word)
    assert word.numpy().tolist() == [me if me > 0 else n]
    for array in (out, flag, ballot, word):
        array.free()
    print(f"PE {me}: regions ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
