"""Keys of a GGUF file below the name of its architecture, for reading: `keys.need("block_count")` is "llama.block_count"."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import OnboardingError


class Keys:
    """values: whole names -> numbers, texts, lists. what: begins the texts of errors. Raises OnboardingError for a missing or wrong one."""

    def __init__(self, arch: str, values: Mapping[str, object], what: str):
        self.arch, self.values, self.what = arch, values, what

    def need(self, name: str):
        value = self.get(name)
        if value is None:
            raise OnboardingError(f"{self.what}: key {self.arch}.{name} is missing")
        return value

    def get(self, name: str, default=None):
        return self.values.get(f"{self.arch}.{name}", default)

    def count(self, name: str, default: int | None = None, least: int = 1) -> int:
        return self._count(name, self.need(name) if default is None else self.get(name, default), least)

    def counts(self, name: str, blocks: int) -> list[int]:
        """One value for each block; a scalar stands for all of them. 0 is allowed."""
        value = self.need(name)
        values = value if isinstance(value, list) else [value] * blocks
        if len(values) != blocks:
            raise OnboardingError(f"{self.what}: key {self.arch}.{name} has {len(values)} values for {blocks} blocks")
        return [self._count(name, value, 0) for value in values]

    def number(self, name: str, default: float | None = None) -> float:
        value = self.need(name) if default is None else self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise OnboardingError(f"{self.what}: key {self.arch}.{name} must be a number, is {value!r:.80}")
        return float(value)

    def _count(self, name: str, value, least: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise OnboardingError(f"{self.what}: key {self.arch}.{name} must be a whole number from {least}, is {value!r:.80}")
        return value
