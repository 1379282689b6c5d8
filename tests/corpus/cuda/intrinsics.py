"""Integer intrinsics, against whole numbers of Python."""

import numpy as np
from cases import full, given
from cuda_cases import case

N = 96
M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def signed(v, bits=32):
    v &= (1 << bits) - 1
    return v - (1 << bits) if v >> (bits - 1) else v


def numbers(bits, seed):
    """Random bits, random lengths, and edges."""
    rng = np.random.default_rng(seed)
    edges = [0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 31, 32, 63]
    some = [int.from_bytes(rng.bytes(bits // 8), "little") >> int(rng.integers(0, bits)) * (i % 2) for i in range(N - 16)]
    return some + [edges[int(k)] for k in rng.permutation(8)] + edges


def each(f, *columns):
    """Rows of results of all threads."""
    return np.array([f(*(int(v) for v in row)) for row in zip(*columns)], dtype=object).T


def brev(v, bits):
    return int(f"{v:0{bits}b}"[::-1], 2)


def divide(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def permuted(a, b, c):
    pool = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]
    return sum(pool[c >> 4 * i & 7] << 8 * i for i in range(4))


def words(a, b, c):
    s, t = signed(a), signed(b)
    both, shift = b << 32 | a, c & 31
    odd, signed_odd = b | 1, signed(b | 1)
    return [a * b >> 32, s * t >> 32, (a & 0xFFFFFF) * (b & 0xFFFFFF), signed(a, 24) * signed(b, 24), abs(a - b) + c, abs(s - t) + c, brev(a, 32),
            32 - a.bit_length(), (a & -a).bit_length(), a.bit_count(), permuted(a, b, c), both << shift >> 32, both << min(c, 32) >> 32,
            both >> shift, both >> min(c, 32), s + t >> 1, s + t + 1 >> 1, a + b >> 1, a + b + 1 >> 1, a // odd, a % odd,
            divide(s, signed_odd), s - divide(s, signed_odd) * signed_odd, a << (b & 31), a >> (b & 31), s >> (b & 31), min(s, t), max(s, t),
            min(a, b), max(a, b), abs(s)]


def longs(a, b):
    s, t = signed(a, 64), signed(b, 64)
    wide, mixed = a * b, s * t - signed(a << 3, 128)
    mixed = signed(mixed, 128)
    odd, signed_odd = b | 1, signed(b | 1, 64)
    plus = (wide + a) & (1 << 128) - 1
    return [wide >> 64, s * t >> 64, brev(a, 64), 64 - a.bit_length(), (a & -a).bit_length(), a.bit_count(), a // odd, a % odd,
            divide(s, signed_odd), s - divide(s, signed_odd) * signed_odd, a << (b & 63), a >> (b & 63), s >> (b & 63), wide >> 64, wide,
            mixed >> 64, mixed, plus // (b >> 7 | 1), wide % (a >> 9 | 3), divide(mixed, s >> 11 | 1), wide >> (a & 127),
            (b << (a & 127)) & (1 << 128) - 1, mixed < 0, min(s, t), max(a, b), abs(s)]


def parts(v, bits, is_signed):
    return [signed(v >> k, bits) if is_signed else v >> k & (1 << bits) - 1 for k in range(0, 32, bits)]


def dots(a, b, c):
    bytes_of, halves = [parts(b, 8, True), parts(b, 8, False)], [parts(a, 16, True), parts(a, 16, False)]
    fours = [sum(x * y for x, y in zip(parts(a, 8, s), parts(b, 8, s))) for s in (True, False)]
    twos = [halves[k][0] * bytes_of[k][2 * h] + halves[k][1] * bytes_of[k][2 * h + 1] for h in (0, 1) for k in (0, 1)]
    return [f + c for f in [*fours, *twos]]


def lane(bits, is_signed, f):
    """f of each part of two words, put together again."""
    def whole(a, b):
        of = [f(x, y) & (1 << bits) - 1 for x, y in zip(parts(a, bits, is_signed), parts(b, bits, is_signed))]
        return sum(v << bits * i for i, v in enumerate(of))
    return whole


def clamp(v, bits, is_signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    return min(max(v, low), high)


U4 = [lane(8, False, f) for f in (
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: clamp(x + y, 8, False), lambda x, y: clamp(x - y, 8, False), lambda x, y: abs(x - y),
    max, min, lambda x, y: -(x == y), lambda x, y: -(x > y), lambda x, y: x >= y, lambda x, y: x + y + 1 >> 1, lambda x, y: x + y >> 1)]
S4 = [lane(8, True, f) for f in (
    lambda x, y: clamp(x + y, 8, True), lambda x, y: clamp(x - y, 8, True), max, min, lambda x, y: -(x < y), lambda x, y: abs(x), lambda x, y: -x,
    lambda x, y: clamp(abs(x), 8, True))]
TWO = [lane(16, s, f) for s, f in (
    (False, lambda x, y: x + y), (False, lambda x, y: x - y), (True, lambda x, y: clamp(x + y, 16, True)), (True, max), (False, min),
    (True, lambda x, y: abs(x - y)), (True, lambda x, y: -(x > y)), (True, lambda x, y: x + y + (1 if x + y >= 0 else 0) >> 1), (True, lambda x, y: -x))]


def lanes(a, b):
    u, s, w = [f(a, b) for f in U4], [f(a, b) for f in S4], [f(a, b) for f in TWO]
    sad4 = sum(abs(x - y) for x, y in zip(parts(a, 8, False), parts(b, 8, False)))
    sad2 = sum(abs(x - y) for x, y in zip(parts(a, 16, True), parts(b, 16, True)))
    return [u[0], u[1], u[2], s[0], u[3], s[1], u[4], u[5], s[2], u[6], s[3], u[7], u[8], s[4], u[9], u[10], u[11], s[5], s[6], sad4, s[7], *w, sad2]


def three(a, b, c):
    s, t, u = signed(a), signed(b), signed(c)
    add = signed(a + b)

    def of(bits, is_signed, f):
        of_parts = [f(x, y, z) & (1 << bits) - 1 for x, y, z in zip(parts(a, bits, is_signed), parts(b, bits, is_signed), parts(c, bits, is_signed))]
        return sum(v << bits * i for i, v in enumerate(of_parts))
    low = [x <= y for x, y in zip(parts(a, 16, False), parts(b, 16, False))]
    return [max(s, t, u), min(s, t, u), max(a, b, c), max(s, t, 0), max(add, u), max(min(add, u), 0), of(16, True, max),
            of(16, True, lambda x, y, z: max(signed(x + y, 16), z)), of(16, False, lambda x, y, z: min((x + y) & 0xFFFF, z)), max(s, t),
            of(16, False, lambda x, y, z: min(x, y)), low[1] * 2 + low[0]]


def masked(f, mask):
    return lambda out, **columns: {"out": (each(f, *columns.values()) & mask).astype("u8")}


X32, Y32, Z32 = (given(numbers(32, n), "u32") for n in (1, 2, 3))
case("words", masked(words, M32), block=N, out=full((31, N), 0, "u32"), x=X32, y=Y32, z=Z32)
case("longs", masked(longs, M64), block=N, out=full((26, N), 0, "u64"), x=given(np.array(numbers(64, 4), "u8"), "u64"), y=given(np.array(numbers(64, 5), "u8"), "u64"))
case("dots", masked(dots, M32), block=N, out=full((6, N), 0, "u32"), x=X32, y=Y32, z=Z32)
case("lanes", masked(lanes, M32), block=N, out=full((31, N), 0, "u32"), x=X32, y=Y32)
case("three", masked(three, M32), block=N, out=full((12, N), 0, "u32"), x=X32, y=Y32, z=Z32)


def fields(out, f, m, i):
    rows, made, mixed = [], [], m.copy()
    for first, second in f.reshape(-1, 2):
        first, second = int(first), int(second)
        low, middle, high = first & 31, signed(first >> 5, 11), first >> 16 & 0xFFFF
        wide, rest = second & (1 << 37) - 1, signed(second >> 37, 27)
        rows.append([signed(low + middle * 100), signed((wide >> 20) + rest)])
        made.append((low + 1 & 31) | (middle - 7 & 2047) << 5 | high << 16 | first >> 32 << 32)
        made.append((wide * 3 & (1 << 37) - 1) | (-rest & (1 << 27) - 1) << 37)
    mixed.view("u1").reshape(-1, 8)[:, i & 7] ^= 0xA5
    mixed.view("u2").reshape(-1, 4)[:, i + 1 & 3] += np.uint16(300)
    want = [[*r, signed(int(v) >> 32), signed(int(v))] for r, v in zip(rows, mixed)]
    return {"out": np.array(want).ravel(), "f": np.array(made, "u8")}


WORDS = np.array(numbers(64, 6), "u8")[:64] & np.tile(np.array([M32, M64], "u8"), 32)
case("fields", fields, block=32, out=full(128, 0, "i32"), f=given(WORDS, "u64"), m=given(np.array(numbers(64, 7), "u8")[:32], "u64"), i=6)
