"""What config.json says of single blocks: sizes of their heads, and which of them have no keys or values of their own.

Nothing here raises: what resolve has reported is not a value any more.
"""

from __future__ import annotations

from collections.abc import Mapping

from .report import ConfigValues, Unresolved
from .vocabulary import COUNT, wrong_kind

SHARED = ("k_proj", "v_proj", "k_norm")  # parts of attention that a block which uses those of an earlier one does not have
_OWN = ("num_key_value_heads", "head_dim")  # what per_layer_config may say


def _own(found: ConfigValues, layer: int) -> Mapping:
    types = found.get("layer_types", ())
    stated = found.get("per_layer_config")
    if isinstance(stated, Mapping):
        own = stated.get(str(layer))
        return own if isinstance(own, Mapping) else {}
    if "global_head_dim" not in found or layer >= len(types) or types[layer] != "full_attention":
        return {}
    heads = found.get("num_global_key_value_heads") if found.get("attention_k_eq_v") else None
    return {"head_dim": found["global_head_dim"], **({} if heads is None else {"num_key_value_heads": heads})}


def head_sizes(found: ConfigValues, layer: int) -> tuple[int, int, int]:
    """Query heads, key and value heads and head size of a block."""
    own = _own(found, layer)
    return found["num_attention_heads"], *(own.get(key, found[key]) for key in _OWN)


def head_dim(found: ConfigValues, layer_type: str) -> int:
    """Of the blocks of one layer type; resolve makes sure that they agree."""
    types = found.get("layer_types", ())
    return _own(found, types.index(layer_type)).get("head_dim", found["head_dim"]) if layer_type in types else found["head_dim"]


def shared_from(found: ConfigValues, layer: int) -> int | None:
    """The earlier block whose keys and values this one uses; None where it has its own."""
    types, shared = found.get("layer_types", ()), found.get("num_kv_shared_layers", 0)
    first = len(types) - shared
    if layer < first or layer >= len(types):
        return None
    return next((other for other in reversed(range(first)) if types[other] == types[layer]), None)


def value_is_key(found: ConfigValues, layer: int) -> bool:
    types = found.get("layer_types", ())
    return bool(found.get("attention_k_eq_v")) and layer < len(types) and types[layer] == "full_attention"


def lacking(found: ConfigValues, layer: int) -> tuple[str, ...]:
    """Parts of attention that this block does not have."""
    if shared_from(found, layer) is not None:
        return SHARED
    return ("v_proj",) if value_is_key(found, layer) else ()


def resolve(found: ConfigValues) -> None:
    """Reports what cannot be of the values that speak of single blocks, and takes it away; numbers of blocks lose leading zeros. Needs
    layer_types."""
    types = found.get("layer_types", ())
    stated = found.get("per_layer_config")
    if isinstance(stated, Mapping):  # transformers writes "05" where there are more than ten
        found.values["per_layer_config"] = {str(key).lstrip("0") or "0": own for key, own in stated.items()}
    for key, wrong in (("per_layer_config", _wrong_sizes(found, types)), ("num_global_key_value_heads", _wrong_heads(found, types)),
                       ("num_kv_shared_layers", _wrong_sharing(found, types))):
        if wrong:
            found.values.pop(key, None)
            found.report.append(Unresolved("config", None, key, found.sources.get(key, ""), wrong, required=True))


def _wrong_sizes(found: ConfigValues, types) -> str:
    stated = found.get("per_layer_config")
    if stated is None:
        return ""
    if not isinstance(stated, Mapping) or not all(isinstance(own, Mapping) for own in stated.values()):
        return f"must hold an object for each block that differs, is {stated!r:.80}"
    numbers = {str(layer) for layer in range(len(types))}
    for layer, own in stated.items():
        if layer not in numbers:
            return f"block {layer!r:.40} is none of {len(types)}"
        for key, value in own.items():
            if key not in _OWN:
                return f"block {layer} has {key!r:.40}; LlmModel has blocks that differ in {' and '.join(_OWN)}"
            if must := wrong_kind(COUNT, value):
                return f"block {layer} {key} must be {must}, is {value!r:.80}"
    for kind in dict.fromkeys(types):
        if len({_own(found, layer).get("head_dim", found.get("head_dim")) for layer, other in enumerate(types) if other == kind}) > 1:
            return f"{kind} blocks differ in head_dim"
    return ""


def _wrong_heads(found: ConfigValues, types) -> str:
    heads = found.get("num_attention_heads")
    for layer in range(len(types) if heads else 0):
        own = _own(found, layer).get("num_key_value_heads", 1)
        if wrong_kind(COUNT, own) == "" and heads % own:
            return f"block {layer}: num_attention_heads {heads} is no multiple of num_key_value_heads {own}"
    return ""


def _wrong_sharing(found: ConfigValues, types) -> str:
    first = len(types) - found.get("num_kv_shared_layers", 0)
    alone = next((layer for layer in range(max(first, 0), len(types)) if shared_from(found, layer) is None), None)
    if alone is None:
        return ""
    return f"block {alone} would share keys and values, and no block before block {max(first, 0)} is {types[alone]}"
