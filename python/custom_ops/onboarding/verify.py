"""LlmModel against transformers: five checkpoints, at a prompt and at the first token after it; and where they differ, why.

Every value of every position is compared. In float32 a checkpoint passes with NMSE <= 1e-8 and a largest difference <= 1e-4 max(1, standard
deviation of the reference); in 16 bits with NMSE <= 1e-3. Both are needed: NMSE does not see a wrong epsilon, the largest difference alone
does not see a small error everywhere. Where the reference does not agree with itself that closely, token by token against the whole prompt
at once, the largest difference may be three times that: in float32 its chunked delta rule is itself up to 2e-4 away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from .._fake import dtype_text
from .errors import OnboardingError
from .locate import Finding, locate, nmse
from .model import LlmModel
from .progress import Progress, untold
from .source import Source, open_source
from .taps import CHECKPOINTS, Reference, checkpoints
from .weights import load

PHASES = ("prefill", "decode")
NMSE = {torch.float32: 1e-8, torch.bfloat16: 1e-3, torch.float16: 1e-3}
MAX_ABS = {torch.float32: 1e-4}  # times max(1, std); 16 bits: NMSE alone
SELF_NOISE, MOST_NOISE = 3.0, 10.0  # of the reference's disagreement with itself; at most ten times MAX_ABS
STEPS = 16  # tokens that LlmModel decodes one by one to be compared with itself


@dataclass(frozen=True)
class Measure:
    """got against want; noise: the reference's largest disagreement with itself at this checkpoint, 0 where it was not needed."""

    phase: str
    checkpoint: str
    max_abs: float
    mean_abs: float
    nmse: float
    std: float
    noise: float
    bound: float  # of max_abs
    nmse_bound: float
    top1: float | None = None  # share of positions with the same best token; of logits

    @property
    def passed(self) -> bool:
        return self.max_abs <= self.bound and self.nmse <= self.nmse_bound  # NaN fails


def measure(phase: str, checkpoint: str, got: Tensor, want: Tensor, noise: float = 0.0) -> Measure:
    dtype = want.dtype
    a, b = got.double(), want.double()
    if a.shape != b.shape:
        raise OnboardingError(f"{phase}, {checkpoint}: LlmModel gives {list(a.shape)}, the reference {list(b.shape)}: not one model")
    difference, std = (a - b).abs(), b.std(correction=0).item()
    bound = float("inf")
    if dtype in MAX_ABS:
        gate = MAX_ABS[dtype] * max(1.0, std)
        bound = max(gate, min(SELF_NOISE * noise, MOST_NOISE * gate))
    top1 = (a.argmax(-1) == b.argmax(-1)).double().mean().item() if checkpoint == "logits" else None
    return Measure(phase, checkpoint, difference.max().item(), difference.mean().item(), nmse(a, b), std, noise, bound, NMSE[dtype], top1)


@dataclass
class Report:
    """measures: five of each phase. consistency: LlmModel, its last STEPS tokens one by one, against itself at once (logits). finding: None
    when all pass."""

    model_dir: str
    model_type: str
    dtype: torch.dtype
    tokens: tuple[int, int]
    measures: list[Measure] = field(default_factory=list)
    consistency: Measure | None = None
    finding: Finding | None = None
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return all(measure.passed for measure in self.all())

    def all(self) -> list[Measure]:
        return self.measures + ([self.consistency] if self.consistency else [])

    def lines(self) -> Iterator[str]:
        """As text."""
        batch, length = self.tokens
        yield f"{self.model_type} {dtype_text(self.dtype)}, {batch} x {length} tokens, against transformers"
        yield f"{'phase':9} {'checkpoint':16} {'max abs':>9} {'allowed':>9} {'mean abs':>9} {'NMSE':>9} {'ref std':>8} {'top-1':>6}"
        for m in self.all():
            top1 = "" if m.top1 is None else f"{m.top1:.3f}"
            yield (f"{m.phase:9} {m.checkpoint:16} {m.max_abs:9.1e} {m.bound:9.1e} {m.mean_abs:9.1e} {m.nmse:9.1e} {m.std:8.3f} {top1:>6}  "
                   f"{'ok' if m.passed else 'DIFFERS'}")
        yield from self.finding.lines() if self.finding else ()
        yield f"{'passed' if self.passed else 'FAILED'} in {self.seconds:.1f} s"

    def __str__(self) -> str:
        return "\n".join(self.lines())


def verify(model_dir: str | Path, *, map_dirs: Iterable[str | Path] = (), dtype: torch.dtype = torch.float32, batch: int = 2,
           length: int = 48, seed: int = 0, tokens: Tensor | None = None, progress: Callable[[str], None] = lambda step: None,
           loading: Progress = untold) -> Report:
    """Loads both models from the folder and compares them.

    Args:
        dtype:  of both models.
        batch, length, seed: of random prompts; `tokens` [B, L] takes their place. The last token is the one that is decoded.
        progress: called with what begins; loading: as `progress` of weights.load, while LlmModel is loaded.
    Raises: OnboardingError where either model cannot be loaded.
    """
    source = open_source(model_dir, map_dirs)
    if tokens is None:
        vocab = source.shape(source.paths.model["embed"] + ".weight")[0]
        tokens = torch.randint(vocab, (batch, length + 1), generator=torch.Generator().manual_seed(seed))
    progress("loading LlmModel")
    model = load(source, dtype=dtype, progress=loading)
    progress("loading transformers' model")
    return compare(model, Reference(source, dtype), source, tokens, progress)


@torch.no_grad()
def compare(model: LlmModel, reference: Reference, source: Source, tokens: Tensor,
            progress: Callable[[str], None] = lambda step: None) -> Report:
    """As verify, of models that are there."""
    progress("comparing")
    begin = time.perf_counter()
    report = Report(str(source.checkpoint.folder), model.architecture.model_type, model.dtype, (tokens.shape[0], tokens.shape[1] - 1))
    pairs = [*_checkpoints(model, reference, tokens), ("steps", "logits", *_steps(model, tokens))]
    measures = [measure(*pair) for pair in pairs]
    if any(m.max_abs > m.bound and m.nmse <= m.nmse_bound for m in measures):  # what only the noise of the reference may excuse
        progress("measuring how far the reference agrees with itself")
        noise = _self_noise(reference, tokens)
        measures = [measure(*pair, noise[pair[1]]) for pair in pairs]
    *report.measures, report.consistency = measures
    if not report.passed:
        progress("looking for the block, the part and the mistake")
        report.finding = locate(model, reference, source, tokens)
    report.seconds = time.perf_counter() - begin
    return report


def _checkpoints(model: LlmModel, reference: Reference, tokens: Tensor) -> Iterator[tuple[str, str, Tensor, Tensor]]:
    """(phase, checkpoint, ours, the reference's)"""
    got, want = _ours(model, tokens), _theirs(reference, tokens)
    yield from ((phase, name, got[phase][name], want[phase][name]) for phase in PHASES for name in CHECKPOINTS)


def _steps(model: LlmModel, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Logits of LlmModel with the last STEPS tokens one by one, and of all at once."""
    memory, first = model.new_memory(len(tokens)), max(1, tokens.shape[1] - STEPS)
    parts = [tokens[:, :first], *tokens[:, first:].split(1, 1)]
    return torch.cat([model(part, memory) for part in parts], 1), model(tokens)


def _ours(model: LlmModel, tokens: Tensor) -> dict[str, dict[str, Tensor]]:
    memory, seen = model.new_memory(len(tokens)), {}
    for phase, part in zip(PHASES, (tokens[:, :-1], tokens[:, -1:])):
        with checkpoints(model) as taps:
            logits = model(part, memory)
        seen[phase] = {**taps, "logits": logits}
    return seen


def _theirs(reference: Reference, tokens: Tensor) -> dict[str, dict[str, Tensor]]:
    cache, seen = None, {}
    for phase, part in zip(PHASES, (tokens[:, :-1], tokens[:, -1:])):
        with reference.checkpoints() as taps:
            logits, cache = reference.run(part, cache)
        seen[phase] = {**taps, "logits": logits}
    return seen


def _self_noise(reference: Reference, tokens: Tensor) -> dict[str, float]:
    """Largest difference between the reference on the whole prompt and token by token, of each checkpoint."""
    cache, steps = None, []
    for token in tokens.split(1, 1):
        with reference.checkpoints() as taps:
            logits, cache = reference.run(token, cache)
        steps.append({**taps, "logits": logits})
    with reference.checkpoints() as taps:
        logits, _ = reference.run(tokens)
    whole = {**taps, "logits": logits}
    return {name: (torch.cat([step[name] for step in steps], 1) - whole[name]).abs().max().item() for name in CHECKPOINTS}
