"""How long work tells how far it is: a function of (done, of), in bytes, tensors or windows as its caller says."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]


def untold(done: int, of: int) -> None:
    """Where nobody asks."""
