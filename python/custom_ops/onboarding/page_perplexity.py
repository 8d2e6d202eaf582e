"""The result of perplexity as one HTML file: what was measured, the loss along the text, and where it is highest."""

from __future__ import annotations

import math
from html import escape

import torch
from torch import Tensor

from .page import document
from .perplexity import Perplexity, perplexity_of

_WIDTH, _HEIGHT, _LEFT, _BELOW = 900, 300, 50, 30  # of the picture and of the space for its numbers
_POINTS = 300  # of a curve
_WORST = 10  # windows that are listed


def page(result: Perplexity, model_dir, file) -> str:
    rows = {"model": f"{model_dir} ({result.model})", "text": f"{file}: {result.tokens} tokens scored in {len(result.windows)} windows",
            "perplexity": f"{result.value:.5f}", "mean loss": f"{result.nll:.6f} nats, {result.nll / math.log(2):.4f} bits a token",
            "speed": f"{result.speed:.1f} tokens/s, {result.seconds:.1f} s (measured)"}
    return document(
        f"perplexity {result.value:.3f}",
        "<table>", *(f"<tr><td>{name}<td style='text-align:left'>{escape(value)}</tr>" for name, value in rows.items()), "</table>",
        "<h2>Loss along the text</h2>", _picture(result.losses),
        f"<p>Thin: mean of {_each(result.tokens)} token{'s' * (_each(result.tokens) > 1)} each. Thick: mean of all up to there; its end "
        f"is the result. Nats.</p>", *_worst(result))


def _each(tokens: int) -> int:
    """Tokens of a point of the thin curve."""
    return math.ceil(tokens / _POINTS)


def _worst(result: Perplexity) -> list[str]:
    means = [(result.losses[first - 1 : end - 1].mean().item(), first, end) for _, first, end in result.windows]
    head = "<tr><th>tokens<th><th>mean loss<th>perplexity</tr>"
    rows = (f"<tr><td>{first} to {end - 1}<td><td>{mean:.4f}<td>{perplexity_of(mean):.3f}</tr>"
            for mean, first, end in sorted(means, reverse=True)[:_WORST])
    return [f"<h2>Windows of the highest loss ({min(_WORST, len(means))} of {len(means)})</h2><table>{head}", *rows, "</table>"]


def _picture(losses: Tensor) -> str:
    each = _each(len(losses))
    thin = torch.stack([piece.mean() for piece in losses.split(each)])
    running = losses.cumsum(0) / torch.arange(1, len(losses) + 1)
    top = _ceiling(max(thin.max().item(), running[each - 1 :].max().item()))
    ends = torch.arange(1, len(thin) + 1).mul(each).clamp(max=len(losses))
    lines = [_grid(top * part / 4, top) for part in range(5)]
    lines += [_curve(ends, thin, len(losses), top, 1, 0.5), _curve(ends, running[ends - 1], len(losses), top, 2.5, 1)]
    lines += [f"<text x={x} y={_HEIGHT - 8} text-anchor={anchor}>{text}</text>"
              for x, anchor, text in ((_LEFT, "start", "token 1"), (_WIDTH, "end", f"token {len(losses)}"))]
    return f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' role=img aria-label='loss along the text'>{''.join(lines)}</svg>"


def _ceiling(value: float) -> float:
    """The next of 1, 2, 4, 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(step * power for step in (1, 2, 4, 10) if step * power >= value)


def _y(value: float, top: float) -> float:
    return round((_HEIGHT - _BELOW) * (1 - value / top) + 0.5, 1)


def _grid(value: float, top: float) -> str:
    y = max(12.0, _y(value, top) + 4)
    return (f"<line x1={_LEFT} x2={_WIDTH} y1={_y(value, top)} y2={_y(value, top)} stroke='#8886'/>"
            f"<text x={_LEFT - 6} y={y} text-anchor=end>{value:g}</text>")


def _curve(ends: Tensor, values: Tensor, count: int, top: float, width: float, opacity: float) -> str:
    """A point stands at the last of its tokens."""
    pairs = zip(ends.tolist(), values.tolist())
    points = " ".join(f"{_LEFT + (_WIDTH - _LEFT) * end / count:.1f},{_y(value, top)}" for end, value in pairs)
    return f"<polyline points='{points}' fill=none stroke='#48c' stroke-width={width} opacity={opacity} stroke-linejoin=round />"
