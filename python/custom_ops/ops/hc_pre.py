"""npu_hc_pre: the three steps before a block, in one call.

With n = hc_mult and xf the n * d values of a token:
    rs             = 1 / sqrt(mean(xf^2) + norm_eps)
    raw[m]         = sum_k xf[k] * fn[m, k]
    y, post, comb  = hc_pre_sinkhorn(raw, rs, scale, base, x)
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _autograd
from .._fake import check_device, check_finite_non_negative
from . import _mixing, hc_pre_inv_rms, hc_pre_sinkhorn
from ._opdef import OpDefCall

NAME = "npu_hc_pre"
OP_TYPE = "HcPre"


def check(x: Tensor, hc_fn: Tensor, hc_scale: Tensor, hc_base: Tensor, hc_mult: int, hc_sinkhorn_iters: int, norm_eps: float,
          hc_eps: float) -> None:
    _mixing.check_attributes(NAME, hc_mult, hc_sinkhorn_iters, hc_eps)
    check_finite_non_negative(NAME, "norm_eps", norm_eps)
    _mixing.check_streams(NAME, x, hc_mult)
    _mixing.check_beside(NAME, "hc_fn", hc_fn, "[(2 + hc_mult) * hc_mult, hc_mult * d]",
                         (_mixing.mixes_per_token(hc_mult), hc_mult * x.shape[-1]), x)
    _mixing.check_scale_and_base(NAME, hc_scale, hc_base, x, hc_mult)
    for argument, tensor in (("hc_fn", hc_fn), ("hc_scale", hc_scale), ("hc_base", hc_base)):
        check_device(NAME, argument, tensor, x)


@torch.library.register_fake(f"custom::{NAME}")
def fake(x: Tensor, hc_fn: Tensor, hc_scale: Tensor, hc_base: Tensor, *, hc_mult: int = 4, hc_sinkhorn_iters: int = 20,
         norm_eps: float = 1e-6, hc_eps: float = 1e-6) -> tuple[Tensor, Tensor, Tensor]:
    check(x, hc_fn, hc_scale, hc_base, hc_mult, hc_sinkhorn_iters, norm_eps, hc_eps)
    return _mixing.results(x, hc_mult)


def to_opdef(x: Tensor, hc_fn: Tensor, hc_scale: Tensor, hc_base: Tensor, *, hc_mult: int = 4, hc_sinkhorn_iters: int = 20,
             norm_eps: float = 1e-6, hc_eps: float = 1e-6) -> OpDefCall:
    outputs = fake(x, hc_fn, hc_scale, hc_base, hc_mult=hc_mult, hc_sinkhorn_iters=hc_sinkhorn_iters, norm_eps=norm_eps, hc_eps=hc_eps)
    inputs = {"x": x, "hc_fn": hc_fn, "hc_scale": hc_scale, "hc_base": hc_base}
    # The OpDef has the two eps the other way round.
    return OpDefCall(OP_TYPE, {name: tensor.contiguous() for name, tensor in inputs.items()},
                     {"hc_mult": hc_mult, "hc_sinkhorn_iters": hc_sinkhorn_iters, "hc_eps": hc_eps, "norm_eps": norm_eps},
                     dict(zip(("y", "post", "comb_frag"), outputs)))


def backward(grads: tuple[Tensor | None, ...], x: Tensor, hc_fn: Tensor, hc_scale: Tensor, hc_base: Tensor, n: int, iters: int,
             norm_eps: float, hc_eps: float, needed=(True,) * 4) -> tuple[Tensor | None, ...]:
    """(dx, dfn, dscale, dbase) where needed, from (dy, dpost, dcomb); None is a zero gradient. raw and rs are computed again, in the
    dtype of hc_fn, and everything else in it too."""
    wide = x.to(hc_fn.dtype)
    flat = wide.flatten(-2)
    raw = flat @ hc_fn.t()
    rs = torch.rsqrt(flat.square().mean(-1, keepdim=True) + norm_eps)
    draw, drs, dscale, dbase, dx = hc_pre_sinkhorn.backward(grads, raw, rs, hc_scale, hc_base, wide, n, iters, hc_eps)
    dfn = None
    if needed[0]:
        through_mixes = (draw @ hc_fn).unflatten(-1, x.shape[-2:]) + hc_pre_inv_rms.backward(drs, wide, rs)
        dx = (through_mixes if dx is None else dx + through_mixes).to(x.dtype)
    if needed[1]:
        dfn = draw.flatten(0, -2).t() @ flat.flatten(0, -2)
    return dx, dfn, dscale, dbase


class _HcPre(torch.autograd.Function):
    @staticmethod
    def forward(x, hc_fn, hc_scale, hc_base, hc_mult, hc_sinkhorn_iters, norm_eps, hc_eps):
        return _autograd.below(torch.ops.custom.npu_hc_pre.default, x, hc_fn, hc_scale, hc_base, hc_mult=hc_mult,
                               hc_sinkhorn_iters=hc_sinkhorn_iters, norm_eps=norm_eps, hc_eps=hc_eps)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:4])
        ctx.attributes = inputs[4:]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, *grads):
        needed = ctx.needs_input_grad[:4]
        found = backward(grads, *ctx.saved_tensors, *ctx.attributes, needed)
        return (*(grad if need else None for grad, need in zip(found, needed)), None, None, None, None)


_autograd.register(NAME, _HcPre)
