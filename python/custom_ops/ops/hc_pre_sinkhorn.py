"""npu_hc_pre_sinkhorn: mixing weights, Sinkhorn normalisation of the residual mix, weighted sum of the streams.

With n = hc_mult and m = mixes * rsqrt, cut into pre [n], post [n] and comb [n, n] (row: source stream):
    pre  = sigmoid(m_pre * scale[0] + base_pre) + eps         post = 2 * sigmoid(m_post * scale[1] + base_post)
    C    = softmax_j(m_comb * scale[2] + base_comb) + eps;    C /= sum_i C + eps;    iters - 1 times: C /= sum_j C + eps; C /= sum_i C + eps
    y    = sum_i pre[i] * x[i]
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _autograd
from .._fake import check_device
from . import _mixing
from ._opdef import OpDefCall

NAME = "npu_hc_pre_sinkhorn"
OP_TYPE = "HcPreSinkhorn"


def check(mixes: Tensor, rsqrt: Tensor, hc_scale: Tensor, hc_base: Tensor, x: Tensor, hc_mult: int, hc_sinkhorn_iters: int,
          hc_eps: float) -> None:
    _mixing.check_attributes(NAME, hc_mult, hc_sinkhorn_iters, hc_eps)
    _mixing.check_streams(NAME, x, hc_mult)
    tokens = tuple(x.shape[:-2])
    form = "[T" if len(tokens) == 1 else "[b, s"
    _mixing.check_beside(NAME, "mixes", mixes, f"{form}, (2 + hc_mult) * hc_mult]", (*tokens, _mixing.mixes_per_token(hc_mult)), x)
    _mixing.check_beside(NAME, "rsqrt", rsqrt, f"{form}] or {form}, 1]", tokens if rsqrt.dim() == len(tokens) else (*tokens, 1), x,
                         shown=(*tokens, 1))
    _mixing.check_scale_and_base(NAME, hc_scale, hc_base, x, hc_mult)
    for argument, tensor in (("mixes", mixes), ("rsqrt", rsqrt), ("hc_scale", hc_scale), ("hc_base", hc_base)):
        check_device(NAME, argument, tensor, x)


@torch.library.register_fake(f"custom::{NAME}")
def fake(mixes: Tensor, rsqrt: Tensor, hc_scale: Tensor, hc_base: Tensor, x: Tensor, hc_mult: int = 4,
         hc_sinkhorn_iters: int = 20, hc_eps: float = 1e-5) -> tuple[Tensor, Tensor, Tensor]:
    check(mixes, rsqrt, hc_scale, hc_base, x, hc_mult, hc_sinkhorn_iters, hc_eps)
    return _mixing.results(x, hc_mult)


def to_opdef(mixes: Tensor, rsqrt: Tensor, hc_scale: Tensor, hc_base: Tensor, x: Tensor, hc_mult: int = 4,
             hc_sinkhorn_iters: int = 20, hc_eps: float = 1e-5) -> OpDefCall:
    outputs = fake(mixes, rsqrt, hc_scale, hc_base, x, hc_mult, hc_sinkhorn_iters, hc_eps)
    inputs = {"mixes": mixes, "rsqrt": rsqrt, "hc_scale": hc_scale, "hc_base": hc_base, "x": x}
    return OpDefCall(OP_TYPE, {name: tensor.contiguous() for name, tensor in inputs.items()},
                     {"hc_mult": hc_mult, "hc_sinkhorn_iters": hc_sinkhorn_iters, "hc_eps": hc_eps},
                     dict(zip(("y", "post", "comb_frag"), outputs)))


def _sinkhorn_backward(dcomb: Tensor, softmax: Tensor, iters: int, eps: float) -> Tensor:
    """Gradient of the comb logits. Where nobody differentiates it again, one operator: a compiler would unroll the steps."""
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        return _walk_back(dcomb, softmax, iters, eps)
    return torch.ops.custom._npu_hc_pre_sinkhorn_comb_backward(dcomb, softmax, iters, eps)


def _walk_back(dcomb: Tensor, softmax: Tensor, iters: int, eps: float) -> Tensor:
    """Gradient of the comb logits. One step y = z / S, S = sum z + eps, has dz = (dy - sum(dy * y)) / S; the steps are run again
    forward and then walked back, which is cheaper than keeping them from the forward pass."""
    steps = []  # (axis, y, S): columns are axis -2, rows axis -1
    current = softmax + eps
    for step in range(2 * iters - 1):
        axis = -2 if step % 2 == 0 else -1
        total = current.sum(axis, keepdim=True) + eps
        current = current / total
        steps.append((axis, current, total))
    grad = dcomb
    for axis, out, total in reversed(steps):
        grad = (grad - (grad * out).sum(axis, keepdim=True)) / total
    return softmax * (grad - (grad * softmax).sum(-1, keepdim=True))


def backward(grads: tuple[Tensor | None, ...], mixes: Tensor, rsqrt: Tensor, hc_scale: Tensor, hc_base: Tensor, x: Tensor, n: int,
             iters: int, eps: float) -> tuple[Tensor, ...]:
    """(dmixes, drsqrt, dscale, dbase, dx) from (dy, dpost, dcomb); None is a zero gradient. Computed in the dtype of mixes."""
    dy, dpost, dcomb = grads
    scale = torch.repeat_interleave(hc_scale, torch.tensor([n, n, n * n], device=hc_scale.device), output_size=(2 + n) * n)
    per_token = rsqrt.reshape(*mixes.shape[:-1], 1)
    normed = mixes * per_token
    logits = normed * scale + hc_base
    gate = torch.sigmoid(logits[..., : 2 * n])
    slope = gate * (1 - gate)

    dlogits = torch.zeros_like(logits)
    dx = None
    if dy is not None:
        dy = dy.to(mixes.dtype)
        pre = gate[..., :n] + eps
        dx = (pre.unsqueeze(-1) * dy.unsqueeze(-2)).to(x.dtype)
        dpre = torch.einsum("...d,...nd->...n", dy, x.to(mixes.dtype))
        dlogits[..., :n] = dpre * slope[..., :n]
    if dpost is not None:
        dlogits[..., n : 2 * n] = dpost * 2 * slope[..., n:]
    if dcomb is not None:
        softmax = torch.softmax(logits[..., 2 * n :].unflatten(-1, (n, n)), -1)
        dlogits[..., 2 * n :] = _sinkhorn_backward(dcomb, softmax, iters, eps).flatten(-2)

    rows = tuple(range(logits.dim() - 1))
    dbase = dlogits.sum(rows)
    dscale = torch.stack([part.sum() for part in (dlogits * normed).sum(rows).split((n, n, n * n))])
    dnormed = dlogits * scale
    drsqrt = (dnormed * mixes).sum(-1).reshape(rsqrt.shape)
    return dnormed * per_token, drsqrt, dscale, dbase, dx


class _HcPreSinkhorn(torch.autograd.Function):
    @staticmethod
    def forward(mixes, rsqrt, hc_scale, hc_base, x, hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-5):
        return _autograd.below(torch.ops.custom.npu_hc_pre_sinkhorn.default, mixes, rsqrt, hc_scale, hc_base, x, hc_mult,
                               hc_sinkhorn_iters, hc_eps)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:5])
        ctx.attributes = (*inputs[5:], *(4, 20, 1e-5)[len(inputs) - 5 :])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, *grads):
        needed = ctx.needs_input_grad[:5]
        found = backward(grads, *ctx.saved_tensors, *ctx.attributes)
        return (*(grad if need else None for grad, need in zip(found, needed)), *(None,) * (len(ctx.needs_input_grad) - 5))


_autograd.register(NAME, _HcPreSinkhorn)
_autograd.define("_npu_hc_pre_sinkhorn_comb_backward(Tensor dcomb, Tensor softmax, int iters, float eps) -> Tensor",
                 lambda *args: _walk_back(*args).contiguous(),
                 fake=lambda dcomb, softmax, iters, eps: torch.empty_like(softmax, memory_format=torch.contiguous_format))
