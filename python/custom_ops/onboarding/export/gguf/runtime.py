"""A GGUF file run in llama.cpp, in a process of its own: ggml's assertions end the process they fail in."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import OnboardingError

# Run as text: a script's own folder would come first among the places that modules are taken from.
_CHILD = Path(__file__).with_name("llama_child.py").read_text(encoding="utf-8")


class LlamaCpp:
    """Args:
    path:    of a GGUF file.
    timeout: seconds for one call of a method, which starts a process and loads the file.
    threads: of llama.cpp.
    Raises OnboardingError where llama_cpp is not installed, or with llama.cpp's last words where it fails, ends itself or takes too long.
    """

    def __init__(self, path: str | Path, timeout: float = 120.0, threads: int = 1):
        if importlib.util.find_spec("llama_cpp") is None:
            raise OnboardingError("running GGUF files needs llama-cpp-python: pip install 'custom_ops[llama-cpp]'")
        self.path, self.timeout, self.threads = Path(path), timeout, threads

    def logits(self, *runs: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """A run: the tokens of one sequence, call after call, so [prompt, [token], [token]] is prefill and decode. [tokens, vocab] each."""
        return self._run([{"calls": [[list(map(int, call))] for call in run], "threads": self.threads} for run in runs])

    def together(self, *calls: Sequence[Sequence[int]]) -> np.ndarray:
        """A call: the tokens of all sequences, which share a batch. [all tokens, vocab], sequence after sequence."""
        return self._run([{"calls": [[list(map(int, tokens)) for tokens in call] for call in calls], "threads": self.threads}])[0]

    def tokens(self, *texts: str, special: bool = True) -> list[list[int]]:
        """Ids of texts, with what the tokenizer puts around them. special: control tokens in a text are those tokens."""
        return [ids.tolist() for ids in self._run([{"text": text, "special": special} for text in texts])]

    def _run(self, jobs: list[dict]) -> list[np.ndarray]:
        try:
            done = subprocess.run([sys.executable, "-c", _CHILD, str(self.path)], input=json.dumps(jobs).encode(), capture_output=True,
                                  timeout=self.timeout, env={**os.environ, "GGML_NO_BACKTRACE": "1"})
        except subprocess.TimeoutExpired:
            raise OnboardingError(f"{self.path}: llama.cpp did not finish in {self.timeout:g} s") from None
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().splitlines()[-6:]
            raise OnboardingError("\n  ".join([f"{self.path}: llama.cpp ended with {done.returncode}:", *words]))
        with np.load(io.BytesIO(done.stdout)) as results:
            return [results[str(number)] for number in range(len(jobs))]
