"""A layer around a LinearAttentionState, without projections: its inputs, its calls, and whether two states are the same."""

import pytest
import torch

from custom_ops import LinearAttentionState

VARIANTS = ("gated_delta_rule", "kda", "short_conv")
HK, HV, DK, DV, H = 2, 6, 5, 3, 7


class Layer:
    """Weights of one layer; `inputs` makes those of a call, `run` calls with a state."""

    def __init__(self, attn_type, rng, taps=4, dtype=torch.float32):
        self.attn_type, self.taps, self.dtype, self.rng = attn_type, taps, dtype, rng
        short = attn_type == "short_conv"
        self.heads = (dict(head_k_dim=H, head_v_dim=H) if short else
                      dict(num_k_heads=HK, num_v_heads=HV, head_k_dim=DK, head_v_dim=DV))
        self.channels, self.conv_channels = (3 * H, H) if short else (2 * HK * DK + HV * DV,) * 2
        self.gate_sizes = {"gated_delta_rule": (HV,), "kda": (HV, DK), "short_conv": (1,)}[attn_type]
        self.weight = torch.randn(self.conv_channels, 1, taps, generator=rng).to(dtype)

    def state(self, batch=1, **options):
        return LinearAttentionState(self.attn_type, **self.heads, conv_kernel_size=self.taps, batch=batch, dtype=self.dtype, **options)

    def inputs(self, batch, length):
        qkv = torch.randn(batch, length, self.channels, generator=self.rng).to(self.dtype)
        gate = -torch.rand(batch, length, *self.gate_sizes, generator=self.rng)
        return qkv, gate, torch.rand(batch, length, self.gate_sizes[0], generator=self.rng)

    def run(self, state, inputs, **options):
        return state.attend(*inputs, self.weight, token_major=True, **options)


def part(inputs, *tokens):
    return [tensor[:, slice(*tokens)] for tensor in inputs]


def rows_of(inputs, *rows):
    return [tensor[list(rows)] for tensor in inputs]


def same(state, other):
    tensors = (state.conv_state, other.conv_state), (state.lengths, other.lengths), (state.recurrent_state, other.recurrent_state)
    return all(one is other or torch.equal(one, other) for one, other in tensors)


@pytest.fixture(params=VARIANTS)
def layer(request, rng):
    return Layer(request.param, rng)
