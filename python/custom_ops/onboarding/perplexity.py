"""Perplexity of a text: exp of the mean negative log likelihood of its tokens."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .._fake import dtype_text
from .errors import not_finite
from .model import LlmModel
from .progress import Progress, untold

_ROWS = 64  # positions whose logits exist at a time: a vocabulary is large


@dataclass(frozen=True)
class Perplexity:
    value: float
    nll: float  # mean, nats
    tokens: int  # that were scored
    seconds: float
    losses: Tensor = field(repr=False, compare=False)  # [tokens] float64, nats: of token 1 and on
    windows: tuple[tuple[int, int, int], ...] = field(repr=False, default=())  # see windows()
    model: str = ""  # its type, memory and dtype

    def __str__(self) -> str:
        return f"perplexity {self.value:.5f} ({self.nll:.6f} nats) over {self.tokens} tokens in {self.seconds:.1f} s ({self.speed:.1f}/s)"

    @property
    def speed(self) -> float:
        """Scored tokens a second."""
        return self.tokens / self.seconds if self.seconds else math.inf


def windows(count: int, context: int, stride: int) -> list[tuple[int, int, int]]:
    """(begin, first scored token, end) of each: every token but the first is scored once, with up to context - 1 tokens before it and,
    from the second window on, at least context - stride."""
    if not 1 <= stride < context:
        raise ValueError(f"stride must be 1 to context - 1 = {context - 1}, got {stride}")
    found, scored = [], 1
    while scored < count:
        end = min(count, context if not found else scored + stride)
        found.append((max(0, end - context), scored, end))
        scored = end
    return found


@torch.no_grad()
def perplexity(model: LlmModel, tokens: Sequence[int], context: int = 512, stride: int | None = None,
               progress: Progress = untold) -> Perplexity:
    """Of a text's tokens; stride: tokens that are new in a window, default half of the context.

    progress: called with (windows done, windows). Sums in float64.
    """
    if len(tokens) < 2:
        raise ValueError(f"perplexity needs at least 2 tokens, got {len(tokens)}")
    begin, losses = time.perf_counter(), []
    ids = torch.tensor([list(tokens)], device=model.device)
    pieces = windows(len(tokens), context, stride or max(1, context // 2))
    for done, (start, first, end) in enumerate(pieces):
        hidden = model.hidden_states(ids[:, start : end - 1])[:, first - 1 - start :]
        losses += [_nll(model.head(hidden[:, i : i + _ROWS])[0], ids[0, first + i : min(first + i + _ROWS, end)])
                   for i in range(0, end - first, _ROWS)]
        progress(done + 1, len(pieces))
    each = torch.cat(losses)
    if not each.isfinite().all():
        raise not_finite(f"{int((~each.isfinite()).sum())} of {len(each)} losses are", model.dtype)
    mean, a = each.mean().item(), model.architecture
    kind = f"{a.model_type}, {len(a.layers)} blocks, {a.memory_kind()} memory, {dtype_text(model.dtype)}"
    return Perplexity(perplexity_of(mean), mean, len(each), time.perf_counter() - begin, each, tuple(pieces), kind)


def perplexity_of(mean: float) -> float:
    """exp of a mean loss in nats, infinite where float64 ends."""
    return math.exp(mean) if mean < math.log(sys.float_info.max) else math.inf


def _nll(logits: Tensor, targets: Tensor) -> Tensor:
    """-log softmax(logits [n, vocab])[targets [n]], float64."""
    return torch.nn.functional.cross_entropy(logits.double(), targets, reduction="none").cpu()
