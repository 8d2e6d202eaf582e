"""The layers of linear attention: custom_ops.nn's, which call torch.ops.custom.npu_fused_linear_attention."""

from __future__ import annotations

from torch import nn

from ...nn import GatedDeltaNet, ShortConv
from ..architecture import DeltaRuleSpec, ShortConvSpec


def make(hidden: int, spec: ShortConvSpec | DeltaRuleSpec, device=None, dtype=None) -> GatedDeltaNet | ShortConv:
    options = {"device": device, "dtype": dtype}
    if isinstance(spec, ShortConvSpec):
        return ShortConv(hidden, spec.kernel, bias=spec.bias, **options)
    layer = GatedDeltaNet(hidden, spec.k_heads, spec.v_heads, spec.head_k_dim, spec.head_v_dim, spec.kernel, norm_eps=spec.norm_eps,
                          output_gate=spec.output_gate, **options)
    for name in ("A_log", "dt_bias"):  # used in float32; 8 bits of A_log would be 1 % of every decay
        setattr(layer, name, nn.Parameter(getattr(layer, name).detach().float()))
    return layer
