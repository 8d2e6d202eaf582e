"""Exceptions of onboarding, and how a neighbour is named."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable


class OnboardingError(RuntimeError):
    """A model directory, a map or a configuration cannot be used. The text names the file, the key and the remedy."""


class UnknownFamily(OnboardingError):
    """No map has this model_type. Attributes: model_type; nearest, the mapped ids closest to it, best first."""

    def __init__(self, model_type: str, known: Iterable[str]):
        self.model_type = model_type
        self.nearest = tuple(close(model_type, known))
        super().__init__(f"model_type {model_type!r} is not mapped; {nearest(model_type, known)}. `custom-ops onboard analyze` "
                         "proposes a map for it, which --map-dir adds without touching the package")

    def __reduce__(self):
        return type(self), (self.model_type, self.nearest)


def close(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of `known`, the ones most like `name` first; what begins with it or is its beginning counts as close."""
    known = sorted(set(known))
    related = [other for other in known if other and (name.startswith(other) or other.startswith(name))] if name else []
    similar = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    ranked = sorted({*related, *similar}, key=lambda other: -difflib.SequenceMatcher(None, name, other).ratio())
    return ranked[:3]


def nearest(name: str, known: Iterable[str]) -> str:
    """"nearest: 'a', 'b'"; where nothing is near, all of a few or the number of many."""
    known = sorted(set(known))
    found = close(name, known)
    if found:
        return f"nearest: {', '.join(map(repr, found))}"
    return f"known: {', '.join(map(repr, known))}" if len(known) <= 20 else f"none of the {len(known)} known ones is near"


def first_line(error: BaseException) -> str:
    """Of an error's text, or its class where it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def load(module: str):
    """Imports a package that only onboarding needs, or says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise OnboardingError(f"this needs the package {module.partition('.')[0]!r} ({error}): pip install 'custom_ops[onboard]'") from None
