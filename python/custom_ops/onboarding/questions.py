"""The ten questions about an architecture that porting a model has to answer, answered from its map, config.json and tensor names.

1 where embedding, blocks, final norm and head are    2 names of attention's projections    3 names of the parts of a block
4 how the branches join the residual stream    5 what rotates, and how    6 whether norm weights are used as w or 1 + w
7 whether the head is the embedding    8 how experts are stored and chosen    9 what differs from block to block
10 what a sequence carries in each block
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from .architecture import RESIDUAL_MODES, ROUTINGS
from .blocks import head_dim, head_sizes, shared_from, value_is_key
from .errors import OnboardingError
from .mapping import FamilyMap
from .names import Paths
from .report import ConfigValues
from .rope import resolve_ropes
from .shapes import Shape, experts_layout, parameter


@dataclass(frozen=True)
class Answer:
    """`answer`: lines of text, "" entries left out; `evidence`: config paths and tensor names that say so."""

    number: int
    question: str
    answer: tuple[str, ...]
    evidence: str


@dataclass(frozen=True)
class Subject:
    """Everything the answers are read from. paths and shapes are empty where a checkpoint has no (readable) weights."""

    family: FamilyMap
    config: Mapping
    found: ConfigValues
    paths: Paths
    shapes: Mapping[str, Shape]


def answers(subject: Subject) -> list[Answer]:
    return [Answer(number, question, tuple(filter(None, lines)), evidence)
            for number, (question, function) in enumerate(_QUESTIONS.items(), 1) for lines, evidence in [function(subject)]]


def _names(paths: Mapping[str, str], keys: Iterable[str]) -> str:
    """The keys that exist, with the checkpoint's name where it is another."""
    last = {key: paths[key].rpartition(".")[2] for key in keys if key in paths}
    return ", ".join(key if key == name else f"{key} = {name}" for key, name in last.items())


def _traits(family: FamilyMap, *names: str) -> str:
    return f"{family.file.name}: " + ", ".join(f"{name} = {family.traits[name]}" for name in names)


def _weights(s: Subject):
    model = s.paths.model
    lines = [f"{key}: {model[key]}" if key in model else f"{key}: not found" for key in ("embed", "blocks", "final_layernorm")]
    lines.append(f"lm: {model['lm']}" if "lm" in model else "lm: tied to embed" if s.found.get("tie_word_embeddings") else "lm: not found")
    towers = [f"{key} {path}" for key, path in model.items() if key not in ("embed", "blocks", "final_layernorm", "lm")]
    return [*lines, f"also: {', '.join(towers)}" if towers else ""], "tensor names"


def _projections(s: Subject):
    seen = {}
    for layer in s.paths.layers:
        if layer.attention:
            seen.setdefault("attention", layer)
        if layer.linear_attention:
            seen.setdefault("linear", layer)
    lines = []
    if "attention" in seen:
        paths = seen["attention"].attention
        fused = f"one matrix {paths['qkv_proj'].rpartition('.')[2]} ({s.family.traits['qkv_layout']})" if "qkv_proj" in paths else ""
        lines.append(f"attention: {fused or _names(paths, ('q_proj', 'k_proj', 'v_proj'))}, {_names(paths, ('o_proj',))}")
        norms = _names(paths, ("q_norm", "k_norm"))
        if norms:
            lines.append(f"norms: {norms}, {s.family.traits['qk_norm'].replace('_', ' ')}, over the {s.family.traits['qk_norm_over']}")
        biased = [key for key, path in paths.items() if f"{path}.bias" in s.shapes]
        lines.append(f"biases: {', '.join(biased)}" if biased else "no biases")
        lines.append("every head of the value is normed, without weight" if s.family.traits["value_norm"] else "")
        keyed = [number for number in range(len(s.paths.layers)) if value_is_key(s.found, number)]
        lines.append(f"the value is the projected key, before norm and rotation, in {ranges(keyed)}" if keyed else "")
        lines.append("q_proj also holds an output gate per head" if s.family.traits["output_gate"] else "")
        lines.append("one sink logit per head" if "sinks" in paths else "")
    if "linear" in seen:
        kind = s.family.traits["linear"].replace("_", " ")
        lines.append(f"{kind}: {_names(seen['linear'].linear_attention, seen['linear'].linear_attention)}")
    first = next(iter(seen.values()), None)
    where = first.decoder.get(first.kind, "") if first else ""
    return lines or ["no block to look at"], f"{where}.*" if where else "no tensor names"


def _children(s: Subject):
    if not s.paths.layers:
        return ["no block to look at"], "no tensor names"
    layer = s.paths.layers[0]
    inner = _names(layer.mlp, layer.mlp)
    return [_names(layer.decoder, layer.decoder), f"inside mlp: {inner}" if inner else ""], f"{s.paths.model['blocks']}.0"


def _residual(s: Subject):
    norms = [key for key in s.family.decoder if key.endswith("layernorm")]
    extra = []
    if s.found.get("enable_moe_block"):
        extra.append("experts beside the dense MLP with norms of their own")
    if s.found.get("hidden_size_per_layer_input"):
        extra.append(f"after them each block adds a gated input of its own of {s.found['hidden_size_per_layer_input']} numbers")
    if s.paths.layers and "layer_scalar" in s.paths.layers[0].decoder:
        extra.append("the block's result times layer_scalar")
    if "scale_depth" in s.found:
        extra.append(f"scale_depth {s.found['scale_depth']:g}")
    if s.family.traits["embed_scale"] != "none":
        factor = f" = {s.found['embed_scale']:g}" if "embed_scale" in s.found else ""
        extra.append(f"embedding times {s.family.traits['embed_scale']}{factor}")
    if s.family.traits["logit_scale"] != "none":
        extra.append(f"logits times {s.family.traits['logit_scale']}")
    if "final_softcap" in s.found:
        extra.append(f"logits capped at {s.found['final_softcap']:g}")
    mode = s.family.traits["residual"]
    return [f"{mode.replace('_', ' ')}: {RESIDUAL_MODES[mode]}", ", ".join(extra)], f"{', '.join(norms)}; {_traits(s.family, 'residual')}"


def _rotation(s: Subject):
    try:
        ropes = resolve_ropes(s.config, s.family, s.found)
    except OnboardingError as error:
        return [f"not settled: {error}"], "config.json"
    lines = [f"{kind + ': ' if len(ropes) > 1 else ''}{_rope_line(s, kind, rope)}" for kind, rope in ropes.items()]
    order = s.family.traits["qk_norm"]
    lines.append(f"norm of query and key {order.replace('_rope', ' the rotation')}" if order != "none" else "no norm of query and key")
    return (lines if ropes else ["no attention, nothing rotates"]), "; ".join(dict.fromkeys(rope.source for rope in ropes.values()))


def _rope_line(s: Subject, kind: str, rope) -> str:
    head = head_dim(s.found, kind)
    part = "all" if rope.dims == head else f"{rope.dims} of {head}"
    numbers = {key: value for key, value in rope.scaling.items() if key != "rope_type"}
    sections = " by time, height and width (M-RoPE)" if "mrope_section" in numbers else ""
    shown = ", ".join(f"{key} {value}" for key, value in numbers.items() if not isinstance(value, list))
    scaling = f", {rope.scaling['rope_type']}{f' ({shown})' if shown else ''}" if rope.scaling["rope_type"] != "default" else ""
    return f"theta {rope.theta:.10g}, {part} elements of a head, {rope.pairing} pairs{sections}{scaling}"


def _norms(s: Subject):
    t = s.family.traits
    kind = {"rms": "RMS norm", "layer": "LayerNorm"}[t["norm"]]
    eps = f", epsilon {s.found['rms_norm_eps']:g}" if "rms_norm_eps" in s.found else ""
    lines = [f"{kind}{eps}, weight used as {'1 + w' if t['norm_offset'] else 'w'}"]
    if t["qk_norm"] != "none" and t["qk_norm_offset"] != t["norm_offset"]:
        lines.append(f"query and key: weight used as {'1 + w' if t['qk_norm_offset'] else 'w'}")
    if t["linear"] == "gated_delta_rule":
        lines.append("norm inside the delta rule: weight used as w, times silu(z)")
    return lines, _traits(s.family, "norm", "norm_offset", "qk_norm_offset")


def _head(s: Subject):
    tied = s.found.get("tie_word_embeddings", False)
    lm = parameter(s.shapes, s.paths.model["lm"]) if "lm" in s.paths.model else None
    lines = ["tied: the head is the embedding" if tied else "not tied: a head of its own"]
    if tied and lm:
        lines.append(f"the checkpoint holds {lm} all the same; readers ignore it")
    if not tied and not lm and s.shapes:
        lines.append("but the checkpoint has no tensor for it")
    if lm and f"{s.paths.model['lm']}.bias" in s.shapes:
        lines.append("the head has a bias")
    return lines, s.found.sources.get("tie_word_embeddings", "config.json has no tie_word_embeddings")


def _experts(s: Subject):
    beside = bool(s.found.get("enable_moe_block"))
    moe = [number for number, layer in enumerate(s.paths.layers) if layer.moe or (beside and "experts" in layer.decoder)]
    if not moe:
        return ["no experts" if "experts" not in s.family.mlp and not beside else "no block with experts in the checkpoint"], "tensor names"
    first = s.paths.layers[moe[0]]
    path = (first.mlp if first.moe else first.decoder).get("experts", "")
    per_expert = any(re.match(re.escape(path) + r"\.\d+\.", name) for name in s.shapes)
    gate_up = s.shapes.get(f"{path}.gate_up_proj", ())
    fused = f", {experts_layout(s.family, s.found['hidden_size'], gate_up)}" if len(gate_up) == 3 and "hidden_size" in s.found else ""
    lines = [f"{s.found.get('num_experts', '?')} experts, k = {s.found.get('top_k', '?')}: {ROUTINGS[s.family.traits['routing']]}",
             "one tensor per expert and matrix" if per_expert else f"fused 3-D tensors{fused}",
             "chosen weights divided by their sum" if s.found.get("norm_topk_prob", beside) else "chosen weights as they are",
             "times a factor of each expert" if "expert_scale" in first.decoder else "",
             "beside the dense MLP" if beside else "",
             "a shared expert beside them" + ", gated" * ("shared_expert_gate" in s.family.mlp) if "shared_expert" in s.family.mlp else ""]
    return [*lines, f"in {ranges(moe)} of {len(s.paths.layers)} blocks" if len(moe) < len(s.paths.layers) else ""], f"{path}.*"


def _variation(s: Subject):
    types = s.found.get("layer_types", [])
    lines = [f"{kind}: {_blocks(types, kind)}" for kind in dict.fromkeys(types)]
    lines = [f"all {len(types)} blocks {types[0]}"] if len(lines) == 1 else lines
    if "sliding_window" in s.found and "sliding_attention" in types:
        lines.append(f"window {s.found['sliding_window']} tokens, the current one included")
    sizes: dict[str, dict[Shape, list[int]]] = {}
    blocks = s.paths.model.get("blocks")
    pattern = re.compile(re.escape(blocks) + r"\.(\d{1,6})\.(.*)", re.S) if blocks else None
    for name, shape in s.shapes.items():
        inside = pattern.fullmatch(name) if pattern and ".experts." not in name else None
        if inside:
            sizes.setdefault(inside[2], {}).setdefault(tuple(shape), []).append(int(inside[1]))
    varying = [f"{part}: " + "; ".join(f"{list(shape)} in {ranges(sorted(where))}" for shape, where in by_shape.items())
               for part, by_shape in sizes.items() if len(by_shape) > 1]
    more = f"and {len(varying) - 6} more" if len(varying) > 6 else ""
    return [*lines, *varying[:6], more], s.found.sources.get("layer_types", "config.json")


def _state(s: Subject):
    lines = []
    types = s.found.get("layer_types", [])
    for kind in dict.fromkeys(types):
        lines.append(f"{kind}: {_carried(s, kind, types.index(kind))}")
    shared: dict[int, list[int]] = {}
    for number in range(len(types)):
        if (source := shared_from(s.found, number)) is not None:
            shared.setdefault(source, []).append(number)
    lines += [f"block{'s' * (len(users) > 1)} {ranges(users)}: nothing of {'their' if len(users) > 1 else 'its'} own, keys and values of "
              f"block {source}" for source, users in shared.items()]
    return lines, "config.json sizes, " + _traits(s.family, "linear")


def _carried(s: Subject, kind: str, layer: int) -> str:
    f = s.found
    if kind == "conv" or (kind == "linear_attention" and s.family.traits["linear"] == "short_conv"):
        known = "hidden_size" in f and "conv_L_cache" in f
        return f"convolution state [{f['hidden_size']}, {f['conv_L_cache'] - 1}]" if known else "convolution state of unknown size"
    if kind == "linear_attention":
        needed = ("linear_num_key_heads", "linear_key_head_dim", "linear_num_value_heads", "linear_value_head_dim",
                  "linear_conv_kernel_dim")
        if not all(key in f for key in needed):
            return "convolution and recurrent state of unknown size"
        heads, k, values, v, taps = (f[key] for key in needed)
        return f"convolution state [{2 * heads * k + values * v}, {taps - 1}] and recurrent state [{values}, {k}, {v}]"
    if not {"num_attention_heads", "num_key_value_heads", "head_dim"} <= set(f.values):
        return "keys and values of unknown size"
    _, kv_heads, size = head_sizes(f, layer)
    per_token = 2 * kv_heads * size
    bound = f", of the last {f['sliding_window']} tokens" if kind == "sliding_attention" and "sliding_window" in f else ""
    return f"keys and values, {per_token} numbers a token{bound}"


def _blocks(types: list[str], kind: str) -> str:
    numbers = [number for number, other in enumerate(types) if other == kind]
    return f"block{'s' * (len(numbers) > 1)} {ranges(numbers)}"


def ranges(numbers: list[int]) -> str:
    """[0, 1, 2, 5] -> "0-2, 5"; a regular step is told as such: [3, 7, 11] -> "3, 7 ... 11"."""
    steps = {b - a for a, b in zip(numbers, numbers[1:], strict=False)}
    if len(numbers) > 3 and len(steps) == 1 and steps != {1}:
        return f"{numbers[0]}, {numbers[1]} ... {numbers[-1]}"
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    told = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return ", ".join(told) if len(told) <= 12 else ", ".join(told[:6]) + f" ... {told[-1]} ({len(numbers)} in all)"


_QUESTIONS = {
    "weight paths": _weights, "attention": _projections, "parts of a block": _children, "residual form": _residual, "rotation": _rotation,
    "norm weights": _norms, "head": _head, "experts": _experts, "block by block": _variation, "carried state": _state,
}
