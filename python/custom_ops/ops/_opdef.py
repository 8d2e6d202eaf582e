"""A call in the terms of an OpDef: what simulate() hands to the op package."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class OpDefCall:
    op_type: str
    inputs: dict[str, Tensor | None]     # contiguous, in OpDef order; None: an optional one that is not given
    attributes: dict[str, int | float | bool | str]  # in OpDef order
    outputs: dict[str, Tensor | None]    # uninitialised, to be filled; in OpDef order. One with an input's name is that input, written in place

    def result(self) -> Tensor | tuple[Tensor, ...]:
        """What the torch operator returns."""
        tensors = tuple(tensor for name, tensor in self.outputs.items() if name not in self.inputs)
        return tensors[0] if len(tensors) == 1 else tensors
