"""The gradient of npu_fused_linear_attention in PyTorch, float32 (float64 for float64): what surrounds the delta rule."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ._attn_types import ATTN_TYPES, Heads
from ._delta_rule_gradient import delta_rule_gradient

L2_EPS = 1e-6


@dataclass(frozen=True)
class Setting:
    attn_type: str
    heads: Heads
    use_qk_l2norm: bool
    gate_fold: bool


@dataclass(frozen=True)
class Weights:
    """In the type of the computation."""

    conv: Tensor              # [C, K]
    bias: Tensor | None       # [C]
    gate_coef: Tensor | None  # [Hv], with kda [Hv, 1]
    gate_bias: Tensor | None  # [Hv], with kda [Hv, dk]


def gradient(setting: Setting, dout: Tensor, qkv: Tensor, gate: Tensor, beta: Tensor, conv_weight: Tensor, conv_bias: Tensor | None,
             conv_initial: Tensor, recurrent_initial: Tensor | None, gate_coef: Tensor | None, gate_bias: Tensor | None,
             cu_seqlens: Tensor | None, live: Tensor | None) -> list[Tensor]:
    """Gradients of qkv, gate, beta, conv_weight, conv_bias, gate_coef and gate_bias; [0] of what is not there.

    qkv is token-major; the initial states are those of the N sequences; live [N]: False is padding. cu_seqlens and live are read here.
    """
    wide = torch.promote_types(qkv.dtype, torch.float32)
    kind = ATTN_TYPES[setting.attn_type]
    coef = None if gate_coef is None else gate_coef.to(wide).view(-1, *[1] * (gate_bias.dim() - 1))
    weights = Weights(conv_weight.squeeze(1).to(wide), None if conv_bias is None else conv_bias.to(wide), coef,
                      None if gate_bias is None else gate_bias.to(wide))
    shared = [torch.zeros_like(tensor) if tensor is not None else qkv.new_empty(0)
              for tensor in (weights.conv, weights.bias, weights.gate_coef, weights.gate_bias)]
    own = [torch.zeros(tensor.shape, dtype=wide, device=qkv.device) for tensor in (qkv, gate, beta)]
    alive = torch.ones(len(conv_initial), dtype=torch.bool) if live is None else live.cpu()
    for rows, tokens, sequences in _places(alive, cu_seqlens):
        parts = (tensor[rows, tokens] for tensor in (dout, qkv, gate, beta))
        initial = conv_initial[sequences].to(wide), None if recurrent_initial is None else recurrent_initial[sequences].to(wide)
        compute = _delta_rule if kind.has_state else _short_conv
        mine, common = compute(setting, weights, *initial, *parts)
        for total, part in zip(own, mine):
            total[rows, tokens] = part
        for total, part in zip(shared, common):
            if part is not None:
                total += part
    shapes = (qkv, gate, beta, conv_weight, conv_bias, gate_coef, gate_bias)
    return [total if like is None else total.view(like.shape).to(like.dtype) for total, like in zip((*own, *shared), shapes)]


def _places(alive: Tensor, cu_seqlens: Tensor | None):
    """(rows, tokens, sequences) of what is computed together: the rows that live, or a sequence of the one row."""
    if cu_seqlens is None:
        rows = alive.nonzero().squeeze(-1)
        if len(rows):
            yield rows, slice(None), rows
        return
    ends = cu_seqlens.tolist()
    for sequence, (first, last) in enumerate(zip(ends, ends[1:])):
        if alive[sequence] and first < last:
            yield slice(0, 1), slice(first, last), slice(sequence, sequence + 1)


def _short_conv(setting: Setting, weights: Weights, conv_initial: Tensor, _, dout: Tensor, qkv: Tensor, gate: Tensor, beta: Tensor):
    b, c, x = qkv.to(weights.conv.dtype).chunk(3, -1)
    inputs = (b * x).to(qkv.dtype).to(b.dtype)  # rounded as the operator does
    window = torch.cat([conv_initial.mT, inputs], 1)
    dout = dout.squeeze(2).to(b.dtype)
    dc = dout * _convolve(window, weights)
    du, dweight, dbias = _convolution_gradient(dout * c, window, weights)
    return (torch.cat([du * x, dc, du * b], -1),), (dweight, dbias)


def _delta_rule(setting: Setting, weights: Weights, conv_initial: Tensor, state: Tensor, dout: Tensor, qkv: Tensor, gate: Tensor,
                beta: Tensor):
    heads, wide = setting.heads, weights.conv.dtype
    window = torch.cat([conv_initial.mT, qkv.to(wide)], 1)
    z = _convolve(window, weights)
    q, k, v = F.silu(z).split([heads.keys * heads.key_dim, heads.keys * heads.key_dim, heads.values * heads.value_dim], -1)
    q, k, v = q.unflatten(-1, (heads.keys, -1)), k.unflatten(-1, (heads.keys, -1)), v.unflatten(-1, (heads.values, -1))
    (q_normed, q_scale), (k_normed, k_scale) = (_normed(part, setting.use_qk_l2norm) for part in (q, k))
    each, root = heads.values // heads.keys, heads.key_dim**-0.5
    raw, raw_beta = gate.to(wide), beta.to(wide)
    g = weights.gate_coef * F.softplus(raw + weights.gate_bias) if setting.gate_fold else raw
    strength = raw_beta.sigmoid() if setting.gate_fold else raw_beta

    dq, dk, dv, dg, dbeta = delta_rule_gradient(
        dout.to(wide), q_normed.repeat_interleave(each, 2) * root, k_normed.repeat_interleave(each, 2), v,
        g.unsqueeze(-1) if g.dim() == 3 else g, strength.unsqueeze(-1), state)
    dq, dk = (_normed_gradient(part.unflatten(2, (heads.keys, each)).sum(3), normed, scale)
              for part, normed, scale in ((dq * root, q_normed, q_scale), (dk, k_normed, k_scale)))
    s = z.sigmoid()  # SiLU'(z) = s (1 + z (1 - s))
    dz = torch.cat([dq.flatten(2), dk.flatten(2), dv.flatten(2)], -1) * s * (1 + z * (1 - s))
    dqkv, dweight, dbias = _convolution_gradient(dz, window, weights)
    dg, dbeta = dg.view(raw.shape), dbeta.squeeze(-1)
    dcoef = dgate_bias = None
    if setting.gate_fold:  # g = coef * softplus(raw + bias)
        dcoef = _sum_to(dg * F.softplus(raw + weights.gate_bias), weights.gate_coef)
        dg = dg * weights.gate_coef * (raw + weights.gate_bias).sigmoid()
        dgate_bias = _sum_to(dg, weights.gate_bias)
        dbeta = dbeta * strength * (1 - strength)
    return (dqkv, dg, dbeta), (dweight, dbias, dcoef, dgate_bias)


def _sum_to(values: Tensor, like: Tensor) -> Tensor:
    return values.sum_to_size(like.shape)


def _convolve(window: Tensor, weights: Weights) -> Tensor:
    """[b, L, C]: sum_j window[l + j] * w[j] + bias"""
    taps = weights.conv.shape[1]
    length = window.shape[1] - taps + 1
    y = sum(window[:, j : j + length] * weights.conv[:, j] for j in range(taps))
    return y if weights.bias is None else y + weights.bias


def _convolution_gradient(dy: Tensor, window: Tensor, weights: Weights) -> tuple[Tensor, Tensor, Tensor | None]:
    """(gradient of the window's new inputs, dw[j] = sum of window[l + j] dy[l], dbias)"""
    taps, length = weights.conv.shape[1], dy.shape[1]
    dwindow = torch.zeros_like(window)
    for j in range(taps):
        dwindow[:, j : j + length] += dy * weights.conv[:, j]
    dweight = torch.stack([(window[:, j : j + length] * dy).sum((0, 1)) for j in range(taps)], -1)
    return dwindow[:, taps - 1 :], dweight, None if weights.bias is None else dy.sum((0, 1))


def _normed(x: Tensor, use_qk_l2norm: bool) -> tuple[Tensor, Tensor | None]:
    """x * r and r = 1 / sqrt(sum x^2 + eps)"""
    if not use_qk_l2norm:
        return x, None
    scale = torch.rsqrt(x.square().sum(-1, keepdim=True) + L2_EPS)
    return x * scale, scale


def _normed_gradient(dn: Tensor, normed: Tensor, scale: Tensor | None) -> Tensor:
    """n = x r: dx = r (dn - n <n, dn>)"""
    return dn if scale is None else scale * (dn - normed * (normed * dn).sum(-1, keepdim=True))
