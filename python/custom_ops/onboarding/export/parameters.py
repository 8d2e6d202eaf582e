"""Parameters of the unified model, one at a time and without the model: exporters stream through them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch
from torch import Tensor

from ..architecture import Architecture
from ..source import Source
from ..weights import Piece, make_plan, meta_model, require_finite


class Parameters:
    """shapes: every parameter's; read(name): its values, in the dtype of the checkpoint, float32 where a norm's offset was added.

    Memory: the parameter that was read last. Raises OnboardingError where the weights do not fit the model, before one is read.
    """

    def __init__(self, source: Source):
        self.source = source
        model = meta_model(source, source.dtype())
        self.architecture: Architecture = model.architecture
        plan = make_plan(source, model)
        plan.require(str(source.checkpoint.folder))
        self.ignored = plan.ignored
        self.shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
        self._pieces: dict[str, list[Piece]] = defaultdict(list)
        for pieces in plan.pieces.values():
            for piece in pieces:
                self._pieces[piece.target].append(piece)

    def read(self, name: str) -> Tensor:
        """Raises OnboardingError where a value is not finite."""
        pieces = self._pieces[name]
        if pieces[0].where is None:
            return self._values(pieces[0]).contiguous()
        result = None
        for piece in pieces:
            values = self._values(piece)
            if result is None:
                result = torch.empty(self.shapes[name], dtype=values.dtype)
            result[piece.where].copy_(values)
            self.source.checkpoint.forget(piece.source)
        return result

    def floats(self, name: str) -> np.ndarray:
        """As read, in float32 as files have it: little-endian, without gaps."""
        return self.read(name).float().contiguous().numpy().astype("<f4", copy=False)

    def forget(self, name: str) -> None:
        """Of the checkpoint: the pages that a parameter came from."""
        for piece in self._pieces[name]:
            self.source.checkpoint.forget(piece.source)

    def _values(self, piece: Piece) -> Tensor:
        values = piece.apply(self.source.checkpoint.read(piece.source))
        require_finite(values, piece.source, self.source.checkpoint.folder)
        return values
