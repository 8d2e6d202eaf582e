"""Progress of long work, on a terminal alone: a pipe or a file gets nothing of it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

import click


def step(text: str) -> None:
    """Says what begins, on standard error."""
    if sys.stderr.isatty():
        click.echo(f"{text} ...", err=True)


@contextlib.contextmanager
def bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A function of (done, of) that draws a bar on standard error. The bar comes with the first call and ends its line when all is done, or
    with the block."""
    shown = None

    def end() -> None:
        nonlocal shown
        if shown is not None:
            shown.render_finish()
            shown = None

    def show(done: int, of: int) -> None:
        nonlocal shown
        if shown is None:
            shown = click.progressbar(length=of, label=label, file=sys.stderr)
        shown.update(done - shown.pos)
        if done >= of:
            end()

    try:
        yield show if sys.stderr.isatty() else lambda done, of: None
    finally:
        end()
