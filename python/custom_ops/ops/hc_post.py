"""npu_hc_post: the block's output merged into the residual streams.

    y[j] = post[j] * x + sum_i comb[i, j] * residual[i]
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import _autograd
from .._fake import FLOATS, MAX_STREAMS, check_device, check_dtype, check_sizes, dtype_text, fail, shape_text
from ._opdef import OpDefCall

NAME = "npu_hc_post"
OP_TYPE = "HcPost"


def check(x: Tensor, residual: Tensor, post: Tensor, comb: Tensor) -> None:
    given = shape_text(residual.shape)
    if residual.dim() not in (3, 4):
        fail(NAME, f"residual must be [T, hc_mult, d] or [b, s, hc_mult, d], got {given}")
    *tokens, streams, hidden = residual.shape
    message = lambda: f"{NAME}: hc_mult (dim -2 of residual) must be 1 to {MAX_STREAMS}, got residual {given}"  # noqa: E731
    torch._check(streams >= 1, message)
    torch._check(streams <= MAX_STREAMS, message)
    torch._check(hidden >= 1, lambda: f"{NAME}: d (dim -1 of residual) must be at least 1, got residual {given}")
    check_dtype(NAME, "residual", residual, FLOATS)
    check_dtype(NAME, "post", post, FLOATS)
    for argument, tensor, other, like in (("x", x, "residual", residual), ("comb", comb, "post", post)):
        if tensor.dtype != like.dtype:
            fail(NAME, f"{argument} must have the dtype of {other}, {dtype_text(like.dtype)}, got {dtype_text(tensor.dtype)}")

    form = "[T, " if len(tokens) == 1 else "[b, s, "
    for argument, tensor, symbols, want in (("x", x, "d", (*tokens, hidden)), ("post", post, "hc_mult", (*tokens, streams)),
                                            ("comb", comb, "hc_mult, hc_mult", (*tokens, streams, streams))):
        check_sizes(tensor.shape, want, lambda: f"{NAME}: {argument} must be {form}{symbols}] = {shape_text(want)} to match residual "
                                                f"{given}, got {shape_text(tensor.shape)}")
    for argument, tensor in (("residual", residual), ("post", post), ("comb", comb)):
        check_device(NAME, argument, tensor, x)


@torch.library.register_fake(f"custom::{NAME}")
def fake(x: Tensor, residual: Tensor, post: Tensor, comb: Tensor) -> Tensor:
    check(x, residual, post, comb)
    return residual.new_empty(residual.shape)


def to_opdef(x: Tensor, residual: Tensor, post: Tensor, comb: Tensor) -> OpDefCall:
    inputs = {"x": x, "residual": residual, "post": post, "comb": comb}
    return OpDefCall(OP_TYPE, {name: tensor.contiguous() for name, tensor in inputs.items()}, {}, {"y": fake(x, residual, post, comb)})


def backward(dy: Tensor, x: Tensor, residual: Tensor, post: Tensor, comb: Tensor, needed=(True,) * 4) -> tuple[Tensor | None, ...]:
    """(dx, dresidual, dpost, dcomb) where needed, each in the dtype of its tensor; computed in float32, or float64 for float64."""
    wide = torch.promote_types(post.dtype, torch.float32)
    dy = dy.to(wide)
    dx = dresidual = dpost = dcomb = None
    if needed[0]:  # dx = sum_j post[j] * dy[j]
        dx = (post.to(wide).unsqueeze(-2) @ dy).squeeze(-2).to(x.dtype)
    if needed[1]:  # dresidual[i] = sum_j comb[i, j] * dy[j]
        dresidual = (comb.to(wide) @ dy).to(residual.dtype)
    if needed[2]:  # dpost[j] = <dy[j], x>
        dpost = (dy @ x.to(wide).unsqueeze(-1)).squeeze(-1).to(post.dtype)
    if needed[3]:  # dcomb[i, j] = <residual[i], dy[j]>
        dcomb = (residual.to(wide) @ dy.transpose(-1, -2)).to(comb.dtype)
    return dx, dresidual, dpost, dcomb


class _HcPost(torch.autograd.Function):
    @staticmethod
    def forward(x, residual, post, comb):
        return _autograd.below(torch.ops.custom.npu_hc_post.default, x, residual, post, comb)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        return backward(dy, *ctx.saved_tensors, ctx.needs_input_grad)


_autograd.register(NAME, _HcPost)
