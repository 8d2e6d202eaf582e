"""Perplexity of a text: exp of the mean negative log likelihood of its tokens."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .model import LlmModel

_ROWS = 64  # positions whose logits exist at a time: a vocabulary is large


@dataclass(frozen=True)
class Perplexity:
    value: float
    nll: float  # mean, nats
    tokens: int  # that were scored
    seconds: float

    def __str__(self) -> str:
        speed = self.tokens / self.seconds if self.seconds else math.inf
        return f"perplexity {self.value:.5f} ({self.nll:.6f} nats) over {self.tokens} tokens in {self.seconds:.1f} s ({speed:.1f}/s)"


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
               progress: Callable[[int, int], None] = lambda done, of: None) -> Perplexity:
    """Of a text's tokens; stride: tokens that are new in a window, default half of the context.

    progress: called with (windows done, windows). Sums in float64.
    """
    if len(tokens) < 2:
        raise ValueError(f"perplexity needs at least 2 tokens, got {len(tokens)}")
    begin, total = time.perf_counter(), 0.0
    ids = torch.tensor([list(tokens)], device=model.device)
    pieces = windows(len(tokens), context, stride or max(1, context // 2))
    for done, (start, first, end) in enumerate(pieces):
        hidden = model.hidden_states(ids[:, start : end - 1])[:, first - 1 - start :]
        total += sum(nll(model.head(hidden[:, i : i + _ROWS])[0], ids[0, first + i : min(first + i + _ROWS, end)])
                     for i in range(0, end - first, _ROWS))
        progress(done + 1, len(pieces))
    count = len(tokens) - 1
    return Perplexity(math.exp(total / count), total / count, count, time.perf_counter() - begin)


def nll(logits: Tensor, targets: Tensor) -> float:
    """Sum of -log softmax(logits [n, vocab])[targets [n]]."""
    return torch.nn.functional.cross_entropy(logits.double(), targets, reduction="sum").item()
