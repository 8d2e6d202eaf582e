"""A checkpoint with its family, its configuration's values and the places of its parts: what build.py and weights.py start from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import mapping
from .checkpoint import FLOATS, Checkpoint
from .errors import OnboardingError, some
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

    @property
    def model_type(self) -> str:
        """Of config.json; the map's first id for the families that write none."""
        return self.checkpoint.config.get("model_type") or self.family.ids[0]

    def has(self, name: str) -> bool:
        return name in self.checkpoint.tensors

    def shape(self, name: str) -> tuple[int, ...]:
        return self.checkpoint.tensors[name].shape

    def dtype(self):
        """torch dtype of the embedding, taken as the model's."""
        return self.checkpoint.tensors[self.paths.model["embed"] + ".weight"].torch_dtype


def open_source(model_dir: str | Path, map_dirs: Iterable[str | Path] = ()) -> Source:
    """Headers and config.json only. Raises OnboardingError where anything that the model needs is missing or contradictory."""
    checkpoint = Checkpoint(model_dir)
    config, where = checkpoint.config, str(model_dir)
    if method := quantisation(config):
        raise OnboardingError(f"{where}: {method}; convert the weights to floats")
    family = mapping.identify(mapping.load_maps(map_dirs), config)
    if family.unsupported:
        raise OnboardingError(f"{where}: {config.get('model_type', family.ids[0])} has what LlmModel does not: {family.unsupported}")
    found = resolve_config(family, config)
    require(found.report, where)
    paths = resolve_names(family, checkpoint.names, found)
    require(paths.report, where)
    source = Source(checkpoint, family, found, paths, resolve_ropes(config, family, found))
    wrong = not_floating({info.name: info.dtype for info in checkpoint.tensors.values()}, paths)
    if wrong:
        shown = some([f"{name} {dtype}" for name, dtype in wrong])
        raise OnboardingError(f"{where}: weights must be one of {', '.join(FLOATS)}: {shown}; convert them to floats")
    return source


def quantisation(config: Mapping) -> str:
    """What is quantised, as a sentence; "" where nothing is."""
    stated = config.get("quantization_config")
    method = stated.get("quant_method", "?") if isinstance(stated, Mapping) else "?"
    return f"config.json quantization_config: quantised weights ({method!r:.40}) are not read" if stated else ""


def not_floating(dtypes: Mapping[str, str], paths: Paths) -> list[tuple[str, str]]:
    """(name, dtype) of the tensors that a model uses and that hold something else than floats."""
    unused = set(paths.unused)
    return [(name, dtype) for name, dtype in dtypes.items() if dtype not in FLOATS and name not in unused]
