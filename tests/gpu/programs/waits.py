"""A kernel on PE 0 waits for what nobody sends, with a limit of a second: waits.py TRANSPORT KIND [torch]"""

import sys

import triton
import triton.language as tl

import intarsia

device = intarsia.load("waits-device.cu")


@triton.jit(do_not_specialize=["value"])
def by_hand(flag, value):
    intarsia.call(device.by_hand, [flag, value])


@triton.jit(do_not_specialize=["value"])
def by_nvshmem(flag, value):
    intarsia.call(device.by_nvshmem, [flag, value.to(tl.int64)])


@triton.jit
def in_triton(flag):
    x = tl.inline_asm_elementwise(
        "{ .reg .pred %p; again: ld.acquire.sys.global.u32 $0, [$1]; setp.lt.u32 %p, $0, 9; @%p bra again; }",
        "=r,l", [flag.to(tl.int64)], dtype=tl.int32, is_pure=False, pack=1,
    )
    tl.store(flag + 1, x)


intarsia.init(transport=sys.argv[1], wait_limit=1.0)
flag = intarsia.symmetric(4, "uint64")
if intarsia.my_pe() == 0:
    flag.copy_from([2, 0, 0, 0])
    kind = sys.argv[2]
    if kind == "by_hand":
        by_hand[(1,)](flag, 3)
    elif kind == "by_nvshmem":
        by_nvshmem[(1,)](flag, 5)
    else:
        in_triton[(1,)](flag.view(8, "int32"))
    if "torch" in sys.argv:
        import torch

        torch.cuda.synchronize()
    intarsia.synchronize()
intarsia.barrier()
