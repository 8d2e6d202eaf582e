"""SentencePiece's BPE (Llama 2, Gemma) from tokenizer.model or from a tokenizer.json made of one: GGUF's tokenizer model "llama".

tokenizer.model is a protobuf message: 1 pieces {1 text, 2 score float32, 3 type}, 2 training {3 kind: 1 unigram, 2 BPE},
3 normaliser {3 add_dummy_prefix}. Only these fields are read.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...errors import OnboardingError
from .tokenizer import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, Vocabulary
from .tokenizer_bpe import added_around, added_tokens, merges, steps, vocabulary_of

_MOST_BYTES = 256 << 20
_BPE = 2
_BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")


def read_model(path: Path, content: Mapping | None, fast: Path) -> Vocabulary:
    """content: of tokenizer.json where there is one, for tokens added later and what surrounds a text."""
    if path.stat().st_size > _MOST_BYTES:
        raise OnboardingError(f"{path}: {path.stat().st_size} bytes are no tokenizer")
    try:
        message = _fields(path.read_bytes())
    except (ValueError, IndexError, struct.error):
        raise OnboardingError(f"{path}: no SentencePiece model, or damaged") from None
    pieces = [_piece(value, path) for value in message.get(1, ())]
    kind = _number(message, 2, 3, 1)
    if not pieces or kind != _BPE:
        what = "has no pieces" if not pieces else f"is of kind {kind}, llama.cpp's SentencePiece tokenizer is BPE ({_BPE})"
        raise OnboardingError(f"{path}: {what}")
    words = {i: word for i, (word, _, _) in enumerate(pieces)}
    kinds = {i: kind for i, (_, _, kind) in enumerate(pieces)}
    scores = {i: score for i, (_, score, _) in enumerate(pieces)}
    adds = {}
    if content is not None:
        _add(content, fast, words, kinds, scores)
        adds = added_around(content)
    values = {"add_space_prefix": bool(_number(message, 3, 3, 1))}
    return Vocabulary("llama", words, kinds, values, scores, adds or {"bos": True, "eos": False})


def read_json(content: Mapping, path: Path) -> Vocabulary:
    """A piece's score is minus the rank of the first merge that makes it: SentencePiece merges the pair whose piece has the best score."""
    model = content.get("model") if isinstance(content, Mapping) else None
    if not isinstance(model, Mapping) or model.get("type", "BPE") != "BPE" or not model.get("byte_fallback"):
        kind = model.get("type") if isinstance(model, Mapping) else None
        raise OnboardingError(f"{path}: a tokenizer of kind {kind!r} has no counterpart in GGUF; byte-level BPE and "
                              "SentencePiece's BPE have")
    words = vocabulary_of(content, path)
    ranks: dict[str, int] = {}
    for rank, pair in enumerate(merges(content, path)):
        ranks.setdefault("".join(pair), rank)
    kinds = {i: BYTE if _BYTE_PIECE.fullmatch(word) else NORMAL for i, word in words.items()}
    scores = {i: -float(ranks.get(word, len(ranks))) for i, word in words.items()}
    _add(content, path, words, kinds, scores)
    for i, word in words.items():
        if word == model.get("unk_token"):
            kinds[i] = UNKNOWN
    return Vocabulary("llama", words, kinds, {"add_space_prefix": _prefixed(content)}, scores, added_around(content))


def _add(content: Mapping, path: Path, words: dict[int, str], kinds: dict[int, int], scores: dict[int, float]) -> None:
    for entry in added_tokens(content, path):
        index = entry["id"]
        words[index] = entry["content"]
        scores.setdefault(index, 0.0)
        if kinds.get(index) != UNKNOWN:
            kinds[index] = CONTROL if entry.get("special") else USER_DEFINED


def _prefixed(content: Mapping) -> bool:
    """Whether a space is put before a text."""
    for step in (*steps(content, "normalizer", "normalizers"), *steps(content, "pre_tokenizer", "pretokenizers")):
        if step.get("type") == "Prepend":
            return True
        if step.get("type") == "Metaspace":
            return step.get("prepend_scheme", "always") != "never" and step.get("add_prefix_space", True)
    return False


# --- protobuf

def _piece(data, path: Path) -> tuple[str, float, int]:
    try:
        fields = _fields(data)
        text = bytes(fields[1][0]).decode("utf-8")
        (score,) = struct.unpack("<f", fields.get(2, (b"\0\0\0\0",))[0])
        return text, score, fields.get(3, (NORMAL,))[0]
    except (KeyError, ValueError, IndexError, TypeError, struct.error):
        raise OnboardingError(f"{path}: a piece is damaged") from None


def _number(message: Mapping, field: int, inner: int, default: int) -> int:
    return _fields(message[field][0]).get(inner, (default,))[0] if field in message else default


def _fields(data: bytes) -> dict[int, list]:
    """Field number -> values: whole numbers, or bytes for texts, messages and fixed-size values."""
    found: dict[int, list] = {}
    for number, value in _walk(data):
        found.setdefault(number, []).append(value)
    return found


def _walk(data: bytes) -> Iterator[tuple[int, object]]:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
        else:
            if wire == 2:
                size, position = _varint(data, position)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
            else:
                raise ValueError(f"wire type {wire}")
            if position + size > len(data):
                raise ValueError("cut short")
            value, position = data[position : position + size], position + size
        yield number, value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError("number too long")
