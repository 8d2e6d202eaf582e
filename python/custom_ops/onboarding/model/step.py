"""A decode step on the CPU: blocks of the standard residual mode in a few native calls, norm and residual included.

Next to the weights, what a step takes is the way from one operator to the next: dozens of operators and module calls for every block, with
caches that the weights have just swept. What is not of the usual kind here, or is watched by a hook, goes through its module.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..._fake import FLOATS
from ...nn import GatedDeltaNet, ShortConv
from ...nn.few_tokens import MOST_TOKENS, Linear, applies, are_plain, attention_step, is_watched, linear, mlp
from .attention import Attention
from .call import Call
from .mlp import Mlp
from .norms import Norm

_ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "gelu_tanh", "gelu_new": "gelu_tanh", "gelu_fast": "gelu_tanh"}


def is_step(call: Call, x: Tensor) -> bool:
    """One new token in each of few rows, with a memory."""
    return (call.length == 1 and call.batch <= MOST_TOKENS and call.memory is not None and call.mask is None and x.dtype in FLOATS
            and not torch.is_grad_enabled() and applies(x))


def mix(block: nn.Module, x: Tensor, call: Call) -> Tensor:
    """x + attention or linear attention of the normed x."""
    norm, layer = block.input_layernorm, block.self_attn if block.spec.is_attention else block.linear_attn
    out = None
    if _is_rms(norm) and not is_watched(layer):
        if type(layer) is Attention:
            out = _attention(layer, norm, x, call, block.index)
        elif type(layer) is ShortConv:
            out = _short_conv(layer, norm, x, call.memory.states[block.index])
        elif type(layer) is GatedDeltaNet:
            out = _delta_rule(layer, norm, x, call.memory.states[block.index])
    return x + block.mix(norm(x), call) if out is None else out


def feed_forward(block: nn.Module, x: Tensor) -> Tensor:
    """x + feed-forward of the normed x."""
    norm, layer = block.post_attention_layernorm, block.mlp
    if type(layer) is Mlp and not is_watched(layer) and layer.spec.gated and layer.spec.activation in _ACTIVATIONS and _is_rms(norm):
        layers = layer.gate_proj, layer.up_proj, layer.down_proj
        if are_plain(Linear, layers):
            gate, up, down = (part.weight for part in layers)
            return mlp(x, gate, up, down, [part.bias for part in layers], _ACTIVATIONS[layer.spec.activation], norm.weight, norm.spec.eps)
    return x + layer(norm(x))


def _is_rms(norm: Norm | None) -> bool:
    """None: there is none, and nothing to ask."""
    return norm is None or are_plain(Norm, (norm,)) and norm.spec.kind == "rms" and norm.spec.weight and norm.weight.dtype == torch.float32


def _normed_projections(x: Tensor, norm: Norm, *layers: Linear) -> list[Tensor] | None:
    if not are_plain(Linear, layers):
        return None
    return linear(x, [layer.weight for layer in layers], [layer.bias for layer in layers], norm_weight=norm.weight, epsilon=norm.spec.eps)


def _add(x: Tensor, layer: nn.Module, out: Tensor) -> Tensor:
    """x + layer(out)"""
    if not are_plain(Linear, (layer,)):
        return x + layer(out)
    return linear(out, [layer.weight], [layer.bias], residual=x)[0]


def _attention(layer: Attention, norm: Norm, x: Tensor, call: Call, index: int) -> Tensor | None:
    spec = layer.spec
    norm_fits = spec.qk_norm == "none" or spec.qk_norm == "before_rope" and spec.qk_norm_over == "head"
    own = spec.shares is None and not layer.is_shared and not spec.k_is_v and layer.v_norm is None
    usual = spec.softcap is None and layer.sinks is None and spec.temperature is None and norm_fits and own
    place = call.slot(index, spec.span) if usual else None
    if place is None or not _is_rms(layer.q_norm) or not _is_rms(layer.k_norm):
        return None
    projected = _normed_projections(x, norm, layer.q_proj, layer.k_proj, layer.v_proj)
    if projected is None:
        return None
    tables = (None, None) if layer.rotary is None else call.rotation(layer.rotary)
    norms = (None, None) if layer.q_norm is None else (layer.q_norm.weight, layer.k_norm.weight)
    epsilon = 0.0 if layer.q_norm is None else layer.q_norm.spec.eps
    interleaved = layer.rotary is not None and layer.rotary.spec.pairing == "interleaved"
    out = attention_step(*projected, *norms, epsilon, *tables, interleaved, *place, spec.scale, spec.output_gate)
    return _add(x, layer.o_proj, out)


def _short_conv(layer: ShortConv, norm: Norm, x: Tensor, state) -> Tensor | None:
    projected = _normed_projections(x, norm, layer.in_proj)
    if projected is None:
        return None
    return _add(x, layer.out_proj, layer.convolved(projected[0], state))


def _delta_rule(layer: GatedDeltaNet, norm: Norm, x: Tensor, state) -> Tensor | None:
    projected = _normed_projections(x, norm, layer.in_proj_qkv, layer.in_proj_z, layer.in_proj_b, layer.in_proj_a)
    if projected is None:
        return None
    return _add(x, layer.out_proj, layer.attended(*projected, state))
