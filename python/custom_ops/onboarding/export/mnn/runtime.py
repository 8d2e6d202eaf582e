"""An exported file run in MNN, called as an LlmModel is: `Session(MnnModel("model.mnn")).generate(prompt, 64)`."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ...errors import OnboardingError
from .graph import FIRST, LOGITS, TOKENS
from .package import load

WEIGHTS = ".weight"  # behind the graph's name: where MNN looks for them
_MARK = re.compile(rb'\{"custom_ops": (\{[^{}]{1,200}\})\}')


def mark(vocab: int, linear: int, weights: int) -> str:
    """What a file says of itself, in the field that MNN calls bizCode. linear: layers; weights: bytes of the file of weights."""
    return json.dumps({"custom_ops": {"vocab": vocab, "linear": linear, "weights": weights}})


class MnnModel:
    """Args:
    path:    of a file that `export` wrote, its weights beside it.
    threads: of MNN.
    Raises OnboardingError where MNN is not installed, or a file is missing, damaged or of another origin.

    MNN keeps what linear layers carry in their operators, so a model with such layers has one sequence at a time, and that starts again
    or goes on but never goes back; every start reads the file again. Other models have as many memories as are made, and those go back to
    any token.
    """

    device = torch.device("cpu")

    def __init__(self, path: str | Path, threads: int = 1):
        self.path, self.threads = Path(path), threads
        self._nn, self._expr = load("MNN.nn"), load("MNN.expr")
        self._read_mark()
        self._module = self._load()
        info = self._module.get_info()
        self._inputs, self._outputs = info["inputNames"], info["outputNames"]
        self._shapes = {name: list(value.shape) for name, value in zip(self._inputs, info["inputs"]) if name not in (TOKENS, FIRST)}
        self._owner: MnnMemory | None = None  # whose state is in the linear layers
        self._lock = threading.Lock()  # a call is of one owner from its first token to its last

    def _read_mark(self) -> None:
        """Before MNN sees the files: where weights are missing it computes on, with whatever stands in its memory."""
        weights = self.path.with_name(self.path.name + WEIGHTS)
        for path in (self.path, weights):
            if not path.is_file():
                raise OnboardingError(f"{path}: no such file")
        try:
            said = json.loads(_MARK.search(self.path.read_bytes())[1])
            self.vocab, self.linear, nbytes = (int(said[key]) for key in ("vocab", "linear", "weights"))
        except (ValueError, KeyError, TypeError):
            raise OnboardingError(f"{self.path}: was not written by custom-ops onboard export") from None
        if weights.stat().st_size != nbytes:
            raise OnboardingError(f"{weights}: has {weights.stat().st_size} bytes, {self.path.name} goes with {nbytes}")

    def _load(self):
        try:  # no names: all inputs and outputs, in the order of get_info
            return self._nn.load_module_from_file(str(self.path), [], [], rearrange=True, thread_num=self.threads,
                                                  precision_mode=self._expr.PrecisionMode.High)
        except SystemError:  # MNN's binding for every failure, whose reason it prints
            raise OnboardingError(f"{self.path}: MNN cannot load it") from None

    def new_memory(self) -> MnnMemory:
        return MnnMemory(self)

    def __call__(self, tokens: Tensor, memory: MnnMemory | None = None, *, last_only: bool = False) -> Tensor:
        """Logits [1, L, vocab] float32; with last_only [1, 1, vocab].

        tokens: [1, L] integers; memory: continued and written, without one the sequence starts here.
        """
        if tokens.dim() != 2 or tokens.shape[0] != 1 or tokens.shape[1] < 1 or tokens.is_floating_point():
            raise RuntimeError(f"MnnModel: tokens must be [1, L] integers with L >= 1, got {list(tokens.shape)} {tokens.dtype}")
        low, high = tokens.min().item(), tokens.max().item()
        if low < 0 or high >= self.vocab:
            raise RuntimeError(f"MnnModel: tokens must be 0 to {self.vocab - 1}, got {low} to {high}")
        memory = self.new_memory() if memory is None else memory
        ids = tokens[0].numpy().astype(np.int32)
        with self._lock:
            self._take_over(memory)
            logits = [self._run(piece, memory, last_only) for piece in self._pieces(ids, memory)]
        return torch.from_numpy(logits[-1] if last_only else np.concatenate(logits, 1))

    def _take_over(self, memory: MnnMemory) -> None:
        """Makes sure that the linear layers hold the memory's state. MNN has no call that empties them: they are loaded anew."""
        if self.linear and not memory.length and self._owner is not None:
            self._module = None  # before the next one: two would be in memory
            self._module = self._load()
        elif self.linear and memory.length and self._owner is not memory:
            raise RuntimeError("MnnModel: another sequence has taken the state of the linear layers, of which MNN has one; start again "
                               "with memory.reset()")
        self._owner = memory

    def _pieces(self, ids: np.ndarray, memory: MnnMemory) -> list[np.ndarray]:
        """A call of several tokens is a prompt to linear layers: those that continue one come alone."""
        return np.split(ids, len(ids)) if self.linear and memory.length else [ids]

    def _run(self, ids: np.ndarray, memory: MnnMemory, last_only: bool) -> np.ndarray:
        expr, first = self._expr, len(ids) - 1 if last_only else 0
        feeds = {TOKENS: expr.const(ids[None], [1, len(ids)], expr.NCHW, expr.int),
                 FIRST: expr.const(np.array([first], np.int32), [1], expr.NCHW, expr.int), **memory.caches()}
        values = self._module.forward([feeds[name] for name in self._inputs])
        if len(values) != len(self._outputs):
            raise RuntimeError(f"MnnModel: MNN cannot run {self.path}")
        results = dict(zip(self._outputs, values))
        logits = results[LOGITS].read().copy()
        memory.keep({name: results[f"{name}.next"] for name in self._shapes}, memory.length + len(ids))
        return logits


class MnnMemory:
    """Of one sequence. kind: "none" | "kv" | "recurrent" | "hybrid", as of Architecture (a sliding window is a mask here)."""

    batch = 1

    def __init__(self, model: MnnModel):
        self._model = model
        self.kind = ("hybrid" if model.linear else "kv") if model._shapes else "recurrent" if model.linear else "none"
        self.reset()

    @property
    def lengths(self) -> list[int]:
        return [self.length]

    def reset(self) -> None:
        self.length, self._caches = 0, None

    def caches(self) -> dict[str, object]:
        """Variables of MNN by the names of the graph's inputs."""
        if self._caches is None:
            expr = self._model._expr
            return {name: expr.placeholder([*shape[:2], 0, shape[3]], expr.NCHW) for name, shape in self._model._shapes.items()}
        return self._caches

    def keep(self, caches: dict[str, object], length: int) -> None:
        self._caches, self.length = caches, length

    def nbytes(self) -> int:
        """Of keys and values."""
        return sum(4 * int(np.prod(value.shape)) for value in (self._caches or {}).values())

    # --- going back, as a Session asks

    def snapshot(self) -> None:
        """Nothing: see MnnModel."""

    def snapshot_lengths(self) -> list[None]:
        return [None]

    def can_rollback(self, length: int) -> bool:
        return length in (0, self.length) or not self._model.linear and 0 < length < self.length

    def rollback(self, length: int) -> None:
        """To the first `length` tokens."""
        if not self.can_rollback(length):
            raise RuntimeError(f"MnnMemory: {self.length} tokens go back to none" + ("" if self._model.linear else " or more") +
                               f", not to {length}")
        if length == 0:
            self.reset()
        elif length < self.length:
            expr = self._model._expr
            cut = {name: value.read()[:, :, :length] for name, value in self._caches.items()}
            self.keep({name: expr.const(np.ascontiguousarray(value), list(value.shape), expr.NCHW) for name, value in cut.items()}, length)
