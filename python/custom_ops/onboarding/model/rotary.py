"""Rotary position embedding: frequencies of every scaling kind, tables of cosines and sines, and the rotation.

The frequencies follow transformers 5.24 (modeling_rope_utils) operation by operation in float32: models are trained with those values, and
at position 10^5 one ulp of a frequency is 10^-2 of a turn.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..architecture import RotarySpec


def inverse_frequencies(spec: RotarySpec, positions: int = 0) -> tuple[Tensor, float]:
    """([dims / 2] float32, the factor of cosines and sines) for a sequence of `positions` tokens (read by longrope and dynamic)."""
    if spec.kind not in _KINDS:
        raise RuntimeError(f"rotary embedding: scaling '{spec.kind}' is not known, use one of {', '.join(_KINDS)}")
    if spec.dims % 2 or spec.dims < 2:
        raise RuntimeError(f"rotary embedding: dims must be even and at least 2, got {spec.dims}")
    return _KINDS[spec.kind](spec, positions)


def depends_on_length(spec: RotarySpec) -> bool:
    return spec.kind == "longrope" or spec.kind == "dynamic" and not spec.scaling.get("alpha")


def _plain(spec: RotarySpec, theta: float | None = None) -> Tensor:
    return 1.0 / (spec.theta if theta is None else theta) ** _exponents(spec)


def _exponents(spec: RotarySpec) -> Tensor:
    """2 i / dims of pair i"""
    return torch.arange(0, spec.dims, 2, dtype=torch.float32) / spec.dims


def _default(spec: RotarySpec, positions: int):
    return _plain(spec), 1.0


def _linear(spec: RotarySpec, positions: int):
    return _plain(spec) / spec.scaling["factor"], 1.0


def _proportional(spec: RotarySpec, positions: int):
    """The first part of the pairs turns, with exponents over all dims; the rest stands still."""
    turning = int(spec.scaling.get("partial_rotary_factor", 1.0) * spec.dims // 2)
    frequencies = _plain(spec) * (torch.arange(spec.dims // 2) < turning)
    return frequencies / spec.scaling.get("factor", 1.0), 1.0


def _dynamic(spec: RotarySpec, positions: int):
    """NTK: the base grows with the sequence, theta (f L / L0 - (f - 1))^(dims / (dims - 2)); with alpha it is theta alpha^(...) always."""
    if spec.scaling.get("alpha"):
        return _plain(spec, spec.theta * spec.scaling["alpha"] ** (spec.dims / (spec.dims - 2))), 1.0
    factor, limit = spec.scaling["factor"], _max_positions(spec)
    stretch = factor * max(positions, limit) / limit - (factor - 1)
    return _plain(spec, spec.theta * stretch ** (spec.dims / (spec.dims - 2))), 1.0


def _llama3(spec: RotarySpec, positions: int):
    """Wavelengths beyond original / low_freq_factor are stretched by the factor, those below original / high_freq_factor stay, between
    them both are mixed."""
    factor, low, high = (spec.scaling[name] for name in ("factor", "low_freq_factor", "high_freq_factor"))
    original = _original_positions(spec)
    frequencies = _plain(spec)
    wavelengths = 2 * math.pi / frequencies
    slow, fast = wavelengths > original / low, wavelengths < original / high
    scaled = torch.where(slow, frequencies / factor, frequencies)
    smooth = (original / wavelengths - low) / (high - low)
    mixed = (1 - smooth) * scaled / factor + smooth * scaled
    return torch.where(slow | fast, scaled, mixed), 1.0


def _yarn(spec: RotarySpec, positions: int):
    """Interpolated and plain frequencies mixed by a ramp between the dimensions that turn beta_slow and beta_fast times in the original
    length (arXiv 2309.00071)."""
    scaling, original = spec.scaling, _original_positions(spec)
    factor = scaling.get("factor") or _max_positions(spec) / original

    def dimension(turns: float) -> float:
        return spec.dims * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(spec.theta))

    low, high = dimension(scaling.get("beta_fast") or 32), dimension(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, spec.dims - 1)
    high += 0.001 if low == high else 0  # no division by zero
    ramp = ((torch.arange(spec.dims // 2, dtype=torch.float32) - low) / (high - low)).clamp(0, 1)
    powers = spec.theta ** _exponents(spec)
    plain = 1 - ramp
    return 1.0 / (factor * powers) * (1 - plain) + 1.0 / powers * plain, _yarn_factor(scaling, factor)


def _yarn_factor(scaling, factor: float) -> float:
    if scaling.get("attention_factor") is not None:
        return scaling["attention_factor"]
    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        return yarn_magnitude(factor, scaling["mscale"]) / yarn_magnitude(factor, scaling["mscale_all_dim"])
    return yarn_magnitude(factor)


def yarn_magnitude(factor: float, mscale: float = 1.0) -> float:
    """Of cosines and sines, where nothing states it."""
    return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0


def _longrope(spec: RotarySpec, positions: int):
    """A list of factors for sequences up to the original length and one for longer ones."""
    scaling, original = spec.scaling, _original_positions(spec)
    factor = scaling.get("factor")
    if factor is None:
        factor = _max_positions(spec) / original
    attention = scaling.get("attention_factor")
    if attention is None:
        attention = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    factors = torch.tensor(scaling["long_factor" if positions > original else "short_factor"], dtype=torch.float32)
    return 1.0 / (factors * spec.theta ** _exponents(spec)), attention


def _original_positions(spec: RotarySpec) -> int:
    return spec.scaling.get("original_max_position_embeddings") or _max_positions(spec)


def _max_positions(spec: RotarySpec) -> int:
    if not spec.max_positions:
        raise RuntimeError(f"rotary embedding: scaling '{spec.kind}' needs max_position_embeddings")
    return spec.max_positions


_KINDS = {"default": _default, "linear": _linear, "proportional": _proportional, "dynamic": _dynamic, "xdrope": _dynamic, "llama3": _llama3,
          "yarn": _yarn, "longrope": _longrope}


class Rotary:
    """Tables of one RotarySpec, grown as sequences do; and the rotation of queries and keys with them."""

    def __init__(self, spec: RotarySpec):
        self.spec = spec
        self._tables: tuple[Tensor, Tensor] | None = None
        self._tables_of: tuple | None = None

    def tables(self, first: int, end: int, device, dtype, positions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """cosines, sines [end - first, dims / 2], or [B, 1, L, dims / 2] of `positions` [B, L]; all below `end`, the sequence's length."""
        cosines, sines = self._up_to(end, device, dtype)
        if positions is None:
            return cosines[first:end], sines[first:end]
        return cosines[positions].unsqueeze(1), sines[positions].unsqueeze(1)

    def _up_to(self, end: int, device, dtype) -> tuple[Tensor, Tensor]:
        if depends_on_length(self.spec):
            # They change at thresholds: same frequencies, same tables.
            key = device, dtype, *inverse_frequencies(self.spec, end)[0].tolist()
        else:
            key = device, dtype
        if self._tables_of != key or len(self._tables[0]) < end:
            frequencies, factor = inverse_frequencies(self.spec, end)
            positions = torch.arange(max(256, 2 * end), dtype=torch.float32)
            angles = positions.unsqueeze(1) * frequencies
            self._tables = tuple((table * factor).to(dtype).to(device) for table in (angles.cos(), angles.sin()))
            self._tables_of = key
        return self._tables

    def rotate(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        """x [B, heads, L, d] with its first dims turned."""
        return _ROTATIONS[self.spec.pairing](x, cosines, sines)


def _rotate_half(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    half = cosines.shape[-1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    parts = [first * cosines - second * sines, second * cosines + first * sines]
    return torch.cat(parts + [rest] if rest.shape[-1] else parts, -1)


def _rotate_interleaved(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    dims = 2 * cosines.shape[-1]
    even, odd, rest = x[..., 0:dims:2], x[..., 1:dims:2], x[..., dims:]
    turned = torch.stack((even * cosines - odd * sines, odd * cosines + even * sines), -1).flatten(-2)
    return torch.cat((turned, rest), -1) if rest.shape[-1] else turned


_ROTATIONS = {"half": _rotate_half, "interleaved": _rotate_interleaved}
