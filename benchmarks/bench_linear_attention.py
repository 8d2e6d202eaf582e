"""npu_fused_linear_attention next to the PyTorch code of transformers and to a copy of as many bytes by torch, measured in the same rounds
(bench_native.py says how ratios are made).

The other side is what transformers runs without a kernel of its own: convolution, then the chunked form for a prompt, the recurrent form
for a decoded token. Both sides take and leave the states; theirs are in the layouts of transformers.

Targets, Hk = 16, Hv = 32, dk = dv = 128, K = 4: 5 times transformers, for a prompt and for a decoded token, the latter at 80 % of the
bandwidth of copying the state. short_conv, H = 2048, K = 3: 80 % of bandwidth at L = 1024, at most 15 us at L = 1.
"""

import importlib.util
import sys
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import custom_ops

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_native import median_ratio, per_call, size, times_per_round  # noqa: E402

HEADS = {"num_k_heads": 16, "num_v_heads": 32, "head_k_dim": 128, "head_v_dim": 128}
TAPS, CHANNELS = 4, 2 * 16 * 128 + 32 * 128
SHORT_CHANNELS, SHORT_TAPS = 2048, 3
ROUNDS = {1: 41, 128: 15, 1024: 7, 8192: 3}


def delta_inputs(batch: int, length: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(1)
    values = HEADS["num_v_heads"]
    return {"qkv": torch.randn(batch, length, CHANNELS, generator=rng).to(dtype).transpose(1, 2),
            "gate": -torch.rand(batch, length, values, generator=rng),
            "beta": torch.rand(batch, length, values, generator=rng).to(dtype),
            "conv_weight": (torch.randn(CHANNELS, 1, TAPS, generator=rng) / 2).to(dtype),
            "conv_state": torch.zeros(batch, CHANNELS, TAPS - 1, dtype=dtype),
            "recurrent_state": torch.randn(batch, values, 128, 128, generator=rng) / 8}


def transformers_layer(inputs: dict[str, torch.Tensor]):
    """The same call with the functions of transformers; its state is a cache's."""
    from transformers.models.qwen3_next import modeling_qwen3_next as qwen

    qkv, weight = inputs["qkv"], inputs["conv_weight"][:, 0]
    batch, channels, length = qkv.shape
    keys, key_dim = HEADS["num_k_heads"], HEADS["head_k_dim"]
    conv_state = torch.zeros(batch, channels, TAPS, dtype=qkv.dtype)
    state = inputs["recurrent_state"].clone()
    rule = qwen.torch_recurrent_gated_delta_rule if length == 1 else qwen.torch_chunk_gated_delta_rule

    def run():
        x = qwen.causal_conv1d_update(qkv, conv_state, weight, None, "silu") if length == 1 else qwen.causal_conv1d_fn(qkv, weight, None, "silu")
        q, k, v = x.transpose(1, 2).split((keys * key_dim, keys * key_dim, channels - 2 * keys * key_dim), -1)
        heads = (part.unflatten(-1, (-1, key_dim)) for part in (q, k, v))
        out, new = rule(*heads, g=inputs["gate"], beta=inputs["beta"], initial_state=state, output_final_state=True,
                        use_qk_l2norm_in_kernel=True)
        state.copy_(new)
        return out

    return run


def delta_table() -> Table:
    table = Table("B", "L", "dtype", "measured us", "us per token", "of state bandwidth", "x transformers",
                  title="measured: gated_delta_rule, Hk = 16, Hv = 32, dk = dv = 128, K = 4")
    there = importlib.util.find_spec("transformers") is not None
    for batch, length, dtype in ((1, 128, torch.bfloat16), (1, 1024, torch.bfloat16), (1, 8192, torch.bfloat16), (1, 128, torch.float32),
                                 (1, 1024, torch.float32), (1, 8192, torch.float32), (1, 1, torch.bfloat16), (8, 1, torch.bfloat16),
                                 (1, 1, torch.float32), (8, 1, torch.float32)):
        inputs = delta_inputs(batch, length, dtype)
        functions = {"native": lambda: custom_ops.fused_linear_attention(**inputs, attn_type="gated_delta_rule", **HEADS)}
        if there:
            functions["transformers"] = transformers_layer(inputs)
        if length == 1:
            state, copy = inputs["recurrent_state"], torch.empty_like(inputs["recurrent_state"])
            functions["copy"] = lambda: copy.copy_(state)
        taken = times_per_round(functions, ROUNDS[length])
        fastest = 1e6 * min(taken["native"])
        table.add_row(str(batch), str(length), str(dtype).removeprefix("torch."), f"{fastest:.0f}", f"{fastest / batch / length:.1f}",
                      f"{100 * median_ratio(taken['copy'], taken['native']):.0f} %" if "copy" in taken else "",
                      f"{median_ratio(taken['transformers'], taken['native']):.1f}" if there else "")
    if not there:
        table.caption = "transformers is not installed (pip install 'custom_ops[transformers]'): no comparison"
    return table


def short_inputs(length: int) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(1)
    dtype = torch.bfloat16
    return {"qkv": torch.randn(1, length, 3 * SHORT_CHANNELS, generator=rng).to(dtype).transpose(1, 2),
            "gate": torch.zeros(1, length, 1), "beta": torch.zeros(1, length, 1),
            "conv_weight": torch.randn(SHORT_CHANNELS, 1, SHORT_TAPS, generator=rng).to(dtype),
            "conv_state": torch.zeros(1, SHORT_CHANNELS, SHORT_TAPS - 1, dtype=dtype)}


def short_formula(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    b, c, x = inputs["qkv"].chunk(3, 1)
    window = torch.cat([inputs["conv_state"], b * x], -1)
    inputs["conv_state"].copy_(window[..., -(SHORT_TAPS - 1):])
    return (c * torch.nn.functional.conv1d(window, inputs["conv_weight"], groups=SHORT_CHANNELS)).transpose(1, 2).contiguous()


def short_table() -> Table:
    table = Table("L", "measured us", "of bandwidth", "x eager", title="measured: short_conv, H = 2048, K = 3, bfloat16")
    heads = {"num_k_heads": 1, "num_v_heads": 1, "head_k_dim": SHORT_CHANNELS, "head_v_dim": SHORT_CHANNELS}
    for length in (1, 1024, 8192):
        inputs = short_inputs(length)

        def native():
            return custom_ops.fused_linear_attention(**inputs, attn_type="short_conv", **heads)

        if length == 1:
            table.add_row("1", f"{per_call(native):.1f}", "", f"{per_call(lambda: short_formula(inputs), 200) / per_call(native):.1f}")
            continue
        # Three quarters of the bytes are read and one is written: as many bytes, half of them written.
        total = size(inputs["qkv"]) * 4 // 3
        source, target = torch.ones(total // 2, dtype=torch.uint8), torch.ones(total // 2, dtype=torch.uint8)
        taken = times_per_round({"native": native, "copy": lambda: target.copy_(source),
                                 "eager": lambda: short_formula(inputs)}, 15)
        table.add_row(str(length), f"{1e6 * min(taken['native']):.0f}", f"{100 * median_ratio(taken['copy'], taken['native']):.0f} %",
                      f"{median_ratio(taken['eager'], taken['native']):.1f}")
    return table


def main() -> None:
    console = Console(width=120)
    console.print(short_table())
    console.print(delta_table())
    console.print(f"{torch.get_num_threads()} threads, torch {torch.__version__}")


if __name__ == "__main__":
    main()
