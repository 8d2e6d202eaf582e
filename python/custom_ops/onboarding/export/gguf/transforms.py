"""Changes of values between LlmModel and GGUF. Each is a pair of functions, one the inverse of the other.

forward([parameter, ...], mixer) -> tensor; backward(tensor, mixer) -> [parameter, ...]; mixer: specification of the layer's attention or
linear attention. They work on a meta device, which is how shapes are known before a weight is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ...architecture import AttentionSpec, DeltaRuleSpec


@dataclass(frozen=True)
class Transform:
    forward: Callable[[list[Tensor], object], Tensor]
    backward: Callable[[Tensor, object], list[Tensor]]


def _one(forward: Callable[[Tensor, object], Tensor], backward: Callable[[Tensor, object], Tensor]) -> Transform:
    """Of a transform with one parameter."""
    return Transform(lambda parameters, mixer: forward(*parameters, mixer), lambda tensor, mixer: [backward(tensor, mixer)])


# --- rotary pairs

def _pairs(heads: Callable[[AttentionSpec], int]) -> Transform:
    """Rows of a head: value i turns with i + d / 2 here and stands at 2 i in GGUF, beside it at 2 i + 1."""
    return _one(lambda rows, spec: rows.unflatten(0, (heads(spec), 2, -1)).transpose(1, 2).flatten(0, 2),
                lambda rows, spec: rows.unflatten(0, (heads(spec), -1, 2)).transpose(1, 2).flatten(0, 2))


# --- gated delta rule

def _tiled(part: Tensor, spec: DeltaRuleSpec, dim: int = 0) -> Tensor:
    """Value head k r + j, the j-th of key head k, moves to j Hk + k: llama.cpp repeats the key heads as a whole."""
    return _swapped(part, dim, spec.k_heads, spec.v_heads // spec.k_heads, spec)


def _grouped(part: Tensor, spec: DeltaRuleSpec, dim: int = 0) -> Tensor:
    return _swapped(part, dim, spec.v_heads // spec.k_heads, spec.k_heads, spec)


def _swapped(part: Tensor, dim: int, outer: int, inner: int, spec: DeltaRuleSpec) -> Tensor:
    each = part.shape[dim] // spec.v_heads
    return part.unflatten(dim, (outer, inner, each)).transpose(dim, dim + 1).flatten(dim, dim + 2)


def _values_of(change: Callable[[Tensor, DeltaRuleSpec], Tensor]) -> Callable[[Tensor, DeltaRuleSpec], Tensor]:
    """The change on the value rows of [q, k, v], which stand last."""
    def apply(rows: Tensor, spec: DeltaRuleSpec) -> Tensor:
        keys = 2 * spec.k_heads * spec.head_k_dim
        return torch.cat((rows[:keys], change(rows[keys:], spec)))
    return apply


def _decay(log: Tensor) -> Tensor:
    """The factor of softplus in the log of the decay, float32."""
    return -log.float().exp()


def _beta_alpha(parameters: list[Tensor], spec: DeltaRuleSpec) -> Tensor:
    """[beta rows, alpha rows] of each key head."""
    return torch.cat([rows.unflatten(0, (spec.k_heads, -1)) for rows in parameters], 1).flatten(0, 1)


def _split_beta_alpha(rows: Tensor, spec: DeltaRuleSpec) -> list[Tensor]:
    return [part.flatten(0, 1) for part in rows.unflatten(0, (spec.k_heads, -1)).chunk(2, 1)]


def _kernel(weight: Tensor) -> Tensor:
    """[channels, 1, K] of a depthwise convolution without the axis that is always 1."""
    return weight.squeeze(1)


TRANSFORMS = {
    "pairs_of_queries": _pairs(lambda spec: spec.heads),
    "pairs_of_keys": _pairs(lambda spec: spec.kv_heads),
    "kernel": _one(lambda weight, _: _kernel(weight), lambda weight, _: weight.unsqueeze(1)),
    "decay": _one(lambda log, _: _decay(log), lambda decay, _: (-decay).log()),
    "beta_alpha": Transform(_beta_alpha, _split_beta_alpha),
    "tiled": _one(_tiled, _grouped),
    "tiled_values": _one(_values_of(_tiled), _values_of(_grouped)),
    "tiled_columns": _one(lambda weight, spec: _tiled(weight, spec, 1), lambda weight, spec: _grouped(weight, spec, 1)),
    "tiled_kernel": _one(lambda weight, spec: _values_of(_tiled)(_kernel(weight), spec),
                         lambda weight, spec: _values_of(_grouped)(weight, spec).unsqueeze(1)),
    "tiled_decay": _one(lambda log, spec: _tiled(_decay(log), spec), lambda decay, spec: _grouped((-decay).log(), spec)),
    "same": _one(lambda tensor, _: tensor, lambda tensor, _: tensor),
}
