"""Byte-level BPE (GPT-2, Llama 3, Qwen, LFM2) from tokenizer.json: GGUF's tokenizer model "gpt2"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from ...errors import OnboardingError
from ...mapping import tomllib
from .tokenizer import CONTROL, NORMAL, USER_DEFINED, Vocabulary

_TABLE = Path(__file__).with_name("pretokenizers.toml")


def is_byte_level(content) -> bool:
    """Whether a tokenizer.json is BPE over bytes written as letters."""
    model = content.get("model") if isinstance(content, Mapping) else None
    kind = model.get("type", "BPE") if isinstance(model, Mapping) else None
    return kind == "BPE" and any(step.get("type") == "ByteLevel" for step in (*steps(content, "pre_tokenizer", "pretokenizers"),
                                                                            *steps(content, "decoder", "decoders")))


def read(content: Mapping, path: Path, pre: str | None, notes: list[str]) -> Vocabulary:
    """pre: instead of the name that the pre-tokenizer's rules have."""
    words = vocabulary_of(content, path)
    kinds = dict.fromkeys(words, NORMAL)
    for entry in added_tokens(content, path):
        words[entry["id"]] = entry["content"]
        kinds[entry["id"]] = CONTROL if entry.get("special") else USER_DEFINED
    _check_normaliser(content, path, notes)
    values = {"pre": pre or pre_tokenizer(content, path), "merges": [" ".join(pair) for pair in merges(content, path)]}
    return Vocabulary("gpt2", words, kinds, values, adds=added_around(content))


def pre_tokenizer(content: Mapping, path: Path) -> str:
    """llama.cpp's name for the rules by which this file splits a text before merging."""
    rules = _rules(content)
    for name, entry in _known().items():
        if rules == (tuple(entry.get("split", ())), entry.get("digits", False), entry.get("byte_level", False)):
            return name
    raise OnboardingError(f"{path}: its pre-tokenizer is none of {', '.join(_known())}: split {list(rules[0])}, digits {rules[1]}, GPT-2's "
                          f"pattern {rules[2]}; if llama.cpp has the same rules under another name, give it (--pre NAME)")


@cache
def _known() -> dict[str, dict]:
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


def _rules(content: Mapping) -> tuple[tuple[str, ...], bool, bool]:
    """Patterns of the Split steps, whether single digits are isolated, whether GPT-2's pattern is applied; a step that is none of these
    stands among the patterns by its type, where it matches nothing known."""
    split, digits, byte_level = [], False, False
    for step in steps(content, "pre_tokenizer", "pretokenizers"):
        kind, pattern = step.get("type"), step.get("pattern")
        if kind == "ByteLevel" and not step.get("add_prefix_space", False):
            byte_level |= step.get("use_regex", True)
        elif kind == "Digits" and step.get("individual_digits"):
            digits = True
        elif kind == "Split" and isinstance(pattern, Mapping) and step.get("behavior") == "Isolated" and not step.get("invert"):
            split.append(pattern.get("Regex", repr(pattern)))
        else:
            split.append(f"<{kind}>")
    return tuple(split), digits, byte_level


def steps(content: Mapping, part: str, inner: str) -> Iterator[Mapping]:
    """The steps of a part of tokenizer.json, sequences taken apart."""
    step = content.get(part)
    if isinstance(step, Mapping):
        if step.get("type") == "Sequence":
            yield from (one for one in step.get(inner) or () if isinstance(one, Mapping))
        else:
            yield step


def _check_normaliser(content: Mapping, path: Path, notes: list[str]) -> None:
    kinds = [step.get("type") for step in steps(content, "normalizer", "normalizers")]
    if kinds == ["NFC"]:
        notes.append("the tokenizer composes characters (NFC), llama.cpp does not: decomposed text gets other tokens")
    elif kinds:
        raise OnboardingError(f"{path}: its normalizer ({', '.join(map(str, kinds))}) has no counterpart in llama.cpp")


# --- the file's parts, checked

def vocabulary_of(content: Mapping, path: Path) -> dict[int, str]:
    vocabulary = content["model"].get("vocab")
    if not isinstance(vocabulary, Mapping) or not all(isinstance(i, int) for i in vocabulary.values()):
        raise OnboardingError(f"{path}: model.vocab must be an object of token: id")
    words = {i: word for word, i in vocabulary.items()}
    if len(words) < len(vocabulary):
        raise OnboardingError(f"{path}: model.vocab gives two tokens one id")
    return words


def added_tokens(content: Mapping, path: Path) -> list[Mapping]:
    added = content.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(entry, Mapping) and isinstance(entry.get("id"), int)
                                              and isinstance(entry.get("content"), str) for entry in added):
        raise OnboardingError(f"{path}: added_tokens must be a list of objects with id and content")
    return added


def merges(content: Mapping, path: Path) -> list[tuple[str, str]]:
    """Pairs in the order of their rank; older files write "a b"."""
    found = content["model"].get("merges")
    if not isinstance(found, list):
        raise OnboardingError(f"{path}: model.merges must be a list")
    pairs = [tuple(entry.split(" ")) if isinstance(entry, str) else tuple(entry) if isinstance(entry, list) else () for entry in found]
    wrong = next((entry for entry, pair in zip(found, pairs)
                  if len(pair) != 2 or not all(isinstance(one, str) and one for one in pair)), None)
    if wrong is not None:
        raise OnboardingError(f"{path}: merge {str(wrong)[:80]!r} is no pair of tokens")
    return pairs


def added_around(content: Mapping) -> dict[str, bool]:
    """Whether the template of a single text has a special token before and after it; {} without a template."""
    for step in steps(content, "post_processor", "processors"):
        single = step.get("single")
        if step.get("type") == "TemplateProcessing" and isinstance(single, list) and single:
            return {"bos": "SpecialToken" in single[0], "eos": "SpecialToken" in single[-1]}
    return {}
