"""A checkpoint with its family, its configuration's values and the places of its parts: what build.py and weights.py start from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import mapping
from .checkpoint import FLOATS, Checkpoint
from .errors import OnboardingError
from .mapping import FamilyMap
from .names import Paths, resolve_names
from .report import ConfigValues, require
from .resolve import resolve_config
from .rope import Rope, resolve_ropes


@dataclass(frozen=True)
class Source:
    checkpoint: Checkpoint
    family: FamilyMap
    found: ConfigValues
    paths: Paths
    ropes: dict[str, Rope]

    def has(self, name: str) -> bool:
        return name in self.checkpoint.tensors

    def shape(self, name: str) -> tuple[int, ...]:
        return self.checkpoint.tensors[name].shape

    def dtype(self):
        """torch dtype of the embedding, taken as the model's."""
        import torch

        from .checkpoint import DTYPES

        return getattr(torch, DTYPES[self.checkpoint.tensors[self.paths.model["embed"] + ".weight"].dtype][0])


def open_source(model_dir: str | Path, map_dirs: Iterable[str | Path] = ()) -> Source:
    """Headers and config.json only. Raises OnboardingError where anything that the model needs is missing or contradictory."""
    checkpoint = Checkpoint(model_dir)
    config, where = checkpoint.config, str(model_dir)
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        raise OnboardingError(f"{checkpoint.folder / 'config.json'}: model_type must be a name, is {model_type!r:.80}")
    if "quantization_config" in config:
        raise OnboardingError(f"{where}: quantised checkpoints (quantization_config) are not read; convert the weights to floats")
    family = mapping.family(model_type, map_dirs, config)
    if family.unsupported:
        raise OnboardingError(f"{where}: {model_type} has what LlmModel does not: {family.unsupported}")
    found = resolve_config(family, config)
    require(found.report, where)
    paths = resolve_names(family, checkpoint.names, found)
    require(paths.report, where)
    source = Source(checkpoint, family, found, paths, resolve_ropes(config, family, found))
    _check_dtypes(source)
    return source


def _check_dtypes(source: Source) -> None:
    wrong = [info for info in source.checkpoint.tensors.values() if info.dtype not in FLOATS and info.name not in source.paths.unused]
    if wrong:
        shown = ", ".join(f"{info.name} {info.dtype}" for info in wrong[:3])
        raise OnboardingError(f"{source.checkpoint.folder}: weights must be one of {', '.join(FLOATS)}: {shown}"
                              f"{f' and {len(wrong) - 3} more' if len(wrong) > 3 else ''}")
