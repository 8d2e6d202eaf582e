"""Reports as one HTML file without scripts or links; here that of verify: table, errors on a logarithmic scale, and the finding."""

from __future__ import annotations

import math
from html import escape

from .._fake import dtype_text
from .verify import Measure, Report

_STYLE = """body{font:14px system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse;width:100%}td,th{padding:.3em .6em;text-align:right;border-bottom:1px solid #8884}
td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}.no{color:#c00;font-weight:bold}.bar{height:.7em;background:#48c}
.bar.no{background:#c00}.track{width:12em;background:#8883;position:relative}
.gate{position:absolute;top:0;bottom:0;width:2px;background:#000}
svg{width:100%;height:auto;margin:1em 0}svg text{fill:currentColor;font:12px system-ui,sans-serif}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}.gate{background:#fff}}"""
_LOWEST = -9  # power of ten at the left end of a bar


def document(title: str, *body: str) -> str:
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>"
    return "\n".join([head, f"<h1>{escape(title)}</h1>", *body, "</html>\n"])


def page(report: Report) -> str:
    batch, length = report.tokens
    title = f"{report.model_type}: {'agrees with transformers' if report.passed else 'differs from transformers'}"
    head = ("phase", "checkpoint", "largest difference", "allowed", "", "NMSE", "reference's std", "top-1", "")
    return document(
        title,
        f"<p>{escape(report.model_dir)}: {dtype_text(report.dtype)}, {batch} x {length} tokens, measured in {report.seconds:.1f} s. "
        "Bars are the largest difference on a logarithmic scale, the line in them what is allowed.</p>",
        "<table><tr>" + "".join(f"<th>{name}" for name in head) + "</tr>", *map(_row, report.all()), "</table>",
        *(f"<p class=no>{escape(line)}</p>" for line in (report.finding.lines() if report.finding else ())),
        *_blocks(report))


def _row(m: Measure) -> str:
    top1 = "" if m.top1 is None else f"{m.top1:.3f}"
    verdict = "<td>ok" if m.passed else "<td class=no>differs"
    gate = f"<div class=gate style='left:{_place(m.bound):.1f}%'></div>" if math.isfinite(m.bound) else ""
    bar = f"<div class=track><div class='bar{'' if m.passed else ' no'}' style='width:{_place(m.max_abs):.1f}%'></div>{gate}</div>"
    return (f"<tr><td>{m.phase}<td>{m.checkpoint}<td>{m.max_abs:.1e}<td>{m.bound:.1e}<td>{bar}<td>{m.nmse:.1e}<td>{m.std:.3f}<td>{top1}"
            f"{verdict}</tr>")


def _place(value: float) -> float:
    """Percent of a bar: 10^_LOWEST is 0, 10 is 100; what is not finite is 100."""
    if not math.isfinite(value):
        return 100.0
    return 0.0 if value <= 0 else min(100.0, max(0.0, 100 * (math.log10(value) - _LOWEST) / (1 - _LOWEST)))


def _blocks(report: Report) -> list[str]:
    """NMSE of every block on the reference's input."""
    if report.finding is None or not report.finding.blocks:
        return []
    rows = (f"<tr><td>block {index}<td><td>{error:.1e}</tr>" for index, error in enumerate(report.finding.blocks))
    return ["<h2>Blocks alone</h2><table><tr><th>each on the reference's input<th><th>NMSE</tr>", *rows, "</table>"]
