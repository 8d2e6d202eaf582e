"""Gradients of hc_pre and hc_head in NumPy float64, written out step by step: what autograd of the operators is compared with.

Given dy, dpost and dcomb, the gradients of a loss by the results, they return those by the inputs. g: the gradient that comes in, K = n d.
"""

import numpy as np

from .reference import _sigmoid, hc_pre_inv_rms, projection, to_float64


def sinkhorn(g, logits, iters, eps) -> np.ndarray:
    """By the logits [..., n, n] of comb. A step C' = C / S, S = sum C + eps over an axis, has dC = (g - sum(g C')) / S over that axis."""
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    steps, c = [], p + eps
    for step in range(2 * iters - 1):  # columns first, then rows and columns in turn
        axis = -2 if step % 2 == 0 else -1
        total = c.sum(axis, keepdims=True) + eps
        c = c / total
        steps.append((axis, c, total))
    for axis, c, total in reversed(steps):
        g = (g - (g * c).sum(axis, keepdims=True)) / total
    return p * (g - (g * p).sum(-1, keepdims=True))  # the softmax, without its eps


def inv_rms(g, x, epsilon) -> np.ndarray:
    """By x [..., n, d], g [..., 1]: -g rs^3 x / K."""
    x, rs = to_float64(x), hc_pre_inv_rms(x, epsilon)
    return -(g * rs**3)[..., None] * x / (x.shape[-2] * x.shape[-1])


def hc_pre(dy, dpost, dcomb, x, hc_fn, hc_scale, hc_base, hc_mult=4, hc_sinkhorn_iters=20, norm_eps=1e-6, hc_eps=1e-6):
    """(dx, dfn, dscale, dbase)"""
    dy, dpost, dcomb = map(to_float64, (dy, dpost, dcomb))
    scale, base, n = to_float64(hc_scale), to_float64(hc_base), hc_mult
    groups = np.repeat([0, 1, 2], [n, n, n * n])
    mixes = projection(x, hc_fn) * hc_pre_inv_rms(x, norm_eps)
    logits = mixes * scale[groups] + base
    comb = sinkhorn(dcomb, logits[..., 2 * n :].reshape(*logits.shape[:-1], n, n), hc_sinkhorn_iters, hc_eps)
    post = 2 * _sigmoid(logits[..., n : 2 * n])
    dx, dlogits = _weighted_sum(dy, x, logits[..., :n], hc_eps)
    dlogits = np.concatenate([dlogits, dpost * post * (1 - post / 2), comb.reshape(*comb.shape[:-2], n * n)], -1)
    through_mixes, dfn, by_mix = _mixes(dlogits, scale[groups], mixes, x, hc_fn, norm_eps)
    dscale = np.array([by_mix[groups == group].sum() for group in range(3)])
    return dx + through_mixes, dfn, dscale, _over_tokens(dlogits)


def hc_head(dy, x, hc_fn, hc_scale, hc_base, norm_eps=1e-6, hc_eps=1e-6):
    """(dx, dfn, dscale, dbase)"""
    scale = to_float64(hc_scale)
    mixes = projection(x, hc_fn) * hc_pre_inv_rms(x, norm_eps)
    dx, dlogits = _weighted_sum(to_float64(dy), x, mixes * scale + to_float64(hc_base), hc_eps)
    through_mixes, dfn, by_mix = _mixes(dlogits, scale, mixes, x, hc_fn, norm_eps)
    return dx + through_mixes, dfn, by_mix.sum(keepdims=True), _over_tokens(dlogits)


def _weighted_sum(dy, x, logits, eps):
    """y = sum_i pre_i x_i: (dx without what goes through pre, gradient of the logits of pre)"""
    gate = _sigmoid(logits)
    pre = gate + eps
    dpre = np.einsum("...d,...nd->...n", dy, to_float64(x))
    return pre[..., None] * dy[..., None, :], dpre * gate * (1 - gate)


def _mixes(dlogits, scale, mixes, x, hc_fn, norm_eps):
    """logits = mixes * scale + base, mixes = raw * rs: (dx, dfn, and by_mix [m]: dlogits * mixes over all tokens)"""
    raw, rs, fn = projection(x, hc_fn), hc_pre_inv_rms(x, norm_eps), to_float64(hc_fn)
    dmixes = dlogits * scale
    draw = dmixes * rs
    dx = (draw @ fn).reshape(x.shape) + inv_rms((dmixes * raw).sum(-1, keepdims=True), x, norm_eps)
    dfn = draw.reshape(-1, fn.shape[0]).T @ to_float64(x).reshape(-1, fn.shape[1])
    return dx, dfn, _over_tokens(dlogits * mixes)


def _over_tokens(values) -> np.ndarray:
    return values.sum(tuple(range(values.ndim - 1)))
