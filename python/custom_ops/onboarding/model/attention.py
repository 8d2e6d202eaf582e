"""Softmax attention with everything that AttentionSpec names."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...nn.few_tokens import Linear, project
from ..architecture import AttentionSpec
from .call import Call
from .kv import Visible
from .norms import Norm
from .rotary import Rotary


class Attention(nn.Module):
    """q_proj [heads d (with output_gate 2 heads d), hidden], k_proj, v_proj [kv_heads d, hidden], o_proj [hidden, heads d]; q_norm, k_norm;
    sinks [heads]. No v_proj with k_is_v; with shares no k_proj, v_proj and k_norm."""

    def __init__(self, hidden: int, spec: AttentionSpec, device=None, dtype=None):
        super().__init__()
        if spec.qk_norm == "after_rope" and spec.qk_norm_over != "head":
            raise RuntimeError("attention: a norm after the rotation is over a head")
        self.spec = spec
        self.rotary: Rotary | None = None  # set by LlmModel: layers share tables
        self.is_shared = False  # set by LlmModel: a later layer uses these keys and values
        queries, keys = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
        options = {"device": device, "dtype": dtype}
        self.q_proj = Linear(hidden, queries * (2 if spec.output_gate else 1), spec.qkv_bias, **options)
        own = spec.shares is None
        self.k_proj = Linear(hidden, keys, spec.qkv_bias, **options) if own else None
        self.v_proj = Linear(hidden, keys, spec.qkv_bias, **options) if own and not spec.k_is_v else None
        self.o_proj = Linear(queries, hidden, spec.out_bias, **options)
        self.q_norm = self.k_norm = None
        if spec.qk_norm != "none":
            per_head = spec.qk_norm_over == "head"
            self.q_norm = Norm(spec.head_dim if per_head else queries, spec.norm, device)
            self.k_norm = Norm(spec.head_dim if per_head else keys, spec.norm, device) if own else None
        self.v_norm = None if spec.value_norm is None or not own else Norm(spec.head_dim, spec.value_norm, device)
        self.sinks = nn.Parameter(torch.zeros(spec.heads, **options)) if spec.sinks else None

    def forward(self, x: Tensor, call: Call, layer: int) -> Tensor:
        """[B, L, hidden]; the keys and values of x join those of the call's memory."""
        spec = self.spec
        q, *keys_values = project(x, *(part for part in (self.q_proj, self.k_proj, self.v_proj) if part is not None))
        q, gate = self._queries(q)
        q = self._turned(q, self.q_norm, call)
        if spec.temperature is not None:
            q = self._tempered(q, call.positions())
        k, v, visible = self._keys_values(keys_values, call, layer)
        out = self._attend(q, k, v, visible).transpose(1, 2).flatten(2)
        return self.o_proj(out if gate is None else out * torch.sigmoid(gate))

    def _keys_values(self, projected: list[Tensor], call: Call, layer: int) -> tuple[Tensor, Tensor, Visible]:
        """projected: of keys and values, [B, L, kv_heads d] each; keys alone with k_is_v, nothing with shares."""
        spec = self.spec
        if spec.shares is not None:
            return call.shared[spec.shares]
        k = self._turned(self._heads(projected[0], self.k_norm), self.k_norm, call)
        v = projected[-1].unflatten(-1, (spec.kv_heads, spec.head_dim))
        v = (v if self.v_norm is None else self.v_norm(v)).transpose(1, 2)
        seen = call.remember(layer, spec.span, k, v)
        if self.is_shared:
            call.shared[layer] = seen
        return seen

    def _turned(self, x: Tensor, norm: Norm | None, call: Call) -> Tensor:
        """[B, heads, L, d], rotated, and normed where that comes after the rotation."""
        if self.rotary is not None:
            x = self.rotary.rotate(x, *call.rotation(self.rotary))
        return norm(x) if self.spec.qk_norm == "after_rope" else x

    def _tempered(self, q: Tensor, positions: Tensor) -> Tensor:
        """q [B, heads, L, d]; positions [L] or [B, L]"""
        strength, tokens = self.spec.temperature
        factor = 1 + strength * torch.log1p(((positions + 1) // tokens).float())
        return (q * factor.unsqueeze(-2).unsqueeze(-1)).to(q.dtype)

    def _queries(self, q: Tensor) -> tuple[Tensor, Tensor | None]:
        spec, gate = self.spec, None
        if spec.output_gate:  # rows of a head: its query, then its gate
            q, gate = (part.flatten(2) for part in q.view(*q.shape[:2], spec.heads, 2 * spec.head_dim).chunk(2, -1))
        return self._heads(q, self.q_norm), gate

    def _heads(self, projected: Tensor, norm: Norm | None) -> Tensor:
        """[B, heads, L, d], normed where that comes before the rotation."""
        spec = self.spec
        before = norm is not None and spec.qk_norm == "before_rope"
        if before and spec.qk_norm_over == "projection":
            projected = norm(projected)
        heads = projected.view(*projected.shape[:2], -1, spec.head_dim)
        if before and spec.qk_norm_over == "head":
            heads = norm(heads)
        return heads.transpose(1, 2)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, visible: Visible) -> Tensor:
        spec = self.spec
        if spec.softcap is None and self.sinks is None:
            return F.scaled_dot_product_attention(q, k, v, visible.mask, is_causal=visible.causal, scale=spec.scale,
                                                  enable_gqa=spec.heads != spec.kv_heads)
        return self._explicit(q, k, v, visible)

    def _explicit(self, q: Tensor, k: Tensor, v: Tensor, visible: Visible) -> Tensor:
        """softmax of scores, step by step."""
        spec = self.spec
        each = spec.heads // spec.kv_heads
        k, v = (t.repeat_interleave(each, 1) if each > 1 else t for t in (k, v))
        scores = q @ k.transpose(-1, -2) * spec.scale
        if spec.softcap is not None:
            scores = torch.tanh(scores / spec.softcap) * spec.softcap
        mask = visible.as_mask(q.shape[-2], k.shape[-2], q.device)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        if self.sinks is not None:
            sinks = self.sinks.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
            scores = torch.cat((scores, sinks.to(scores.dtype)), -1)
        weights = scores.softmax(-1, dtype=torch.float32).to(q.dtype)
        return weights[..., : k.shape[-2]] @ v

    def extra_repr(self) -> str:
        spec = self.spec
        span = f"{'chunk' if spec.chunked else 'window'}={spec.window}"
        return f"heads={spec.heads}, kv_heads={spec.kv_heads}, head_dim={spec.head_dim}, {span}"
