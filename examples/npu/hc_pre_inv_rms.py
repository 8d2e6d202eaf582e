"""npu_hc_pre_inv_rms on an NPU, against a float64 oracle: eager, and in a graph that is replayed on fresh inputs.

    python examples/npu/hc_pre_inv_rms.py              on a machine with an NPU
    custom-ops run examples/npu/hc_pre_inv_rms.py      on any other, simulated
"""

import argparse

import numpy as np
import torch
import torch_npu  # noqa: F401  (torch's device "npu")
import torchair

import custom_ops  # noqa: F401  (torch.ops.custom)
from custom_ops import reference

STREAMS = 4  # hc_mult of DeepSeek-V4
RTOL = ATOL = 1e-5


class InverseRms(torch.nn.Module):
    def forward(self, x):
        return torch.ops.custom.npu_hc_pre_inv_rms(x, epsilon=1e-6)


def check(name: str, y: torch.Tensor, x: torch.Tensor) -> None:
    got, want = y.cpu().numpy(), reference.hc_pre_inv_rms(x, 1e-6)
    np.testing.assert_allclose(got, want, rtol=RTOL, atol=ATOL, err_msg=name)
    error = np.abs(got - want) / np.abs(want)
    print(f"{name:16} x {list(x.shape)}: largest relative error {error.max():.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--hidden", type=int, nargs="+", default=[4096, 7168])
    options = parser.parse_args()

    torch.npu.set_device(0)
    torch.manual_seed(0)
    model = InverseRms().npu()
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    backend = torchair.get_npu_backend(compiler_config=config)

    for hidden in options.hidden:
        for tokens in options.tokens:
            graph = torch.compile(model, backend=backend, fullgraph=True, dynamic=False)
            x = torch.randn(tokens, STREAMS, hidden).bfloat16()
            check("eager", model(x.npu()), x)
            for run in ("captured", "replayed", "replayed"):
                x = torch.randn(tokens, STREAMS, hidden).bfloat16()
                check(f"graph, {run}", graph(x.npu()), x)
    print(f"all within rtol = atol = {RTOL:g} on {torch.npu.get_device_name()}")


if __name__ == "__main__":
    main()
