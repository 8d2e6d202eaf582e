"""Many launches from several threads, each on its stream, with memory freed and reused in between: every result is compared, the
resident set must stay flat, and a hang ends with the stack of every thread.

    python -m custom_ops.npu tests/npu/soak.py [--launches 10000] [--threads 4]
"""

import argparse
import faulthandler
import random
import sys
import threading
import time
from collections import deque
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from op_table import DEVICE, OPS, assert_same_bits, on, to_cpu  # noqa: E402

SHAPES = (((1,), 64), ((7,), 96), ((2, 8), 48), ((33,), 256))
KEPT = 6  # results in flight per thread


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


class Cases:
    """Inputs of every operator with the results they must give: those of one call alone, checked against the oracle."""

    def __init__(self):
        self.cases = []
        rng = torch.Generator().manual_seed(1)
        for op in OPS.values():
            for tokens, d in SHAPES:
                inputs = op.inputs(rng, tokens, d, torch.bfloat16)
                results = to_cpu(op(**on(DEVICE, inputs), **op.attributes))
                op.matches(results, inputs, op.attributes)
                self.cases.append((op, inputs, results))


def work(cases: Cases, launches: int, seed: int, stream) -> None:
    pick = random.Random(seed)
    pending = deque()

    def check():
        got, want = pending.popleft()
        assert_same_bits(to_cpu(got), want)

    with torch.npu.stream(stream):
        for _ in range(launches):
            op, inputs, want = pick.choice(cases.cases)
            arguments = on(DEVICE, inputs)
            if pick.random() < 0.3:  # a strided input, whose contiguous copy lives for this call only
                arguments[op.hidden] = torch.stack([arguments[op.hidden], arguments[op.hidden]], -1)[..., 0]
            pending.append((op(**arguments, **op.attributes), want))
            del arguments
            # Into the memory that the call has just given back.
            torch.full((pick.randrange(1, 40000),), torch.nan, device=DEVICE)
            if len(pending) == KEPT:
                check()
        while pending:
            check()


def run(launches: int, threads: int) -> dict:
    """Raises what a thread raised. The resident set is compared from the second half on: allocators have grown by then, and the
    simulator keeps the reports of its last 4,096 launches."""
    cases, errors, streams = Cases(), [], [torch.npu.Stream() for _ in range(threads)]

    def guarded(count, seed, stream):
        try:
            work(cases, count, seed, stream)
        except BaseException as error:  # noqa: BLE001  (raised below)
            errors.append(error)

    def phase(count, seed):
        workers = [threading.Thread(target=guarded, args=(count // threads, seed + index, stream)) for index, stream in enumerate(streams)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        torch.npu.synchronize()
        if errors:
            raise errors[0]

    start = time.perf_counter()
    phase(launches // 2, 1)
    warm = resident_mb()
    phase(launches - launches // 2, 1000)
    return {"launches": launches, "threads": threads, "seconds": time.perf_counter() - start, "warm_mb": warm, "end_mb": resident_mb()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--timeout", type=int, default=1800, help="seconds, then the stacks are printed and the process ends")
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.timeout, exit=True)
    figures = run(options.launches, options.threads)
    print("measured: {launches} launches from {threads} threads in {seconds:.0f} s, all results right; "
          "resident {warm_mb:.0f} MB after half of them, {end_mb:.0f} MB at the end".format(**figures))
    growth = figures["end_mb"] - figures["warm_mb"]
    if growth > 0.05 * figures["warm_mb"]:
        raise SystemExit(f"the resident set grew by {growth:.0f} MB")


if __name__ == "__main__":
    main()
