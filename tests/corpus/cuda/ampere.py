"""cp.async, mbarriers, cache policies, and instructions that only inline assembly reaches."""

import numpy as np
from cases import compare, full, given, rand
from cuda_cases import case


def async_copies(out, x, n):
    other = np.arange(64) ^ 1
    second = np.zeros(4)
    second[: 2] = [x[0, 0] if n >= 4 else 0, x[0, 1] if n >= 8 else 0]
    third = 0 if n < 7 else x[0, 0]  # the predicate says that nothing is read
    want = x[other, 0] + x[other, 3] * 10 + second[0] * 100 + second[1] * 1000 + third * 10000
    return {"out": [*want, 2 * 64 - 2]}


for n in (0, 4, 8):
    case("async_copies", async_copies, tag=f"n{n}", block=64, tol=1e-3, out=full(65), x=rand((64, 4)), n=n)
def policies(before, after):
    x, want = before["x"], before["out"].copy()
    want[0] = x[0] + x[4] + x[6] + x[7]
    kept = np.r_[0:128, 160:512]  # the others were discarded
    return compare(after["out"][kept], want[kept], 1e-6)


case("policies", check=policies, out=rand(512), x=rand(16))


def signed(v, bits=32):
    return ((v & (1 << bits) - 1) ^ 1 << bits - 1) - (1 << bits - 1)


def odd_instructions(before, after):
    x, y, s = X, Y, S
    u32 = 0xFFFFFFFF
    f, o = before["f"].astype("f8"), after["o"].astype("i8")
    where = y & 255
    field = signed(x >> min(where, 31) & 127, 7) if where < 32 - 7 else signed(signed(x) >> min(where, 31))
    want = {0: field & u32, 1: 31 - (x.bit_length() - 1),
            5: (y << 32 | x) >> 13 & u32}
    total = (x + y) & u32
    plus = total + 1 + (x + y >> 32)
    want[16] = (plus & u32) + (plus >> 32)
    want[20] = x if s >= 0 else y
    want[21] = u32 if f[0] > 1 else 0
    want[22] = int(0 < abs(f[1]) < 2.0**-126)
    want[32] = int(np.clip(np.rint(f[0]), 0, 255))
    want[48], want[49] = int(before["w"][0]) & u32, int(before["w"][0]) >> 32
    want[50] = (x >> 16 | x << 16) & u32
    want[51] = (x + y) & u32
    want[52] = 0
    for at, value in want.items():
        if value is not None and o[at] != value:
            return f"o[{at}] is {o[at]:#x}, expected {value:#x}"
    table = 0
    for i in range(32):
        index = (x >> i & 1) << 2 | (y >> i & 1) << 1 | (s >> i & 1)
        table |= (0x2C >> index & 1) << i
    if o[4] != table:
        return f"lop3 is {o[4]:#x}, expected {table:#x}"
    floats = {2: np.copysign(f[1], f[0]), 3: 2 ** f[0], 4: np.tanh(f[0]), 5: np.clip(f[0] * 0.5 + 150, 0, 1)}
    for at, value in floats.items():
        if fault := compare(after["f"][at : at + 1], np.array([value], "f4"), 1e-3 if at == 4 else 1e-6):
            return f"f[{at}]{fault}"
    return compare(after["d"][1:], 1 / before["d"][:1], 1e-6)


X, Y, S = 0x12345678, 0x0F0F0F05, -77
case("odd_instructions", check=odd_instructions, o=full(64, 0, "u32"), w=given([0x123456789ABCDEF0], "u64"),
     f=given([1.75, -1e-40, 0, 0, 0, 0, 0], "fp32"), d=given([3.25, 0], "fp64"), x=X, y=Y, s=S)


def specials(before, after):
    o, w = after["o"].astype("i8"), after["w"]
    want = {0: 0, 1: 0, 5: 1, 6: 0, 7: 0xFFFFFFFF, 11: 512, 13: 0, 14: 1, 15: 0, 16: 1, 20: 32, 21: 1}
    for at, value in want.items():
        if o[at] != value:
            return f"o[{at}] is {o[at]:#x}, expected {value:#x}"
    if not (o[2] >= 1 and o[3] < o[4] and o[12] >= 512 and w[0] >= o[8]):
        return f"a number of warps, multiprocessors, bytes or a clock is wrong: {o}, {w}"
    return None


case("specials", check=specials, shared=512, o=full(22, 0, "u32"), w=full(2, 0, "u64"))
case("breakpoint", lambda o: {"o": [0, 1]}, tag="not", o=full(2, 0, "u32"))
case("breakpoint", faults="trap", o=full(2, 1, "u32"))
