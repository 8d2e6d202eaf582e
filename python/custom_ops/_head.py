"""hc_head: checks in the words of the operators, and the computation.

An operator of PyTorch calls, so that a compiler does not trace the checks; below it, it sees the calls and their gradients.
"""

from __future__ import annotations

import torch
from torch import Tensor

from . import _autograd
from ._fake import check_device, check_finite_non_negative
from .ops import _mixing

NAME = "hc_head"


def check(x: Tensor, hc_fn: Tensor, hc_scale: Tensor, hc_base: Tensor, norm_eps: float, hc_eps: float) -> None:
    check_finite_non_negative(NAME, "hc_eps", hc_eps)
    check_finite_non_negative(NAME, "norm_eps", norm_eps)
    _mixing.check_any_streams(NAME, x)
    n, hidden = x.shape[-2:]
    _mixing.check_beside(NAME, "hc_fn", hc_fn, "[hc_mult, hc_mult * d]", (n, n * hidden), x)
    _mixing.check_beside(NAME, "hc_scale", hc_scale, "[1]", (1,), x)
    _mixing.check_beside(NAME, "hc_base", hc_base, "[hc_mult]", (n,), x)
    for argument, tensor in (("hc_fn", hc_fn), ("hc_scale", hc_scale), ("hc_base", hc_base)):
        check_device(NAME, argument, tensor, x)


def _compute(x: Tensor, hc_fn: Tensor, hc_scale: Tensor, hc_base: Tensor, norm_eps: float, hc_eps: float) -> Tensor:
    check(x, hc_fn, hc_scale, hc_base, norm_eps, hc_eps)
    wide = x.float()
    mixes = (wide.flatten(-2) @ hc_fn.t()) * torch.ops.custom.npu_hc_pre_inv_rms.default(x, epsilon=norm_eps)
    pre = torch.sigmoid(mixes * hc_scale + hc_base) + hc_eps
    return (pre.unsqueeze(-2) @ wide).squeeze(-2).to(x.dtype)


_autograd.define_composite("_hc_head(Tensor x, Tensor hc_fn, Tensor hc_scale, Tensor hc_base, float norm_eps, float hc_eps) -> Tensor",
                           _compute)
compute = torch.ops.custom._hc_head.default
