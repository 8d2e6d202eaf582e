"""Exceptions of onboarding, and how a neighbour is named."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Mapping, Sequence


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


def some(items: Sequence, most: int = 3, between: str = ", ") -> str:
    """The first of them as text, and how many more there are."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return between.join(map(str, items[:most])) + more


def require_none(what: str, lists: Mapping[str, Sequence[str]]) -> None:
    """Raises OnboardingError that begins with `what` where a list is not empty: a line for each such list, by its title."""
    found = [f"  {len(items)} {title}: {some(items, 8, '; ')}" for title, items in lists.items() if items]
    if found:
        raise OnboardingError("\n".join([what, *found]))


def not_finite(what: str, dtype) -> OnboardingError:
    """For results of a model of this torch dtype."""
    return OnboardingError(f"{what} not finite: {str(dtype).removeprefix('torch.')} overflows or a weight is damaged; try float32 "
                           "(--dtype float32)")


def load(module: str, extra: str = "onboard", who: str = "this needs"):
    """Imports a module of a package that custom_ops itself does not need, or says which extra has it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise OnboardingError(f"{who} the package {package!r} ({error}): pip install 'custom_ops[{extra}]'") from None
