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

    def __init__(self, m: int, k: int, dtype: str, stages: int, chunk_rows: int = 64) -> None:
        self.m, self.k, self.dtype, self.chunk_rows, self.epoch = m, k, TYPES[dtype], chunk_rows, 0
        self.block = {"BM": 32, "BN": 32, "BK": 32, "N_CTAS": 4, "num_stages": stages}
        self.host = intarsia.load_host("ag-gemm-host.c")
        self.host.ag_workspace.restype = self.host.ag_signals.restype = ctypes.c_void_p
        row_bytes = k * (4 if dtype == "float32" else 2)
        if self.host.ag_open(m * row_bytes, chunk_rows * row_bytes):
            raise MemoryError("no symmetric memory for the workspace")

    def __call__(self, a: intarsia.Array, b: intarsia.Array, c: intarsia.Array) -> None:
        self.epoch += 1
        self.host.ag_push(a, self.epoch)
        n_pes, n = intarsia.n_pes(), b.shape[0]
        n_chunks = triton.cdiv(self.m, self.chunk_rows)
        workspace = intarsia.from_address(self.host.ag_workspace(self.epoch), (n_pes, self.m, self.k), self.dtype)
        signals = intarsia.from_address(self.host.ag_signals(), (n_pes, n_chunks), "int64")
        ag_gemm[(self.block["N_CTAS"],)](
            a, workspace, b, c, signals, self.epoch, self.m, n, self.k, intarsia.my_pe(), n_pes, n_chunks,
            self.chunk_rows, **self.block,
        )  # fmt: skip

    def close(self) -> None:
        self.host.ag_close()


def values(seed: int, shape: tuple[int, int]) -> np.ndarray:
    """The same on every PE, and such that products and sums are exact in every type."""
    return (np.random.default_rng(seed).integers(-8, 9, shape) / 8).astype(np.float32)


def check(m: int, n: int, k: int, dtype: str, stages: int, iterations: int, slow_pe: int) -> bool:
    """Runs all iterations without waiting in between, then compares each with NumPy."""
    me, n_pes = intarsia.my_pe(), intarsia.n_pes()
    op = AllGatherGemm(m, k, dtype, stages)
    b = values(1000 + me, (n, k))
    b_there = intarsia.array(b, TYPES[dtype])
    shards = [[values(100 * i + pe, (m, k)) for pe in range(n_pes)] for i in range(iterations)]
    mine = [intarsia.array(shard[me], TYPES[dtype]) for shard in shards]
    results = [intarsia.empty((n_pes * m, n)) for _ in range(iterations)]
    for a, c in zip(mine, results):
        if me == slow_pe:
            time.sleep(0.05)
        op(a, b_there, c)
    differences = [np.abs(c.numpy() - np.concatenate(a) @ b.T).max() for a, c in zip(shards, results)]
    op.close()
    good = max(differences) == 0
    print(
        f"PE {me} of {n_pes}: {iterations} times ({n_pes} * {m} x {k}) @ ({n} x {k})^T in {dtype}: "
        f"{'equal to' if good else 'NOT equal to'} NumPy's, largest difference {max(differences)}"
    )
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=["check"], default="check", help="compare with NumPy")
    parser.add_argument("-m", type=int, default=96, help="rows of A on each PE")
    parser.add_argument("-n", type=int, default=64, help="rows of B on each PE")
    parser.add_argument("-k", type=int, default=64)
    parser.add_argument("--dtype", choices=TYPES, default="float16")
    parser.add_argument("--stages", type=int, default=3, help="of Triton's software pipeline")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--slow", type=int, default=-1, metavar="PE", help="a PE that is late in every iteration")
    given = parser.parse_args()
    intarsia.init()
    good = check(given.m, given.n, given.k, given.dtype, given.stages, given.iterations, given.slow)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
