"""What shapes a checkpoint's tensors must have by its config.json, and which of them have another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .blocks import head_sizes
from .mapping import FamilyMap
from .names import LayerPaths, Paths
from .report import ConfigValues

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Mismatch:
    name: str
    got: Shape
    want: Shape
    relation: str  # "[num_attention_heads head_dim, hidden_size]"

    def __str__(self) -> str:
        return f"{self.name}: {list(self.got)}, config.json makes it {list(self.want)} = {self.relation}"


def parameter(tensors: Mapping[str, object], path: str) -> str | None:
    """Name of the weight at a path: path.weight, or a bare parameter."""
    return next((name for name in (f"{path}.weight", path) if name in tensors), None)


def mismatches(family: FamilyMap, found: ConfigValues, paths: Paths, shapes: Mapping[str, Shape]) -> list[Mismatch]:
    """Tensors whose shape config.json contradicts. Needs the required values of config.json; `shapes`: tensor name -> shape."""
    wrong = []
    for path, want, relation in _expected(family, found, paths, shapes):
        name = parameter(shapes, path)
        if name is not None and tuple(shapes[name]) != want:
            wrong.append(Mismatch(name, tuple(shapes[name]), want, relation))
    return wrong


def _expected(family: FamilyMap, found: ConfigValues, paths: Paths, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Shape, str]]:
    d, vocab = found["hidden_size"], found["vocab_size"]
    for key, want, relation in (("embed", (vocab, d), "[vocab_size, hidden_size]"), ("lm", (vocab, d), "[vocab_size, hidden_size]"),
                                ("final_layernorm", (d,), "[hidden_size]")):
        if key in paths.model:
            yield paths.model[key], want, relation
    own, blocks = found.get("hidden_size_per_layer_input", 0), found["num_hidden_layers"]
    whole = "num_hidden_layers hidden_size_per_layer_input"
    for key, want, relation in (("per_layer_model_projection", (blocks * own, d), f"[{whole}, hidden_size]"),
                                ("per_layer_projection_norm", (own,), "[hidden_size_per_layer_input]")):
        if key in paths.model:
            yield paths.model[key], want, relation
    for number, layer in enumerate(paths.layers):
        for key, path in layer.decoder.items():
            if "layernorm" in key:
                yield path, (d,), "[hidden_size]"
        yield from _beside(family, found, layer.decoder, shapes)
        yield from _attention(family, found, number, layer.attention)
        yield from (_short_conv if family.traits["linear"] == "short_conv" else _delta_rule)(found, layer.linear_attention)
        yield from _mlp(family, found, layer, shapes)


def _attention(family: FamilyMap, found: ConfigValues, number: int, paths: Mapping[str, str]) -> Iterator[tuple[str, Shape, str]]:
    d = found["hidden_size"]
    heads, kv_heads, size = head_sizes(found, number)
    whole = family.traits["qk_norm_over"] == "projection"
    gate = 2 if family.traits["output_gate"] else 1
    table = {
        "q_proj": ((gate * heads * size, d), f"[{'2 ' if gate == 2 else ''}num_attention_heads head_dim, hidden_size]"),
        "k_proj": ((kv_heads * size, d), "[num_key_value_heads head_dim, hidden_size]"),
        "v_proj": ((kv_heads * size, d), "[num_key_value_heads head_dim, hidden_size]"),
        "qkv_proj": (((heads + 2 * kv_heads) * size, d), "[(num_attention_heads + 2 num_key_value_heads) head_dim, hidden_size]"),
        "o_proj": ((d, heads * size), "[hidden_size, num_attention_heads head_dim]"),
        "q_norm": ((heads * size if whole else size,), "[num_attention_heads head_dim]" if whole else "[head_dim]"),
        "k_norm": ((kv_heads * size if whole else size,), "[num_key_value_heads head_dim]" if whole else "[head_dim]"),
        "sinks": ((heads,), "[num_attention_heads]"),
    }
    yield from ((path, *table[key]) for key, path in paths.items())


def _beside(family: FamilyMap, found: ConfigValues, paths: Mapping[str, str],
            shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Shape, str]]:
    """A block's own input, and experts beside its dense MLP."""
    d, own, experts = found["hidden_size"], found.get("hidden_size_per_layer_input", 0), found.get("num_experts", 0)
    table = {
        "per_layer_input_gate": ((own, d), "[hidden_size_per_layer_input, hidden_size]"),
        "per_layer_projection": ((d, own), "[hidden_size, hidden_size_per_layer_input]"),
        "post_per_layer_input_norm": ((d,), "[hidden_size]"), "layer_scalar": ((1,), "[1]"),
        "router": ((experts, d), "[num_experts, hidden_size]"), "router_scale": ((d,), "[hidden_size]"),
        "expert_scale": ((experts,), "[num_experts]"),
    }
    yield from ((path, *table[key]) for key, path in paths.items() if key in table)
    if "experts" in paths and "num_experts" in found:
        yield from _fused_experts(family, found, paths["experts"], shapes)


def _short_conv(found: ConfigValues, paths: Mapping[str, str]) -> Iterator[tuple[str, Shape, str]]:
    if not paths:
        return
    d, taps = found["hidden_size"], found["conv_L_cache"]
    table = {"in_proj": ((3 * d, d), "[3 hidden_size, hidden_size]"), "conv": ((d, 1, taps), "[hidden_size, 1, conv_L_cache]"),
             "out_proj": ((d, d), "[hidden_size, hidden_size]")}
    yield from ((path, *table[key]) for key, path in paths.items() if key in table)


def _delta_rule(found: ConfigValues, paths: Mapping[str, str]) -> Iterator[tuple[str, Shape, str]]:
    if not paths:
        return
    d, heads, values = found["hidden_size"], found["linear_num_key_heads"], found["linear_num_value_heads"]
    keys_size, values_size = heads * found["linear_key_head_dim"], values * found["linear_value_head_dim"]
    channels = 2 * keys_size + values_size
    table = {
        "in_proj_qkv": ((channels, d), "[2 H K + HV V, hidden_size]"), "in_proj_z": ((values_size, d), "[HV V, hidden_size]"),
        "in_proj_b": ((values, d), "[HV, hidden_size]"), "in_proj_a": ((values, d), "[HV, hidden_size]"),
        "in_proj_qkvz": ((channels + values_size, d), "[2 H K + 2 HV V, hidden_size]"),
        "in_proj_ba": ((2 * values, d), "[2 HV, hidden_size]"),
        "conv1d": ((channels, 1, found["linear_conv_kernel_dim"]), "[2 H K + HV V, 1, linear_conv_kernel_dim]"),
        "norm": ((found["linear_value_head_dim"],), "[linear_value_head_dim]"), "A_log": ((values,), "[HV]"),
        "dt_bias": ((values,), "[HV]"),
        "out_proj": ((d, values_size), "[hidden_size, HV V]"),
    }
    yield from ((path, *table[key]) for key, path in paths.items() if key in table)


def _mlp(family: FamilyMap, found: ConfigValues, layer: LayerPaths, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Shape, str]]:
    """Sizes of an MLP follow the checkpoint's own matrix: Lfm2 rounds intermediate_size, other families have one for dense blocks."""
    d = found["hidden_size"]
    if layer.moe:
        for key in ("gate", "router"):
            if key in layer.mlp:
                yield layer.mlp[key], (found["num_experts"], d), "[num_experts, hidden_size]"
        yield from _fused_experts(family, found, layer.mlp["experts"], shapes)
        return
    down = parameter(shapes, layer.mlp["down"]) if "down" in layer.mlp else None
    if down is None or len(shapes[down]) != 2:
        return
    width = shapes[down][1]
    yield layer.mlp["down"], (d, width), "[hidden_size, width]"
    for key, rows, relation in (("gate", width, "[width of down, hidden_size]"), ("up", width, "[width of down, hidden_size]"),
                                ("gate_up", 2 * width, "[2 width of down, hidden_size]")):
        if key in layer.mlp:
            yield layer.mlp[key], (rows, d), relation


def experts_layout(family: FamilyMap, hidden: int, gate_up: Shape) -> str:
    """Trait experts_layout of a tensor [E, ., .], "by_shape" settled as transformers does: halves unless only columns fit."""
    layout = family.traits["experts_layout"]
    if layout != "by_shape":
        return layout
    return "columns" if gate_up[1] == hidden != gate_up[2] else "halves"


def _fused_experts(family: FamilyMap, found: ConfigValues, path: str, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Shape, str]]:
    """Trait experts_layout against the checkpoint: which dimension of the fused experts is hidden_size."""
    down, gate_up = shapes.get(f"{path}.down_proj"), shapes.get(f"{path}.gate_up_proj")
    if down is None or gate_up is None or len(down) != 3 or len(gate_up) != 3:
        return
    experts, d = found["num_experts"], found["hidden_size"]
    if experts_layout(family, d, gate_up) == "halves":
        yield f"{path}.down_proj", (experts, d, down[2]), "[num_experts, hidden_size, width]"
        yield f"{path}.gate_up_proj", (experts, 2 * down[2], d), "[num_experts, 2 width of down, hidden_size]"
    else:
        yield f"{path}.down_proj", (experts, down[1], d), "[num_experts, width, hidden_size]"
        yield f"{path}.gate_up_proj", (experts, d, 2 * down[1]), "[num_experts, hidden_size, 2 width of down]"
