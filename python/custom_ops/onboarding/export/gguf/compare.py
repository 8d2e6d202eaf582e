"""Whether two Architectures compute the same, field by field."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from ...architecture import Architecture, RotarySpec
from ...errors import some
from .rope import same_rotation

_NAMES = ("model_type", "max_positions")  # say nothing about what is computed


def differences(model: Architecture, file: Architecture) -> list[str]:
    """One sentence each, as "blocks 0, 1: window 8, the file says none"; equal ones of several blocks together."""
    found: dict[str, list[int]] = {}
    for index, (one, other) in enumerate(zip(model.layers, file.layers)):
        for text in _compare(one, other, ""):
            found.setdefault(text, []).append(index)
    texts = [f"block{'s' * (len(blocks) > 1)} {some(blocks, 6)}: {text}" for text, blocks in found.items()]
    return [*_compare(model, file, "", skip=("layers",)), *texts]


def _compare(one, other, path: str, skip: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(one, RotarySpec) and isinstance(other, RotarySpec):
        if not same_rotation(one, other):
            yield f"rotary embedding {one}, the file's is {other}"
    elif is_dataclass(one) and type(one) is type(other):
        for field in fields(one):
            if field.name not in (*skip, *_NAMES):
                yield from _compare(getattr(one, field.name), getattr(other, field.name), field.name)
    elif isinstance(one, float) and isinstance(other, (int, float)):
        if not math.isclose(one, other, rel_tol=1e-6):  # float32 in the file
            yield f"{path} {one:g}, the file says {other:g}"
    elif one != other:
        yield f"{path} {_short(one)}, the file says {_short(other)}"


def _short(value) -> str:
    return "none" if value is None else type(value).__name__ if is_dataclass(value) else repr(value)
