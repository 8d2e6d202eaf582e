"""The tokenizer of a model directory: text to tokens and back, piece by piece, and the tokens a model stops at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .checkpoint import read_config, read_object
from .errors import OnboardingError, first_line, load


class Text:
    """The tokenizer that stands beside the weights, by transformers' AutoTokenizer; its code is never run.

    stops: ids of eos_token_id in generation_config.json and config.json, and the tokenizer's own.
    Raises OnboardingError where there is no tokenizer, or transformers cannot load it.
    """

    def __init__(self, model_dir: str | Path):
        self.folder = Path(model_dir)
        configs = [read_config(self.folder)]
        if (self.folder / "generation_config.json").exists():
            configs.append(read_object(self.folder / "generation_config.json"))
        transformers = load("transformers")
        if not any((self.folder / name).exists() for name in ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")):
            raise OnboardingError(f"{self.folder}: no tokenizer (tokenizer.json)")
        logger = transformers.utils.logging
        shown = logger.get_verbosity()
        logger.set_verbosity_error()  # it warns of a model_type that it has no model for; a tokenizer is all that is asked for
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, trust_remote_code=False, local_files_only=True)
        except Exception as error:  # whatever its code makes of somebody else's files
            raise OnboardingError(f"{self.folder}: transformers {transformers.__version__} cannot load the tokenizer: "
                                  f"{first_line(error)}") from error
        finally:
            logger.set_verbosity(shown)
        self.stops = self._stops(configs)

    def _stops(self, configs: list[dict]) -> frozenset[int]:
        found = [self.tokenizer.eos_token_id]
        for config in configs:
            inner, value = config.get("text_config"), config.get("eos_token_id")
            if value is None and isinstance(inner, dict):
                value = inner.get("eos_token_id")
            found += value if isinstance(value, list) else [value]
        return frozenset(value for value in found if isinstance(value, int) and not isinstance(value, bool))

    def encode(self, text: str, special: bool = True) -> list[int]:
        """special: with the tokens that the tokenizer puts around a text."""
        return self.tokenizer.encode(_unicode(text), add_special_tokens=special)

    def chat(self, message: str, system: str | None = None) -> list[int]:
        """A user's message in the model's own template, up to where the model answers."""
        if not self.tokenizer.chat_template:
            raise OnboardingError(f"{self.folder}: the tokenizer has no chat template")
        turns = [{"role": "system", "content": _unicode(system)}] if system else []
        turns.append({"role": "user", "content": _unicode(message)})
        try:
            return self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=True, return_dict=False)
        except Exception as error:  # templates are programs, and raise what they like: "no system message", or a mistake of theirs
            raise OnboardingError(f"{self.folder}: the chat template refuses this conversation: {first_line(error)}") from error

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=True)


def _unicode(text: str) -> str:
    """Bytes of a command line that are no UTF-8 come as half characters, which tokenizers refuse."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise OnboardingError(f"the text is no Unicode: {error}") from None
    return text


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
