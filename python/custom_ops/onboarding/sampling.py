"""Which token comes next: greedy, or drawn after the usual restrictions of the distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .errors import not_finite

#: Below it 1 / temperature leaves float32; logits that differ at all are then a certainty apart.
_COLDEST = 1e-30


@dataclass(frozen=True)
class Sampling:
    """Applied in this order, as transformers does.

    repetition_penalty: logits of tokens that were there are divided by it where positive, multiplied where negative; 1 changes nothing.
    temperature:        logits are divided by it; 0 takes the best token, whatever else is asked for.
    top_k:              the k best tokens; 0 all.
    top_p:              the fewest best tokens with this probability together; 1 all.
    min_p:              tokens with this share of the best one's probability; 0 all.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def __post_init__(self):
        for name, fits, range_ in (("temperature", self.temperature >= 0, ">= 0"), ("top_k", self.top_k >= 0, ">= 0"),
                                   ("top_p", 0 < self.top_p <= 1, "above 0 and at most 1"), ("min_p", 0 <= self.min_p <= 1, "0 to 1"),
                                   ("repetition_penalty", 1e-3 <= self.repetition_penalty <= 1e3, "0.001 to 1000")):
            if not fits:
                raise ValueError(f"{name} must be {range_}, got {getattr(self, name)}")

    def probabilities(self, logits: Tensor, seen: Sequence[int] = ()) -> Tensor:
        """[vocab] float32 of logits [vocab]; those of tokens that are left out are 0. With temperature 0 all on the best token."""
        logits = logits.float()
        if self.repetition_penalty != 1 and len(seen):
            index = torch.tensor(sorted(set(seen)), device=logits.device)
            values, penalty = logits[index], self.repetition_penalty
            logits = logits.index_copy(0, index, torch.where(values > 0, values / penalty, values * penalty))
        if self.temperature == 0:
            return torch.zeros_like(logits).index_fill_(0, logits.argmax(), 1.0)
        logits = (logits - logits.max()) / max(self.temperature, _COLDEST)  # at most 0: no temperature overflows
        if 0 < self.top_k < len(logits):
            logits = logits.masked_fill(logits < logits.topk(self.top_k).values[-1], float("-inf"))
        if self.top_p < 1:
            logits = self._nucleus(logits)
        probabilities = logits.softmax(-1)
        if self.min_p > 0:
            probabilities = probabilities.masked_fill(probabilities < self.min_p * probabilities.max(), 0)
            probabilities = probabilities / probabilities.sum()
        return probabilities

    def _nucleus(self, logits: Tensor) -> Tensor:
        ordered, index = logits.sort(descending=True)
        shares = ordered.softmax(-1)
        before = shares.cumsum(-1) - shares  # of the better ones: the one that reaches top_p stays
        return logits.index_fill(0, index[before >= self.top_p], float("-inf"))

    def draw(self, logits: Tensor, seen: Sequence[int] = (), rng: torch.Generator | None = None) -> int:
        """A token under logits [vocab]. Raises OnboardingError where one of them is not finite."""
        if not logits.isfinite().all():
            raise not_finite("the model's logits are", logits.dtype)
        probabilities = self.probabilities(logits, seen)
        return int(probabilities.argmax() if self.temperature == 0 else torch.multinomial(probabilities, 1, generator=rng))
