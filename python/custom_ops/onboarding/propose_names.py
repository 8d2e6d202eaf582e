"""What a name probably is: spellings of all known families, then what the name contains and the shape of its tensors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from .mapping import ABSENT, FamilyMap, lookup
from .names import Names, Paths
from .report import ConfigValues
from .shapes import Shape, parameter
from .vocabulary import LEVELS

# further spellings in the wild, beside those of the maps
_CONFIG = {
    "hidden_size": ("d_model", "n_embd", "dim", "embed_dim", "model_dim", "hidden_dim"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "depth"),
    "num_key_value_heads": ("n_kv_heads", "num_kv_heads", "n_head_kv", "num_query_groups"),
    "rope_theta": ("rotary_emb_base", "rope_base", "rotary_base", "global_rope_theta"),
    "head_dim": ("d_head", "head_size", "attention_head_dim", "kv_channels"),
    "tie_word_embeddings": ("tie_embedding", "weight_tying", "tie_embeddings"),
    "vocab_size": ("n_vocab", "padded_vocab_size"),
    "rms_norm_eps": ("norm_eps", "layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "norm_epsilon", "eps"),
    "activation": ("hidden_act", "hidden_activation", "activation_function", "activation"),
    "intermediate_size": ("ffn_dim", "ffn_hidden_size", "n_inner", "d_ff", "inner_hidden_size", "mlp_dim"),
    "num_experts": ("num_local_experts", "n_routed_experts", "n_experts"),
    "top_k": ("num_experts_per_tok", "moe_top_k", "n_experts_per_tok", "experts_per_token"),
    "sliding_window": ("window_size", "attention_window"),
}
_INNER = {
    "self_attn": ("attn", "attention", "self_attention", "mixer"),
    "mlp": ("ffn", "feed_forward", "feedforward", "ff", "block_sparse_moe", "moe"),
    "input_layernorm": ("ln_1", "ln1", "norm1", "norm_1", "attention_norm", "attn_norm", "pre_attention_layernorm", "ln_attn"),
    "post_attention_layernorm": ("ln_2", "ln2", "norm2", "norm_2", "mlp_norm", "pre_mlp_layernorm", "ln_mlp"),
    "q_proj": ("wq", "query", "q", "to_q", "q_lin"), "k_proj": ("wk", "key", "k", "to_k", "k_lin"),
    "v_proj": ("wv", "value", "v", "to_v", "v_lin"),
    "o_proj": ("wo", "out", "proj", "to_out", "out_lin", "output"), "qkv_proj": ("qkv", "query_key_value", "c_attn", "Wqkv", "in_proj"),
    "q_norm": ("q_ln", "query_norm", "norm_q", "q_layer_norm"), "k_norm": ("k_ln", "key_norm", "norm_k", "k_layer_norm"),
    "gate": ("router", "gating"), "experts": ("expert",), "shared_expert": ("shared_experts", "shared_mlp"),
}
_DENSE = (
    {"gate": "w1", "up": "w3", "down": "w2"}, {"gate": "gate", "up": "up", "down": "down"}, {"up": "c_fc", "down": "c_proj"},
    {"up": "dense_h_to_4h", "down": "dense_4h_to_h"}, {"up": "up_proj", "down": "down_proj"}, {"up": "fc_in", "down": "fc_out"},
    {"gate": "fc1", "up": "fc3", "down": "fc2"}, {"gate_up": "gate_up", "down": "down"}, {"up": "up", "down": "down"},
)
_NORM = re.compile(r"norm|^ln|_ln$|layernorm")
_CONTAINS = {  # key -> what the name of a part has, where no spelling fits; norms apart
    "self_attn": re.compile(r"att|mixer"), "mlp": re.compile(r"mlp|ffn|feed|^ff|moe"),
    "input_layernorm": re.compile(r"in|pre|1|att|operator"),
    "post_attention_layernorm": re.compile(r"post|2|ffn|mlp|ff|out"), "q_norm": re.compile(r"^q|query"), "k_norm": re.compile(r"^k|key"),
    "experts": re.compile(r"expert"),
}
_ONLY_IF_EXACT = ("sinks", "mtp")  # too special to be guessed at


def spellings(maps: Mapping[str, Sequence[FamilyMap]], level: str, key: str) -> list[str]:
    """Every path that stands for this key in a known family, then the others known, in that order."""
    known = [source for entries in maps.values() for entry in entries for source in entry.level(level).get(key, ())]
    in_config = level in ("config", "traits") or LEVELS[level][key].kind not in ("module", "attribute")
    return list(dict.fromkeys([*known, *(_CONFIG if in_config else _INNER).get(key, ())]))


def reduced(shapes: Mapping[str, Shape | None]) -> dict[str, Shape | None]:
    """The names without repetition: of blocks built alike one is kept, of a list of experts the first two."""
    shapes = {name: shape for name, shape in shapes.items() if not re.search(r"\.experts\.(?![01]\.)\d+\.", name)}
    parts: dict[str, dict[int, set[str]]] = {}
    for name in shapes:
        for hit in re.finditer(r"\.(\d{1,6})\.", name):
            parts.setdefault(name[: hit.start()], {}).setdefault(int(hit[1]), set()).add(name[hit.end():])
    drop = set()
    for list_path, members in parts.items():
        kept = set()
        for number in sorted(members):
            signature = frozenset(members[number])
            if signature in kept and not list_path.endswith(".experts"):
                drop.add(f"{list_path}.{number}.")
            kept.add(signature)
    return {name: shape for name, shape in shapes.items()
            if not any(name[: hit.end()] in drop for hit in re.finditer(r"\.\d{1,6}\.", name))}


def config_prefix(base: FamilyMap, config: Mapping) -> str:
    """Where the text model's sizes are: a prefix of the base, or the nested object that has hidden_size and num_hidden_layers."""
    wanted = [{*base.config.get(key, ()), key, *_CONFIG[key]} for key in ("hidden_size", "num_hidden_layers")]

    def has(path: str) -> bool:
        inner = lookup(config, path[:-1]) if path else config
        return isinstance(inner, Mapping) and all(any(inner.get(name) is not None for name in names) for names in wanted)

    nested = [f"{key}." for key, value in config.items() if isinstance(value, Mapping) and re.fullmatch(r"[A-Za-z0-9_-]+", key)]
    text_first = sorted(nested, key=lambda prefix: not re.search(r"text|llm|language", prefix))
    return next((prefix for prefix in (*base.config_prefix, "", *text_first) if has(prefix)), base.config_prefix[0])


def config_source(level: str, key: str, family: FamilyMap, config: Mapping, maps) -> str:
    """A path of config.json for a key the map does not find, "" when nothing fits."""
    known = _CONFIG.get(key, ()) if level == "traits" else spellings(maps, level, key)
    for source in known:
        if source.startswith("/") or not re.fullmatch(r"[A-Za-z0-9_.-]+", source):
            continue
        if any(lookup(config, prefix + source) not in (ABSENT, None) for prefix in family.config_prefix):
            return source
    return ""


def model_paths(paths: Paths, found: ConfigValues, few: Mapping[str, Shape | None], maps) -> dict[str, str]:
    """Paths of the model level that the map does not find, by known spellings, then by structure."""
    tree, result = Names(few), {}
    missing = {entry.dst for entry in paths.report if entry.level == "model" and entry.required}
    for key in ("blocks", "embed", "final_layernorm", "lm"):
        if key in missing:
            path = next((path for path in spellings(maps, "model", key) if tree.node(path) is not None), None)
            path = path or _by_structure(key, result.get("blocks") or paths.model.get("blocks", ""), found, few)
            if path:
                result[key] = path
    return result


def _by_structure(key: str, blocks: str, found: ConfigValues, few: Mapping[str, Shape | None]) -> str:
    if key == "blocks":
        lists = Counter(hit[1] for name in few if (hit := re.match(r"(.*?)\.\d{1,6}\.", name)))
        text = {path: count for path, count in lists.items() if not re.search(r"vis|audio|encoder|talker|mtp", path)}
        return max(text or lists, key=(text or lists).get, default="")
    outside = {name: shape for name, shape in few.items() if not (blocks and name.startswith(blocks + ".")) and name.endswith(".weight")}
    vocab, hidden = found.get("vocab_size"), found.get("hidden_size")
    if key == "final_layernorm":
        hits = [name for name, shape in outside.items() if _NORM.search(name.split(".")[-2]) and shape in (None, (hidden,))]
    else:
        sign = re.compile(r"emb|wte|tok") if key == "embed" else re.compile(r"head|output|lm|proj_out|unembed")
        hits = [name for name, shape in outside.items() if sign.search(name) and (shape is None or shape[:1] == (vocab,))]
    near = [name for name in hits if blocks and name.startswith(blocks.rpartition(".")[0])] or hits
    return near[0].removesuffix(".weight") if near else ""


def match(level: str, wanted: list[str], extra: list[str], free: list[str], maps, placed: bool) -> dict[str, str]:
    """Parts left over (`free`) given to keys: wanted ones of the map first, then further ones of the vocabulary.

    `placed`: the block has its attention already, so that the other slot is not looked for.
    """
    slots = ("self_attn", "linear_attn")
    wanted = [key for key in wanted if not (placed and key in slots)]
    extra = [key for key in extra if not (placed and key in slots)]
    result: dict[str, str] = {}

    def give(key: str, child: str) -> None:
        result[key] = child
        free.remove(child)

    for key in (*wanted, *extra):
        child = next((path for path in spellings(maps, level, key) if path in free), None)
        if child is not None and _is_norm(child) == _norm_key(key):
            give(key, child)
    for key in wanted:
        if key in result or key in _ONLY_IF_EXACT or key not in _CONTAINS:
            continue
        hits = [child for child in free if _CONTAINS[key].search(child.lower()) and _is_norm(child) == _norm_key(key)]
        if len(hits) == 1:
            give(key, hits[0])
    left = [key for key in wanted if key not in result and _norm_key(key)]
    norms = [child for child in free if _is_norm(child)]
    if len(left) == len(norms) == 1:
        give(left[0], norms[0])
    if level == "decoder" and "post_attention_layernorm" in left and "post_attention_layernorm" not in result and not norms:
        result["post_attention_layernorm"] = ""
    return result


def _is_norm(name: str) -> bool:
    return bool(_NORM.search(name.lower()))


def _norm_key(key: str) -> bool:
    return "norm" in key


def dense_names(family: FamilyMap, children: Mapping, path: str, few: Mapping[str, Shape | None], maps) -> dict[str, str] | None:
    """Trait mlp_names for an MLP with these children: that of a known family whose names are all there, or what the names contain."""
    known = [family.traits["mlp_names"], *(entry.traits["mlp_names"] for entries in maps.values() for entry in entries), *_DENSE,
             *_dense_by_words(children)]
    fitting = [names for names in known if set(names.values()) <= set(children)]
    return max(fitting, key=lambda names: len(names) + _fused(names, path, few), default=None)


def _dense_by_words(children: Iterable[str]) -> list[dict[str, str]]:
    """Where every child has one of the words and no two the same: w_gate, w_up, w_down."""
    roles: dict[str, str] = {}
    for child in children:
        words = [word for word in ("gate", "up", "down") if word in child.lower()]
        roles.setdefault("_".join(words), child)
    return [roles] if len(roles) == len([*children]) and set(roles) in ({"gate", "up", "down"}, {"gate_up", "down"}, {"up", "down"}) else []


def _fused(names: Mapping[str, str], path: str, few: Mapping[str, Shape | None]) -> int:
    """Whether rows are as the roles say: the first matrix of an MLP has those of down, or twice as many where gate and up are one."""
    first = "gate_up" if "gate_up" in names else "up"
    shapes = [few.get(parameter(few, f"{path}.{names[role]}") or "") for role in (first, "down")]
    if any(shape is None or len(shape) != 2 for shape in shapes):
        return 0
    return 2 if shapes[0][0] == shapes[1][1] * (2 if first == "gate_up" else 1) else -2


def traits_of(family: FamilyMap, found: ConfigValues, paths: Paths, few: Mapping[str, Shape | None]) -> dict[str, object]:
    """Traits that names and shapes do tell and the family has otherwise."""
    told: dict[str, object] = {}
    for layer in paths.layers:
        keys = set(layer.decoder)
        if {"pre_feedforward_layernorm", "input_layernorm"} <= keys:
            told["residual"] = "four_norm"
        elif "post_feedforward_layernorm" in keys and "input_layernorm" not in keys:
            told["residual"] = "post_norm"
        elif "post_attention_layernorm" not in keys:
            told["residual"] = "parallel"
        elif family.traits["residual"] in ("four_norm", "post_norm", "parallel"):
            told["residual"] = "standard"
        norm = layer.decoder.get("input_layernorm") or layer.decoder.get("post_attention_layernorm")
        if norm:
            told["norm"] = "layer" if f"{norm}.bias" in few else "rms"
        if layer.mlp and not layer.moe:
            told["mlp"] = "gated" if {"gate", "gate_up"} & set(layer.mlp) else "plain"
        told |= _attention_traits(family, found, layer.attention, few)
    return {name: value for name, value in told.items() if family.traits[name] != value}


def _attention_traits(family: FamilyMap, found: ConfigValues, attention: Mapping[str, str],
                      few: Mapping[str, Shape | None]) -> dict[str, object]:
    told: dict[str, object] = {}
    if not attention or not {"num_attention_heads", "head_dim"} <= set(found.values):
        return told
    wide = found["num_attention_heads"] * found["head_dim"]
    rows = {key: (few.get(parameter(few, path) or "") or (None,))[0] for key, path in attention.items()}
    if "q_norm" in attention:
        told["qk_norm"] = family.traits["qk_norm"] if family.traits["qk_norm"] != "none" else "before_rope"
        if rows["q_norm"] in (wide, found["head_dim"]) and wide != found["head_dim"]:
            told["qk_norm_over"] = "projection" if rows["q_norm"] == wide else "head"
    elif family.traits["qk_norm"] != "none" and "q_norm" in family.attention and "attention.q_norm" not in family.optional:
        told["qk_norm"] = "none"
    if rows.get("q_proj") in (wide, 2 * wide):
        told["output_gate"] = rows["q_proj"] == 2 * wide
    told["sinks"] = "sinks" in attention
    return told
