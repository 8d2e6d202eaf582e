"""npu_hc_pre_sinkhorn on an NPU, against a float64 oracle: eager, and in a graph that is replayed on fresh inputs.

    python examples/npu/hc_pre_sinkhorn.py             on a machine with an NPU
    custom-ops run examples/npu/hc_pre_sinkhorn.py     on any other, simulated
"""

import argparse

import numpy as np
import torch
import torch_npu  # noqa: F401  (torch's device "npu")
import torchair

import custom_ops  # noqa: F401  (torch.ops.custom)
from custom_ops import reference

STREAMS, ITERATIONS, EPS = 4, 20, 1e-6  # of DeepSeek-V4
MIX = (2 + STREAMS) * STREAMS
RTOL = ATOL = 1e-5  # of post and comb_frag
Y_TOLERANCE = 1e-4  # and one ulp of bfloat16, where float32 falls on the other side of a rounding tie


class Sinkhorn(torch.nn.Module):
    """The parameters of one mHC site; mixes are the projected streams, rsqrt their inverse RMS."""

    def __init__(self):
        super().__init__()
        self.hc_scale = torch.nn.Parameter(torch.rand(3) + 0.5, requires_grad=False)
        self.hc_base = torch.nn.Parameter(torch.randn(MIX), requires_grad=False)

    def forward(self, mixes, rsqrt, x):
        return torch.ops.custom.npu_hc_pre_sinkhorn(mixes, rsqrt, self.hc_scale, self.hc_base, x, STREAMS, ITERATIONS, EPS)


def inputs(tokens: int, hidden: int) -> tuple[torch.Tensor, ...]:
    return torch.randn(tokens, MIX), torch.rand(tokens, 1) + 0.5, torch.randn(tokens, STREAMS, hidden).bfloat16()


def check(name: str, results, mixes, rsqrt, x, model: Sinkhorn) -> None:
    arguments = (mixes, rsqrt, model.hc_scale, model.hc_base)
    y, post, comb = (result.cpu() for result in results)
    want_y, want_post, want_comb = reference.hc_pre_sinkhorn(*arguments, x, STREAMS, ITERATIONS, EPS)
    np.testing.assert_allclose(post.numpy(), want_post, rtol=RTOL, atol=ATOL, err_msg=f"{name}: post")
    np.testing.assert_allclose(comb.numpy(), want_comb, rtol=RTOL, atol=ATOL, err_msg=f"{name}: comb_frag")
    # y is a sum that may cancel: its float32 error is that of its largest summand.
    summand = np.abs(reference.pre_weights(*arguments, STREAMS, EPS)[..., None] * reference.to_float64(x)).max(-2)
    rounded = reference.round_to(want_y, torch.bfloat16)
    got = reference.to_float64(y)
    wrong = np.abs(got - rounded) > Y_TOLERANCE * np.maximum(1, np.abs(rounded))
    wrong &= reference.ulps(got, rounded, torch.bfloat16) > 1
    wrong &= np.abs(got - rounded) > 1e-6 * summand
    assert not wrong.any(), f"{name}: y differs in {wrong.sum()} of {wrong.size} elements"
    print(f"{name:16} x {list(x.shape)}: largest error of post {np.abs(post.numpy() - want_post).max():.1e}, of comb_frag "
          f"{np.abs(comb.numpy() - want_comb).max():.1e}, {(got != rounded).sum()} of {got.size} y fell on the other side of a tie")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--hidden", type=int, nargs="+", default=[4096, 7168])
    options = parser.parse_args()

    torch.npu.set_device(0)
    torch.manual_seed(0)
    model = Sinkhorn().npu()
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    backend = torchair.get_npu_backend(compiler_config=config)

    for hidden in options.hidden:
        for tokens in options.tokens:
            graph = torch.compile(model, backend=backend, fullgraph=True, dynamic=False)
            given = inputs(tokens, hidden)
            check("eager", model(*(tensor.npu() for tensor in given)), *given, model)
            for run in ("captured", "replayed", "replayed"):
                given = inputs(tokens, hidden)
                check(f"graph, {run}", graph(*(tensor.npu() for tensor in given)), *given, model)
    print(f"all within the tolerances (post, comb_frag {RTOL:g}; y {Y_TOLERANCE:g} or one ulp) on {torch.npu.get_device_name()}")


if __name__ == "__main__":
    main()
