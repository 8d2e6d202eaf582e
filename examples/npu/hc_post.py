"""npu_hc_post on an NPU, against a float64 oracle: eager, and in a graph that is replayed on fresh inputs.

    python examples/npu/hc_post.py                     on a machine with an NPU
    custom-ops run examples/npu/hc_post.py             on any other, simulated
"""

import argparse

import numpy as np
import torch
import torch_npu  # noqa: F401  (torch's device "npu")
import torchair

import custom_ops  # noqa: F401  (torch.ops.custom)
from custom_ops import reference

STREAMS = 4  # hc_mult of DeepSeek-V4
TOLERANCE = 1e-4  # and one ulp of bfloat16, where float32 falls on the other side of a rounding tie


class Post(torch.nn.Module):
    """The end of an mHC site: the block's output merged into the residual streams."""

    def forward(self, x, residual, post, comb):
        return torch.ops.custom.npu_hc_post(x, residual, post, comb)


def inputs(tokens: int, hidden: int) -> tuple[torch.Tensor, ...]:
    x, residual = torch.randn(tokens, hidden).bfloat16(), torch.randn(tokens, STREAMS, hidden).bfloat16()
    return x, residual, 2 * torch.rand(tokens, STREAMS), torch.softmax(torch.randn(tokens, STREAMS, STREAMS), -1)


def check(name: str, y: torch.Tensor, *given: torch.Tensor) -> None:
    want = reference.hc_post(*given)
    magnitude = reference.hc_post(*(tensor.abs() for tensor in given))  # a sum may cancel: its float32 error is that of its summands
    got, rounded = reference.to_float64(y), reference.round_to(want, torch.bfloat16)
    error = np.abs(got - rounded)
    wrong = (error > TOLERANCE * np.maximum(1, np.abs(rounded))) & (error > 1e-6 * magnitude)
    wrong &= reference.ulps(got, rounded, torch.bfloat16) > 1
    assert not wrong.any(), f"{name}: y differs in {wrong.sum()} of {wrong.size} elements"
    print(f"{name:16} residual {list(given[1].shape)}: {(got != rounded).sum()} of {got.size} fell on the other side of a rounding tie")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--hidden", type=int, nargs="+", default=[4096, 7168])
    options = parser.parse_args()

    torch.npu.set_device(0)
    torch.manual_seed(0)
    model = Post().npu()
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    backend = torchair.get_npu_backend(compiler_config=config)

    for hidden in options.hidden:
        for tokens in options.tokens:
            graph = torch.compile(model, backend=backend, fullgraph=True, dynamic=False)
            given = inputs(tokens, hidden)
            check("eager", model(*(tensor.npu() for tensor in given)), *given)
            for run in ("captured", "replayed", "replayed"):
                given = inputs(tokens, hidden)
                check(f"graph, {run}", graph(*(tensor.npu() for tensor in given)), *given)
    print(f"all within {TOLERANCE:g} or one ulp on {torch.npu.get_device_name()}")


if __name__ == "__main__":
    main()
