"""A map applied to the tensor names of a checkpoint: model, then block by block, marking what the map covers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .blocks import lacking
from .mapping import FamilyMap
from .report import ConfigValues, Unresolved
from .vocabulary import LEVELS, LINEAR_TYPES, MODULE

_NEEDED_OF_MODEL = ("embed", "blocks", "final_layernorm")
_SPLIT = ("q_proj", "k_proj", "v_proj")
BUFFERS = ("rotary_emb.inv_freq", "rotary_pos_emb.inv_freq")  # written by older versions, computed by every reader
#: value of config.json -> the parts of model and blocks that only come with it
_ONLY_WITH = {
    "hidden_size_per_layer_input": ("embed_tokens_per_layer", "per_layer_model_projection", "per_layer_projection_norm",
                                    "per_layer_input_gate", "per_layer_projection", "post_per_layer_input_norm"),
    "enable_moe_block": ("router", "router_scale", "expert_scale", "experts", "pre_feedforward_layernorm_2",
                         "post_feedforward_layernorm_1", "post_feedforward_layernorm_2"),
}


@dataclass(frozen=True)
class LayerPaths:
    """Where one block's parts are: unified key -> path of the checkpoint, per level, only keys that exist."""

    kind: str   # "self_attn" or "linear_attn"; "" when the checkpoint has neither or both
    moe: bool
    decoder: dict[str, str] = field(default_factory=dict)
    attention: dict[str, str] = field(default_factory=dict)
    linear_attention: dict[str, str] = field(default_factory=dict)
    mlp: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Paths:
    """Where a model's parts are. `unused`: tensors that no entry of the map covers, buffers every reader computes left out."""

    model: dict[str, str]
    layers: list[LayerPaths]
    report: list[Unresolved]
    unused: list[str]


class Names:
    """Tensor names as a tree: what exists below a path."""

    def __init__(self, names: Iterable[str]):
        self.root: dict = {}
        for name in names:
            node = self.root
            for step in name.split("."):
                node = node.setdefault(step, {})

    def node(self, path: str) -> dict | None:
        """The tree below a path, {} at a tensor, None where nothing is."""
        node = self.root
        for step in path.split("."):
            node = node.get(step)
            if node is None:
                return None
        return node

    def numbers(self, path: str) -> list[int]:
        """Of the blocks or experts below a path, in order; what has more than six digits is none."""
        return sorted(int(step) for step in self.node(path) or {} if step.isascii() and step.isdigit() and len(step) <= 6)


def resolve_names(family: FamilyMap, names: Iterable[str], found: ConfigValues) -> Paths:
    """The parts of a checkpoint through a family's map. Raises nothing: see `report` and `report.require`."""
    return _Walk(family, list(names), found).paths()


class _Walk:
    def __init__(self, family: FamilyMap, names: list[str], found: ConfigValues):
        self.family, self.names, self.found = family, names, found
        self.tree = Names(names)
        self.report: list[Unresolved] = []
        self.covered = Names(())

    def paths(self) -> Paths:
        model = self._model()
        blocks = model.get("blocks")
        layers = self._layers(blocks) if blocks else []
        unused = [name for name in self.names if not self._is_covered(name) and not name.endswith(BUFFERS)]
        return Paths(model, layers, self.report, unused)

    def _model(self) -> dict[str, str]:
        tied = self.found.get("tie_word_embeddings", False)
        with_own = _ONLY_WITH["hidden_size_per_layer_input"] if self.found.get("hidden_size_per_layer_input") else ()
        model = self._level("model", None, "", lambda key: key in (*_NEEDED_OF_MODEL, *with_own) or (key == "lm" and not tied))
        for key, path in model.items():
            if key != "blocks":
                self._cover(path)
        return model

    def _level(self, level: str, layer: int | None, prefix: str, needed) -> dict[str, str]:
        """Entries of one level that exist; the others go to the report."""
        located = {}
        own = self.family.level(level)
        for key, entry in LEVELS[level].items():
            if key not in own or entry.kind != MODULE:
                continue
            sources = own[key]
            path = next((prefix + source for source in sources if self.tree.node(prefix + source) is not None), None)
            if path is not None:
                located[key] = path
            else:
                required = needed(key) and f"{level}.{key}" not in self.family.optional
                tried = " | ".join(prefix + source for source in sources)
                self.report.append(Unresolved(level, layer, key, tried, "no tensor of this name", required))
        return located

    def _layers(self, blocks: str) -> list[LayerPaths]:
        there = self.tree.numbers(blocks)
        count = self.found.get("num_hidden_layers", len(there))
        present = [layer for layer in there if layer < count]
        if len(present) < count:
            have = set(present)
            first = next(layer for layer in range(count) if layer not in have)
            reason = f"config.json has {count} blocks, the checkpoint {len(present)} of them; block {first} is the first that is missing"
            self.report.append(Unresolved("model", first, "blocks", f"{blocks}.{first}", reason, required=True))
        return [self._layer(layer, f"{blocks}.{layer}.") for layer in present]

    def _layer(self, layer: int, prefix: str) -> LayerPaths:
        slots = ("self_attn", "linear_attn")
        without = {key for value, keys in _ONLY_WITH.items() if not self.found.get(value) for key in keys}
        located = self._level("decoder", layer, prefix, lambda key: key not in slots and key not in without)
        decoder = {key: path for key, path in located.items() if key not in without}
        kinds = [slot for slot in slots if slot in decoder]
        kind = kinds[0] if len(kinds) == 1 else ""
        if not kind:
            sources = " | ".join(prefix + source for slot in slots for source in self.family.decoder.get(slot, ()))
            self.report.append(Unresolved("decoder", layer, "self_attn", sources,
                                          "the block has attention and linear attention" if kinds else "no tensor of these names", True))
        self.report[:] = [entry for entry in self.report
                          if not (entry.layer == layer and entry.level == "decoder" and entry.dst in slots and not entry.required)]
        self._compare_type(layer, kind)
        attention = self._attention(layer, decoder["self_attn"]) if "self_attn" in decoder else {}
        linear = self._level("linear_attention", layer, decoder["linear_attn"] + ".", lambda key: True) if "linear_attn" in decoder else {}
        mlp, moe = self._mlp(layer, decoder["mlp"]) if "mlp" in decoder else ({}, False)
        parts = (decoder[key] for key in decoder if key not in (*slots, "mlp"))
        for path in (*parts, *attention.values(), *linear.values()):
            self._cover(path)
        return LayerPaths(kind, moe, decoder, attention, linear, mlp)

    def _compare_type(self, layer: int, kind: str) -> None:
        types = self.found.get("layer_types", ())
        if layer < len(types) and kind and (kind == "linear_attn") != (types[layer] in LINEAR_TYPES):
            reason = f"layer_types says {types[layer]!r}, the checkpoint holds {kind}"
            self.report.append(Unresolved("decoder", layer, kind, self.found.sources["layer_types"], reason, required=True))

    def _attention(self, layer: int, path: str) -> dict[str, str]:
        without = lacking(self.found, layer)
        attention = self._level("attention", layer, path + ".", lambda key: key not in without)
        fused = "qkv_proj" in attention
        split = all(key in attention for key in _SPLIT)
        if fused or split:  # a map may know both forms, a checkpoint has one
            spare = _SPLIT if fused else ("qkv_proj",)
            self.report[:] = [entry for entry in self.report
                              if not (entry.layer == layer and entry.level == "attention" and entry.dst in spare)]
        return attention

    def _mlp(self, layer: int, path: str) -> tuple[dict[str, str], bool]:
        """Experts where the block has them, else the children of a dense MLP as trait mlp_names calls them."""
        experts = self.family.mlp.get("experts", ())
        if any(self.tree.node(f"{path}.{source}") is not None for source in experts):
            mlp = self._level("mlp", layer, path + ".", lambda key: True)
            for part in mlp.values():
                self._cover(part)
            self._count_experts(layer, mlp["experts"])
            return mlp, True
        names, dense = self.family.traits["mlp_names"], {}
        for role, child in names.items():
            where = f"{path}.{child}"
            if self.tree.node(where) is None:
                self.report.append(Unresolved("mlp", layer, role, where, "no tensor of this name (trait mlp_names)", required=True))
            else:
                dense[role] = where
                self._cover(where)
        return dense, False

    def _count_experts(self, layer: int, path: str) -> None:
        there = [step for step in self.tree.node(path) if step.isdigit()]
        count = self.found.get("num_experts", len(there))
        if there and len(there) != count:
            reason = f"config.json has {count} experts, the checkpoint {len(there)}"
            self.report.append(Unresolved("mlp", layer, "experts", path, reason, required=True))

    def _cover(self, path: str) -> None:
        node = self.covered.root
        for step in path.split("."):
            node = node.setdefault(step, {})
        node[""] = {}  # everything below

    def _is_covered(self, name: str) -> bool:
        node = self.covered.root
        for step in name.split("."):
            if "" in node:
                return True
            node = node.get(step)
            if node is None:
                return False
        return "" in node
