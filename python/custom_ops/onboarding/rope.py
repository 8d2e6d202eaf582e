"""The rotary embedding of a model: its base, how much of a head rotates, the scaling, and where each came from.

The base has stood in many places (top level, text_config, rope_scaling, rope_parameters, rope_parameters per layer type), and a reader
that looks in the wrong one silently takes 10000. Here every place is looked at, all that hold a value must agree, and without any
only a default the family documents is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .blocks import head_dim
from .errors import OnboardingError, nearest
from .mapping import ABSENT, FamilyMap, lookup
from .report import ConfigValues
from .resolve import candidates, resolve_config
from .vocabulary import ATTENTION_TYPES, POSITIVE, is_number, wrong_kind

# rope_type -> numbers it cannot do without, as transformers 5.24 requires them
SCALINGS = {
    "default": (), "linear": ("factor",), "dynamic": ("factor",), "yarn": ("factor",), "longrope": ("short_factor", "long_factor"),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "proportional": (), "xdrope": ("alpha",),
}
_ALIASES = {"su": "longrope", "mrope": "default"}  # older spellings; mrope is the default with an mrope_section
_POSITIVE = ("factor", "alpha", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings", "beta_fast", "beta_slow",
             "attention_factor")  # null stands for what is not there
_PER_PAIR = ("short_factor", "long_factor")
_OWN = ("rope_theta", "partial_rotary_factor", "rope_type", "type")  # of a rope dict, resolved here


@dataclass(frozen=True)
class Rope:
    """theta; dims, elements of a head that rotate, even; pairing "half" or "interleaved"; scaling, rope_type and its numbers as the
    configuration has them; source, where theta came from."""

    theta: float
    dims: int
    pairing: str
    scaling: dict = field(default_factory=lambda: {"rope_type": "default"})
    source: str = ""

    def __str__(self) -> str:
        kind = self.scaling["rope_type"]
        scaled = f", {kind}" if kind != "default" else ""
        return f"theta {self.theta:.10g}, {self.dims} dims, {self.pairing}{scaled} ({self.source})"


def resolve_ropes(config: Mapping, family: FamilyMap, found: ConfigValues | None = None) -> dict[str, Rope]:
    """The Rope of every layer type of the model that rotates; {} for a model without attention."""
    found = found or resolve_config(family, config)
    return {kind: resolve_rope(config, family, kind, found) for kind in dict.fromkeys(found.get("layer_types", ()))
            if kind in ATTENTION_TYPES}


def resolve_rope(config: Mapping, family: FamilyMap, layer_type: str = "full_attention", found: ConfigValues | None = None) -> Rope:
    """The rotary embedding of the blocks of one layer type.

    Raises OnboardingError when places disagree, when none has a base and the family documents none, when a number makes no sense.
    """
    found = found or resolve_config(family, config)
    dicts = list(_dicts(config, family, layer_type))
    theta, source = _theta(config, family, layer_type, dicts, found)
    if "rope_ratio" in found:
        theta, source = theta * found["rope_ratio"], f"{source} times {found.sources['rope_ratio']} {found['rope_ratio']:g}"
    dims = _dims(config, family, layer_type, dicts, found)
    return Rope(theta, dims, family.traits["rope_pairing"], _scaling(dicts, dims, found), source)


def _dicts(config: Mapping, family: FamilyMap, layer_type: str) -> Iterator[tuple[str, Mapping]]:
    """Every dict with rope numbers for this layer type, with its path."""
    seen, local = [], _local(family, layer_type)
    spellings = [path for key in ("rope_parameters", "rope_scaling") for path in candidates(family, family.config.get(key, (key,)))]
    usual = [outer + key for outer in ("", "text_config.") for key in ("rope_parameters", "rope_scaling")]
    places = {path: lookup(config, path) for path in dict.fromkeys([*spellings, *usual])}
    if all(value is ABSENT for value in places.values()) and "rope_parameters" in family.defaults:
        places = {f"(default of {family.file.stem}) rope_parameters": family.defaults["rope_parameters"]}
    for path, value in places.items():
        if value is ABSENT or value is None:
            continue
        if not isinstance(value, Mapping):
            raise OnboardingError(f"config.json {path}: must be an object, is {value!r:.80}")
        if any(isinstance(entry, Mapping) for entry in value.values()):
            if not isinstance(value.get(layer_type), Mapping):
                raise OnboardingError(f"config.json {path}: has no entry for {layer_type} blocks, only {', '.join(map(repr, value))}")
            path, value = f"{path}.{layer_type}", value[layer_type]
        elif local:  # a dict for all blocks is about the full ones: gemma3 before transformers 5
            continue
        if value not in seen:  # transformers writes one dict under both names
            seen.append(value)
            yield path, value


def _local(family: FamilyMap, layer_type: str) -> bool:
    """Whether these blocks have a base of their own."""
    return layer_type == "sliding_attention" and "rope_local_theta" in family.config


def _theta(config: Mapping, family: FamilyMap, layer_type: str, dicts, found: ConfigValues) -> tuple[float, str]:
    local = _local(family, layer_type)
    key = "rope_local_theta" if local else "rope_theta"
    paths = list(candidates(family, family.config.get(key, ())))
    if not local:
        paths += ["rope_theta", "text_config.rope_theta"]
    places = {path: lookup(config, path) for path in paths} | {f"{path}.rope_theta": entry.get("rope_theta") for path, entry in dicts}
    stated = {path: _base(path, value) for path, value in places.items() if value is not ABSENT and value is not None}
    if stated:
        _agree("rope_theta", stated)
        return next(iter(stated.values())), "config.json " + ", ".join(stated)
    default = family.defaults.get(key) if local else family.traits["rope_default_theta"]
    if default is None:
        raise OnboardingError(f"rope_theta of {layer_type} blocks is nowhere in config.json (looked at {', '.join(places)}) and the map "
                              f"{family.file.name} documents no default")
    return float(default), f"default of {family.file.stem}"


def _base(path: str, value) -> float:
    if not is_number(value) or value <= 1:
        raise OnboardingError(f"config.json {path}: must be a finite number above 1, is {value!r:.80}")
    return float(value)


def _agree(what: str, stated: Mapping[str, float]) -> None:
    if len(set(stated.values())) > 1:
        places = ", ".join(f"{path} = {value:.10g}" for path, value in stated.items())
        raise OnboardingError(f"config.json states {what} differently: {places}; correct the one that is wrong")


def _dims(config: Mapping, family: FamilyMap, layer_type: str, dicts, found: ConfigValues) -> int:
    if "head_dim" not in found:
        raise OnboardingError("the rotary embedding needs head_dim, which config.json neither has nor lets derive")
    head = head_dim(found, layer_type)
    if "rotary_dim" in found:
        dims, source = found["rotary_dim"], found.sources["rotary_dim"]
    else:
        share, source = _share(config, family, dicts, found)
        dims = int(head * share)
    if dims % 2 or not 2 <= dims <= head:
        raise OnboardingError(f"{dims} of the {head} elements of a head would rotate ({source}); must be even and at most head_dim")
    return dims


def _share(config: Mapping, family: FamilyMap, dicts, found: ConfigValues) -> tuple[float, str]:
    places = {path: lookup(config, path) for path in candidates(family, family.config.get("partial_rotary_factor", ()))}
    places |= {f"{path}.partial_rotary_factor": entry.get("partial_rotary_factor") for path, entry in dicts}
    stated = {path: value for path, value in places.items() if value is not ABSENT and value is not None}
    for path, value in stated.items():
        if not is_number(value) or not 0 < value <= 1:
            raise OnboardingError(f"config.json {path}: must be above 0 and at most 1, is {value!r:.80}")
    if stated:
        _agree("partial_rotary_factor", stated)
        return next(iter(stated.values())), f"config.json {next(iter(stated))}"
    return found.get("partial_rotary_factor", 1.0), found.sources.get("partial_rotary_factor", "the whole head")


def _scaling(dicts, dims: int, found: ConfigValues) -> dict:
    """rope_type and its numbers, from the dict that has one; two that scale differently are an error."""
    scalings = {}
    for path, entry in dicts:
        kind = entry.get("rope_type", entry.get("type", "default"))
        kind = _ALIASES.get(kind, kind) if isinstance(kind, str) else kind
        if not isinstance(kind, str) or kind not in SCALINGS:
            raise OnboardingError(f"config.json {path}: rope_type {kind!r:.80} is not known; {nearest(str(kind)[:80], SCALINGS)}")
        numbers = {"rope_type": kind, **{key: value for key, value in entry.items() if key not in _OWN and value is not None}}
        missing = [key for key in SCALINGS[kind] if key not in numbers and not (kind == "dynamic" and "alpha" in numbers)]
        if missing:
            raise OnboardingError(f"config.json {path}: rope_type {kind} needs {', '.join(missing)}")
        if numbers not in scalings.values():
            scalings[path] = numbers
    told = {path: numbers for path, numbers in scalings.items() if numbers != {"rope_type": "default"}}
    if len(told) > 1:
        raise OnboardingError(f"config.json scales the rotary embedding differently in {' and '.join(told)}")
    for path, numbers in told.items():
        _check_numbers(path, numbers, dims, found)
    return next(iter(told.values()), {"rope_type": "default"})


def _check_numbers(path: str, numbers: Mapping, dims: int, found: ConfigValues) -> None:
    """Those of a scaling, before a frequency is computed with them."""
    kind = numbers["rope_type"]
    for key in _POSITIVE:
        if key in numbers and (must := wrong_kind(POSITIVE, numbers[key])):
            raise OnboardingError(f"config.json {path}.{key}: must be {must}, is {numbers[key]!r:.80}")
    for key in _PER_PAIR:
        factors = numbers.get(key, [1.0] * (dims // 2))
        if not isinstance(factors, list) or len(factors) != dims // 2 or any(wrong_kind(POSITIVE, factor) for factor in factors):
            raise OnboardingError(f"config.json {path}.{key}: must be a list of {dims // 2} numbers above 0, one for each pair that "
                                  f"rotates, is {factors!r:.80}")
    if kind == "llama3" and numbers["low_freq_factor"] >= numbers["high_freq_factor"]:
        raise OnboardingError(f"config.json {path}: low_freq_factor {numbers['low_freq_factor']} must be below high_freq_factor "
                              f"{numbers['high_freq_factor']}")
    original = "original_max_position_embeddings" in numbers
    by_length = kind == "dynamic" and "alpha" not in numbers or kind in ("yarn", "longrope") and not (original and "factor" in numbers)
    if by_length and "max_position_embeddings" not in found:
        raise OnboardingError(f"config.json {path}: rope_type {kind} needs max_position_embeddings, which config.json does not have")
