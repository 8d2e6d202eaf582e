"""RMS and layer norm. The weight is the factor itself: families that store w and mean 1 + w have 1 added when they are loaded."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...nn.few_tokens import rms_norm
from ..architecture import NormSpec


class Norm(nn.Module):
    """Computed in float32, rounded once to the dtype of x. weight and bias are float32 whatever the model's dtype: 1 + w needs the bits."""

    def __init__(self, size: int, spec: NormSpec, device=None):
        super().__init__()
        self.size, self.spec = (size,), spec
        self.weight = nn.Parameter(torch.ones(size, dtype=torch.float32, device=device)) if spec.weight else None
        self.bias = nn.Parameter(torch.zeros(size, dtype=torch.float32, device=device)) if spec.bias else None

    def forward(self, x: Tensor) -> Tensor:
        if self.spec.kind == "rms":
            if self.weight is None:
                return F.rms_norm(x.float(), self.size, None, self.spec.eps).to(x.dtype)
            return rms_norm(x, self.weight, self.spec.eps)
        weight, bias = (None if parameter is None else parameter.float() for parameter in (self.weight, self.bias))
        return F.layer_norm(x.float(), self.size, weight, bias, self.spec.eps).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.size[0]}, {self.spec.kind}, eps={self.spec.eps:g}"
