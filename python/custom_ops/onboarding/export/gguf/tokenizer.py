"""The tokenizer's keys of a GGUF file, from tokenizer.json or tokenizer.model and what stands beside them. Nothing is downloaded or run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...checkpoint import read_json, read_object
from ...errors import OnboardingError
from ...source import Source

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # tokenizer.ggml.token_type, and SentencePiece's own
_MOST_TEMPLATE = 1 << 20  # characters
_SPECIAL = ("bos", "eos", "unk", "pad")
_KEY = {"unk": "unknown", "pad": "padding"}  # where GGUF's word is another


@dataclass
class Vocabulary:
    """words, kinds: by id, without gaps up to the last one used. values: further keys below tokenizer.ggml.
    adds: "bos" and "eos", whether the tokenizer puts them around a text, where its file says so; tokenizer_config.json comes first."""

    model: str
    words: dict[int, str]
    kinds: dict[int, int]
    values: dict[str, object] = field(default_factory=dict)
    scores: dict[int, float] | None = None
    adds: dict[str, bool] = field(default_factory=dict)


def tokenizer_keys(source: Source, rows: int, pre: str | None, notes: list[str]) -> dict[str, object]:
    """rows: of the embedding; ids without a word get one that no text holds. notes: takes what a user should know.

    Raises OnboardingError where there is no tokenizer, its kind has no counterpart, or llama.cpp would cut text up otherwise.
    """
    folder = source.checkpoint.folder
    vocabulary = _read(folder, pre, notes)
    words, kinds = _filled(vocabulary, rows, folder)
    keys: dict[str, object] = {"model": vocabulary.model, **vocabulary.values, "tokens": words, "token_type": kinds}
    if vocabulary.scores is not None:
        lowest = min(vocabulary.scores.values(), default=0.0) - 1
        keys["scores"] = [float(vocabulary.scores.get(i, lowest)) for i in range(rows)]
    settings = _settings(folder)
    ids = _special_ids(source, settings, {word: i for i, word in enumerate(words)}, rows)
    keys |= {f"{_KEY.get(name, name)}_token_id": i for name, i in ids.items()}
    for name in ("bos", "eos"):
        stated = settings.get(f"add_{name}_token")
        adds = stated if isinstance(stated, bool) else vocabulary.adds.get(name, False)
        keys[f"add_{name}_token"] = adds and name in ids
    keys = {f"tokenizer.ggml.{name}": value for name, value in keys.items()}
    template = _chat_template(folder, settings)
    return keys if template is None else keys | {"tokenizer.chat_template": template}


def _read(folder: Path, pre: str | None, notes: list[str]) -> Vocabulary:
    from . import tokenizer_bpe, tokenizer_spm

    fast, pieces = folder / "tokenizer.json", folder / "tokenizer.model"
    content = read_json(fast) if fast.is_file() else None
    if content is not None and tokenizer_bpe.is_byte_level(content):
        return tokenizer_bpe.read(content, fast, pre, notes)
    if pre is not None:
        raise OnboardingError(f"{folder}: a pre-tokenizer ({pre!r}) is for byte-level BPE, this tokenizer is of another kind")
    if pieces.is_file():
        return tokenizer_spm.read_model(pieces, content, fast)
    if content is not None:
        return tokenizer_spm.read_json(content, fast)
    raise OnboardingError(f"{folder}: no tokenizer.json and no tokenizer.model; save the tokenizer there "
                          "(tokenizer.save_pretrained(folder)), or export without one (--no-tokenizer) for use with token ids")


def _filled(vocabulary: Vocabulary, rows: int, folder: Path) -> tuple[list[str], list[int]]:
    """A word for every row of the embedding. llama.cpp ends the process where two are equal."""
    beyond = [i for i in vocabulary.words if not 0 <= i < rows]
    if beyond:
        raise OnboardingError(f"{folder}: the tokenizer has ids up to {max(beyond)}, the embedding {rows} rows")
    taken = set(vocabulary.words.values())
    if len(taken) < len(vocabulary.words):
        seen: set[str] = set()
        twice = next(word for word in vocabulary.words.values() if word in seen or seen.add(word))
        raise OnboardingError(f"{folder}: token {twice!r:.80} has two ids")
    bad = next((word for word in taken if not word or "\0" in word), None)
    if bad is not None:
        raise OnboardingError(f"{folder}: token {bad!r:.80} is empty or holds a NUL character, which GGUF readers cannot keep apart")
    words = [vocabulary.words.get(i) or _filler(i, taken) for i in range(rows)]
    return words, [vocabulary.kinds.get(i, UNUSED) for i in range(rows)]


def _filler(index: int, taken: set[str]) -> str:
    word = f"[PAD{index}]"
    while word in taken:
        word = f"[{word}]"
    return word


def _settings(folder: Path) -> dict:
    path = folder / "tokenizer_config.json"
    return read_object(path) if path.is_file() else {}


def _special_ids(source: Source, settings: Mapping, ids: Mapping[str, int], rows: int) -> dict[str, int]:
    """From the words of tokenizer_config.json; what it does not name, from the ids of generation_config.json and config.json. Where these
    have several ends, the tokenizer's among them is eos and another one eot."""
    found = {}
    for name in _SPECIAL:
        word = settings.get(f"{name}_token")
        word = word.get("content") if isinstance(word, Mapping) else word
        if isinstance(word, str) and word in ids:
            found[name] = ids[word]
    path = source.checkpoint.folder / "generation_config.json"
    places = [read_object(path) if path.is_file() else {}, source.found.values]
    for name in _SPECIAL:
        stated = [i for where in places for i in _ids(where.get(f"{name}_token_id"), rows)]
        if stated:
            found.setdefault(name, stated[0])
    for where in places:
        ends = _ids(where.get("eos_token_id"), rows)
        if len(ends) > 1 and found["eos"] in ends:
            found.setdefault("eot", next(i for i in ends if i != found["eos"]))
    return found


def _ids(value, rows: int) -> list[int]:
    values = value if isinstance(value, list) else [value]
    return [i for i in values if isinstance(i, int) and not isinstance(i, bool) and 0 <= i < rows]


def _chat_template(folder: Path, settings: Mapping) -> str | None:
    """chat_template.jinja, or the entry of tokenizer_config.json; of several named ones "default"."""
    path = folder / "chat_template.jinja"
    if path.is_file():
        if path.stat().st_size > 4 * _MOST_TEMPLATE:
            raise OnboardingError(f"{path}: {path.stat().st_size} bytes are no chat template")
        try:
            template = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise OnboardingError(f"{path}: is no UTF-8 text: {error}") from None
    else:
        template = settings.get("chat_template")
        if isinstance(template, list):
            named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, Mapping)}
            template = named.get("default")
    if template is not None and (not isinstance(template, str) or len(template) > _MOST_TEMPLATE):
        raise OnboardingError(f"{folder}: the chat template must be a text of at most {_MOST_TEMPLATE} characters")
    return template
