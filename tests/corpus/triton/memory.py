"""Gather, scatter, atomics of every operation and type, orders and scopes."""

import numpy as np
import triton
import triton.language as tl
from cases import SM90, SM100, case, full, ints, permutation, rand

N = 512


@triton.jit
def gather_rows(x, index, z, K: tl.constexpr):
    row = tl.load(index + tl.program_id(0))
    tl.store(z + tl.program_id(0) * K + tl.arange(0, K), tl.load(x + row * K + tl.arange(0, K)))


case(gather_rows, (32,), lambda x, index, **_: {"z": x[index]}, x=rand((64, 64)), index=ints(32, "i64", 0, 64),
     z=full((32, 64)), K=64, warps=1)


@triton.jit
def scatter(x, index, z, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(z + tl.load(index + o, mask=o < n), tl.load(x + o, mask=o < n), mask=o < n)


def scatter_ref(x, index, **_):
    z = np.zeros_like(x)
    z[index] = x
    return {"z": z}


case(scatter, (2,), scatter_ref, x=rand(N), index=permutation(N), z=full(N), n=N, B=256)


@triton.jit
def gather_in_tile(x, index, z, M: tl.constexpr, K: tl.constexpr):
    o = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(z + o, tl.gather(tl.load(x + o), tl.load(index + o), 1))


case(gather_in_tile, (1,), lambda x, index, **_: {"z": np.take_along_axis(x, index, 1)}, x=rand((16, 32)),
     index=ints((16, 32), "i32", 0, 32), z=full((16, 32)), M=16, K=32)
case(gather_in_tile, (1,), lambda x, index, **_: {"z": np.take_along_axis(x, index, 1)}, tag="shared", warps=8,
     x=rand((4, 256)), index=ints((4, 256), "i32", 0, 256), z=full((4, 256)), M=4, K=256)


@triton.jit
def pointer_table(table, z, B: tl.constexpr):
    p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(z + tl.program_id(0) * B + tl.arange(0, B), tl.load(p + tl.arange(0, B)))


case(pointer_table, (2,), faults="null pointer", table=full(2, 0, "i64"), z=full(64), B=32)

# -- atomics -----------------------------------------------------------------------------------------------------------


@triton.jit
def atomic(x, z, old, OP: tl.constexpr, SEM: tl.constexpr, SCOPE: tl.constexpr, BINS: tl.constexpr, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + o)
    p = z + o % BINS
    if OP == "add":
        r = tl.atomic_add(p, v, sem=SEM, scope=SCOPE)
    elif OP == "max":
        r = tl.atomic_max(p, v, sem=SEM, scope=SCOPE)
    elif OP == "min":
        r = tl.atomic_min(p, v, sem=SEM, scope=SCOPE)
    elif OP == "and":
        r = tl.atomic_and(p, v, sem=SEM, scope=SCOPE)
    elif OP == "or":
        r = tl.atomic_or(p, v, sem=SEM, scope=SCOPE)
    elif OP == "xor":
        r = tl.atomic_xor(p, v, sem=SEM, scope=SCOPE)
    else:
        r = tl.atomic_xchg(p, v, sem=SEM, scope=SCOPE)
    tl.store(old + o, r)


UFUNC = {"add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
         "xor": np.bitwise_xor}


def atomic_ref(op):
    def reference(x, z, BINS, **_):
        z = z.astype(np.float64) if z.dtype.kind == "f" else z.copy()
        if op == "xchg":
            return {"z": x}
        UFUNC[op].at(z, np.arange(x.size) % BINS, x)
        return {"z": z}

    return reference


def atomic_case(op, t, sem="relaxed", scope="gpu", tol=1e-4, sm=None):
    x = ints(N, t) if t[0] == "i" else ints(N, t, 0, 200) if t[0] == "u" else rand(N, t)
    bins = N if op == "xchg" else 64
    z = full(bins, 255, t) if op == "and" else full(bins, 1, t)
    case(atomic, (2,), atomic_ref(op), tag=f"{op}_{t}_{sem}_{scope}", tol=tol, **({"sm": sm} if sm else {}), x=x, z=z,
         old=full(N, 0, t), OP=op, SEM=sem, SCOPE=scope, BINS=bins, B=256)


for op in ["add", "max", "min", "and", "or", "xor", "xchg"]:
    for t in ["i32", "i64", "u32"]:
        atomic_case(op, t)
for op in ["add", "max", "min", "xchg"]:
    atomic_case(op, "fp32")
for t in ["fp16", "bf16", "fp64"]:
    atomic_case("add", t, tol=0.2 if t == "bf16" else 0.05, sm=(SM90, SM100) if t == "bf16" else None)
for sem in ["relaxed", "acquire", "release", "acq_rel"]:
    for scope in ["cta", "gpu", "sys"]:
        if (sem, scope) != ("relaxed", "gpu"):
            atomic_case("add", "i32", sem, scope)


@triton.jit
def atomic_packed(x, z, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.atomic_add(z + o, tl.load(x + o), sem="relaxed")


for t, sm in [("fp16", None), ("bf16", (SM90, SM100)), ("fp32", None)]:
    case(atomic_packed, (1,), lambda x, z, **_: {"z": x + z}, tag=t, tol=1e-2, x=rand(1024, t), z=full(1024, 1, t),
         B=1024, **({"sm": sm} if sm else {}))


@triton.jit
def compare_and_swap(x, expect, z, old, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(old + o, tl.atomic_cas(z + o, tl.load(expect + o), tl.load(x + o)))


def cas_ref(x, expect, z, **_):
    return {"z": np.where(z == expect, x, z), "old": z}


for t in ["i32", "i64", "u32"]:
    case(compare_and_swap, (1,), cas_ref, tag=t, x=ints(N, t, 0, 100), expect=ints(N, t, 0, 2), z=full(N, 1, t),
         old=full(N, 0, t), B=N)


@triton.jit
def atomic_scalar(z, ticket, n):
    t = tl.atomic_add(ticket, 1)
    tl.atomic_max(z, t)
    tl.store(z + 1 + t, 1)
    tl.atomic_xchg(z + n + 1, 7, sem="release", scope="sys")


case(atomic_scalar, (16,), lambda **_: {"z": np.array([15] + [1] * 16 + [7])}, z=full(18, 0, "i32"),
     ticket=full(1, 0, "i32"), n=16, warps=2)


@triton.jit
def spin_lock(lock, z, n):
    for _ in range(n):
        while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
            pass
        tl.store(z, tl.load(z, volatile=True) + 1)
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0, sem="release")


case(spin_lock, (4,), lambda **_: {"z": np.array([12])}, lock=full(1, 0, "i32"), z=full(1, 0, "i32"), n=3, warps=1)


@triton.jit
def last_block_sums(x, part, ticket, z, n, G: tl.constexpr, B: tl.constexpr):
    pid = tl.program_id(0)
    o = pid * B + tl.arange(0, B)
    tl.store(part + pid, tl.sum(tl.load(x + o, mask=o < n, other=0.0)))
    tl.debug_barrier()
    if tl.atomic_add(ticket, 1, sem="acq_rel") == G - 1:
        tl.store(z, tl.sum(tl.load(part + tl.arange(0, G), volatile=True)))


case(last_block_sums, (8,), lambda x, **_: {"z": x.sum().reshape(1)}, tol=1e-3, x=rand(2000), part=full(8),
     ticket=full(1, 0, "i32"), z=full(1), n=2000, G=8, B=256)


@triton.jit
def embedding_backward(grad, index, z, K: tl.constexpr):
    row = tl.load(index + tl.program_id(0))
    j = tl.arange(0, K)
    tl.atomic_add(z + row * K + j, tl.load(grad + tl.program_id(0) * K + j))


def embedding_ref(grad, index, z, **_):
    z = z.astype(np.float64)
    np.add.at(z, index, grad)
    return {"z": z}


case(embedding_backward, (64,), embedding_ref, tol=1e-4, grad=rand((64, 32)), index=ints(64, "i32", 0, 10),
     z=full((10, 32)), K=32, warps=1)


@triton.jit
def copy_strided(x, z, sx, sz, M: tl.constexpr, K: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, K)[None, :]
    tl.store(z + j * sz + i, tl.load(x + i * sx + j))


for t in ["fp32", "fp16", "i8"]:
    case(copy_strided, (1,), lambda x, **_: {"z": x.T}, tag=t, x=ints((64, 32), t), z=full((32, 64), 0, t), sx=32, sz=64,
         M=64, K=32)
