"""A call in the terms of an OpDef: what simulate() hands to the op package."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class OpDefCall:
    op_type: str
    inputs: dict[str, Tensor]            # contiguous, in OpDef order
    attributes: dict[str, int | float]   # in OpDef order
    outputs: dict[str, Tensor]           # uninitialised, to be filled; in OpDef order

    def result(self) -> Tensor | tuple[Tensor, ...]:
        """What the torch operator returns."""
        tensors = tuple(self.outputs.values())
        return tensors[0] if len(tensors) == 1 else tensors
