"""The weights of an MNN file, which stand in a file beside it: where, and streamed there parameter by parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from .. import Report
from ...architecture import Architecture
from ..parameters import Parameters
from .graph import Graph, Matrix, Normed

_FLOAT = 4  # bytes
EMBEDDING = "embed.weight"


@dataclass(frozen=True)
class _Place:
    """copies: matrices in the parameter, each `weights` bytes and then `biases` bytes of its bias, which are zeros where it has none."""

    offset: int
    copies: int
    weights: int
    biases: int = 0
    bias: str | None = None

    @property
    def nbytes(self) -> int:
        return self.copies * (self.weights + self.biases)


class Weights:
    """shapes: of the parameters, as of Parameters. Everything is float32; a tied head has the embedding's place."""

    def __init__(self, architecture: Architecture, shapes: Mapping[str, tuple[int, ...]], graph: Graph):
        self.shapes = shapes
        self._same = {"lm.weight": EMBEDDING} if architecture.tied else {}
        self._places: dict[str, _Place] = {}
        self.nbytes = 0
        matrices = {self._name(matrix.weight): matrix for matrix in graph.matrices.values()}
        for name in dict.fromkeys((*graph.embeddings.values(), *matrices)):
            matrix, size = matrices.get(name), math.prod(shapes[name]) * _FLOAT
            copies = 1 if matrix is None or matrix.expert is None else shapes[name][0]
            biases, bias = (0, None) if matrix is None else (matrix.outputs * _FLOAT, matrix.bias)
            self._add(name, copies, size // copies, biases, bias)
        for norm in graph.norms.values():
            self._add(norm.weight, 1, norm.size * _FLOAT, 0 if norm.bias is None else norm.size * _FLOAT, norm.bias)
        for name in graph.parameters:
            self._add(name, 1, math.prod(shapes[name]) * _FLOAT)

    def _add(self, name: str, *sizes) -> None:
        self._places[name] = _Place(self.nbytes, *sizes)
        self.nbytes += self._places[name].nbytes

    def _name(self, name: str) -> str:
        return self._same.get(name, name)

    def names(self) -> set[str]:
        """Parameters that are in the file."""
        return {*self._places, *self._same, *(place.bias for place in self._places.values() if place.bias)}

    def of(self, node: Matrix | Normed) -> list[int]:
        """[offset, bytes of the weight, bytes of the bias behind it]"""
        place = self._places[self._name(node.weight)]
        expert = node.expert if isinstance(node, Matrix) else None
        return [place.offset + (expert or 0) * (place.weights + place.biases), place.weights, place.biases]

    def tensor(self, name: str) -> list[int]:
        """[offset, bytes]"""
        return [self._places[name].offset, self._places[name].weights]

    def write(self, stream: BinaryIO, parameters: Parameters, report: Report) -> None:
        for done, (name, place) in enumerate(self._places.items(), 1):
            values = parameters.floats(name).reshape(place.copies, -1)
            biases = np.zeros((place.copies, place.biases // _FLOAT), "<f4")
            if place.bias is not None:
                biases[:] = parameters.floats(place.bias).reshape(biases.shape)
                parameters.forget(place.bias)
            for value, bias in zip(values, biases):
                stream.write(value.data)
                stream.write(bias.data)
            parameters.forget(name)
            report.progress(done, len(self._places))
        report.tensors = len(self._places)
