"""The operators in NumPy float64, formula by formula: what every kernel is compared with.

Inputs are anything NumPy can read; torch tensors of any dtype go through `to_float64`.
"""

import numpy as np
import torch

#: Mantissa bits with the hidden one, exponent of the smallest subnormal, largest finite value.
_FORMATS = {
    torch.float32: (24, -149, float.fromhex("0x1.fffffep127")),
    torch.float16: (11, -24, 65504.0),
    torch.bfloat16: (8, -133, float.fromhex("0x1.fep127")),
}
_BITS = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}


def to_float64(values) -> np.ndarray:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().to(torch.float64).numpy()
    return np.asarray(values, np.float64)


def _sigmoid(v):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-v))


def hc_pre_inv_rms(x, epsilon=1e-20) -> np.ndarray:
    """[..., n, d] -> [..., 1]: 1 / sqrt(mean of the squares of all n d elements + epsilon)."""
    x = to_float64(x)
    return 1 / np.sqrt(np.mean(x**2, axis=(-2, -1))[..., None] + epsilon)


def pre_weights(mixes, rsqrt, hc_scale, hc_base, hc_mult=4, hc_eps=1e-5) -> np.ndarray:
    """The weights of y in hc_pre_sinkhorn, which the operator does not return: [..., n]."""
    mixes, rsqrt, scale, base = map(to_float64, (mixes, rsqrt, hc_scale, hc_base))
    m = mixes[..., :hc_mult] * rsqrt.reshape(*mixes.shape[:-1], 1)
    return _sigmoid(m * scale[0] + base[:hc_mult]) + hc_eps


def hc_pre_sinkhorn(mixes, rsqrt, hc_scale, hc_base, x, hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-5):
    """(y [..., d], post [..., n], comb_frag [..., n, n])"""
    pre = pre_weights(mixes, rsqrt, hc_scale, hc_base, hc_mult, hc_eps)
    mixes, rsqrt, scale, base, x = map(to_float64, (mixes, rsqrt, hc_scale, hc_base, x))
    n, eps = hc_mult, hc_eps
    m = mixes * rsqrt.reshape(*mixes.shape[:-1], 1)
    post = 2 * _sigmoid(m[..., n : 2 * n] * scale[1] + base[n : 2 * n])
    logits = (m[..., 2 * n :] * scale[2] + base[2 * n :]).reshape(*m.shape[:-1], n, n)
    c = np.exp(logits - logits.max(-1, keepdims=True))
    c = c / c.sum(-1, keepdims=True) + eps
    c = c / (c.sum(-2, keepdims=True) + eps)
    for _ in range(hc_sinkhorn_iters - 1):
        c = c / (c.sum(-1, keepdims=True) + eps)
        c = c / (c.sum(-2, keepdims=True) + eps)
    return (pre[..., None] * x).sum(-2), post, c


def projection(x, hc_fn) -> np.ndarray:
    """[..., n, d] and [m, n d] -> [..., m]: the mixes of hc_pre before they are multiplied by 1 / RMS."""
    x = to_float64(x)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1]) @ to_float64(hc_fn).T


def hc_pre(x, hc_fn, hc_scale, hc_base, hc_mult=4, hc_sinkhorn_iters=20, norm_eps=1e-6, hc_eps=1e-6):
    """(y [..., d], post [..., n], comb_frag [..., n, n])"""
    return hc_pre_sinkhorn(projection(x, hc_fn), hc_pre_inv_rms(x, norm_eps), hc_scale, hc_base, x, hc_mult, hc_sinkhorn_iters, hc_eps)


def hc_head(x, hc_fn, hc_scale, hc_base, norm_eps=1e-6, hc_eps=1e-6) -> np.ndarray:
    """[..., n, d] -> [..., d]: the weighted sum of hc_pre alone."""
    pre = pre_weights(projection(x, hc_fn), hc_pre_inv_rms(x, norm_eps), hc_scale, hc_base, np.shape(x)[-2], hc_eps)
    return (pre[..., None] * to_float64(x)).sum(-2)


def hc_post(x, residual, post, comb) -> np.ndarray:
    """[..., n, d]: y[j] = post[j] * x + sum_i comb[i, j] * residual[i]; the sum is over the first index of comb."""
    x, residual, post, comb = map(to_float64, (x, residual, post, comb))
    return post[..., None] * x[..., None, :] + np.einsum("...ij,...id->...jd", comb, residual)


def round_to(values, dtype: torch.dtype) -> np.ndarray:
    """float64 -> dtype to nearest even in one step (torch goes through float32, which rounds twice), held in float64."""
    values = np.asarray(values, np.float64)
    if dtype == torch.float64:
        return values
    mantissa, smallest, largest = _FORMATS[dtype]
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(values)
        ulp = np.ldexp(1.0, np.maximum(exponent - mantissa, smallest))
        rounded = np.where(np.isfinite(values), np.rint(values / ulp) * ulp, values)
        return np.where(np.abs(rounded) > largest, np.copysign(np.inf, rounded), rounded)


def ulps(a, b, dtype: torch.dtype) -> np.ndarray:
    """Distance between a and b, both representable in dtype, in representable values."""

    def order(values):
        bits = torch.from_numpy(np.ascontiguousarray(values, np.float64)).to(dtype).view(_BITS[dtype]).numpy().astype(np.int64)
        return np.where(bits < 0, -(bits & (2 ** (8 * dtype.itemsize - 1) - 1)), bits)

    return np.abs(order(a) - order(b))


def max_ulps(got: torch.Tensor, exact, magnitude=0.0) -> float:
    """Largest |got - exact rounded to its dtype|, in ulps of the larger of |exact| and `magnitude`; 0 for empty tensors.

    magnitude: what was added up to give each element; where summands cancel, their size sets the unit.
    """
    mantissa, smallest, _ = _FORMATS[got.dtype]
    want = round_to(exact, got.dtype)
    _, exponent = np.frexp(np.maximum(np.abs(want), magnitude))
    unit = np.ldexp(1.0, np.maximum(exponent - mantissa, smallest))
    return float((np.abs(to_float64(got) - want) / unit).max(initial=0))
