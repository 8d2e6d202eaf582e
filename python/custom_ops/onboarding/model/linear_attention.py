"""The layers of linear attention: custom_ops.nn's, which call torch.ops.custom.npu_fused_linear_attention."""

from __future__ import annotations

from ...nn import GatedDeltaNet, ShortConv
from ..architecture import DeltaRuleSpec, ShortConvSpec


def make(hidden: int, spec: ShortConvSpec | DeltaRuleSpec, device=None, dtype=None) -> GatedDeltaNet | ShortConv:
    options = {"device": device, "dtype": dtype}
    if isinstance(spec, ShortConvSpec):
        return ShortConv(hidden, spec.kernel, bias=spec.bias, **options)
    return GatedDeltaNet(hidden, spec.k_heads, spec.v_heads, spec.head_k_dim, spec.head_v_dim, spec.kernel, norm_eps=spec.norm_eps,
                         output_gate=spec.output_gate, **options)
