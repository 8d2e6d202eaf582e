"""What the operators on residual streams check alike, in the words of framework/torch, and the results of npu_hc_pre and
npu_hc_pre_sinkhorn."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .._fake import FLOATS, MAX_STREAMS, MOST, check_dtype, check_finite_non_negative, check_range, check_sizes, fail, shape_text


def mixes_per_token(hc_mult: int) -> int:
    return (2 + hc_mult) * hc_mult


def check_attributes(op: str, hc_mult: int, hc_sinkhorn_iters: int, hc_eps: float) -> None:
    check_range(op, "hc_mult", hc_mult, 1, MAX_STREAMS)
    check_range(op, "hc_sinkhorn_iters", hc_sinkhorn_iters, 1, MOST)
    check_finite_non_negative(op, "hc_eps", hc_eps)


def check_streams(op: str, x: Tensor, hc_mult: int) -> None:
    given = shape_text(x.shape)
    wrong = f"x must be [T, hc_mult, d] or [b, s, hc_mult, d] with hc_mult = {hc_mult}, got {given}"
    if x.dim() not in (3, 4):
        fail(op, wrong)
    torch._check(x.shape[-2] == hc_mult, lambda: f"{op}: {wrong}")
    torch._check(x.shape[-1] >= 1, lambda: f"{op}: d (dim -1 of x) must be at least 1, got x {given}")
    check_dtype(op, "x", x, FLOATS)


def check_any_streams(op: str, x: Tensor) -> None:
    """x gives hc_mult itself."""
    given = shape_text(x.shape)
    if x.dim() not in (3, 4):
        fail(op, f"x must be [T, hc_mult, d] or [b, s, hc_mult, d], got {given}")
    check_dtype(op, "x", x, FLOATS)
    message = lambda: f"{op}: hc_mult (dim -2 of x) must be 1 to {MAX_STREAMS}, got x {given}"  # noqa: E731
    torch._check(x.shape[-2] >= 1, message)
    torch._check(x.shape[-2] <= MAX_STREAMS, message)
    torch._check(x.shape[-1] >= 1, lambda: f"{op}: d (dim -1 of x) must be at least 1, got x {given}")


def check_beside(op: str, argument: str, tensor: Tensor, symbols: str, want: Sequence[int], x: Tensor,
                 shown: Sequence[int] | None = None) -> None:
    """float32 and of shape `want`; the message gives `shown` where several shapes are accepted."""
    check_dtype(op, argument, tensor, (torch.float32,))
    def message() -> str:
        values = shape_text(shown or want)
        expected = symbols if symbols == values else f"{symbols} = {values} to match x {shape_text(x.shape)}"
        return f"{op}: {argument} must be {expected}, got {shape_text(tensor.shape)}"

    check_sizes(tensor.shape, want, message)


def check_scale_and_base(op: str, hc_scale: Tensor, hc_base: Tensor, x: Tensor, hc_mult: int) -> None:
    check_beside(op, "hc_scale", hc_scale, "[3]", (3,), x)
    check_beside(op, "hc_base", hc_base, "[(2 + hc_mult) * hc_mult]", (mixes_per_token(hc_mult),), x)


def results(x: Tensor, hc_mult: int) -> tuple[Tensor, Tensor, Tensor]:
    """(y, post, comb_frag), uninitialised."""
    *tokens, _, hidden = x.shape
    return (x.new_empty((*tokens, hidden)), x.new_empty((*tokens, hc_mult), dtype=torch.float32),
            x.new_empty((*tokens, hc_mult, hc_mult), dtype=torch.float32))
