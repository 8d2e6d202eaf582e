"""LlmModel as the exporters of torch can take it: any length, no branch on values, no weights needed, one node for each linear layer."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ....nn import GatedDeltaNet, ShortConv
from ....nn.few_tokens import Linear
from ...architecture import Architecture, Span
from ...errors import OnboardingError
from ...model import LlmModel
from ...model.attention import Attention
from ...model.kv import Visible
from ...model.mlp import Experts
from ...model.norms import Norm
from ...model.rotary import Rotary, depends_on_length, inverse_frequencies
from .node import Emit, LinearAttentionNode


class Traceable(nn.Module):
    """tokens [B, L] int64 -> logits [B, L, vocab] float32, of a prompt from its first token and without memory.

    emit: what stands for a linear layer in the graph; see node.py. fold: read(parameter name), where gates are folded into the nodes.
    The values of a parameter are one NaN, stored once: weights join the file later, and none that was folded into a constant goes unseen.
    """

    def __init__(self, architecture: Architecture, emit: Emit, fold: Callable[[str], Tensor] | None = None):
        super().__init__()
        _require_exportable(architecture)
        self.llm = LlmModel(architecture, device="meta", dtype=torch.float32).requires_grad_(False)
        _fill(self.llm)
        for module in self.llm.modules():
            module.__class__ = _TRACEABLE.get(type(module), type(module))
        #: parameters whose values stand in nodes, and in the graph no more
        self.folded: set[str] = set()
        self.nodes = [self._node(index, block.linear_attn, emit, fold) for index, block in enumerate(self.llm.blocks)
                      if block.linear_attn is not None]

    def _node(self, index: int, layer: GatedDeltaNet | ShortConv, emit: Emit, fold: Callable[[str], Tensor] | None) -> LinearAttentionNode:
        gates = None
        if fold is not None and isinstance(layer, GatedDeltaNet):
            names = [f"blocks.{index}.linear_attn.{name}" for name in ("A_log", "dt_bias")]
            log_decay, bias = (fold(name).float() for name in names)
            gates = -log_decay.exp(), bias
            self.folded |= {*names}
        node = LinearAttentionNode(f"/layers.{index}/self_attn/FusedLinearAttention", layer.attn_type, **layer._heads, gates=gates)
        layer.emit, layer.folded = functools.partial(emit, node), gates is not None
        return node

    def forward(self, tokens: Tensor) -> Tensor:
        return self.llm.head(self.hidden(tokens, GraphCall(tokens)))

    def hidden(self, tokens: Tensor, call: GraphCall) -> Tensor:
        """What the head takes, [B, L, hidden]."""
        x = self.llm.begin(tokens, call)
        for block in self.llm.blocks:
            x = block(x, call)
        return self.llm.final_layernorm(x)


def _fill(model: LlmModel) -> None:
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            setattr(module, name, nn.Parameter(torch.tensor(float("nan")).expand(parameter.shape), requires_grad=False))
    model.tie()


def _require_exportable(architecture: Architecture) -> None:
    if architecture.streams is not None:
        raise OnboardingError("graphs with hyper-connections are not written: no runtime of them has the operators")
    for index, layer in enumerate(architecture.layers):
        rotary = layer.mixer.rotary if layer.is_attention else None
        if rotary is not None and depends_on_length(rotary):
            raise OnboardingError(f"block {index}: rotary scaling {rotary.kind!r} takes other frequencies for longer prompts, which no "
                                  "graph can choose")


class GraphCall:
    """What Call is, with every length taken from the graph. before: tokens that came earlier."""

    memory = mask = None
    is_step = False

    def __init__(self, tokens: Tensor, before: int | Tensor = 0):
        self._keys = torch.arange(before + tokens.shape[1])
        self._positions = self._keys[before:]
        self._rotations: dict[int, tuple[Tensor, Tensor]] = {}
        self._visible: dict[Span, Visible] = {}
        self.shared: dict[int, tuple[Tensor, Tensor, Visible]] = {}

    def positions(self) -> Tensor:
        return self._positions

    def rotation(self, rotary: Rotary) -> tuple[Tensor, Tensor]:
        """cosines, sines [L, dims / 2]"""
        if id(rotary) not in self._rotations:
            frequencies, factor = inverse_frequencies(rotary.spec)
            angles = self._positions.unsqueeze(1).float() * frequencies
            self._rotations[id(rotary)] = angles.cos() * factor, angles.sin() * factor
        return self._rotations[id(rotary)]

    def remember(self, layer: int, span: Span, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Visible]:
        if span not in self._visible:
            query, key = self._positions.unsqueeze(1), self._keys
            seen = key <= query
            if span.chunked:
                seen = seen & (key // span.window == query // span.window)
            elif span.window is not None:
                seen = seen & (key > query - span.window)
            self._visible[span] = Visible(mask=seen)
        return k, v, self._visible[span]


class _Attention(Attention):
    def _attend(self, q: Tensor, k: Tensor, v: Tensor, visible: Visible) -> Tensor:
        return self._explicit(q, k, v, visible)


class TraceableNorm(Norm):
    def forward(self, x: Tensor) -> Tensor:
        if self.spec.kind == "layer":
            return super().forward(x)
        unit = _rms(x, self.spec.eps)
        return unit if self.weight is None else unit * self.weight


class TraceableRmsNorm(nn.RMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        return _rms(x, self.eps) * self.weight


class _GatedDeltaNet(GatedDeltaNet):
    def forward(self, x: Tensor, state: None, mask: None) -> Tensor:
        a, b = self.in_proj_a(x), self.in_proj_b(x)
        if not self.folded:
            a, b = -self.A_log.exp() * F.softplus(a + self.dt_bias), torch.sigmoid(b)
        out = self.emit(self.in_proj_qkv(x).transpose(1, 2), a, b, self.conv1d.weight)
        z = self.in_proj_z(x).unflatten(-1, (self.num_v_heads, self.head_v_dim))
        gate = F.silu(z) if self.output_gate == "silu" else torch.sigmoid(z)
        return self.out_proj((self.norm(out) * gate).flatten(-2))


class _ShortConv(ShortConv):
    def forward(self, x: Tensor, state: None, mask: None) -> Tensor:
        qkv = self.in_proj(x)
        unused = torch.zeros_like(x[..., :1])
        out = self.emit(qkv.transpose(1, 2), unused, unused, self.conv.weight).flatten(-2)
        if self.conv.bias is not None:  # the node has no input for it: C (conv(B x) + bias) = C conv(B x) + C bias
            out = out + qkv.chunk(3, -1)[1] * self.conv.bias
        return self.out_proj(out)


class TraceableExperts(Experts):
    """Every expert sees every token; what it was not chosen for has weight 0."""

    def forward(self, tokens: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        out = torch.zeros_like(tokens)
        for expert in range(self.spec.experts):
            share = (weights * (chosen == expert).to(weights.dtype)).sum(-1, keepdim=True)
            out = out + self._weighted(expert, tokens, share)
        return out


def _rms(x: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


_TRACEABLE = {Linear: nn.Linear, Attention: _Attention, Norm: TraceableNorm, nn.RMSNorm: TraceableRmsNorm, GatedDeltaNet: _GatedDeltaNet,
              ShortConv: _ShortConv, Experts: TraceableExperts}
