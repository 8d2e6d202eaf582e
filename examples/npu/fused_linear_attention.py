"""npu_fused_linear_attention on an NPU, against a float64 oracle: a prompt, then decode steps in a graph that is replayed on its states.

    python examples/npu/fused_linear_attention.py                     on a machine with an NPU
    custom-ops run examples/npu/fused_linear_attention.py             on any other, simulated
"""

import argparse

import numpy as np
import torch
import torch_npu  # noqa: F401  (torch's device "npu")

import custom_ops  # noqa: F401  (torch.ops.custom)
from custom_ops import reference_linear_attention as reference

TAPS = 4         # of the convolution in Qwen3-Next
TOLERANCE = 1e-2  # of the largest value of a head: one ulp of bfloat16 is 2^-8 of it at most


def inputs(tokens: int, key_heads: int, value_heads: int, dim: int) -> dict[str, torch.Tensor]:
    channels = (2 * key_heads + value_heads) * dim
    decay = -torch.nn.functional.softplus(torch.randn(1, tokens, value_heads))
    return {"qkv": torch.randn(1, tokens, channels).bfloat16(), "gate": decay.bfloat16(),
            "beta": torch.rand(1, tokens, value_heads).bfloat16()}


def check(name: str, out: torch.Tensor, want: np.ndarray) -> None:
    got = out.double().cpu().numpy()
    error = (np.abs(got - want) / np.abs(want).max(-1, keepdims=True)).max()
    assert error < TOLERANCE, f"{name}: attn_out is {error:.2g} of a head's largest value off"
    print(f"{name:16} attn_out {list(out.shape)}: {error:.1e} of a head's largest value")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--heads", type=int, nargs="+", default=[1, 2], help="key heads; two value heads for each")
    parser.add_argument("--dim", type=int, default=64)
    options = parser.parse_args()

    torch.npu.set_device(0)
    torch.manual_seed(0)
    for heads in options.heads:
        for tokens in options.tokens:
            attributes = {"attn_type": "gated_delta_rule", "num_k_heads": heads, "num_v_heads": 2 * heads, "head_k_dim": options.dim,
                          "head_v_dim": options.dim, "token_major": True}
            channels = 4 * heads * options.dim
            weight = (torch.randn(channels, 1, TAPS) / 2).bfloat16()
            kept = [torch.zeros(1, channels, TAPS - 1).bfloat16(), torch.zeros(1, 2 * heads, options.dim, options.dim)]  # of the oracle
            states = {"conv_state": kept[0].npu(), "recurrent_state": kept[1].npu()}
            on_npu = {"conv_weight": weight.npu(), **states}

            def expected(given):
                out, *kept[:] = reference.fused_linear_attention(**given, conv_weight=weight, conv_state=kept[0], recurrent_state=kept[1],
                                                                 **attributes)
                return out

            prompt = inputs(tokens, heads, 2 * heads, options.dim)
            prompt_on_npu = {name: value.npu() for name, value in prompt.items()}
            out = torch.ops.custom.npu_fused_linear_attention(**prompt_on_npu, **on_npu, **attributes)
            check("prompt", out, expected(prompt))

            step = {name: value.npu() for name, value in inputs(1, heads, 2 * heads, options.dim).items()}
            graph = torch.npu.NPUGraph()
            with torch.npu.graph(graph):  # nothing runs: the states stay
                out = torch.ops.custom.npu_fused_linear_attention(**step, **on_npu, **attributes)
            for _ in range(2):
                token = inputs(1, heads, 2 * heads, options.dim)
                for name, value in token.items():
                    step[name].copy_(value)
                graph.replay()
                check("graph, replayed", out, expected(token))
    print(f"all within {TOLERANCE:g} on {torch.npu.get_device_name()}")


if __name__ == "__main__":
    main()
