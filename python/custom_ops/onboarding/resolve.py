"""A map applied to a config.json. What is not found is reported, never written as None."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from . import blocks, layer_types
from .mapping import ABSENT, FamilyMap, lookup
from .report import NULL, ConfigValues, Unresolved
from .vocabulary import ATTRIBUTE, LEVELS, MODULE, TRAITS, wrong_kind

MOST_LAYERS = 100_000  # a config.json that says more is broken or hostile: nothing is allocated by it
_ALWAYS = ("hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size", "rms_norm_eps", "activation")
_BY_LINEAR = {
    "none": (),
    "short_conv": ("conv_L_cache",),
    "gated_delta_rule": ("linear_conv_kernel_dim", "linear_key_head_dim", "linear_num_key_heads", "linear_num_value_heads",
                         "linear_value_head_dim"),
}


def candidates(family: FamilyMap, sources: Iterable[str]) -> Iterator[str]:
    """Paths of config.json to try, in order: every spelling, under every prefix of the family."""
    for source in sources:
        yield from (source[1:],) if source.startswith("/") else (prefix + source for prefix in family.config_prefix)


def resolve_config(family: FamilyMap, config: Mapping) -> ConfigValues:
    """The values of a config.json (as a dict) through a family's map. Raises nothing: see `report` and `require`."""
    found = ConfigValues({}, {}, [])
    wanted = [(level, key, entry.kind, family.level(level)[key]) for level, keys in LEVELS.items() for key, entry in keys.items()
              if entry.kind not in (MODULE, ATTRIBUTE) and key in family.level(level)]
    wanted += [("traits", name, trait.path, (family.traits[name],)) for name, trait in TRAITS.items()
               if trait.path and family.traits[name] not in (None, *trait.choices)]
    for level, key, kind, sources in wanted:
        _one(family, config, level, key, kind, sources, found)
    for key, value in family.defaults.items():
        if key not in found.values and not found.stated(key):  # null is a statement too: no softcap, no head_dim of its own
            found.set(key, value, f"default of {family.file.stem}")
    _derive(found)
    _report_unfit(found)
    layer_types.resolve(family, found)
    blocks.resolve(found)
    needed = [*_ALWAYS, *_BY_LINEAR[family.traits["linear"]], *(("num_experts", "top_k") if _has_experts(family, found) else ())]
    needed += _by_form(family, found)
    if "sliding_attention" in found.get("layer_types", ()):
        needed.append("sliding_window")
    if "chunked_attention" in found.get("layer_types", ()):
        needed.append("attention_chunk_size")
    for position, entry in enumerate(found.report):
        if entry.dst in needed:
            found.report[position] = Unresolved(entry.level, entry.layer, entry.dst, entry.src, entry.reason, required=True)
    reported = {entry.dst for entry in found.report}
    found.report.extend(Unresolved("config", None, key, "", "the map names no source", required=True)
                        for key in needed if key not in found.values and key not in reported)
    return found


def _by_form(family: FamilyMap, found: ConfigValues) -> Iterator[str]:
    """Numbers that a form of residual, head or attention cannot do without."""
    if family.traits["residual"] == "depth_scaled":
        yield "scale_depth"
    if family.traits["logit_scale"] == "base_over_hidden":
        yield "dim_model_base"
    if found.get("attn_temperature_tuning"):
        yield from ("attn_scale", "floor_scale")


def _report_unfit(found: ConfigValues) -> None:
    """Reports counts that do not go together, and what is no decoder."""
    if found.get("use_bidirectional_attention") in (True, "all"):
        source = found.sources["use_bidirectional_attention"]
        reason = "every token sees later ones, no decoder"
        found.report.append(Unresolved("config", None, "use_bidirectional_attention", source, reason, required=True))
    key_heads, value_heads = found.get("linear_num_key_heads"), found.get("linear_num_value_heads")
    if key_heads and value_heads and value_heads % key_heads:
        reason = f"{value_heads} is no multiple of linear_num_key_heads {key_heads}"
        found.report.append(Unresolved("config", None, "linear_num_value_heads", found.sources["linear_num_value_heads"], reason,
                                       required=True))
    experts, chosen = found.get("num_experts"), found.get("top_k")
    if experts and chosen and chosen > experts:
        found.report.append(Unresolved("mlp", None, "top_k", found.sources["top_k"], f"{chosen} of {experts} experts", required=True))


def _has_experts(family: FamilyMap, found: ConfigValues) -> bool:
    if "enable_moe_block" in family.config:
        return bool(found.get("enable_moe_block"))
    return "num_experts" in family.mlp


def _one(family: FamilyMap, config: Mapping, level: str, key: str, kind: str, sources: tuple[str, ...], found: ConfigValues) -> None:
    tried, reason = [], "absent"
    for path in candidates(family, sources):
        value = lookup(config, path)
        if value is ABSENT or value is None:
            tried.append(path)
            reason = NULL if value is None else reason
            continue
        wrong = wrong_kind(kind, value)
        if key == "num_hidden_layers" and not wrong and value > MOST_LAYERS:
            wrong = f"at most {MOST_LAYERS} blocks"
        if wrong:
            found.report.append(Unresolved(level, None, key, path, f"must be {wrong}, is {_short(value)}", required=True))
        else:
            found.set(key, value, f"config.json {path}")
        return
    found.report.append(Unresolved(level, None, key, " | ".join(tried), reason, required=False))


def _short(value) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _derive(found: ConfigValues) -> None:
    """Sizes that config.json may leave out."""
    hidden, heads = found.get("hidden_size"), found.get("num_attention_heads")
    if "num_key_value_heads" not in found and heads and not found.wrong("num_key_value_heads"):
        found.set("num_key_value_heads", heads, "num_attention_heads")
    if "head_dim" not in found and hidden and heads and not found.wrong("head_dim"):
        if hidden % heads:
            reason = f"hidden_size {hidden} is no multiple of num_attention_heads {heads}"
            found.report.append(Unresolved("config", None, "head_dim", "hidden_size / num_attention_heads", reason, required=True))
        else:
            found.set("head_dim", hidden // heads, "hidden_size / num_attention_heads")
    kv_heads = found.get("num_key_value_heads")
    if heads and kv_heads and heads % kv_heads:
        reason = f"num_attention_heads {heads} is no multiple of it ({kv_heads})"
        found.report.append(Unresolved("config", None, "num_key_value_heads", found.sources["num_key_value_heads"], reason, required=True))
