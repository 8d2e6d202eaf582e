"""The variants of npu_fused_linear_attention: op_host/fused_linear_attention/attn_types.h, read from the library."""

from __future__ import annotations

from dataclasses import dataclass

import torch



@dataclass(frozen=True)
class AttnType:
    name: str
    convolution: str  # "silu": over q | k | v | "gated": over B * x of B | C | x
    state: str        # "none" | "delta"
    gate: str         # "none" | "per_head" | "per_channel"

    @property
    def has_heads(self) -> bool:
        return self.convolution != "gated"

    @property
    def has_state(self) -> bool:
        return self.state != "none"

    def qkv_channels(self, heads: Heads) -> int:
        """D"""
        return 2 * heads.keys * heads.key_dim + heads.values * heads.value_dim if self.has_heads else 3 * heads.value_dim

    def conv_channels(self, heads: Heads) -> int:
        """C"""
        return self.qkv_channels(heads) if self.has_heads else heads.value_dim

    def gate_sizes(self, heads: Heads) -> tuple[int, ...]:
        """Of gate, behind [B, L]."""
        return {"none": (1,), "per_head": (heads.values,), "per_channel": (heads.values, heads.key_dim)}[self.gate]


@dataclass(frozen=True)
class Heads:
    keys: int       # Hk
    values: int     # Hv
    key_dim: int    # dk
    value_dim: int  # dv


_LIMITS, *_ENTRIES = (line.split() for line in torch.ops.custom._attn_types().splitlines())
MAX_HEAD_DIM, MAX_TAPS = map(int, _LIMITS)
ATTN_TYPES = {name: AttnType(name, *parts) for name, *parts in _ENTRIES}
