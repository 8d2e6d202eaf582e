"""Wall-clock cost of simulating hc_pre_sinkhorn, next to the native kernel in the same run.

Targets: checks on at most 2 s; checks off at most 60 times the native kernel.
"""

import statistics
import time

import torch
from rich.console import Console
from rich.table import Table

import custom_ops

TOKENS, STREAMS, HIDDEN = 129, 4, 4096
ROUNDS = 7
CALLS = 5  # of each per round: neither side is timed cold


def tensors() -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(1)
    mix = (2 + STREAMS) * STREAMS
    return {
        "mixes": torch.randn(TOKENS, mix, generator=rng),
        "rsqrt": torch.rand(TOKENS, 1, generator=rng) + 0.5,
        "hc_scale": torch.ones(3),
        "hc_base": torch.randn(mix, generator=rng),
        "x": torch.randn(TOKENS, STREAMS, HIDDEN, generator=rng).bfloat16(),
    }


def seconds(call) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


def main() -> None:
    inputs = tensors()

    def native() -> None:
        custom_ops.hc_pre_sinkhorn(**inputs, hc_eps=1e-6)

    def simulated(soc: str, checks: bool):
        def call() -> None:
            with custom_ops.simulate(soc, checks=checks):
                custom_ops.hc_pre_sinkhorn(**inputs, hc_eps=1e-6)

        return call

    table = Table(title=f"simulating hc_pre_sinkhorn T={TOKENS} d={HIDDEN} bf16: measured, median of {ROUNDS} rounds")
    for column in ("SoC", "checks", "seconds", "times the native kernel", "target", "met"):
        table.add_column(column, justify="right")
    for soc in ("ascend910b", "ascend910_93", "ascend950"):
        for checks in (True, False):
            call = simulated(soc, checks)
            call()  # builds the op package
            native()
            pairs = [(seconds(call), seconds(native)) for _ in range(ROUNDS)]
            simulation = statistics.median(s for s, _ in pairs)
            ratio = statistics.median(s / n for s, n in pairs)
            met = simulation <= 2 if checks else ratio <= 60
            target = "<= 2 s" if checks else "<= 60 x"
            table.add_row(soc, "on" if checks else "off", f"{simulation:.3f}", f"{ratio:.1f}", target, "yes" if met else "NO")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
