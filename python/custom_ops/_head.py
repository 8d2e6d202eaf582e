"""hc_head: checks in the words of the operators, and the computation."""

from __future__ import annotations

import torch
from torch import Tensor

from ._fake import check_device, check_finite_non_negative
from .ops import _mixing

NAME = "hc_head"


def check(x: Tensor, hc_fn: Tensor, hc_scale: Tensor, hc_base: Tensor, norm_eps: float, hc_eps: float) -> None:
    check_finite_non_negative(NAME, "hc_eps", hc_eps)
    check_finite_non_negative(NAME, "norm_eps", norm_eps)
    _mixing.check_any_streams(NAME, x)
    n, hidden = x.shape[-2:]
    for argument, tensor, symbols, want in (("hc_fn", hc_fn, "[hc_mult, hc_mult * d]", (n, n * hidden)), ("hc_scale", hc_scale, "[1]", (1,)),
                                            ("hc_base", hc_base, "[hc_mult]", (n,))):
        _mixing.check_beside(NAME, argument, tensor, symbols, want, x)
    for argument, tensor in (("hc_fn", hc_fn), ("hc_scale", hc_scale), ("hc_base", hc_base)):
        check_device(NAME, argument, tensor, x)


def compute(x: Tensor, hc_fn: Tensor, hc_scale: Tensor, hc_base: Tensor, norm_eps: float, hc_eps: float) -> Tensor:
    wide = x.float()
    mixes = (wide.flatten(-2) @ hc_fn.t()) * torch.ops.custom.npu_hc_pre_inv_rms.default(x, epsilon=norm_eps)
    pre = torch.sigmoid(mixes * hc_scale + hc_base) + hc_eps
    return (pre.unsqueeze(-2) @ wide).squeeze(-2).to(x.dtype)
