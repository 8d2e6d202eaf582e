"""Values typed on the command line: NAME=SPEC pairs, tensors, attributes, tiling structs."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from .sim.names import dtype_named, nearest
from .sim.tiling_decode import C_TYPES

_MAKERS = {
    "randn": lambda shape, generator: torch.randn(shape, generator=generator),
    "rand": lambda shape, generator: torch.rand(shape, generator=generator),
    "zeros": lambda shape, _: torch.zeros(shape),
    "ones": lambda shape, _: torch.ones(shape),
    "empty": lambda shape, _: torch.empty(shape),
    "arange": lambda shape, _: torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape),
}


def pairs(items: Sequence[str]) -> Iterator[tuple[str, str]]:
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise ValueError(f"{item!r} must be NAME=VALUE")
        yield name, value


def made(option: str, items: Sequence[str], make: Callable[[str, int], Any], seed: int) -> dict[str, Any]:
    """NAME -> make(SPEC, seed of its own); errors name the option."""
    values = {}
    for i, (name, spec) in enumerate(pairs(items)):
        try:
            values[name] = make(spec, seed + i)
        except OSError as error:
            raise ValueError(f"{option} {name}: cannot read {error.filename}: {error.strerror}") from None
        except ValueError as error:
            raise ValueError(f"{option} {name}: {error}") from None
    return values


def known_names(given: Iterable[str], known: Iterable[str], what: str) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"there is no {what} {name!r}; there are {nearest(name, known)}")


def tensor(spec: str, seed: int) -> torch.Tensor:
    """randn:16,4,4096:bfloat16, file.npy or file.npy:bfloat16"""
    maker, _, rest = spec.partition(":")
    if maker in _MAKERS:
        sizes, _, kind = rest.partition(":")
        try:
            shape = tuple(int(n) for n in sizes.split(","))
        except ValueError:
            shape = (-1,)
        if min(shape) < 0:
            raise ValueError(f"{spec!r}: the shape must be sizes like 16,4,4096, got {sizes!r}")
        dtype = getattr(torch, dtype_named(kind or "float32").name)
        try:
            return _MAKERS[maker](shape, torch.Generator().manual_seed(seed)).to(dtype)
        except (RuntimeError, TypeError, OverflowError):  # the allocator's, and sizes beyond int64
            raise ValueError(f"{spec!r}: a tensor of {sizes} does not fit in the memory of this machine") from None
    path, _, kind = spec.partition(".npy")
    if not spec.endswith(".npy") and not kind.startswith(":"):
        raise ValueError(f"tensor {spec!r} must be file.npy[:dtype] or {'|'.join(_MAKERS)}:shape[:dtype]")
    import numpy

    loaded = torch.from_numpy(numpy.load(path + ".npy"))
    return loaded.to(getattr(torch, dtype_named(kind[1:]).name)) if kind else loaded


def argument(spec: str, seed: int) -> Any:
    """A number, or a tensor."""
    for number in (int, float):
        try:
            return number(spec)
        except ValueError:
            pass
    return tensor(spec, seed)


def attribute(kind: str, value: str) -> Any:
    if kind == "str":
        return value
    try:
        return json.loads(value.lower() if kind == "bool" else value)
    except json.JSONDecodeError:
        raise ValueError(f"{value!r} is no {kind}") from None


def tiling(spec: str | None) -> Any:
    """uint32_t:16,float:1e-6 -> a struct of these fields; @file -> its bytes."""
    if spec is None:
        return None
    if spec.startswith("@"):
        try:
            return Path(spec[1:]).read_bytes()
        except OSError as error:
            raise ValueError(f"--tiling: cannot read {error.filename}: {error.strerror}") from None
    fields, values = [], []
    for i, part in enumerate(spec.split(",")):
        kind, _, value = part.partition(":")
        if kind not in C_TYPES or not value:
            raise ValueError(f"tiling field {part!r} must be type:value with a type of {nearest(kind, C_TYPES)}")
        fields.append((f"field{i}", C_TYPES[kind]))
        values.append(float(value) if kind in ("float", "double") else int(value, 0))
    return type("Tiling", (ctypes.Structure,), {"_fields_": fields})(*values)


def describe(value: torch.Tensor) -> str:
    head = f"{list(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    if not value.numel():
        return head
    wide = value.double()
    return f"{head}  min {wide.min():.6g}  max {wide.max():.6g}  mean {wide.mean():.6g}"


def save(value: torch.Tensor, path: str) -> None:
    import numpy

    numpy.save(path, (value.float() if value.dtype == torch.bfloat16 else value).numpy())
