"""The gguf package, imported when it is needed."""

from __future__ import annotations

from ...errors import load


def gguf():
    load("gguf.quants", "gguf", "GGUF files need")
    return load("gguf", "gguf", "GGUF files need")
