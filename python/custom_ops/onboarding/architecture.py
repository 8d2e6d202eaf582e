"""A model as numbers: what LlmModel is built from and the exporters write. No name of a checkpoint or of a configuration stands here.

`build.build_architecture` fills these in from a configuration, a family and the tensor shapes of a checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

#: How a decoder layer adds its two sub-layers (attn: attention or linear attention) to the residual x.
RESIDUAL_MODES = {
    "standard": "x + attn(n1(x)), then x + mlp(n2(x))",
    "parallel": "x + attn(n1(x)) + mlp(n1(x)); with a second norm mlp(n2(x))",
    "four_norm": "x + n2(attn(n1(x))), then x + n4(mlp(n3(x)))",
    "post_norm": "x + n2(attn(x)), then x + n4(mlp(x))",
    "depth_scaled": "x + f attn(n1(x)), then x + f mlp(n2(x)); f = scale_depth / sqrt(layers)",
    "alpha": "f n1(x) + attn(n1(x)), then f n2(x) + mlp(n2(x)); f = sqrt(2 layers)",
    "hyper_connection": "n streams; each sub-layer between hc_pre and hc_post, norms as in standard",
}
ROUTINGS = {
    "softmax": "softmax over all experts, then the top k",
    "topk_softmax": "the top k logits, then softmax over them",
    "topk_sigmoid": "the top k logits, then sigmoid of each, a factor on the expert's input",
    "sigmoid_bias": "sigmoid; a bias takes part in the choice of the top k, not in their weights",
}
#: Names that a configuration may give; their functions are in model/mlp.py.
ACTIVATION_NAMES = ("silu", "swish", "gelu", "gelu_pytorch_tanh", "gelu_new", "gelu_fast", "relu", "relu2", "sigmoid", "tanh")


@dataclass(frozen=True)
class NormSpec:
    """kind "rms": w x / sqrt(mean x^2 + eps); "layer": w (x - mean) / sqrt(var + eps) + b; without w or b where weight or bias is False."""

    kind: str = "rms"
    eps: float = 1e-6
    bias: bool = False
    weight: bool = True


@dataclass(frozen=True)
class RotarySpec:
    """Rotary embedding of the first `dims` values of a head.

    pairing: "half": value i turns with i + dims / 2; "interleaved": 2 i with 2 i + 1.
    kind:    "default" | "linear" | "llama3" | "yarn" | "longrope" | "dynamic" | "xdrope" | "proportional"; `scaling` holds its numbers
             under the names of transformers' rope_parameters.
    max_positions: max_position_embeddings, which longrope and dynamic refer to.
    """

    theta: float
    dims: int
    pairing: str = "half"
    kind: str = "default"
    scaling: Mapping = field(default_factory=dict)
    max_positions: int | None = None


class Span(NamedTuple):
    """What a query sees of the tokens up to its own: all (window None), the last `window`, or with chunked those of its own chunk of
    `window` tokens."""

    window: int | None = None
    chunked: bool = False


@dataclass(frozen=True)
class AttentionSpec:
    """Softmax attention. softmax(softcap(scale q k^T) + mask) v, softcap(s) = cap tanh(s / cap).

    window, chunked: see Span.
    rotary:      None: nothing turns.
    temperature: (a, n): the query at position p is multiplied by 1 + a log(1 + floor((p + 1) / n)).
    qk_norm:     "none" | "before_rope" | "after_rope"; over "head" or the whole "projection".
    output_gate: q_proj gives query and gate, head after head; sigmoid(gate) scales the result before o_proj.
    sinks:       one logit a head takes part in the softmax and has no value.
    value_norm:  of every head of v, without weight.
    k_is_v:      v is what k_proj gives, before norm and rotation.
    shares:      the earlier layer whose keys and values are used, of equal span and sizes; this one has none.
    """

    heads: int
    kv_heads: int
    head_dim: int
    scale: float
    rotary: RotarySpec | None
    window: int | None = None
    chunked: bool = False
    temperature: tuple[float, float] | None = None
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: str = "none"
    qk_norm_over: str = "head"
    norm: NormSpec = NormSpec()
    output_gate: bool = False
    sinks: bool = False
    softcap: float | None = None
    value_norm: NormSpec | None = None
    k_is_v: bool = False
    shares: int | None = None

    @property
    def span(self) -> Span:
        return Span(self.window, self.chunked)


@dataclass(frozen=True)
class ShortConvSpec:
    """custom_ops.nn.ShortConv; kernel K."""

    kernel: int
    bias: bool = False


@dataclass(frozen=True)
class DeltaRuleSpec:
    """custom_ops.nn.GatedDeltaNet; Hk, Hv, dk, dv, K, and the eps of its gated norm."""

    k_heads: int
    v_heads: int
    head_k_dim: int
    head_v_dim: int
    kernel: int
    norm_eps: float = 1e-6
    output_gate: str = "silu"


@dataclass(frozen=True)
class MlpSpec:
    """gated: down(act(gate(x)) * up(x)); else down(act(up(x)))."""

    size: int
    activation: str
    gated: bool = True
    bias: bool = False


@dataclass(frozen=True)
class MoeSpec:
    """Experts of `size`, each as an MlpSpec; see ROUTINGS.

    normalise:       the chosen weights are divided by their sum (+ normalise_eps).
    scale:           of the chosen weights, after that.
    activation:      a name, or "clamped_swiglu": with g <= limit and |u| <= limit, (u + 1) g sigmoid(alpha g).
    router_norm:     of what the router sees.
    expert_scale:    the chosen weights are multiplied by a factor of each expert, at last.
    shared:          an expert that every token has; shared_gate: times sigmoid of a projection to one value.
    """

    experts: int
    top_k: int
    size: int
    activation: str
    routing: str = "softmax"
    normalise: bool = True
    normalise_eps: float = 0.0
    scale: float = 1.0
    router_bias: bool = False
    selection_bias: bool = False
    expert_bias: bool = False
    alpha: float = 0.0
    limit: float = 0.0
    shared: MlpSpec | None = None
    shared_gate: bool = False
    router_norm: NormSpec | None = None
    expert_scale: bool = False


@dataclass(frozen=True)
class StreamsSpec:
    """Hyper-connections: n residual streams, and the numbers of custom_ops.nn.HyperConnection."""

    hc_mult: int
    sinkhorn_iters: int
    norm_eps: float
    hc_eps: float


@dataclass(frozen=True)
class LayerInputsSpec:
    """An input of `size` for every layer, from an embedding of its own with `vocab` rows and from the embedded token x:
    e = (norm(project(x) / sqrt(hidden)) + sqrt(size) embed(token)) / sqrt(2). A layer whose residual is then x gives
    x + norm(projection(act(gate(x)) * e))."""

    size: int
    vocab: int
    activation: str
    norm: NormSpec


@dataclass(frozen=True)
class LayerSpec:
    """factor: f of the residual mode. experts: beside the dense mlp m (four_norm): of the x before it n4(a(m(n3(x))) + b(experts(c(x)))),
    their router sees x. scalar: the whole layer's result is multiplied by a parameter."""

    mixer: AttentionSpec | ShortConvSpec | DeltaRuleSpec
    mlp: MlpSpec | MoeSpec
    norm: NormSpec
    residual: str = "standard"
    factor: float = 1.0
    mlp_norm: bool = True  # parallel: has a second norm
    experts: MoeSpec | None = None
    scalar: bool = False

    @property
    def is_attention(self) -> bool:
        return isinstance(self.mixer, AttentionSpec)

    @property
    def keeps_keys(self) -> bool:
        """Whether a memory holds keys and values of this layer."""
        return self.is_attention and self.mixer.shares is None

    def norms(self) -> tuple[str, ...]:
        """Names of the layer's norms, in the words of the decoder map."""
        if self.residual == "four_norm":
            beside = "post_feedforward_layernorm_1", "pre_feedforward_layernorm_2", "post_feedforward_layernorm_2"
            return ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                    *(beside if self.experts is not None else ()), "post_feedforward_layernorm")
        if self.residual == "post_norm":
            return "post_attention_layernorm", "post_feedforward_layernorm"
        if self.residual == "parallel" and not self.mlp_norm:
            return ("input_layernorm",)
        return "input_layernorm", "post_attention_layernorm"


@dataclass(frozen=True)
class Architecture:
    """logits = softcap(logit_scale * lm(norm(layers(embed_scale * embed(tokens)))))."""

    vocab: int
    hidden: int
    layers: tuple[LayerSpec, ...]
    norm: NormSpec
    embed_scale: float = 1.0
    logit_scale: float = 1.0
    softcap: float | None = None
    tied: bool = False
    lm_bias: bool = False
    max_positions: int | None = None
    streams: StreamsSpec | None = None
    layer_inputs: LayerInputsSpec | None = None
    model_type: str = ""

    def memory_kind(self) -> str:
        """What a sequence has to carry: "none" | "kv" | "sliding" (any attention layer has a window) | "recurrent" | "hybrid"."""
        attention = [layer.mixer for layer in self.layers if layer.is_attention]
        if len(attention) < len(self.layers):
            return "hybrid" if attention else "recurrent"
        if not attention:
            return "none"
        return "sliding" if any(spec.window for spec in attention) else "kv"

    def with_layers(self, change) -> Architecture:
        """A copy whose every layer is change(layer)."""
        return replace(self, layers=tuple(change(layer) for layer in self.layers))
