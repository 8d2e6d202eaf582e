"""Feed-forward sub-layers: dense, and mixtures of experts with every routing of architecture.ROUTINGS."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...nn.few_tokens import Linear, project
from ..architecture import MlpSpec, MoeSpec
from .norms import Norm

_gelu_tanh = functools.partial(F.gelu, approximate="tanh")
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu, "swish": F.silu, "gelu": F.gelu, "gelu_pytorch_tanh": _gelu_tanh, "gelu_new": _gelu_tanh, "gelu_fast": _gelu_tanh,
    "relu": F.relu, "relu2": lambda x: F.relu(x).square(), "sigmoid": torch.sigmoid, "tanh": torch.tanh,
}
CLAMPED_SWIGLU = "clamped_swiglu"


def activation(name: str) -> Callable[[Tensor], Tensor]:
    if name not in ACTIVATIONS:
        raise RuntimeError(f"activation '{name}' is not known, use one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


class Mlp(nn.Module):
    """gate_proj and up_proj [size, hidden], down_proj [hidden, size]; without a gate up_proj alone."""

    def __init__(self, hidden: int, spec: MlpSpec, device=None, dtype=None):
        super().__init__()
        options = {"bias": spec.bias, "device": device, "dtype": dtype}
        self.spec, self.act = spec, activation(spec.activation)
        self.gate_proj = Linear(hidden, spec.size, **options) if spec.gated else None
        self.up_proj = Linear(hidden, spec.size, **options)
        self.down_proj = Linear(spec.size, hidden, **options)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate_proj is None:
            return self.down_proj(self.act(self.up_proj(x)))
        gate, up = project(x, self.gate_proj, self.up_proj)
        return self.down_proj(self.act(gate) * up)


class Moe(nn.Module):
    """Router and experts.

    Parameters: gate.weight [E, hidden] (and bias), gate_norm.weight [hidden], expert_bias, expert_scale [E] float32; experts.gate_proj,
    experts.up_proj [E, size, hidden], experts.down_proj [E, hidden, size], with experts.*_bias [E, ...]; shared_expert (an Mlp),
    shared_expert_gate [1, hidden].
    """

    def __init__(self, hidden: int, spec: MoeSpec, device=None, dtype=None):
        super().__init__()
        self.spec = spec
        self.gate = Linear(hidden, spec.experts, bias=spec.router_bias, device=device, dtype=dtype)
        bias = torch.zeros(spec.experts, dtype=torch.float32, device=device)
        self.expert_bias = nn.Parameter(bias) if spec.selection_bias else None
        self.gate_norm = None if spec.router_norm is None else Norm(hidden, spec.router_norm, device)
        self.expert_scale = nn.Parameter(torch.ones_like(bias)) if spec.expert_scale else None
        self.experts = Experts(hidden, spec, device, dtype)
        self.shared_expert = Mlp(hidden, spec.shared, device, dtype) if spec.shared else None
        self.shared_expert_gate = Linear(hidden, 1, bias=False, device=device, dtype=dtype) if spec.shared_gate else None

    def forward(self, x: Tensor, routed: Tensor | None = None) -> Tensor:
        """routed: what the router sees where that is not x."""
        tokens = x.reshape(-1, x.shape[-1])
        weights, chosen = self.route(tokens if routed is None else routed.reshape(-1, x.shape[-1]))
        out = self.experts(tokens, weights, chosen)
        if self.shared_expert is not None:
            shared = self.shared_expert(tokens)
            out = out + (shared if self.shared_expert_gate is None else torch.sigmoid(self.shared_expert_gate(tokens)) * shared)
        return out.view_as(x)

    def route(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(weights, chosen experts), both [T, top_k]; weights in the dtype of the tokens."""
        spec, logits = self.spec, self.gate(tokens if self.gate_norm is None else self.gate_norm(tokens))
        if spec.routing == "topk_softmax":
            best, chosen = logits.topk(spec.top_k, -1)
            return best.softmax(-1), chosen
        if spec.routing == "topk_sigmoid":
            best, chosen = logits.topk(spec.top_k, -1)
            return best.float().sigmoid().to(tokens.dtype), chosen
        if spec.routing == "sigmoid_bias":
            scores = logits.sigmoid()
            chosen = (scores if self.expert_bias is None else scores + self.expert_bias).topk(spec.top_k, -1).indices
            weights = scores.gather(1, chosen)
        elif spec.routing == "softmax":
            weights, chosen = logits.softmax(-1, dtype=torch.float32).topk(spec.top_k, -1)
        else:
            raise RuntimeError(f"routing '{spec.routing}' is not known")
        if spec.normalise:
            weights = weights / (weights.sum(-1, keepdim=True) + spec.normalise_eps)
        weights = weights * spec.scale
        if self.expert_scale is not None:
            weights = weights * self.expert_scale[chosen]
        return weights.to(tokens.dtype), chosen


class Experts(nn.Module):
    """All experts of a layer in three tensors."""

    def __init__(self, hidden: int, spec: MoeSpec, device=None, dtype=None):
        super().__init__()
        self.spec = spec
        self.act = None if spec.activation == CLAMPED_SWIGLU else activation(spec.activation)

        def parameter(*sizes: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(spec.experts, *sizes, device=device, dtype=dtype))

        self.gate_proj, self.up_proj = parameter(spec.size, hidden), parameter(spec.size, hidden)
        self.down_proj = parameter(hidden, spec.size)
        for name, size in (("gate", spec.size), ("up", spec.size), ("down", hidden)):
            self.register_parameter(f"{name}_bias", parameter(size) if spec.expert_bias else None)

    def forward(self, tokens: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """sum over the chosen experts e of weight * expert_e(token), for topk_sigmoid of expert_e(weight * token).

        tokens [T, hidden], weights and chosen [T, top_k].
        """
        out = torch.zeros_like(tokens)
        for expert in chosen.unique().tolist():
            rows, places = torch.where(chosen == expert)
            out.index_add_(0, rows, self._weighted(expert, tokens[rows], weights[rows, places].unsqueeze(-1)))
        return out

    def _weighted(self, expert: int, x: Tensor, share: Tensor) -> Tensor:
        """x [T, hidden], share [T, 1]"""
        if self.spec.routing == "topk_sigmoid":
            return self._expert(expert, x * share)
        return self._expert(expert, x) * share

    def _expert(self, expert: int, x: Tensor) -> Tensor:
        gate, up = (F.linear(x, *self._of(name, expert)) for name in ("gate", "up"))
        return F.linear(self._combine(gate, up), *self._of("down", expert))

    def _of(self, name: str, expert: int) -> tuple[Tensor, Tensor | None]:
        bias = getattr(self, f"{name}_bias")
        return getattr(self, f"{name}_proj")[expert], None if bias is None else bias[expert]

    def _combine(self, gate: Tensor, up: Tensor) -> Tensor:
        if self.act is not None:
            return self.act(gate) * up
        gate, up = gate.clamp(max=self.spec.limit), up.clamp(-self.spec.limit, self.spec.limit)
        return (up + 1) * (gate * torch.sigmoid(gate * self.spec.alpha))
