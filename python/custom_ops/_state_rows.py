"""What a LinearAttentionState is made of: the sizes of a row, the tensors that hold rows, and the storage that views share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ._fake import FLOATS, check_range, dtype_text
from .ops._attn_types import ATTN_TYPES, MAX_TAPS, AttnType, Heads
from .ops.fused_linear_attention import check_heads

NAME = "LinearAttentionState"


def error(what: str) -> RuntimeError:
    return RuntimeError(f"{NAME}: {what}")


@dataclass(frozen=True)
class Layout:
    """What a row of a state looks like: two states of one layout can take each other's rows."""

    attn_type: str
    num_k_heads: int
    num_v_heads: int
    head_k_dim: int
    head_v_dim: int
    conv_kernel_size: int
    dtype: torch.dtype  # of the convolution's inputs

    def __post_init__(self):
        if self.attn_type not in ATTN_TYPES:
            raise error(f"attn_type '{self.attn_type}' is not known, use one of {', '.join(ATTN_TYPES)}")
        check_heads(NAME, self.kind, self.heads)
        check_range(NAME, "conv_kernel_size", self.conv_kernel_size, 1, MAX_TAPS)
        if self.dtype not in FLOATS:
            raise error(f"dtype must be one of {', '.join(map(dtype_text, FLOATS))}, got {self.dtype}")

    @property
    def kind(self) -> AttnType:
        return ATTN_TYPES[self.attn_type]

    @property
    def heads(self) -> Heads:
        return Heads(self.num_k_heads, self.num_v_heads, self.head_k_dim, self.head_v_dim)

    def of_layer(self) -> tuple:
        """All but the dtype."""
        return (self.attn_type, self.num_k_heads, self.num_v_heads, self.head_k_dim, self.head_v_dim, self.conv_kernel_size)

    def conv_sizes(self) -> tuple[int, int]:
        return self.kind.conv_channels(self.heads), self.conv_kernel_size - 1

    def new(self, rows: int, device) -> Tensors:
        recurrent = None
        if self.kind.has_state:
            recurrent = torch.zeros(rows, self.num_v_heads, self.head_k_dim, self.head_v_dim, dtype=torch.float32, device=device)
        return Tensors(torch.zeros(rows, *self.conv_sizes(), dtype=self.dtype, device=device), recurrent,
                        torch.zeros(rows, dtype=torch.int64, device=device))


@dataclass(frozen=True)
class Tensors:
    """States [rows, ...] and the number of tokens in each of them."""

    conv: Tensor
    recurrent: Tensor | None
    lengths: Tensor

    def each(self) -> list[Tensor]:
        return [tensor for tensor in (self.conv, self.recurrent, self.lengths) if tensor is not None]

    def map(self, function: Callable[[Tensor], Tensor]) -> Tensors:
        return Tensors(*(t if t is None else function(t) for t in (self.conv, self.recurrent, self.lengths)))

    def select(self, index: Tensor) -> Tensors:
        return self.map(lambda tensor: tensor.index_select(0, index))

    def narrow(self, first: int, rows: int) -> Tensors:
        return self.map(lambda tensor: tensor.narrow(0, first, rows))

    def to(self, device) -> Tensors:
        return self.map(lambda tensor: tensor.to(device))

    def put(self, index: Tensor, values: Tensors) -> None:
        for tensor, value in zip(self.each(), values.each()):
            tensor.index_copy_(0, index, value)


class Storage:
    """The live tensors and those of the snapshot, made at the first one; a length of -1: no snapshot of that row. Shared by views."""

    def __init__(self, live: Tensors):
        self.live = live
        self.kept: Tensors | None = None

    def make_kept(self) -> Tensors:
        if self.kept is None:
            with torch.inference_mode(False):
                self.kept = self.live.map(torch.zeros_like)
            self.kept.lengths.fill_(-1)
        return self.kept

    def leave_inference_mode(self) -> None:
        """Tensors that were made in it could not be written outside."""
        normal = lambda tensor: tensor.clone() if tensor.is_inference() else tensor  # noqa: E731
        self.live = self.live.map(normal)
        self.kept = self.kept and self.kept.map(normal)
