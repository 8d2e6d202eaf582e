"""torchair converters: how an operator becomes a node of a GE graph (mode max-autotune; graph capture does not use them).

`import custom_ops` hands them to torchair, at once or when torchair is loaded.
"""

from __future__ import annotations

import torch

from . import fused_linear_attention, hc_post, hc_pre, hc_pre_inv_rms, hc_pre_sinkhorn, linear_attention_states

_CONVERTERS = {"npu_fused_linear_attention": fused_linear_attention.convert, "npu_hc_post": hc_post.convert,
               "npu_hc_pre": hc_pre.convert, "npu_hc_pre_inv_rms": hc_pre_inv_rms.convert, "npu_hc_pre_sinkhorn": hc_pre_sinkhorn.convert}
_registered = False


def register() -> None:
    """Registers every converter once; ImportError when there is no torchair."""
    global _registered
    if _registered:
        return
    import torchair

    for name, convert in _CONVERTERS.items():
        torchair.register_fx_node_ge_converter(getattr(torch.ops.custom, name).default)(convert)
    for operator, convert in linear_attention_states.register().items():
        torchair.register_fx_node_ge_converter(operator)(convert)
    _registered = True
