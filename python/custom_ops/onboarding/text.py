"""The tokenizer of a model directory: text to tokens and back, piece by piece, and the tokens a model stops at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .checkpoint import read_config, read_json
from .errors import OnboardingError, load


class Text:
    """The tokenizer that stands beside the weights, by transformers' AutoTokenizer; its code is never run.

    stops: ids of eos_token_id in generation_config.json and config.json, and the tokenizer's own.
    """

    def __init__(self, model_dir: str | Path):
        self.folder = Path(model_dir)
        transformers = load("transformers")
        if not any((self.folder / name).exists() for name in ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")):
            raise OnboardingError(f"{self.folder}: no tokenizer (tokenizer.json)")
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, trust_remote_code=False, local_files_only=True)
        except (ValueError, OSError) as error:
            raise OnboardingError(f"{self.folder}: the tokenizer cannot be loaded: {error}") from error
        self.stops = self._stops()

    def _stops(self) -> frozenset[int]:
        configs = [read_config(self.folder)]
        if (self.folder / "generation_config.json").exists():
            configs.append(read_json(self.folder / "generation_config.json"))
        found = {self.tokenizer.eos_token_id}
        for config in configs:
            value = config.get("eos_token_id") or config.get("text_config", {}).get("eos_token_id")
            found.update(value if isinstance(value, list) else [value])
        return frozenset(value for value in found if isinstance(value, int))

    def encode(self, text: str, special: bool = True) -> list[int]:
        """special: with the tokens that the tokenizer puts around a text."""
        return self.tokenizer.encode(text, add_special_tokens=special)

    def chat(self, message: str, system: str | None = None) -> list[int]:
        """A user's message in the model's own template, up to where the model answers."""
        if not self.tokenizer.chat_template:
            raise OnboardingError(f"{self.folder}: the tokenizer has no chat template")
        turns = [{"role": "system", "content": system}] if system else []
        turns.append({"role": "user", "content": message})
        return self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=True, return_dict=False)

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=True)


class Stream:
    """Tokens to text as they come: a piece is given when its characters are whole."""

    #: Tokens that are decoded again with a new one: spaces and accents depend on what stands before, not on the whole text.
    BEFORE = 8

    def __init__(self, text: Text):
        self.text, self.ids, self.given = text, [], 0

    def put(self, token: int) -> str:
        """What can be shown now."""
        self.ids.append(token)
        return self._new(final=False)

    def end(self) -> str:
        return self._new(final=True)

    def _new(self, final: bool) -> str:
        start = max(0, self.given - self.BEFORE)
        whole, shown = self.text.decode(self.ids[start:]), self.text.decode(self.ids[start : self.given])
        if not final and whole.endswith("\ufffd"):  # the first bytes of a character
            return ""
        self.given = len(self.ids)
        return whole[len(shown) :]
