"""A GGUF file into LlmModel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ...architecture import Architecture
from ...errors import OnboardingError, require_none
from ...model import LlmModel
from ...weights import require_finite
from . import container, families
from .keys import Keys
from .rope import FACTORS, with_factors
from .storage import decode
from .tensors import rows


class GgufFile:
    """Keys and tensors of a file; the tensors stay in the file until they are read.

    values: key -> number, text or list; the vocabulary's are left out unless `words` is set. tensors: name -> Place.
    Raises OnboardingError for a file that is damaged; see container.py.
    """

    def __init__(self, path: str | Path, words: bool = False):
        self.path = Path(path)
        if not self.path.is_file():
            raise OnboardingError(f"{self.path}: no such file")
        self.values, self.tensors = container.read(self.path, words)
        self.shapes = {name: place.shape for name, place in self.tensors.items()}

    def read(self, name: str) -> torch.Tensor:
        """float32, shape as torch counts."""
        place = self.tensors[name]
        data = np.fromfile(self.path, np.uint8, place.end - place.begin, offset=place.begin)
        return decode(data, place.kind, place.shape, f"{self.path}: {name}")


def architecture(file: GgufFile) -> Architecture:
    """Raises OnboardingError where the architecture is not read here or a key is missing."""
    arch = file.values.get("general.architecture")
    result = families.of_file(arch).read(Keys(arch, file.values, str(file.path)), file.shapes)
    if FACTORS in file.tensors:
        factors = file.read(FACTORS).tolist()
        result = result.with_layers(lambda layer: replace(layer, mixer=replace(
            layer.mixer, rotary=with_factors(layer.mixer.rotary, factors))))
    return result


def load(path: str | Path, *, dtype: torch.dtype = torch.float32, device=None) -> LlmModel:
    """The LlmModel of a GGUF file of an architecture in families.py; quantised tensors are decoded.

    Raises OnboardingError where a parameter has no tensor, a tensor no parameter, a shape does not fit or a value is not finite.
    """
    file = GgufFile(path)
    found = architecture(file)
    try:
        model = LlmModel(found, device="meta", dtype=dtype)
    except RuntimeError as error:  # sizes whose product no tensor has
        raise OnboardingError(f"{file.path}: its keys describe no model: {error}") from None
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    table = rows(file.values["general.architecture"], model.architecture, shapes)
    _require_fit(file, {row.gguf: row.shape(shapes) for row in table})
    model.to_empty(device=device or "cpu")
    model.tie()
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for row in table:
            for name, values in zip(row.parameters, row.backward(file.read(row.gguf))):
                require_finite(values, row.gguf, file.path)
                parameters[name].copy_(values)
    return model.eval().requires_grad_(False)


def _require_fit(file: GgufFile, wanted: Mapping[str, tuple[int, ...]]) -> None:
    missing = [name for name in wanted if name not in file.shapes]
    unused = [name for name in file.shapes if name not in wanted and name != FACTORS]
    wrong = [f"{name} {list(file.shapes[name])}, expected {list(shape)}" for name, shape in wanted.items()
             if name in file.shapes and file.shapes[name] != shape]
    require_none(f"{file.path}: the tensors do not fit the model",
                 {"missing tensors": missing, "unused tensors": unused, "wrong shapes": wrong})
