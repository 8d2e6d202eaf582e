"""Distance of npu_fused_linear_attention (native CPU) and of transformers' PyTorch code from the float64 oracle, as Markdown tables:
one row per value regime of tests/linear_attention.py, the worst call over LENGTHS and LAYERS.

Both sides get the same inputs, rounded to the dtype, and the oracle those. The gate is float32, as models compute it. Convolution states
begin with zeros (transformers' convolution of a prompt takes none), recurrent states under way. A cell is the relative error / the largest
absolute one: RMS of the error over RMS of the oracle's values, and the largest error of an element.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import torch

import custom_ops
from custom_ops import reference_linear_attention

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from linear_attention import REGIMES, Layer  # noqa: E402

LENGTHS = (1, 3, 65, 200, 1000)
LAYERS = {"gated_delta_rule": (Layer(Hk=2, Hv=4, dk=128, dv=128), Layer(Hk=1, Hv=3, dk=64, dv=64), Layer(Hk=2, Hv=2, dk=64, dv=192)),
          "short_conv": (Layer("short_conv", dv=1024, K=3), Layer("short_conv", dv=2048, K=3))}
SMALLEST = 1e-36  # RMS of what has decayed so far that float32 runs out of exponents
DTYPES = (torch.float32, torch.bfloat16)
VALUES = {"gated_delta_rule": tuple(REGIMES), "short_conv": ("normal", "identical", "tiny", "large", "outliers")}  # those of qkv alone


def inputs(layer: Layer, length: int, dtype: torch.dtype, regime: str) -> dict:
    call = layer.tensors(torch.Generator().manual_seed(length), 1, length, regime)
    call["conv_state"].zero_()
    return {name: tensor.to(dtype) if name in ("qkv", "beta", "conv_weight", "conv_state") else tensor for name, tensor in call.items()}


def native(layer: Layer, call: dict) -> tuple[torch.Tensor, torch.Tensor | None]:
    state = None if call["recurrent_state"] is None else call["recurrent_state"].clone()
    call = {**call, "conv_state": call["conv_state"].clone(), "recurrent_state": state}
    return custom_ops.fused_linear_attention(**call, **layer.attributes(), token_major=True), state


def transformers_layer(layer: Layer, call: dict) -> tuple[torch.Tensor, torch.Tensor | None]:
    from transformers.models.qwen3_next import modeling_qwen3_next as qwen

    qkv, weight = call["qkv"].transpose(1, 2), call["conv_weight"]
    length = qkv.shape[2]
    if not layer.heads:
        b, c, x = qkv.chunk(3, 1)
        y = torch.nn.functional.conv1d(b * x, weight, padding=layer.K - 1, groups=layer.channels)[..., :length]
        return (c * y).transpose(1, 2).unsqueeze(2), None
    x = qwen.causal_conv1d_fn(qkv, weight[:, 0], None, "silu").transpose(1, 2)
    keys = layer.Hk * layer.dk
    parts = x.split((keys, keys, layer.Hv * layer.dv), -1)
    q, k, v = (part.unflatten(-1, (-1, dim)) for part, dim in zip(parts, (layer.dk, layer.dk, layer.dv)))
    q, k = (part.repeat_interleave(layer.Hv // layer.Hk, 2) for part in (q, k))
    rule = qwen.torch_recurrent_gated_delta_rule if length == 1 else qwen.torch_chunk_gated_delta_rule
    return rule(q, k, v, g=call["gate"], beta=call["beta"], initial_state=call["recurrent_state"], output_final_state=True,
                use_qk_l2norm_in_kernel=True)


def distance(got: torch.Tensor, want: np.ndarray) -> tuple[float, float]:
    error = np.abs(got.double().numpy() - want)
    rms = np.sqrt(np.mean(error**2))
    return rms / max(np.sqrt(np.mean(want**2)), SMALLEST), error.max()


def worst(kind: str, dtype: torch.dtype, regime: str, sides: dict) -> dict[tuple[str, str], tuple[float, float]]:
    """Of ("attn_out" | "recurrent_state", side)."""
    found = {}
    for layer in LAYERS[kind]:
        for length in LENGTHS:
            call = inputs(layer, length, dtype, regime)
            want = reference_linear_attention.fused_linear_attention(**call, **layer.attributes(), token_major=True)
            for side, function in sides.items():
                out, state = function(layer, call)
                for name, tensor, exact in (("attn_out", out, want[0]), ("recurrent_state", state, want[2])):
                    if tensor is not None:  # np.maximum keeps a NaN
                        found[name, side] = tuple(np.maximum(found.get((name, side), (0, 0)), distance(tensor, exact)))
    return found


def tables(kind: str, sides: dict) -> None:
    results = {(regime, dtype): worst(kind, dtype, regime, sides) for regime in VALUES[kind] for dtype in DTYPES}
    columns = [(dtype, side) for dtype in DTYPES for side in sides]
    for name in ("attn_out", "recurrent_state")[: 2 if LAYERS[kind][0].heads else 1]:
        print(f"\n{kind}, `{name}`:\n")
        print("| values | " + " | ".join(f"{side}, {str(dtype).removeprefix('torch.')}" for dtype, side in columns) + " |")
        print("| --- |" + " --- |" * len(columns))
        for regime in VALUES[kind]:
            cells = (results[regime, dtype][name, side] for dtype, side in columns)
            print(f"| {regime} | " + " | ".join(f"{relative:.1e} / {largest:.1e}" for relative, largest in cells) + " |", flush=True)


def main() -> None:
    sides = {"native": native}
    if importlib.util.find_spec("transformers"):
        sides["transformers"] = transformers_layer
    else:
        print("transformers is not installed (pip install 'custom_ops[transformers]'): no comparison")
    for kind in LAYERS:
        tables(kind, sides)


if __name__ == "__main__":
    main()
