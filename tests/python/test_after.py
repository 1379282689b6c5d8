"""`after`: no load overtakes the region call it waits for, and the tie costs neither vectors nor pipelining."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import triton
import triton.language as tl
from kernels import ARCHS, assemble, build, machine_code

import intarsia

# A wait that shows in the PTX: nothing else in these kernels has an acquire.
unit = intarsia.load(source=r"""
extern "C" __device__ void wait(const unsigned long long *flag, int at_least) {
    unsigned long long seen;
    do asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(flag) : "memory");
    while (seen < at_least);
}
extern "C" __device__ float *where(float *p) { return p; }
""")

WAIT = r"ld\.acquire\.sys\S*"
COPY = r"cp\.async\.c[ga]\S*"
LOAD = r"ld\.global\.(?:v\d\.)?b\d+"


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, ready, K, lda, TIE: tl.constexpr, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """Each block of A is waited for; the loop is software-pipelined."""
    rm, rn, rk = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    a = a_ptr + rm[:, None] * lda + rk[None, :]
    b = b_ptr + rn[None, :] * lda + rk[:, None]
    acc = tl.zeros((M, N), tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), num_stages=4):
        token = unit.wait(ready, k, sync=False)
        if TIE == "block":
            x = tl.load(intarsia.after(a, token))
        elif TIE == "pointer":
            x = tl.load(intarsia.after(a_ptr, token) + rm[:, None] * lda + rk[None, :] + k * BK)
        else:
            x = tl.load(a)
        acc = tl.dot(x, tl.load(b), acc)
        a += BK
        b += BK
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc)


SIGNATURE = {
    "a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "ready": "*i64", "K": "i32", "lda": "i32",
    "TIE": "constexpr", "M": "constexpr", "N": "constexpr", "BK": "constexpr",
}  # fmt: skip


def build_gemm(tie: str, arch: int) -> str:
    constants = {"TIE": tie, "M": 64, "N": 64, "BK": 32}
    source = triton.compiler.ASTSource(
        gemm, SIGNATURE, constants, {(i,): [["tt.divisibility", 16]] for i in (0, 1, 2, 3, 5)}
    )
    target = triton.backends.compiler.GPUTarget("cuda", arch, 32)
    return triton.compile(source, target=target, options={"num_stages": 4}).asm["ptx"]


def order(ptx: str) -> str:
    """W for each wait, c for each asynchronous copy, in the order of the text."""
    return "".join("W" if re.match(WAIT, m) else "c" for m in re.findall(f"{WAIT}|{COPY}", ptx))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("tie", ["block", "pointer"])
def test_waits_stay_in_front_of_the_loads_of_a_pipelined_loop(tie, arch):
    ptx = build_gemm(tie, arch)
    found = order(ptx)
    # Three iterations in front of the loop, each with the copies of A and B behind a wait of its own, then the loop. In
    # its text the wait may be placed out of line, so it is only counted there.
    ahead, _, loop = found.partition("W" + found.split("W")[3]) if found.count("W") == 4 else ("", "", "")
    assert found.startswith("Wc"), found
    assert re.fullmatch(r"(Wc+){3}(c*Wc*|W)", found), found
    assert ahead.count("W") == 2 and loop
    copies = re.findall(COPY, ptx)
    assert len(set(copies)) == 1 and copies[0].startswith("cp.async.cg"), "the tie must not cost 16-byte copies"


@pytest.mark.parametrize("arch", ARCHS)
def test_without_it_loads_overtake_the_wait(arch):
    """Why `after` is there. Should this ever fail, Triton has learnt to keep the order by itself."""
    found = order(build_gemm("none", arch))
    assert found.startswith("c") and found.index("W") > found.count("c") // 2, found


@triton.jit
def all_shapes(p, q, n, f, h, flag):
    token = unit.wait(flag, 1)
    i = tl.arange(0, 64)
    block = tl.load(intarsia.after(q + i, token))
    both = intarsia.after((n, f), token)
    wide = intarsia.after(n.to(tl.int64), token)
    half = intarsia.after(h, token)
    yes = intarsia.after(n > 3, token)
    ints = intarsia.after(i, token)
    floats = intarsia.after(block, token)
    total = floats + both[0] + both[1] + wide.to(tl.float32) + half + ints
    tl.store(intarsia.after(p, token) + i, total, mask=yes)


@pytest.mark.parametrize("arch", ARCHS)
def test_everything_that_can_be_tied(arch):
    built = build(all_shapes, {"p": "*fp32", "q": "*fp32", "n": "i32", "f": "fp32", "h": "fp16", "flag": "*i64"}, arch)
    wait, load = (re.search(pattern, built.asm["ptx"]) for pattern in (WAIT, LOAD))
    assert wait.start() < load.start()


def test_the_functions_own_result_is_a_token():
    @triton.jit
    def kernel(p, q):
        token = unit.where(p, dtype=tl.pointer_type(tl.float32))
        tl.store(p, tl.load(intarsia.after(q, token)))

    assert build(kernel, {"p": "*fp32", "q": "*fp32"}).metadata.intarsia["report"]["regions_inlined"] == 1


@triton.jit
def constant_token(p):
    tl.load(intarsia.after(p, 0))


@triton.jit
def block_token(p):
    tl.load(intarsia.after(p, tl.arange(0, 32)))


@triton.jit
def tied_descriptor(p):
    desc = tl.make_tensor_descriptor(p, [64, 64], [64, 1], [16, 16])
    intarsia.after(desc, unit.wait(p.to(tl.pointer_type(tl.int64)), 0))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (constant_token, "takes the result of a region call as its second argument, not a int"),
        (block_token, "takes the result of a region call as its second argument, not <"),
        (tied_descriptor, r"a tensor descriptor can't be tied.*tie a coordinate"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_can_not_be_tied(kernel, message):
    with pytest.raises(triton.CompilationError, match=message):
        build(kernel, {"p": "*fp32"})


@triton.jit
def persistent(a_ptr, b_ptr, c_ptr, ready, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A persistent TMA GEMM that waits for each tile of A; the two loops become one, and that one is pipelined."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    n_columns = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * n_columns, 132, flatten=True):
        m, n = tile // n_columns, tile % n_columns
        row = intarsia.after(m * BM, unit.wait(ready, m, sync=False))
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([row, k * BK]), b.load([n * BN, k * BK]).T, acc)
        c.store([row, n * BN], acc.to(tl.float16))


def test_the_opaque_condition_costs_nothing(monkeypatch, tmp_path):
    """As many instructions of each kind with the condition around calls in loops as without; see _language._always."""
    signature = {
        "a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "ready": "*i64", "M": "i32", "N": "i32", "K": "i32",
        "BM": "constexpr", "BN": "constexpr", "BK": "constexpr",
    }  # fmt: skip
    attrs = {(i,): [["tt.divisibility", 16]] for i in range(7)}
    source = triton.compiler.ASTSource(persistent, signature, {"BM": 128, "BN": 128, "BK": 64}, attrs)
    target = triton.backends.compiler.GPUTarget("cuda", 90, 32)
    options = {"num_stages": 4, "num_warps": 8}
    monkeypatch.setattr(triton.knobs.compilation, "always_compile", True)
    codes = []
    for in_loop in (intarsia._language._in_loop, lambda _generator: False):
        monkeypatch.setattr(intarsia._language, "_in_loop", in_loop)
        built = triton.compile(source, target=target, options=options)
        assert built.metadata.intarsia["report"]["regions_inlined"] == 5
        assert built.asm["ptx"].count("wgmma.mma_async") == 4
        assert "serialized" not in assemble(built.asm["ptx"], tmp_path, 90)
        code = machine_code(built.asm["cubin"], tmp_path)
        codes.append(Counter(re.findall(r"/\*[0-9a-f]{4,}\*/ +(?:@!?U?P\d +)?([A-Z][A-Z0-9]*)", code)))
    with_condition, without = codes
    for opcode in ("BRA", "HGMMA", "BAR", "BSSY", "UTMALDG", "LD", "LDG"):
        assert with_condition[opcode] == without[opcode], (opcode, with_condition, without)
    total = without.total() - without["NOP"]
    assert total > 500 and abs(with_condition.total() - with_condition["NOP"] - total) <= total // 100
