"""Control flow, calls, inline assembly, asserts, prints, special registers, unusual launches."""

import numpy as np
import triton
import triton.language as tl
from cases import SM90, SM100, case, count, full, ints, rand
from triton.language.extra import libdevice


@triton.jit
def collatz(x, z, B: tl.constexpr):
    o = tl.arange(0, B)
    n, steps = tl.load(x + o), tl.zeros((B,), tl.int32)
    while tl.max(n, 0) > 1:
        live = n > 1
        n = tl.where(live, tl.where(n % 2 == 0, n // 2, 3 * n + 1), n)
        steps += live.to(tl.int32)
    tl.store(z + o, steps)


def collatz_steps(n):
    steps = 0
    while n > 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


case(collatz, (1,), lambda x, **_: {"z": np.array([collatz_steps(int(n)) for n in x])}, x=ints(64, "i32", 1, 60),
     z=full(64, 0, "i32"), B=64, warps=2)


@triton.jit
def scalar_loop(x, z, n):
    p, best, at = tl.program_id(0), -1000000, 0
    i = p
    while i < n:
        v = tl.load(x + i)
        if v > best:
            best = v
            at = i
        i += tl.num_programs(0)
    tl.store(z + 2 * p, best)
    tl.store(z + 2 * p + 1, at)


def scalar_loop_ref(x, n, **_):
    return {"z": np.array([[x[p::4].max(), p + 4 * x[p::4].argmax()] for p in range(4)])}


case(scalar_loop, (4,), scalar_loop_ref, x=ints(101), z=full((4, 2), 0, "i32"), n=101, warps=1)


@triton.jit(noinline=True)
def called_scalar(a, b):
    if a > b:
        return a * 3 - b
    return a + b


@triton.jit(noinline=True)
def called_store(z, o, v):
    tl.store(z + o, v * 2.0 + 1.0)


@triton.jit(noinline=True)
def called_dot(x, y, n):
    acc = 0.0
    for i in range(n):
        acc += tl.load(x + i) * tl.load(y + i)
    return acc, n.to(tl.float32)


@triton.jit
def noinline_calls(x, z, s, n):
    p = tl.program_id(0)
    called_store(z, p, tl.load(x + p))
    tl.store(s + 2 * p, called_scalar(p + 5, 7))
    tl.store(s + 2 * p + 1, called_scalar(9, p))


case(noinline_calls, (4,), lambda x, **_: {"z": x * 2 + 1, "s": np.array([12, 27, 13, 26, 14, 25, 17, 24])}, x=rand(4),
     z=full(4), s=full(8, 0, "i32"), n=4)


@triton.jit
def noinline_loop(x, y, z, n):
    d, m = called_dot(x, y, n)
    e, _ = called_dot(y, y, n)
    tl.store(z, d + e)
    tl.store(z + 1, m)


case(noinline_loop, (1,), lambda x, y, n, **_: {"z": np.array([x @ y + y @ y, n])}, tol=1e-4, x=rand(50), y=rand(50),
     z=full(2), n=50, warps=1)


@triton.jit
def nested_if(x, z, n, mode, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + o, mask=o < n, other=0.0)
    if mode == 0:
        v = v + 1.0
    elif mode < 3:
        for i in range(mode):
            v = v * 2.0
            if tl.sum(v, 0) > 100.0:
                v = v - 1.0
    else:
        if tl.program_id(0) == 0:
            return
        v = -v
    tl.store(z + o, v, mask=o < n)


for mode in [0, 2, 5]:
    def nested_ref(x, mode, n, **_):
        if mode == 0:
            return {"z": x + 1}
        if mode >= 3:
            return {"z": np.where(np.arange(n) < 128, 0, -x)}
        return {"z": x * 4}

    case(nested_if, (2,), nested_ref, tag=f"mode{mode}", x=rand(200), z=full(200), n=200, mode=mode, B=128)


@triton.jit
def unrolled(x, z, B: tl.constexpr, N: tl.constexpr):
    o = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for i in tl.static_range(N):
        acc = acc * 0.5 + tl.load(x + i * B + o)
    for i in tl.range(0, N, loop_unroll_factor=2):
        acc += tl.load(x + i * B + o)
    tl.store(z + o, acc)


def unrolled_ref(x, **_):
    acc = 0
    for row in x:
        acc = acc * 0.5 + row
    return {"z": acc + x.sum(0)}


case(unrolled, (1,), unrolled_ref, x=rand((6, 128)), z=full(128), B=128, N=6)

# -- inline assembly ---------------------------------------------------------------------------------------------------


@triton.jit
def asm_bytes(x, z, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o)
    r = tl.inline_asm_elementwise("prmt.b32 $0, $1, $1, 0x0123;", "=r,r", [v], dtype=tl.int8, is_pure=True, pack=4)
    tl.store(z + o, r)


case(asm_bytes, (1,), lambda x, **_: {"z": x.reshape(-1, 4)[:, ::-1].reshape(-1)}, x=ints(512, "i8"),
     z=full(512, 0, "i8"), B=512)


@triton.jit
def asm_several(x, y, s, d, B: tl.constexpr):
    o = tl.arange(0, B)
    a, b = tl.inline_asm_elementwise(
        """
        {
            // two results, a label and a local register
            .reg .pred %p<2>;
            .reg .f32 t;
            add.f32 $0, $2, $3;
            setp.lt.f32 %p1, $2, 0f00000000;
            @%p1 bra negative_${:uid};
            sub.f32 $1, $2, $3;
            bra done_${:uid};
        negative_${:uid}:
            neg.f32 t, $2;
            mul.f32 $1, t, $3;
        done_${:uid}:
        }
        """, "=f,=f,f,f", [tl.load(x + o), tl.load(y + o)], dtype=(tl.float32, tl.float32), is_pure=True, pack=1)
    tl.store(s + o, a)
    tl.store(d + o, b)


case(asm_several, (1,), lambda x, y, **_: {"s": x + y, "d": np.where(x < 0, -x * y, x - y)}, x=rand(256), y=rand(256),
     s=full(256), d=full(256), B=256)


@triton.jit
def asm_lop3(x, y, z, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.inline_asm_elementwise("lop3.b32 $0, $1, $2, 0xff00ff00, 0x96;", "=r,r,r", [tl.load(x + o), tl.load(y + o)],
                                  dtype=tl.int32, is_pure=True, pack=1)
    w = tl.inline_asm_elementwise("bfi.b32 $0, $1, $2, 4, 9;", "=r,r,r", [v, tl.load(x + o)], dtype=tl.int32, is_pure=True,
                                  pack=1)
    tl.store(z + o, w)


def lop3_ref(x, y, **_):
    v = (x ^ y ^ np.int32(-16711936)).astype(np.int64)
    return {"z": ((x & ~(0x1FF << 4)) | ((v & 0x1FF) << 4)).astype(np.int32)}


case(asm_lop3, (1,), lop3_ref, x=ints(256, "i32", -(1 << 31), 1 << 31), y=ints(256, "i32", -(1 << 31), 1 << 31),
     z=full(256, 0, "i32"), B=256)


@triton.jit
def asm_volatile(z, B: tl.constexpr):
    o = tl.arange(0, B)
    lane = tl.inline_asm_elementwise("mov.u32 $0, %laneid; // $1", "=r,r", [o], dtype=tl.int32, is_pure=False, pack=1)
    warp = tl.inline_asm_elementwise("mov.u32 $0, %tid.x; shr.u32 $0, $0, 5; // $1", "=r,r", [o], dtype=tl.int32,
                                     is_pure=False, pack=1)
    tl.store(z + o, warp * 32 + lane)


case(asm_volatile, (1,), lambda **_: {"z": np.arange(128)}, z=full(128, 0, "i32"), B=128)

# -- asserts and prints ------------------------------------------------------------------------------------------------


@triton.jit
def asserted(x, z, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o, mask=o < n, other=1)
    tl.device_assert(v > 0, "x must be positive", mask=o < n)
    tl.device_assert(n < 4096, "n is too large")
    tl.store(z + o, 100 // v, mask=o < n)


case(asserted, (1,), lambda x, **_: {"z": 100 // x}, x=ints(200, "i32", 1, 50), z=full(200, 0, "i32"), n=200, B=256,
     options={"debug": True})
case(asserted, (1,), tag="failing", faults="x must be positive", x=ints(200, "i32", -5, 5), z=full(200, 0, "i32"), n=200,
     B=256, options={"debug": True})


@triton.jit
def overflow_checked(x, y, z, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(z + o, tl.load(x + o) * tl.load(y + o) + tl.load(x + o))


case(overflow_checked, (1,), lambda x, y, **_: {"z": x * y + x}, x=ints(128), y=ints(128), z=full(128, 0, "i32"), B=128,
     options={"debug": True})


@triton.jit
def printed(x, z, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o)
    tl.device_print("values", v, o)
    tl.device_print("hex ", o, hex=True)
    tl.device_print("done")
    tl.store(z + o, v)


for t in ["fp32", "i64", "fp16"]:
    case(printed, (1,), lambda x, **_: {"z": x}, tag=t, x=count(32, t), z=full(32, 0, t), B=32, warps=1)

# -- launches ----------------------------------------------------------------------------------------------------------


@triton.jit
def clustered(x, z, M: tl.constexpr, K: tl.constexpr):
    o = (tl.program_id(0) * M + tl.arange(0, M)[:, None]) * K + tl.arange(0, K)[None, :]
    tl.store(z + o, tl.load(x + o) * 2.0)


@triton.jit
def clustered_matmul(a, b, c, S: tl.constexpr):
    o = tl.arange(0, S)[:, None] * S + tl.arange(0, S)[None, :]
    tl.store(c + o, tl.dot(tl.load(a + o), tl.load(b + o)))


for ctas in [2, 4]:
    case(clustered, (2,), lambda x, **_: {"z": x * 2}, tag=f"{ctas}ctas", sm=(SM90, SM100), x=rand((128, 64)),
         z=full((128, 64)), M=64, K=64, options={"num_ctas": ctas})
case(clustered_matmul, (1,), lambda a, b, **_: {"c": a.astype(np.float64) @ b}, tol=1e-2, sm=(SM90,),
     a=rand((128, 128), "fp16"), b=rand((128, 128), "fp16"), c=full((128, 128)), S=128, options={"num_ctas": 2})


@triton.jit
def limited_registers(x, z, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + o)
    tl.store(z + o, libdevice.tgamma(v) + tl.sin(v))


def gamma_ref(x, **_):
    import math

    return {"z": np.array([math.gamma(v) + math.sin(v) for v in x.astype(np.float64)])}


case(limited_registers, (2,), gamma_ref, tol=1e-4, x=rand(1024, "fp32", 0.5, 4), z=full(1024), B=512,
     options={"maxnreg": 40})


@triton.jit
def dependent_launch(x, z, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.extra.cuda.gdc_wait()
    v = tl.load(x + o)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(z + o, v + 1)


case(dependent_launch, (2,), lambda x, **_: {"z": x + 1}, sm=(SM90, SM100), x=rand(512), z=full(512), B=256,
     options={"launch_pdl": True})


@triton.jit
def clocks(z):
    t = tl.extra.cuda.globaltimer()
    tl.store(z, tl.extra.cuda.globaltimer() >= t)
    tl.store(z + 1, tl.extra.cuda.smid() >= 0)
    tl.store(z + 2, tl.extra.cuda.num_warps())
    tl.store(z + 3, tl.extra.cuda.num_threads())


case(clocks, (1,), lambda **_: {"z": np.array([1, 1, 2, 64])}, z=full(4, 0, "i32"), warps=2)


@triton.jit
def empty(z):
    pass


case(empty, (1,), lambda z, **_: {"z": z}, z=full(4))


@triton.jit
def many_arguments(z, a, b, c, d, e, f, g, h, i, j, k):
    s = a + b * 2 + c * 3 + d * 4 + e.to(tl.int32) + f.to(tl.int32)
    tl.store(z, s + g.to(tl.int32) + tl.load(h) + tl.load(i) + j.to(tl.int32) + k)


case(many_arguments, (1,), lambda **_: {"z": np.array([1 * 5 + 2 * 6 + 3 * 7 + 4 * (1 << 20) + 2 + 1 + 3 + 10 + 20 + 16 + 1])},
     z=full(1, 0, "i32"), a=5, b=6, c=7, d=1 << 20, e=2.5, f=True, g=3.0, h=full(1, 10, "i32"), i=full(1, 20, "i32"), j=1 << 4,
     k=1)


@triton.jit
def producer_consumer(data, flag, z, n, B: tl.constexpr):
    """CTA 0 publishes blocks one by one; CTA 1 waits for each."""
    o = tl.arange(0, B)
    if tl.program_id(0) == 0:
        for i in range(n):
            tl.store(data + i * B + o, o + i * 100)
            tl.debug_barrier()
            tl.atomic_xchg(flag + i, 1, sem="release")
    else:
        for i in range(n):
            while tl.atomic_add(flag + i, 0, sem="acquire") == 0:
                pass
            tl.debug_barrier()
            tl.store(z + i * B + o, tl.load(data + i * B + o, cache_modifier=".cv"))


case(producer_consumer, (2,), lambda n, B, **_: {"z": np.arange(n)[:, None] * 100 + np.arange(B)},
     data=full((3, 64), 0, "i32"), flag=full(3, 0, "i32"), z=full((3, 64), 0, "i32"), n=3, B=64, warps=2)
