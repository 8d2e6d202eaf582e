"""The type of every block, from config.json or from the family's rule for configurations that state none."""

from __future__ import annotations

from .mapping import FamilyMap
from .report import ConfigValues, Unresolved
from .vocabulary import LAYER_TYPES


def resolve(family: FamilyMap, found: ConfigValues) -> None:
    """Completes found["layer_types"]: one name per block, or an entry in the report."""
    layers = found.get("num_hidden_layers")
    stated = found.values.pop("layer_types", None)
    source = found.sources.pop("layer_types", "")
    if layers is None:
        return
    if stated is None:
        types, source = _by_rule(family, found, layers)
    else:
        types = stated
    wrong = _wrong(types, layers)
    last = family.traits["layer_last"]
    if last is not None and not wrong and types[-1] != last:
        types, source = [*types[:-1], last], f"{source}, the last one {family.file.stem}'s"
    if wrong:
        found.report[:] = [entry for entry in found.report if entry.dst != "layer_types"]
        found.report.append(Unresolved("config", None, "layer_types", source, wrong, required=True))
    else:
        found.set("layer_types", list(types), source)


def _wrong(types, layers: int) -> str:
    if not isinstance(types, list):
        return f"must be a list of one name per block, is {types!r}" if types is not None else "absent, and the map has no rule for it"
    if len(types) != layers:
        return f"has {len(types)} entries for {layers} blocks"
    unknown = sorted({repr(name) for name in types if name not in LAYER_TYPES})
    return f"unknown {', '.join(unknown)}; known: {', '.join(LAYER_TYPES)}" if unknown else ""


def _by_rule(family: FamilyMap, found: ConfigValues, layers: int) -> tuple[list[str] | None, str]:
    traits, stem = family.traits, family.file.stem
    other = traits["layer_other"]
    if "attention_layers" in found:
        chosen = found["attention_layers"]
        if isinstance(chosen, list) and all(isinstance(layer, int) for layer in chosen):
            return ["full_attention" if layer in set(chosen) else other for layer in range(layers)], found.sources["attention_layers"]
    if "attention_interval" in found:
        interval = found["attention_interval"]
        types = [other if (layer + 1) % interval else "full_attention" for layer in range(layers)]
        return types, found.sources["attention_interval"]
    if found.get("window_flag") and "window_from" in found and "sliding_window" in found:
        start = int(found.get("window_from", 0))
        return ["sliding_attention" if layer >= start else "full_attention" for layer in range(layers)], found.sources["window_from"]
    pattern = traits["layer_pattern"]
    if pattern is None:
        return None, ""
    return [pattern[layer % len(pattern)] for layer in range(layers)], f"pattern of {stem}"
