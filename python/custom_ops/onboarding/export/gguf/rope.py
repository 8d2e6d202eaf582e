"""Rotary embedding in GGUF keys. llama.cpp knows no scaling, "linear" and "yarn" by keys, a factor per pair by the tensor rope_freqs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...architecture import RotarySpec
from ...errors import OnboardingError
from ...model.rotary import inverse_frequencies, yarn_magnitude
from .keys import Keys

FACTORS = "rope_freqs.weight"  # [dims / 2] float32: the angle of pair i is divided by factor i; only the architecture llama reads it


def rope_keys(rotary: RotarySpec, arch: str) -> dict[str, object]:
    keys = {"rope.dimension_count": rotary.dims, "rope.freq_base": rotary.theta}
    scaling = rotary.scaling
    if rotary.kind == "linear":
        keys |= {"rope.scaling.type": "linear", "rope.scaling.factor": scaling["factor"]}
    elif rotary.kind == "yarn":
        original = scaling.get("original_max_position_embeddings") or rotary.max_positions
        factor = scaling.get("factor") or rotary.max_positions / original
        keys |= {"rope.scaling.type": "yarn", "rope.scaling.factor": factor, "rope.scaling.original_context_length": original}
        keys |= {f"rope.scaling.yarn_{name}": scaling[name] for name in ("beta_fast", "beta_slow") if scaling.get(name)}
        attention = inverse_frequencies(rotary)[1]
        if not math.isclose(attention, yarn_magnitude(factor), rel_tol=1e-6):  # which llama.cpp applies by itself
            keys["rope.scaling.attn_factor"] = attention / yarn_magnitude(factor)
    elif rotary.kind == "llama3" and arch != "llama":
        raise OnboardingError(f"GGUF architecture {arch!r} has no rotary scaling 'llama3'")
    elif rotary.kind not in ("default", "llama3"):
        raise OnboardingError(f"GGUF has no rotary scaling {rotary.kind!r}, only linear, yarn and, for llama, llama3")
    return keys


def rope_factors(rotary: RotarySpec) -> Tensor | None:
    """The tensor FACTORS, where the scaling needs one."""
    if rotary.kind != "llama3":
        return None
    plain = inverse_frequencies(RotarySpec(rotary.theta, rotary.dims))[0]
    return plain / inverse_frequencies(rotary)[0]


def read_rotary(keys: Keys, head_dim: int, tensors: dict[str, tuple[int, ...]]) -> RotarySpec:
    """With FACTORS the spec is of kind longrope with two lists of ones; `with_factors` puts the values there."""
    dims, positions = keys.count("rope.dimension_count", head_dim), keys.count("context_length")
    theta = keys.number("rope.freq_base", 10000.0)
    if dims > head_dim or dims % 2:
        raise OnboardingError(f"{keys.what}: {dims} of the {head_dim} elements of a head would rotate")
    if FACTORS in tensors:
        return with_factors(RotarySpec(theta, dims, "half", max_positions=positions), [1.0] * (dims // 2))
    kind, factor = keys.get("rope.scaling.type", "none"), keys.number("rope.scaling.factor", 1.0)
    if kind == "none" or kind == "linear" and factor == 1:
        return RotarySpec(theta, dims, "half", max_positions=positions)
    if kind not in ("linear", "yarn"):
        raise OnboardingError(f"{keys.what}: rotary scaling {str(kind)[:40]!r} is not read")
    scaling = {"factor": factor}
    if kind == "yarn":
        scaling["original_max_position_embeddings"] = keys.count("rope.scaling.original_context_length", positions)
        for name, default in (("beta_fast", 32.0), ("beta_slow", 1.0)):
            scaling[name] = keys.number(f"rope.scaling.yarn_{name}", default)
        scaling["attention_factor"] = keys.number("rope.scaling.attn_factor", 1.0) * yarn_magnitude(factor)
    return RotarySpec(theta, dims, "half", kind, scaling, positions)


def with_factors(rotary: RotarySpec, factors: list[float]) -> RotarySpec:
    """The same angles for every length."""
    scaling = {"short_factor": factors, "long_factor": factors, "attention_factor": 1.0, "factor": 1.0,
               "original_max_position_embeddings": rotary.max_positions}
    return RotarySpec(rotary.theta, rotary.dims, rotary.pairing, "longrope", scaling, rotary.max_positions)


def same_rotation(one: RotarySpec, other: RotarySpec) -> bool:
    """Whether both turn every head by the same angles, up to the float32 of GGUF's keys."""
    if (one.dims, one.pairing) != (other.dims, other.pairing):
        return False
    ends = {spec.max_positions or 0 for spec in (one, other)}
    for positions in (0, *ends):
        (a, scale_a), (b, scale_b) = inverse_frequencies(one, positions), inverse_frequencies(other, positions)
        if not torch.allclose(a, b, rtol=1e-6, atol=0) or not math.isclose(scale_a, scale_b, rel_tol=1e-6):
            return False
    return True


def sections(rotary: RotarySpec) -> list[int]:
    """rope.dimension_sections of qwen35: how many pairs belong to time, height, width and a fourth axis. They do not change text, where all
    axes have the same position, but must cover every pair."""
    pairs = rotary.dims // 2
    stated = rotary.scaling.get("mrope_section")
    if stated is None:
        width = pairs // 3
        height = (pairs - width) // 2
        return [pairs - width - height, height, width, 0]
    if len(stated) != 3 or sum(stated) != pairs or max(stated) != stated[0]:
        raise OnboardingError(f"mrope_section {list(stated)} does not share out the {pairs} pairs that rotate")
    return [*stated, 0]
