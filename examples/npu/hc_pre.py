"""npu_hc_pre on an NPU, against a float64 oracle: eager, and in a graph that is replayed on fresh inputs.

    python examples/npu/hc_pre.py                      on a machine with an NPU
    custom-ops run examples/npu/hc_pre.py              on any other, simulated
"""

import argparse

import numpy as np
import torch
import torch_npu  # noqa: F401  (torch's device "npu")
import torchair

from custom_ops import reference
from custom_ops.nn import HyperConnection

STREAMS = 4  # hc_mult of DeepSeek-V4
RTOL = ATOL = 1e-5  # of post and comb_frag
Y_TOLERANCE = 1e-4  # and one ulp of bfloat16, where float32 falls on the other side of a rounding tie


class Pre(HyperConnection):
    """An mHC site up to its block."""

    def forward(self, streams):
        return self.pre(streams)


def check(name: str, results, x: torch.Tensor, site: Pre) -> None:
    y, post, comb = (result.cpu() for result in results)
    arguments = x, site.fn, site.scale, site.base, STREAMS, site.sinkhorn_iters, site.norm_eps, site.hc_eps
    want_y, want_post, want_comb = reference.hc_pre(*arguments)
    np.testing.assert_allclose(post.numpy(), want_post, rtol=RTOL, atol=ATOL, err_msg=f"{name}: post")
    np.testing.assert_allclose(comb.numpy(), want_comb, rtol=RTOL, atol=ATOL, err_msg=f"{name}: comb_frag")
    # y is a sum that may cancel: its float32 error is that of its summands.
    summands = (1 + site.hc_eps) * np.abs(reference.to_float64(x)).sum(-2)
    got, rounded = reference.to_float64(y), reference.round_to(want_y, torch.bfloat16)
    error = np.abs(got - rounded)
    wrong = (error > Y_TOLERANCE * np.maximum(1, np.abs(rounded))) & (error > 1e-6 * summands)
    wrong &= reference.ulps(got, rounded, torch.bfloat16) > 1
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
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    backend = torchair.get_npu_backend(compiler_config=config)

    for hidden in options.hidden:
        site = Pre.for_site(hidden, STREAMS).requires_grad_(False).npu()
        for tokens in options.tokens:
            graph = torch.compile(site, backend=backend, fullgraph=True, dynamic=False)
            x = torch.randn(tokens, STREAMS, hidden).bfloat16()
            check("eager", site(x.npu()), x, site)
            for run in ("captured", "replayed", "replayed"):
                x = torch.randn(tokens, STREAMS, hidden).bfloat16()
                check(f"graph, {run}", graph(x.npu()), x, site)
    print(f"all within the tolerances (post, comb_frag {RTOL:g}; y {Y_TOLERANCE:g} or one ulp) on {torch.npu.get_device_name()}")


if __name__ == "__main__":
    main()
