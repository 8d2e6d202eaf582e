"""hc_pre_sinkhorn at DeepSeek-V4-like shapes, on every backend, against a float64 oracle.

Prints the error of each output in units in the last place (ulps), the tiling plan, and the modelled time of each pipe.

    python examples/hc_pre_sinkhorn.py [--tokens 16 129] [--hidden 4096 7168] [--trace DIR]
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import custom_ops
from custom_ops import reference

STREAMS = 4  # hc_mult of DeepSeek-V4
#: The fields of the plan that say how the work is split; the others are sizes of buffers.
SPLIT = ("coresPerToken", "columnsPerCore", "formerCores", "rowsPerFormer", "rowsPerTail", "batchRows", "rowFactor",
         "dFactor", "dLoop")  # fmt: skip
SOCS = ("ascend910b", "ascend910_93", "ascend950")


def inputs(tokens: int, hidden: int) -> dict[str, torch.Tensor]:
    """One call's tensors: mixes before the RMS factor, as the projection leaves them."""
    rng = torch.Generator().manual_seed(tokens * 65537 + hidden)
    x = torch.randn(tokens, STREAMS, hidden, generator=rng).bfloat16()
    mix = (2 + STREAMS) * STREAMS
    projection = torch.randn(mix, STREAMS * hidden, generator=rng) / (STREAMS * hidden) ** 0.5
    return {
        "mixes": x.flatten(1).float() @ projection.T,
        "rsqrt": custom_ops.hc_pre_inv_rms(x, epsilon=1e-6),
        "hc_scale": torch.rand(3, generator=rng) + 0.5,
        "hc_base": torch.randn(mix, generator=rng),
        "x": x,
    }


def bound_by(op) -> str:
    """The pipe that is busy for most of the kernel's time, or latency when none is busy for half of it."""
    name, use = max(op.pipes.items(), key=lambda item: item[1].busiest_cycles)
    return name if use.busiest_cycles >= op.modelled_cycles / 2 else "latency"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 129])
    parser.add_argument("--hidden", type=int, nargs="+", default=[4096, 7168])
    parser.add_argument("--trace", type=Path, help="folder for Chrome traces, one per simulated call")
    options = parser.parse_args()

    errors = Table(title="largest error against the float64 oracle rounded to the output type, in ulps; y: of its largest summand")
    for column in ("T", "d", "backend", "y bf16", "post fp32", "comb_frag fp32"):
        errors.add_column(column, justify="right")
    plans = Table(title="tiling plan")
    for column in ("T", "d", "SoC", "cores", "UB peak", "plan"):
        plans.add_column(column, justify="left" if column == "plan" else "right")
    times = Table(title="modelled time with the launch; pipes: busy time of the busiest core")
    for column in ("T", "d", "SoC", "total us", "MTE2 us", "V us", "MTE3 us", "S us", "bound by"):
        times.add_column(column, justify="right")

    for tokens in options.tokens:
        for hidden in options.hidden:
            tensors = inputs(tokens, hidden)
            y, post, comb = reference.hc_pre_sinkhorn(*tensors.values(), hc_mult=STREAMS, hc_eps=1e-6)
            pre = reference.pre_weights(*list(tensors.values())[:4], hc_mult=STREAMS, hc_eps=1e-6)
            summands = np.abs(pre[..., None] * reference.to_float64(tensors["x"])).max(-2)

            def add_errors(backend: str, outputs) -> None:
                worst = map(reference.max_ulps, outputs, (y, post, comb), (summands, 0.0, 0.0))
                errors.add_row(str(tokens), str(hidden), backend, *(f"{ulps:.0f}" for ulps in worst))

            call = dict(tensors, hc_mult=STREAMS, hc_sinkhorn_iters=20, hc_eps=1e-6)
            add_errors("native CPU", custom_ops.hc_pre_sinkhorn(**call))
            for soc in SOCS:
                with custom_ops.simulate(soc, trace=options.trace is not None) as run:
                    add_errors(f"simulated {soc}", custom_ops.hc_pre_sinkhorn(**call))
                (op,) = run.calls
                plan = ", ".join(f"{name} {value}" for name, value in op.plan.items() if name in SPLIT)
                plans.add_row(str(tokens), str(hidden), op.soc, str(op.cores), f"{op.ub_peak} B", plan)
                busy = {pipe: op.pipes[pipe].busy_us for pipe in ("MTE2", "V", "MTE3", "S")}
                times.add_row(str(tokens), str(hidden), op.soc, f"{op.modelled_us:.2f}",
                              *(f"{us:.2f}" for us in busy.values()), bound_by(op))  # fmt: skip
                if options.trace:
                    options.trace.mkdir(parents=True, exist_ok=True)
                    run.save_trace(options.trace / f"hc_pre_sinkhorn-T{tokens}-d{hidden}-{soc}.json")

    console = Console(width=150)
    for table in (errors, plans, times):
        console.print(table)
    console.print("Times are modelled by the simulator's timeline; none was measured on a device.")


if __name__ == "__main__":
    main()
