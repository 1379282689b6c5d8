"""
All-gather and GEMM in one: each PE multiplies its own shard of A at once and every other as it arrives.

PE p holds a shard of A (m x k) and a shard of B (n x k), and computes C = concat(A) @ B_p^T, (n_pes * m) x n.
"""

import argparse
import ctypes
import sys
import time

import numpy as np
import triton
import triton.language as tl

import intarsia

device = intarsia.load("ag-gemm-device.cu")

TYPES = {"float16": np.float16, "bfloat16": intarsia.bfloat16, "float32": np.float32}


@triton.jit(do_not_specialize=["epoch"])
def ag_gemm(
    a, workspace, b, c, signals, epoch: tl.int64, m, n, k, me, n_pes, n_chunks, chunk_rows,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, N_CTAS: tl.constexpr,
):  # fmt: skip
    """Persistent: the tiles of all shards, this PE's own first, then in the order in which the others push theirs."""
    tiles_n = tl.cdiv(n, BN)
    tiles_of_shard = tl.cdiv(m, BM) * tiles_n
    for tile in range(tl.program_id(0), n_pes * tiles_of_shard, N_CTAS):
        shard = (me + tile // tiles_of_shard) % n_pes
        row = tile % tiles_of_shard // tiles_n * BM
        column = tile % tiles_n * BN
        if shard == me:
            shard_ptr = a
        else:
            last_row = tl.minimum(row + BM, m) - 1
            token = 0
            for chunk in range(row // chunk_rows, last_row // chunk_rows + 1):
                token = device.wait_chunk(signals, shard * n_chunks + chunk, epoch, sync=False)
            shard_ptr = intarsia.after(workspace, token) + shard.to(tl.int64) * m * k

        rows, columns, inner = row + tl.arange(0, BM), column + tl.arange(0, BN), tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            depth = start + inner
            x = tl.load(shard_ptr + rows[:, None] * k + depth, mask=(rows[:, None] < m) & (depth < k), other=0.0)
            y = tl.load(b + columns[None, :] * k + depth[:, None], mask=(columns < n) & (depth[:, None] < k), other=0.0)
            acc = tl.dot(x, y, acc, input_precision="ieee")
        out = c + (shard.to(tl.int64) * m + rows[:, None]) * n + columns
        tl.store(out, acc.to(c.dtype.element_ty), mask=(rows[:, None] < m) & (columns < n))


class AllGatherGemm:
    """For shards of A of one shape and type; `__call__` is one iteration."""

    def __init__(self, m: int, k: int, dtype: str, chunk_rows: int = 64) -> None:
        self.m, self.k, self.dtype, self.chunk_rows, self.epoch = m, k, TYPES[dtype], chunk_rows, 0
        self.host = intarsia.load_host("ag-gemm-host.c")
        self.host.ag_workspace.restype = self.host.ag_signals.restype = ctypes.c_void_p
        row_bytes = k * (4 if dtype == "float32" else 2)
        if self.host.ag_open(m * row_bytes, chunk_rows * row_bytes):
            raise MemoryError("no symmetric memory for the workspace")

    def __call__(self, a: intarsia.Array, b: intarsia.Array, c: intarsia.Array, slow: float = 0.0) -> None:
        self.epoch += 1
        time.sleep(slow)
        self.host.ag_push(a, self.epoch)
        n_pes, n = intarsia.n_pes(), b.shape[0]
        n_chunks = triton.cdiv(self.m, self.chunk_rows)
        workspace = intarsia.from_address(self.host.ag_workspace(self.epoch), (n_pes, self.m, self.k), self.dtype)
        signals = intarsia.from_address(self.host.ag_signals(), (n_pes, n_chunks), "int64")
        block = {"BM": 32, "BN": 32, "BK": 32, "N_CTAS": 4}
        ag_gemm[(block["N_CTAS"],)](
            a, workspace, b, c, signals, self.epoch, self.m, n, self.k, intarsia.my_pe(), n_pes, n_chunks,
            self.chunk_rows, **block,
        )  # fmt: skip

    def close(self) -> None:
        self.host.ag_close()


def values(seed: int, shape: tuple[int, int], dtype: str) -> np.ndarray:
    """The same on every PE, and exact in the element type."""
    return (np.random.default_rng(seed).integers(-8, 9, shape) / 8).astype(np.float32)


def check(m: int, n: int, k: int, dtype: str, iterations: int, slow_pe: int) -> bool:
    me, n_pes = intarsia.my_pe(), intarsia.n_pes()
    op = AllGatherGemm(m, k, dtype)
    b = values(1000 + me, (n, k), dtype)
    b_there, c = intarsia.array(b, TYPES[dtype]), intarsia.empty((n_pes * m, n), "float32")
    worst = 0.0
    for i in range(iterations):
        shards = [values(100 * i + pe, (m, k), dtype) for pe in range(n_pes)]
        op(intarsia.array(shards[me], TYPES[dtype]), b_there, c, slow=0.05 if me == slow_pe else 0.0)
        expected = np.concatenate(shards) @ b.T
        worst = max(worst, float(np.abs(c.numpy() - expected).max()))
    op.close()
    good = worst <= 1e-3
    print(
        f"PE {me} of {n_pes}: {iterations} times ({n_pes} * {m} x {k}) @ ({n} x {k})^T in {dtype}: "
        f"{'equal to' if good else 'NOT equal to'} NumPy's, largest difference {worst:.1e}"
    )
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=["check"], default="check", help="compare with NumPy")
    parser.add_argument("-m", type=int, default=96, help="rows of A on each PE")
    parser.add_argument("-n", type=int, default=64, help="rows of B on each PE")
    parser.add_argument("-k", type=int, default=64)
    parser.add_argument("--dtype", choices=TYPES, default="float16")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--slow", type=int, default=-1, metavar="PE", help="a PE that is late in every iteration")
    given = parser.parse_args()
    intarsia.init()
    return 0 if check(given.m, given.n, given.k, given.dtype, given.iterations, given.slow) else 1


if __name__ == "__main__":
    sys.exit(main())
