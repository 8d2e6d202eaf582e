"""What every layer gets of a token beside the residual: from an embedding of its own, and from the embedded token."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ...nn.few_tokens import Linear
from ..architecture import LayerInputsSpec
from .mlp import activation
from .norms import Norm


class LayerInputs(nn.Module):
    """embed [vocab, layers size], projection [layers size, hidden], norm [size]."""

    def __init__(self, hidden: int, layers: int, spec: LayerInputsSpec, device=None, dtype=None):
        super().__init__()
        self.spec, self.layers, self.hidden = spec, layers, hidden
        self.embed = nn.Embedding(spec.vocab, layers * spec.size, device=device, dtype=dtype)
        self.projection = Linear(hidden, layers * spec.size, bias=False, device=device, dtype=dtype)
        self.norm = Norm(spec.size, spec.norm, device)

    def forward(self, tokens: Tensor, x: Tensor) -> Tensor:
        """[B, L, layers, size] of tokens [B, L] and their embedding x [B, L, hidden], which is scaled."""
        sizes = (self.layers, self.spec.size)
        projected = self.norm((self.projection(x) * self.hidden**-0.5).unflatten(-1, sizes))
        scale = math.sqrt(self.spec.size)
        if x.dtype != torch.float32:  # the factor is rounded as the weights are
            scale = torch.tensor(scale, dtype=x.dtype).item()
        return (projected + (self.embed(tokens) * scale).unflatten(-1, sizes)) * 2**-0.5


class LayerGate(nn.Module):
    """norm(projection(act(gate(x)) * e)) of a layer's residual x [B, L, hidden] and its input e [B, L, size]. gate [size, hidden],
    projection [hidden, size], norm [hidden]."""

    def __init__(self, hidden: int, spec: LayerInputsSpec, device=None, dtype=None):
        super().__init__()
        options = {"bias": False, "device": device, "dtype": dtype}
        self.spec, self.act = spec, activation(spec.activation)
        self.gate, self.projection = Linear(hidden, spec.size, **options), Linear(spec.size, hidden, **options)
        self.norm = Norm(hidden, spec.norm, device)

    def forward(self, x: Tensor, own: Tensor) -> Tensor:
        return self.norm(self.projection(self.act(self.gate(x)) * own))
