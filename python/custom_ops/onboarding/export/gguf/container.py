"""The container of GGUF, read: keys and the places of tensors. Files are somebody else's: every length is checked against what is left.

Little-endian. "GGUF", version u32 (2 or 3), number of tensors u64, number of keys u64; keys {name, type u32, value}; tensors {name,
dimensions u32, size u64 each (fastest first), type u32, offset u64 in the data}; the data, from the next multiple of general.alignment.
A text is its length u64 and UTF-8; a list its type u32, its length u64 and its values.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import OnboardingError
from .package import gguf

_NUMBERS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}
_TEXT, _LIST = 8, 9
_MOST_DIMS = 4
_ALIGNMENT = "general.alignment"


@dataclass(frozen=True)
class Place:
    """shape as torch counts; kind: the gguf package's name of the type; begin, end: bytes of the file."""

    shape: tuple[int, ...]
    kind: object
    begin: int
    end: int


class _Damaged(Exception):
    pass


def read(path: Path, words: bool) -> tuple[dict[str, object], dict[str, Place]]:
    """Values by key, without those of "tokenizer." unless `words` is set; tensors by name."""
    try:
        data = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:  # ValueError: an empty file
        raise OnboardingError(f"{path}: cannot be read: {error}") from None
    try:
        return _Reader(data).read(words)
    except _Damaged as error:
        raise OnboardingError(f"{path}: not a GGUF file, or damaged: {error}") from None


class _Reader:
    def __init__(self, data: np.ndarray):
        self.data, self.position = data, 0

    def read(self, words: bool) -> tuple[dict[str, object], dict[str, Place]]:
        if bytes(self.take(4)) != b"GGUF":
            raise _Damaged("does not begin with 'GGUF'")
        version = self.number("<I")
        if version not in (2, 3):
            raise _Damaged(f"version {version}, 2 and 3 are read")
        tensors, keys = self.number("<Q"), self.number("<Q")
        values: dict[str, object] = {}
        for _ in range(self.count(keys, 13)):  # bytes of the shortest key
            name = self.text()
            value = self.value(self.number("<I"))
            if name in values:
                raise _Damaged(f"key {name[:80]!r} stands twice")
            values[name] = value
        places = self.tensors(self.count(tensors, 24), values.get(_ALIGNMENT, 32))
        return {name: value for name, value in values.items() if words or not name.startswith("tokenizer.")}, places

    # --- parts

    def tensors(self, count: int, alignment) -> dict[str, Place]:
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise _Damaged(f"{_ALIGNMENT} {alignment!r:.40} is no power of 2")
        found: dict[str, tuple] = {}
        for _ in range(count):
            name = self.text()
            if name in found:
                raise _Damaged(f"tensor {name[:80]!r} stands twice")
            dims = self.number("<I")
            if not 1 <= dims <= _MOST_DIMS:
                raise _Damaged(f"tensor {name[:80]!r} has {dims} dimensions")
            shape = tuple(self.number("<Q") for _ in range(dims))[::-1]
            found[name] = shape, self.number("<I"), self.number("<Q")
        start = -(-self.position // alignment) * alignment
        places = {name: self.place(name, start, alignment, *entry) for name, entry in found.items()}
        ordered = sorted(places.items(), key=lambda item: item[1].begin)
        for (_, one), (name, other) in zip(ordered, ordered[1:]):
            if other.begin < one.end:
                raise _Damaged(f"tensor {name[:80]!r} overlaps the one before it")
        return places

    def place(self, name: str, start: int, alignment: int, shape: tuple[int, ...], kind: int, offset: int) -> Place:
        try:
            kind = gguf().GGMLQuantizationType(kind)
        except ValueError:
            raise _Damaged(f"tensor {name[:80]!r} is of type {kind}, which is not known") from None
        values, size = gguf().GGML_QUANT_SIZES[kind]
        if shape[-1] % values or offset % alignment:
            raise _Damaged(f"tensor {name[:80]!r}: {list(shape)} at {offset} does not fit blocks of {values} or multiples of {alignment}")
        begin = start + offset
        end = begin + math.prod(shape) // values * size
        if end > len(self.data):
            raise _Damaged(f"tensor {name[:80]!r} ends at byte {end}, the file at {len(self.data)}")
        return Place(shape, kind, begin, end)

    def value(self, kind: int):
        if kind == _TEXT:
            return self.text("replace")
        if kind == _LIST:
            return self.values(self.number("<I"), self.number("<Q"))
        return self.numbers(kind, 1)[0]

    def values(self, kind: int, count: int) -> list:
        if kind == _TEXT:
            return [self.text("replace") for _ in range(self.count(count, 8))]
        return self.numbers(kind, count)

    def numbers(self, kind: int, count: int) -> list:
        if kind not in _NUMBERS:
            raise _Damaged(f"a value of type {kind}")
        dtype = np.dtype(_NUMBERS[kind])
        return np.frombuffer(self.take(self.count(count, dtype.itemsize) * dtype.itemsize), dtype).tolist()

    def text(self, errors: str = "strict") -> str:
        try:
            return bytes(self.take(self.number("<Q"))).decode("utf-8", errors)
        except UnicodeDecodeError:
            raise _Damaged("a name is no UTF-8 text") from None

    # --- bytes

    def number(self, format: str) -> int:
        return struct.unpack(format, self.take(struct.calcsize(format)))[0]

    def count(self, count: int, size: int) -> int:
        """A number of things of at least so many bytes each, which the rest of the file must hold."""
        if count * size > len(self.data) - self.position:
            raise _Damaged(f"{count} values where {len(self.data) - self.position} bytes are left")
        return count

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.position:
            raise _Damaged(f"cut short: {size} bytes at {self.position}, the file has {len(self.data)}")
        self.position += size
        return self.data[self.position - size : self.position].tobytes()
