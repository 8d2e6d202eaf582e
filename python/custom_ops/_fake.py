"""What the operators' checks share. The words are those of framework/torch/checks.cpp: a call that a fake tensor refuses is
refused on the CPU and on the NPU with the same sentence (tests/ops/test_refusals.py compares them).

Sizes may be symbolic: conditions go through `torch._check`, which guards on them instead of reading them.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence

import torch
from torch import Tensor

MAX_STREAMS = 16  # hc_mult
MOST = 2**31 - 1  # of sizes and counts
FLOAT32_OVERFLOW = (2 - 2**-24) * 2.0**127  # rounds to infinity, as all above does
FLOATS = (torch.bfloat16, torch.float16, torch.float32)


def shape_text(shape: Sequence[int]) -> str:
    return "[" + ", ".join(str(size) for size in shape) + "]"


def dtype_text(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def fail(op: str, what: str):
    raise RuntimeError(f"{op}: {what}")


def check_dtype(op: str, argument: str, tensor: Tensor, accepted: Sequence[torch.dtype]) -> None:
    if tensor.dtype in accepted:
        return
    *first, last = map(dtype_text, accepted)
    names = f"{', '.join(first)} or {last}" if first else last
    fail(op, f"{argument} dtype {dtype_text(tensor.dtype)} is not supported, use {names}")


def check_range(op: str, argument: str, value: int, low: int, high: int) -> None:
    # An operator's schema sees to it, a module's constructor does not.
    if isinstance(value, bool) or not isinstance(value, (numbers.Integral, torch.SymInt)):
        fail(op, f"{argument} must be an integer, {low} to {high}, got {value!r}")
    if not low <= value <= high:
        fail(op, f"{argument} must be {low} to {high}, got {value}")


def check_finite_non_negative(op: str, argument: str, value: float) -> None:
    if not isinstance(value, (numbers.Real, torch.SymFloat)):
        fail(op, f"{argument} must be a number, finite in float32 and >= 0, got {value!r}")
    if not 0 <= value < FLOAT32_OVERFLOW:
        fail(op, f"{argument} must be finite in float32 and >= 0, got {value:g}")


def check_device(op: str, argument: str, tensor: Tensor, x: Tensor, name: str = "x") -> None:
    if tensor.device != x.device:
        fail(op, f"{argument} is on {tensor.device} and {name} on {x.device}, all must be on one device")


def check_sizes(got: Sequence[int], want: Sequence[int], message) -> None:
    """Same rank and, size by size, the same extent; `message` is called when they differ."""
    torch._check(len(got) == len(want), message)
    for have, need in zip(got, want):
        torch._check(have == need, message)
