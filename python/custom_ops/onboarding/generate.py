"""Text from a model: prompts with shared beginnings are read once, tokens come as they are drawn, and how fast."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from .model import LlmModel, Memory
from .sampling import Sampling

GREEDY = Sampling()


@dataclass
class Speed:
    """prompt: tokens that were read, without those a snapshot held; reused: those. Seconds are measured, wall clock."""

    prompt: int = 0
    reused: int = 0
    prompt_seconds: float = 0.0
    tokens: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        reading = f"{self.prompt} prompt tokens in {self.prompt_seconds:.2f} s"
        reading += f" ({self.prompt / self.prompt_seconds:.1f}/s)" if self.prompt_seconds else ""
        reading += f", {self.reused} reused" if self.reused else ""
        writing = f"{self.tokens} tokens in {self.seconds:.2f} s" + (f" ({self.tokens / self.seconds:.1f}/s)" if self.seconds else "")
        return f"{reading}; {writing}"


@dataclass
class Session:
    """One sequence that goes on, or starts again from what it shares with the last one.

    A snapshot is taken at the end of every prompt: the next prompt that begins with the same tokens continues from there. Models without
    recurrent layers go back to any token in common. model: an LlmModel, or an MnnModel, which goes back as its memory can.

    Example:
        >>> session = Session(model)                                               # doctest: +SKIP
        >>> for token in session.generate(prompt, 64, Sampling(0.7, top_p=0.9)): ...
    """

    model: LlmModel
    memory: Memory | None = None  # a new one
    tokens: list[int] = field(default_factory=list)  # in the memory
    speed: Speed = field(default_factory=Speed)

    def __post_init__(self):
        self.memory = self.memory or self.model.new_memory()

    def read(self, prompt: Sequence[int]) -> torch.Tensor:
        """Logits [vocab] after the prompt, which then is what the memory holds. At least one token."""
        prompt = list(prompt)
        if not prompt:
            raise ValueError("a prompt has at least one token")
        kept = self._go_back(prompt)
        begin = time.perf_counter()
        logits = self.model(torch.tensor([prompt[kept:]], device=self.model.device), self.memory, last_only=True)[0, -1]
        self.speed = Speed(len(prompt) - kept, kept, time.perf_counter() - begin)
        self.tokens = prompt
        self.memory.snapshot()
        return logits

    def _go_back(self, prompt: list[int]) -> int:
        """Takes the memory back to what it has in common with the prompt, the last token left out: its logits are needed."""
        common = next((i for i, (old, new) in enumerate(zip(self.tokens, prompt)) if old != new), min(len(self.tokens), len(prompt)))
        common = min(common, len(prompt) - 1)
        snapshot = self.memory.snapshot_lengths()[0]
        points = [length for length in (common, snapshot) if length is not None and length <= common]
        length = next((point for point in points if self.memory.can_rollback(point)), 0)
        self.memory.rollback(length)
        return length

    @torch.no_grad()
    def generate(self, prompt: Sequence[int], count: int, sampling: Sampling = GREEDY, *, stops=frozenset(),
                 seed: int = 0) -> Iterator[int]:
        """Up to `count` tokens after the prompt, one by one; ends before a token of `stops`."""
        rng = torch.Generator(self.model.device).manual_seed(seed)
        logits = self.read(prompt)
        begin = time.perf_counter()
        for drawn in range(count):
            token = sampling.draw(logits, self.tokens, rng)
            if token in stops:
                return
            yield token
            if drawn + 1 < count:
                logits = self.model(torch.tensor([[token]], device=self.model.device), self.memory, last_only=True)[0, -1]
                self.tokens.append(token)
            self.speed.tokens, self.speed.seconds = drawn + 1, time.perf_counter() - begin
