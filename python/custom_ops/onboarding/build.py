"""The Architecture of a checkpoint. Sizes come from tensor shapes, what shapes cannot say from config.json through the family's map."""

from __future__ import annotations

import math
from functools import cached_property

from .architecture import (Architecture, AttentionSpec, DeltaRuleSpec, LayerInputsSpec, LayerSpec, MlpSpec, MoeSpec, NormSpec, RotarySpec,
                           ShortConvSpec)
from .blocks import head_dim, head_sizes, shared_from, value_is_key
from .errors import OnboardingError
from .model.mlp import CLAMPED_SWIGLU
from .names import LayerPaths
from .rope import Rope
from .shapes import experts_layout
from .source import Source

#: Added to the sum that sigmoid routings divide by; transformers 5.24, modeling_lfm2_moe.
SIGMOID_EPS = 1e-6
#: layer type of softmax attention -> where its window's tokens stand
_WINDOWS = {"full_attention": "", "sliding_attention": "sliding_window", "chunked_attention": "attention_chunk_size"}
_FLAGS = {"0", "1", "True", "False"}


def build_architecture(source: Source) -> Architecture:
    """Raises OnboardingError where a value is missing or a part is not supported."""
    return _Builder(source).build()


class _Builder:
    def __init__(self, source: Source):
        self.source, self.family, self.found, self.traits = source, source.family, source.found, source.family.traits
        self.hidden = self.found["hidden_size"]

    def build(self) -> Architecture:
        source, found, model = self.source, self.found, self.source.paths.model
        vocab, width = source.shape(model["embed"] + ".weight")
        if width != self.hidden:
            raise OnboardingError(f"{source.checkpoint.folder}: embedding [{vocab}, {width}] but hidden_size {self.hidden}")
        tied = bool(found.get("tie_word_embeddings", False))
        return Architecture(
            vocab, self.hidden, tuple(self._layer(i, paths) for i, paths in enumerate(source.paths.layers)),
            self._norm(model["final_layernorm"]), embed_scale=self._embed_scale(), logit_scale=self._logit_scale(),
            softcap=found.get("final_softcap"), tied=tied, lm_bias=not tied and source.has(model["lm"] + ".bias"),
            max_positions=found.get("max_position_embeddings"), layer_inputs=self._layer_inputs(vocab),
            model_type=source.model_type)

    def _layer_inputs(self, vocab: int) -> LayerInputsSpec | None:
        size, model = self.found.get("hidden_size_per_layer_input"), self.source.paths.model
        if not size:
            return None
        rows, _ = self.source.shape(model["embed_tokens_per_layer"] + ".weight")
        if rows < vocab:
            raise OnboardingError(f"{self.source.checkpoint.folder}: the embedding of every block has {rows} rows for {vocab} tokens")
        return LayerInputsSpec(size, rows, self.found["activation"], self._norm(model["per_layer_projection_norm"]))

    def _embed_scale(self) -> float:
        kind = self.traits["embed_scale"]
        return 1.0 if kind == "none" else math.sqrt(self.hidden) if kind == "sqrt_hidden" else self._number("embed_scale")

    def _logit_scale(self) -> float:
        kind = self.traits["logit_scale"]
        if kind == "base_over_hidden":
            return self.found["dim_model_base"] / self.hidden
        return 1.0 if kind == "none" else self._number("logit_scale")

    def _number(self, trait: str) -> float:
        """Of a trait that is a path: from config.json, or the family's default of that path."""
        value = self.found.get(trait, self.found.get(self.traits[trait]))
        if value is None:
            raise OnboardingError(f"{self.source.checkpoint.folder}: config.json has no {self.traits[trait]} (trait {trait})")
        return value

    def _norm(self, path: str) -> NormSpec:
        return NormSpec(self.traits["norm"], self.found["rms_norm_eps"], self.source.has(path + ".bias"))

    # --- layers

    def _layer(self, index: int, paths: LayerPaths) -> LayerSpec:
        mixer = self._attention(index, paths) if paths.kind == "self_attn" else self._linear_attention(paths)
        mlp = self._moe(paths.mlp) if paths.moe else self._dense(paths.mlp)
        experts = self._moe(paths.decoder) if self.found.get("enable_moe_block") else None
        residual, layers = self.traits["residual"], self.found["num_hidden_layers"]
        factor = 1.0
        if residual == "depth_scaled":
            factor = self.found["scale_depth"] / math.sqrt(layers)
        elif residual == "alpha":
            factor = math.sqrt(2 * layers)
        norm = next((path for key, path in paths.decoder.items() if "layernorm" in key), None)
        if norm is None:
            raise OnboardingError(f"{self.source.checkpoint.folder}: block {index} has no norm")
        return LayerSpec(mixer, mlp, self._norm(norm), residual, factor, mlp_norm="post_attention_layernorm" in paths.decoder,
                         experts=experts, scalar="layer_scalar" in paths.decoder)

    def _attention(self, index: int, paths: LayerPaths) -> AttentionSpec:
        found, traits, names = self.found, self.traits, paths.attention
        kind = found["layer_types"][index]
        qkv = names.get("qkv_proj") or names["q_proj"]
        if kind not in _WINDOWS:
            raise OnboardingError(f"{self.source.checkpoint.folder}: block {index} has attention and is of layer type {kind!r}, which is "
                                  f"none of {', '.join(_WINDOWS)}")
        rotates, plain = self._rotates(index), traits["qk_norm_plain"]
        has_norms = rotates and found.get("qk_norm_flag", True) if plain else "q_norm" in names
        normed = traits["qk_norm"] != "none" and has_norms
        norm = NormSpec("rms", found["rms_norm_eps"], weight=False) if plain else self._norm(names["q_norm"]) if normed else NormSpec()
        tempered = not rotates and found.get("attn_temperature_tuning")
        sizes, shares = head_sizes(found, index), shared_from(found, index)
        scales = {"head_dim": sizes[-1], "one": 1}
        scale = scales[traits["attention_scale"]] if traits["attention_scale"] in scales else self._number("attention_scale")
        return AttentionSpec(
            *sizes, scale**-0.5,
            self._rotaries[kind] if rotates else None, window=found[_WINDOWS[kind]] if _WINDOWS[kind] else None,
            chunked=kind == "chunked_attention", temperature=(found["attn_scale"], found["floor_scale"]) if tempered else None,
            qkv_bias=self.source.has(qkv + ".bias"),
            out_bias=self.source.has(names["o_proj"] + ".bias"), qk_norm=traits["qk_norm"] if normed else "none",
            qk_norm_over=traits["qk_norm_over"], norm=norm if normed else NormSpec(),
            output_gate=traits["output_gate"], sinks=traits["sinks"], softcap=found.get("attention_softcap"),
            value_norm=NormSpec("rms", found["rms_norm_eps"], weight=False) if traits["value_norm"] else None,
            k_is_v=shares is None and value_is_key(found, index), shares=shares)

    def _rotates(self, index: int) -> bool:
        """By a list of one flag a block, or every block but each n-th."""
        flags, interval = self.found.get("rope_flags"), self.found.get("rope_interval")
        if flags:
            if not isinstance(flags, list) or len(flags) < self.found["num_hidden_layers"] or not {*map(str, flags)} <= _FLAGS:
                raise OnboardingError(f"config.json {self.traits['rope_flags']} must be a list of 0 or 1 for each block, is {flags!r:.80}")
            return bool(flags[index])
        return interval is None or (index + 1) % interval != 0

    @cached_property
    def _rotaries(self) -> dict[str, RotarySpec]:
        return {kind: self._rotary(rope, head_dim(self.found, kind)) for kind, rope in self.source.ropes.items()}

    def _rotary(self, rope: Rope, head: int) -> RotarySpec:
        scaling = {key: value for key, value in rope.scaling.items() if key != "rope_type"}
        kind, dims = rope.scaling["rope_type"], rope.dims
        if kind == "proportional":  # exponents over the whole head, a share of its pairs turns
            scaling["partial_rotary_factor"], dims = dims / head, head
        return RotarySpec(rope.theta, dims, rope.pairing, kind, scaling, self.found.get("max_position_embeddings"))

    def _linear_attention(self, paths: LayerPaths) -> ShortConvSpec | DeltaRuleSpec:
        found, names = self.found, paths.linear_attention
        if self.traits["linear"] == "short_conv":
            return ShortConvSpec(self.source.shape(names["conv"] + ".weight")[-1], self.source.has(names["conv"] + ".bias"))
        return DeltaRuleSpec(found["linear_num_key_heads"], found["linear_num_value_heads"], found["linear_key_head_dim"],
                             found["linear_value_head_dim"], self.source.shape(names["conv1d"] + ".weight")[-1], found["rms_norm_eps"])

    # --- feed-forward

    def _dense(self, names: dict[str, str]) -> MlpSpec:
        """names: paths of gate, up, down, or gate_up, down."""
        down = names["down"]
        size = self.source.shape(down + ".weight")[-1]
        return MlpSpec(size, self.found["activation"], self.traits["mlp"] == "gated", self.source.has(down + ".bias"))

    def _moe(self, names: dict[str, str]) -> MoeSpec:
        found, routing = self.found, self.traits["routing"]
        gate = names.get("gate") or names["router"]
        clamp = {"alpha": found.get("swiglu_alpha", 0.0), "limit": found.get("swiglu_limit", 0.0)}
        return MoeSpec(
            found["num_experts"], found["top_k"], self._expert_size(names["experts"]),
            CLAMPED_SWIGLU if clamp["alpha"] else found["activation"], routing, normalise=found.get("norm_topk_prob", True),
            normalise_eps=SIGMOID_EPS if routing == "sigmoid_bias" else 0.0, scale=found.get("routed_scaling_factor", 1.0),
            router_bias=self.source.has(gate + ".bias"), selection_bias="expert_bias" in names,
            expert_bias=self.source.has(names["experts"] + ".down_proj_bias"), shared=self._shared(names),
            shared_gate="shared_expert_gate" in names, expert_scale="expert_scale" in names,
            router_norm=NormSpec("rms", found["rms_norm_eps"]) if "router_scale" in names else None, **clamp)

    def _expert_size(self, experts: str) -> int:
        fused = experts + ".down_proj"
        if self.source.has(fused):  # [E, hidden, size], with columns [E, size, hidden]
            layout = experts_layout(self.family, self.hidden, self.source.shape(experts + ".gate_up_proj"))
            return self.source.shape(fused)[2 if layout == "halves" else 1]
        return self.source.shape(f"{experts}.0.{expert_names(self.source)['down']}.weight")[-1]

    def _shared(self, names: dict[str, str]) -> MlpSpec | None:
        if "shared_expert" not in names:
            return None
        children = expert_names(self.source)
        return self._dense({role: f"{names['shared_expert']}.{child}" for role, child in children.items()})


def expert_names(source: Source) -> dict[str, str]:
    """Children of one expert, and of the shared one."""
    return source.family.traits["expert_names"] or source.family.traits["mlp_names"]
