"""The operators in NumPy float64, formula by formula."""

import numpy as np


def _sigmoid(v):
    return 1 / (1 + np.exp(-v))


def hc_pre_inv_rms(x, epsilon=1e-20):
    x = np.asarray(x, np.float64)
    return 1 / np.sqrt(np.mean(x**2, axis=(-2, -1), keepdims=False)[..., None] + epsilon)


def hc_pre_sinkhorn(mixes, rsqrt, hc_scale, hc_base, x, hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-5):
    """(y, post, comb)"""
    mixes, rsqrt, scale, base, x = (np.asarray(a, np.float64) for a in (mixes, rsqrt, hc_scale, hc_base, x))
    n, eps = hc_mult, hc_eps
    m = mixes * rsqrt.reshape(*mixes.shape[:-1], 1)
    pre = _sigmoid(m[..., :n] * scale[0] + base[:n]) + eps
    post = 2 * _sigmoid(m[..., n : 2 * n] * scale[1] + base[n : 2 * n])
    logits = (m[..., 2 * n :] * scale[2] + base[2 * n :]).reshape(*m.shape[:-1], n, n)
    c = np.exp(logits - logits.max(-1, keepdims=True))
    c = c / c.sum(-1, keepdims=True) + eps
    c = c / (c.sum(-2, keepdims=True) + eps)
    for _ in range(hc_sinkhorn_iters - 1):
        c = c / (c.sum(-1, keepdims=True) + eps)
        c = c / (c.sum(-2, keepdims=True) + eps)
    return (pre[..., None] * x).sum(-2), post, c


def pre_weights(mixes, rsqrt, hc_scale, hc_base, hc_mult=4, hc_eps=1e-5):
    """The weights of y, which the operator does not return."""
    mixes, rsqrt, scale, base = (np.asarray(a, np.float64) for a in (mixes, rsqrt, hc_scale, hc_base))
    return _sigmoid(mixes[..., :hc_mult] * rsqrt.reshape(*mixes.shape[:-1], 1) * scale[0] + base[:hc_mult]) + hc_eps
