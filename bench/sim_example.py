#!/usr/bin/env python3
"""
The all-gather GEMM on the simulator: part of `make bench-sim`.

    sim_example.py            runs itself on 2 and on 4 PEs, without and with a look for races
    sim_example.py --on-pe    what each PE runs: C is 512 x 512 and k 512, whatever the number of PEs

A first iteration compiles; each of those that are timed begins and ends with a barrier of all PEs.
"""

import importlib.util
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "02-allgather-gemm"
SIZE, RUNS = 512, 9


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def on_pe() -> None:
    import numpy as np

    import intarsia

    sys.path.insert(0, str(EXAMPLE))
    spec = importlib.util.spec_from_file_location("ag_gemm", EXAMPLE / "ag-gemm.py")
    assert spec and spec.loader
    example = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = example
    spec.loader.exec_module(example)

    intarsia.init()
    me, n_pes = intarsia.my_pe(), intarsia.n_pes()
    rows = SIZE // n_pes
    op = example.AllGatherGemm(rows, SIZE, SIZE, "float16")
    shards = [example.values(pe, (rows, SIZE)) for pe in range(n_pes)]
    b = example.values(1000 + me, (SIZE, SIZE))
    a_there, b_there = (intarsia.array(x, np.float16) for x in (shards[me], b))
    c = intarsia.empty((SIZE, SIZE), np.float32)
    op(a_there, b_there, c)
    intarsia.barrier()
    before, seconds = peak_megabytes(), []
    for _ in range(RUNS):
        began = time.monotonic()
        op(a_there, b_there, c)
        intarsia.barrier()
        seconds.append(time.monotonic() - began)
    if not np.array_equal(c.numpy(), np.concatenate(shards) @ b.T):
        raise SystemExit("the product is wrong")
    if me == 0:
        print(
            f"{n_pes} PEs: {statistics.median(seconds):.3f} s  ({min(seconds):.3f} to {max(seconds):.3f}), "
            f"{statistics.median(seconds) / n_pes:.3f} s per PE; peak memory grew by {peak_megabytes() - before:.1f} MB"
        )
    op.close()
    intarsia.finalize()


def main() -> int:
    print(f"all-gather GEMM, {SIZE} x {SIZE} x {SIZE}, float16: wall time of one iteration, median of {RUNS}")
    for checks in ([], ["--check", "races"]):
        for n in (2, 4):
            command = [ROOT / "build/release/bin/intarsia", "run", "--sim", "--no-prefix", "-n", str(n), *checks]
            done = subprocess.run([*command, __file__, "--on-pe"], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                print(done.stdout + done.stderr, file=sys.stderr)
                return 1
            print(done.stdout.strip() + (", looking for races" if checks else ""), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(on_pe() if sys.argv[1:] == ["--on-pe"] else main())
