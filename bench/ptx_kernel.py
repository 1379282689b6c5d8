"""The kernel that bench/ptx.py measures with: a persistent product of matrices that waits for shards of A to arrive."""

import triton
import triton.language as tl

import intarsia

device = intarsia.load("ptx-device.cu")


@triton.jit(do_not_specialize=["epoch"])
def product(
    a, b, c, signals, epoch: tl.int64, m, n, k, me, n_pes, n_chunks, chunk_rows,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, N_CTAS: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(n, BN)
    tiles_of_shard = tl.cdiv(m, BM) * tiles_n
    for tile in range(tl.program_id(0), n_pes * tiles_of_shard, N_CTAS):
        shard = (me + tile // tiles_of_shard) % n_pes
        row = tile % tiles_of_shard // tiles_n * BM
        column = tile % tiles_n * BN
        if shard != me:
            for chunk in range(row // chunk_rows, (tl.minimum(row + BM, m) - 1) // chunk_rows + 1):
                device.wait_chunk(signals, shard * n_chunks + chunk, epoch)
        rows, columns, inner = row + tl.arange(0, BM), column + tl.arange(0, BN), tl.arange(0, BK)
        of_shard = a + shard.to(tl.int64) * m * k
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            depth = start + inner
            x = tl.load(of_shard + rows[:, None] * k + depth, mask=(rows[:, None] < m) & (depth < k), other=0.0)
            y = tl.load(b + columns[None, :] * k + depth[:, None], mask=(columns < n) & (depth[:, None] < k), other=0.0)
            acc = tl.dot(x, y, acc)
        out = c + (shard.to(tl.int64) * m + rows[:, None]) * n + columns
        tl.store(out, acc.to(c.dtype.element_ty), mask=(rows[:, None] < m) & (columns < n))
