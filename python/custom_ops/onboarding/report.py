"""What a map found and what it did not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .errors import OnboardingError

NULL = "null in config.json"


@dataclass(frozen=True)
class Unresolved:
    """One entry of a map without its source. `required`: the model cannot be built without it. `layer` is None outside the blocks."""

    level: str
    layer: int | None
    dst: str
    src: str
    reason: str
    required: bool

    def __str__(self) -> str:
        where = self.level if self.layer is None else f"block {self.layer} {self.level}"
        return f"{where}: {self.dst} <- {self.src}: {self.reason}"


def require(report: Iterable[Unresolved], what: str) -> None:
    """Raises OnboardingError listing every required entry of the report; `what` begins the text."""
    missing = [entry for entry in report if entry.required]
    if missing:
        shown = [f"  {entry}" for entry in missing[:20]] + ([f"  and {len(missing) - 20} more"] if len(missing) > 20 else [])
        count = "1 required entry is" if len(missing) == 1 else f"{len(missing)} required entries are"
        raise OnboardingError("\n".join([f"{what}: {count} missing", *shown]))


@dataclass(frozen=True)
class ConfigValues:
    """Numbers, flags and names of config.json under their unified names: config keys, the number keys of other levels (num_experts,
    top_k, scale_depth ...) and the traits that are config paths (activation, final_softcap ...). A key without a value is not there.
    layer_types always is, one entry per block, unless it is in the report. `sources[key]` says where a value came from.
    """

    values: dict[str, object]
    sources: dict[str, str]
    report: list[Unresolved]

    def __getitem__(self, key: str):
        return self.values[key]

    def get(self, key: str, default=None):
        return self.values.get(key, default)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def set(self, key: str, value, source: str) -> None:
        """A value that was found or derived is no longer missing."""
        self.values[key], self.sources[key] = value, source
        self.report[:] = [entry for entry in self.report if entry.dst != key]

    def wrong(self, key: str) -> bool:
        """Whether the file holds a value of the wrong kind: nothing takes its place."""
        return any(entry.dst == key and entry.required for entry in self.report)

    def stated(self, key: str) -> bool:
        """Whether the file says something under this key that gave no value: null or a value of the wrong kind. No default applies."""
        return any(entry.dst == key and (entry.required or entry.reason == NULL) for entry in self.report)
