"""A decoder layer: attention or linear attention, feed-forward, norms, and how they meet the residual."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...nn import HyperConnection
from ..architecture import RESIDUAL_MODES, LayerInputsSpec, LayerSpec, MoeSpec, StreamsSpec
from . import linear_attention, step
from .attention import Attention
from .call import Call
from .layer_inputs import LayerGate
from .mlp import Mlp, Moe
from .norms import Norm


class Decoder(nn.Module):
    """self_attn or linear_attn, mlp, perhaps experts (a Moe) beside it, and the norms of LayerSpec.norms(); with streams also attn_hc and
    mlp_hc (HyperConnection), with inputs of the layers input_gate; scalar [1]."""

    def __init__(self, hidden: int, index: int, spec: LayerSpec, streams: StreamsSpec | None = None,
                 inputs: LayerInputsSpec | None = None, device=None, dtype=None):
        super().__init__()
        if spec.residual not in RESIDUAL_MODES:
            raise RuntimeError(f"residual mode '{spec.residual}' is not known, use one of {', '.join(RESIDUAL_MODES)}")
        if (streams is not None) != (spec.residual == "hyper_connection"):
            raise RuntimeError("residual mode 'hyper_connection' and the architecture's streams go together")
        if spec.experts is not None and spec.residual != "four_norm":
            raise RuntimeError(f"experts beside the dense MLP go with residual mode 'four_norm', not with '{spec.residual}'")
        if streams is not None and (inputs is not None or spec.scalar):
            raise RuntimeError("layers with an input or a factor of their own have one residual stream")
        self.spec, self.index = spec, index
        options = {"device": device, "dtype": dtype}
        self.self_attn = Attention(hidden, spec.mixer, **options) if spec.is_attention else None
        self.linear_attn = None if spec.is_attention else linear_attention.make(hidden, spec.mixer, **options)
        self.mlp = (Moe if isinstance(spec.mlp, MoeSpec) else Mlp)(hidden, spec.mlp, **options)
        self.experts = None if spec.experts is None else Moe(hidden, spec.experts, **options)
        for name in spec.norms():
            self.add_module(name, Norm(hidden, spec.norm, device))
        self.input_gate = None if inputs is None else LayerGate(hidden, inputs, **options)
        self.scalar = nn.Parameter(torch.ones(1, **options)) if spec.scalar else None
        if streams is not None:
            sizes = {"sinkhorn_iters": streams.sinkhorn_iters, "norm_eps": streams.norm_eps, "hc_eps": streams.hc_eps, "device": device}
            self.attn_hc = HyperConnection.for_site(hidden, streams.hc_mult, **sizes)
            self.mlp_hc = HyperConnection.for_site(hidden, streams.hc_mult, **sizes)

    def forward(self, x: Tensor, call: Call) -> Tensor:
        """[B, L, hidden]; with streams [B, L, n, hidden]."""
        x = getattr(self, f"_{self.spec.residual}")(x, call)
        if self.input_gate is not None:
            x = x + self.input_gate(x, call.layer_inputs[:, :, self.index])
        return x if self.scalar is None else x * self.scalar

    def mix(self, x: Tensor, call: Call) -> Tensor:
        """The layer's attention of normed x."""
        if self.self_attn is not None:
            return self.self_attn(x, call, self.index)
        state = None if call.memory is None else call.memory.states[self.index]
        return self.linear_attn(x, state, call.mask)

    # Residual modes: the formulas of architecture.RESIDUAL_MODES

    def _standard(self, x: Tensor, call: Call) -> Tensor:
        if call.is_step:
            return step.feed_forward(self, step.mix(self, x, call))
        x = x + self.mix(self.input_layernorm(x), call)
        return x + self.mlp(self.post_attention_layernorm(x))

    def _parallel(self, x: Tensor, call: Call) -> Tensor:
        normed = self.input_layernorm(x)
        second = self.post_attention_layernorm(x) if self.spec.mlp_norm else normed
        return self.mix(normed, call) + self.mlp(second) + x

    def _four_norm(self, x: Tensor, call: Call) -> Tensor:
        x = x + self.post_attention_layernorm(self.mix(self.input_layernorm(x), call))
        out = self.mlp(self.pre_feedforward_layernorm(x))
        if self.experts is not None:
            chosen = self.experts(self.pre_feedforward_layernorm_2(x), x)
            out = self.post_feedforward_layernorm_1(out) + self.post_feedforward_layernorm_2(chosen)
        return x + self.post_feedforward_layernorm(out)

    def _post_norm(self, x: Tensor, call: Call) -> Tensor:
        x = x + self.post_attention_layernorm(self.mix(x, call))
        return x + self.post_feedforward_layernorm(self.mlp(x))

    def _depth_scaled(self, x: Tensor, call: Call) -> Tensor:
        x = x + self.mix(self.input_layernorm(x), call) * self.spec.factor
        return x + self.mlp(self.post_attention_layernorm(x)) * self.spec.factor

    def _alpha(self, x: Tensor, call: Call) -> Tensor:
        normed = self.input_layernorm(x)
        x = normed * self.spec.factor + self.mix(normed, call)
        normed = self.post_attention_layernorm(x)
        return normed * self.spec.factor + self.mlp(normed)

    def _hyper_connection(self, x: Tensor, call: Call) -> Tensor:
        x = self.attn_hc(x, lambda merged: self.mix(self.input_layernorm(merged), call))
        return self.mlp_hc(x, lambda merged: self.mlp(self.post_attention_layernorm(merged)))
