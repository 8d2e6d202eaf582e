"""What all layers of one forward share: positions, rotations, masks, and the memory."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..architecture import Span
from .kv import Plan, Visible, visible
from .memory import Memory
from .rotary import Rotary


class Call:
    """Args:
    batch, length: of the tokens.
    starts:        padding tokens before the first token of each row.
    mask:          [B, L] bool, False at padding; None where this call has none.
    """

    def __init__(self, batch: int, length: int, memory: Memory | None, starts: Sequence[int], mask: Tensor | None, device,
                 dtype):
        self.batch, self.length, self.memory, self.starts, self.mask = batch, length, memory, list(starts), mask
        self.device, self.dtype = device, dtype
        self.shared: dict[int, tuple[Tensor, Tensor, Visible]] = {}  # keys and values of layers whose own later layers use, by layer
        self.layer_inputs: Tensor | None = None  # [B, L, layers, size], set by LlmModel
        self.is_step = False  # one token in each of few rows on the CPU: see step.py; set by LlmModel
        self.before = memory.lengths if memory is not None else [0] * batch
        self._rotations: dict[int, tuple[Tensor, Tensor]] = {}
        self._plans: dict[Span, Plan] = {}
        self._visible: dict[Span, Visible] = {}
        self._positions = self._count_positions()

    def _count_positions(self) -> Tensor | None:
        """[B, L], token 0 the first that is not padding; None where the rows agree and are counted from `before`."""
        first = [have - start for have, start in zip(self.before, self.starts)]
        if len(set(first)) == 1 and first[0] >= 0:
            return None
        positions = torch.tensor(first).unsqueeze(1) + torch.arange(self.length)
        return positions.clamp(min=0).to(self.device)  # padding has none

    def positions(self) -> Tensor:
        """[L] int64, or [B, L] where rows differ."""
        if self._positions is not None:
            return self._positions
        return self.before[0] - self.starts[0] + torch.arange(self.length, device=self.device)

    def rotation(self, rotary: Rotary) -> tuple[Tensor, Tensor]:
        """Cosines and sines of this call's tokens."""
        found = self._rotations.get(id(rotary))
        if found is None:
            first = [have - start for have, start in zip(self.before, self.starts)]
            end = max(1, max(first) + self.length)
            found = self._rotations[id(rotary)] = rotary.tables(max(0, first[0]), end, self.device, self.dtype, self._positions)
        return found

    def remember(self, layer: int, span: Span, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Visible]:
        """Keys and values that the queries of this call see, those of the memory before k, v [B, kv_heads, L, d]."""
        if self.memory is None:
            if span not in self._visible:
                zeros = [0] * self.batch
                self._visible[span] = visible(span, zeros, self.length, zeros, self.length, self.starts, self.device)
            return k, v, self._visible[span]
        plan = self._plan(span)
        return *self.memory.store(span).remember(layer, plan, k, v), plan.visible

    def slot(self, layer: int, span: Span) -> tuple[Tensor, Tensor, int, int] | None:
        """(keys, values [B, kv_heads, capacity, d], the first slot that is seen, the slot of this call's one token) of the memory, to be
        written there; None where rows differ or the memory has to be moved."""
        plan = self._plan(span)
        if self._positions is not None or plan.shift is not None or plan.keep is not None or plan.visible.mask is not None:
            return None
        return *self.memory.store(span).rows(layer, plan), plan.low, plan.used[0]

    def _plan(self, span: Span) -> Plan:
        plan = self._plans.get(span)
        if plan is None:
            plan = self._plans[span] = self.memory.plan(span, self.length, self.starts, self.device)
        return plan

    def finish(self) -> None:
        if self.memory is not None:
            self.memory.commit(self._plans, self.length, self.starts)
