"""npu_hc_pre_inv_rms: 1 / RMS over the flattened hc_mult * d of every token."""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _autograd
from .._fake import check_finite_non_negative
from . import _mixing
from ._opdef import OpDefCall

NAME = "npu_hc_pre_inv_rms"
OP_TYPE = "HcPreInvRms"


def check(x: Tensor, epsilon: float) -> None:
    _mixing.check_any_streams(NAME, x)
    check_finite_non_negative(NAME, "epsilon", epsilon)


@torch.library.register_fake(f"custom::{NAME}")
def fake(x: Tensor, *, epsilon: float = 1e-20) -> Tensor:
    check(x, epsilon)
    return x.new_empty((*x.shape[:-2], 1), dtype=torch.float32)


def to_opdef(x: Tensor, *, epsilon: float = 1e-20) -> OpDefCall:
    return OpDefCall(OP_TYPE, {"x": x.contiguous()}, {"epsilon": epsilon}, {"y": fake(x, epsilon=epsilon)})


def backward(dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """y = (sum_k x_k^2 / K + epsilon)^(-1/2), so dx = -(dy * y^3 / K) * x."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    factor = dy * y**3 / (x.shape[-2] * x.shape[-1])
    return (-factor.unsqueeze(-1) * x.to(wide)).to(x.dtype)


class _HcPreInvRms(torch.autograd.Function):
    @staticmethod
    def forward(x, epsilon):
        return _autograd.below(torch.ops.custom.npu_hc_pre_inv_rms.default, x, epsilon=epsilon)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx, dy):
        return backward(dy, *ctx.saved_tensors), None


_autograd.register(NAME, _HcPreInvRms)
