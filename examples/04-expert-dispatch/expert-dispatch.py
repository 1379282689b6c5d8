"""
A mixture of experts over several PEs: tokens travel to the experts that they chose, and what those made of them back.

Each PE has tokens (rows of x) and some of the experts (a square matrix each). A token chooses `top` of all experts; its
result is the weighted sum of what they make of it. Three kernels do it, and meet by signals alone:

    dispatch   a program for each expert of the world sends the rows for it, and says how many
    experts    a program for each own expert and each PE waits for its rows, multiplies, sends the results back
    combine    a program for each token waits for the results, and adds them up

How many rows there will be is known to nobody but the sender, so it comes with the signal.

There is no barrier between iterations, and nothing is there twice. A PE sends rows again only when it has combined; it
combines when all experts have returned its rows, those included that got none; an expert returns them when it has read
them. So what is sent never meets rows of before that somebody still reads, on the way out and on the way back.
"""

import argparse
import ctypes
import sys

import numpy as np
import triton
import triton.language as tl

import intarsia

device = intarsia.load("expert-dispatch-device.cu")


@triton.jit(do_not_specialize=["iteration"])
def dispatch(x, chosen, slots, inbox, sent, tokens, width, per_pe, iteration, TOP: tl.constexpr):
    expert = tl.program_id(0)
    device.send_rows(x, chosen, slots, inbox, sent, tokens, TOP, width, per_pe, expert, iteration, sync=False)


@triton.jit(do_not_specialize=["iteration", "me"])
def experts(
    inbox, sent, weights, made, results, back, tokens, width, per_pe, n_pes, me, iteration,
    ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    own, source = tl.program_id(0) // n_pes, tl.program_id(0) % n_pes
    at = own * n_pes + source
    count = device.await_rows(sent, at, iteration, sync=False)  # what it returns is a token for `after` as well
    rows = intarsia.after(inbox, count) + at * tokens * width
    out = made + at * tokens * width
    inner = tl.arange(0, WIDTH)
    square = (inner[:, None] < width) & (inner < width)
    matrix = tl.load(weights + own * width * width + inner[:, None] * width + inner, mask=square, other=0.0)
    for first in range(0, count, ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row[:, None] < count) & (inner < width)
        places = row[:, None] * width + inner
        y = tl.dot(tl.load(rows + places, mask=inside, other=0.0), matrix, input_precision="ieee")
        tl.store(out + places, y, mask=inside)
    device.return_rows(results, out, count, back, me * per_pe + own, tokens, width, source, iteration)


@triton.jit(do_not_specialize=["iteration"])
def combine(
    results, back, chosen, slots, shares, y, tokens, width, n_experts, iteration,
    TOP: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    t, inner = tl.program_id(0), tl.arange(0, WIDTH)
    token = device.await_results(back, n_experts, iteration, sync=False)
    rows = intarsia.after(results, token)
    total = tl.zeros((WIDTH,), tl.float32)
    for k in range(TOP):
        i = t * TOP + k
        row = tl.load(chosen + i) * tokens + tl.load(slots + i)
        total += tl.load(shares + i) * tl.load(rows + row * width + inner, mask=inner < width, other=0.0)
    tl.store(y + t * width + inner, total, mask=inner < width)


class Mixture:
    """For so many tokens of one width on each PE. `__call__` is one iteration, and collective as NVSHMEM means it."""

    def __init__(self, tokens: int, width: int, top: int, weights: np.ndarray) -> None:
        self.me, self.n_pes = intarsia.my_pe(), intarsia.n_pes()
        self.tokens, self.width, self.top, self.per_pe = tokens, width, top, len(weights)
        self.n_experts = self.n_pes * self.per_pe
        self.iteration = 0
        self.host = intarsia.load_host("expert-dispatch-host.c")
        self.host.memory_new.restype = ctypes.c_void_p
        self.weights = intarsia.array(weights)
        self.made = intarsia.empty(self.n_experts * tokens * width)
        self.slots = intarsia.empty(tokens * top, "int32")
        self.inbox, self.results = (self._memory(self.n_experts * tokens * width, "float32") for _ in range(2))
        self.sent, self.back = (self._memory(self.n_experts, "int64") for _ in range(2))

    def _memory(self, n: int, dtype: str) -> intarsia.Array:
        address = self.host.memory_new(n * np.dtype(dtype).itemsize)
        if not address:
            raise RuntimeError("there is no symmetric memory for the rows")
        return intarsia.from_address(address, n, dtype)

    def __call__(self, x, chosen, shares, y) -> None:
        self.iteration += 1
        wide = max(16, triton.next_power_of_2(self.width))
        dispatch[(self.n_experts,)](
            x, chosen, self.slots, self.inbox, self.sent, self.tokens, self.width, self.per_pe, self.iteration,
            TOP=self.top,
        )  # fmt: skip
        experts[(self.n_experts,)](
            self.inbox, self.sent, self.weights, self.made, self.results, self.back, self.tokens, self.width,
            self.per_pe, self.n_pes, self.me, self.iteration, ROWS=16, WIDTH=wide,
        )  # fmt: skip
        combine[(self.tokens,)](
            self.results, self.back, chosen, self.slots, shares, y, self.tokens, self.width, self.n_experts,
            self.iteration, TOP=self.top, WIDTH=wide,
        )  # fmt: skip

    def free(self) -> None:
        for memory in (self.inbox, self.results, self.sent, self.back):
            if self.host.memory_free(memory):
                raise RuntimeError("a kernel failed")


def some_input(seed: int, args: argparse.Namespace, n_experts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens, the experts that they choose (different ones, and some far more often than others), and their shares."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, (args.tokens, args.width)).astype(np.float32)
    liked = rng.random((args.tokens, n_experts)) * np.linspace(0.2, 1, n_experts)
    chosen = np.argsort(-liked, axis=1)[:, : args.top].astype(np.int32)
    return x, chosen, rng.integers(1, 5, (args.tokens, args.top)).astype(np.float32) / 4


def expected(x: np.ndarray, chosen: np.ndarray, shares: np.ndarray, weights: np.ndarray) -> np.ndarray:
    each = np.einsum("tw,tkwv->tkv", x, weights[chosen])
    return (shares[:, :, None] * each).sum(axis=1)


def main() -> int:
    parser = argparse.ArgumentParser(description="Sends tokens to experts on other PEs and back.")
    parser.add_argument("--tokens", type=int, default=40, help="of each PE")
    parser.add_argument("--width", type=int, default=24, help="of a token")
    parser.add_argument("--experts", type=int, default=2, help="of each PE")
    parser.add_argument("--top", type=int, default=2, help="how many experts a token chooses")
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    intarsia.init()
    me, n_experts = intarsia.my_pe(), intarsia.n_pes() * args.experts
    if args.top > n_experts:
        parser.error(f"there are {n_experts} experts, a token can't choose {args.top}")
    weights = np.random.default_rng(1).integers(-3, 4, (n_experts, args.width, args.width)).astype(np.float32)
    mixture = Mixture(args.tokens, args.width, args.top, weights[me * args.experts : (me + 1) * args.experts])
    given = [some_input(100 * i + me, args, n_experts) for i in range(args.times)]
    results = [intarsia.empty((args.tokens, args.width)) for _ in given]
    for (x, chosen, shares), y in zip(given, results, strict=True):  # without waiting in between
        mixture(intarsia.array(x), intarsia.array(chosen), intarsia.array(shares), y)
    right = [np.array_equal(y.numpy(), expected(*one, weights)) for one, y in zip(given, results, strict=True)]
    mixture.free()
    rows = sum(np.bincount(chosen.ravel(), minlength=n_experts) for _, chosen, _ in given)
    verdict = "equal to" if all(right) else "NOT equal to"
    print(f"PE {me} of {intarsia.n_pes()}: {rows.tolist()} rows to {n_experts} experts: {verdict} NumPy's")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
