"""tensors.toml for one model: which GGUF tensor holds which parameters, changed how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from ...architecture import Architecture
from ...errors import OnboardingError, some
from ...mapping import tomllib
from .transforms import TRANSFORMS, Transform

_FILE = Path(__file__).with_name("tensors.toml")


@dataclass(frozen=True)
class Row:
    """One GGUF tensor. mixer: specification of its block's attention, None outside the blocks."""

    gguf: str
    parameters: tuple[str, ...]
    transform: Transform
    mixer: object = None

    def shape(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
        """Of the GGUF tensor, as torch counts; shapes: of the parameters."""
        return tuple(self.forward([torch.empty(shapes[name], device="meta") for name in self.parameters]).shape)

    def forward(self, parameters: list[Tensor]) -> Tensor:
        return self.transform.forward(parameters, self.mixer)

    def backward(self, tensor: Tensor) -> list[Tensor]:
        return self.transform.backward(tensor, self.mixer)


@cache
def _table() -> dict:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


@cache
def always_f32() -> frozenset[str]:
    """Names without blk.N."""
    return frozenset(_table()["f32"])


def sections(arch: str) -> dict[str, dict]:
    """"model" and "block" of an architecture, inheritance applied: GGUF name -> entry."""
    own = _table()[arch]
    base = sections(own["inherit"]) if "inherit" in own else _table()
    merged = {part: {**base[part], **own.get(part, {})} for part in ("model", "block")}
    return {part: {name: entry for name, entry in entries.items() if entry} for part, entries in merged.items()}


def rows(arch: str, architecture: Architecture, parameters: Iterable[str]) -> list[Row]:
    """The tensors of a model with these parameters. Raises OnboardingError where a parameter has no place in the architecture."""
    parameters = set(parameters)
    table = sections(arch)
    found = [_row(name, entry) for name, entry in table["model"].items()]
    for index, layer in enumerate(architecture.layers):
        found += [_row(name, entry, index, layer.mixer) for name, entry in table["block"].items()]
    found = [row for row in found if parameters.issuperset(row.parameters)]
    homeless = parameters.difference(*(row.parameters for row in found))
    if homeless:
        raise OnboardingError(f"GGUF architecture {arch!r} has no tensor for {some(sorted(homeless))}")
    return found


def _row(name: str, entry, index: int | None = None, mixer=None) -> Row:
    sources, by = (entry["from"], entry["by"]) if isinstance(entry, Mapping) else ([entry], "same")
    if index is not None:
        name, sources = f"blk.{index}.{name}", [f"blocks.{index}.{source}" for source in sources]
    return Row(name, tuple(sources), TRANSFORMS[by], mixer)
