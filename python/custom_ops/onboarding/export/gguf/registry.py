"""Architectures of llama.cpp that can be written and read, and the class they derive from."""

from __future__ import annotations

from collections.abc import Iterable

from ...architecture import Architecture, AttentionSpec, LayerSpec, MlpSpec, MoeSpec, NormSpec, ShortConvSpec
from ...errors import OnboardingError, nearest
from .keys import Keys
from .rope import read_rotary, rope_keys

ARCHITECTURES: dict[str, GgufArchitecture] = {}
_BY_MODEL_TYPE: dict[str, GgufArchitecture] = {}


def register(arch: str, *model_types: str):
    """Class decorator: the architecture `arch` of llama.cpp, written for configurations of these model_types."""
    def add(cls: type[GgufArchitecture]):
        family = ARCHITECTURES[arch] = cls(arch, model_types)
        _BY_MODEL_TYPE.update(dict.fromkeys(model_types, family))
        return cls
    return add


def of_model_type(model_type: str) -> GgufArchitecture:
    if model_type not in _BY_MODEL_TYPE:
        raise OnboardingError(f"model_type {model_type!r} has no GGUF architecture here; there is one for {', '.join(_BY_MODEL_TYPE)}. "
                              "Other formats take every model that LlmModel computes: --format mnn, --format onnx")
    return _BY_MODEL_TYPE[model_type]


def of_file(arch) -> GgufArchitecture:
    if arch not in ARCHITECTURES:
        raise OnboardingError(f"GGUF architecture {str(arch)[:80]!r} is not read here; {nearest(str(arch)[:80], ARCHITECTURES)}")
    return ARCHITECTURES[arch]


class GgufArchitecture:
    """Keys of an Architecture, and the Architecture that llama.cpp would make of keys and tensor names.

    This class is a transformer with RMS norms, gated feed-forward and full attention; families override what they do otherwise.
    """

    activation = "silu"
    residual = "standard"
    qk_norm = "none"
    output_gate = False

    def __init__(self, arch: str, model_types: Iterable[str]):
        self.arch, self.model_types = arch, tuple(model_types)

    # --- written

    def keys(self, a: Architecture) -> dict[str, object]:
        """Without the prefix of the architecture; float values are stored as float32, integers as uint32, lists of integers as int32."""
        attention = self._attention_of(a)
        if a.max_positions is None:
            raise OnboardingError("config.json has no max_position_embeddings, which GGUF files state (context_length)")
        keys = {
            "vocab_size": a.vocab, "context_length": a.max_positions, "embedding_length": a.hidden, "block_count": len(a.layers),
            "attention.head_count": attention.heads, "attention.head_count_kv": self.kv_heads(a, attention),
            "attention.key_length": attention.head_dim, "attention.value_length": attention.head_dim,
            "attention.layer_norm_rms_epsilon": a.norm.eps, **rope_keys(attention.rotary, self.arch),
        }
        sizes = [layer.mlp.size if isinstance(layer.mlp, MlpSpec) else 0 for layer in a.layers]
        if any(sizes):
            keys["feed_forward_length"] = sizes[0] if len(set(sizes)) == 1 else sizes
        moe = next((layer.mlp for layer in a.layers if isinstance(layer.mlp, MoeSpec)), None)
        return keys if moe is None else {**keys, **self.expert_keys(a, moe)}

    def _attention_of(self, a: Architecture) -> AttentionSpec:
        attention = next((layer.mixer for layer in a.layers if layer.is_attention), None)
        if attention is None or attention.rotary is None:
            raise OnboardingError(f"GGUF architecture {self.arch!r} needs a block of attention with a rotary embedding")
        return attention

    def kv_heads(self, a: Architecture, attention: AttentionSpec) -> int | list[int]:
        return attention.kv_heads

    def expert_keys(self, a: Architecture, moe: MoeSpec) -> dict[str, object]:
        keys = {"expert_count": moe.experts, "expert_used_count": moe.top_k, "expert_feed_forward_length": moe.size}
        return keys | {"expert_shared_feed_forward_length": moe.shared.size} if moe.shared else keys

    # --- read

    def read(self, keys: Keys, tensors: dict[str, tuple[int, ...]]) -> Architecture:
        """tensors: name -> shape as torch counts."""
        if "token_embd.weight" not in tensors or len(tensors["token_embd.weight"]) != 2:
            raise OnboardingError(f"{keys.what}: tensor token_embd.weight is missing or no matrix")
        blocks = keys.count("block_count")
        if blocks > len(tensors):
            raise OnboardingError(f"{keys.what}: {blocks} blocks and {len(tensors)} tensors")
        layers = tuple(self.layer(keys, tensors, i) for i in range(blocks))
        return Architecture(
            tensors["token_embd.weight"][0], keys.count("embedding_length"), layers, self.norm(keys),
            embed_scale=self.embed_scale(keys), softcap=self.softcap(keys), tied="output.weight" not in tensors,
            max_positions=keys.count("context_length"), model_type=self.model_types[0])

    def norm(self, keys: Keys) -> NormSpec:
        return NormSpec("rms", keys.number("attention.layer_norm_rms_epsilon"))

    def embed_scale(self, keys: Keys) -> float:
        return 1.0

    def softcap(self, keys: Keys) -> float | None:
        return None

    def layer(self, keys: Keys, tensors, index: int) -> LayerSpec:
        return LayerSpec(self.mixer(keys, tensors, index), self.mlp(keys, tensors, index), self.norm(keys), self.residual)

    def mixer(self, keys: Keys, tensors, index: int):
        return self.attention(keys, tensors, index)

    def attention(self, keys: Keys, tensors, index: int) -> AttentionSpec:
        blocks = keys.count("block_count")
        heads = keys.counts("attention.head_count", blocks)[index]
        kv_heads = keys.counts("attention.head_count_kv", blocks)[index] or heads
        head_dim = keys.count("attention.key_length", keys.count("embedding_length") // max(heads, 1))
        if heads < 1 or heads % kv_heads:
            raise OnboardingError(f"{keys.what}: block {index} has {heads} heads and {kv_heads} key heads")
        return AttentionSpec(
            heads, kv_heads, head_dim, self.attention_scale(keys, heads, head_dim), read_rotary(keys, head_dim, tensors),
            window=self.window(keys, index), qkv_bias=f"blk.{index}.attn_q.bias" in tensors,
            out_bias=f"blk.{index}.attn_output.bias" in tensors, qk_norm=self.qk_norm,
            norm=self.norm(keys) if self.qk_norm != "none" else NormSpec(), output_gate=self.output_gate,
            softcap=self.attention_softcap(keys))

    def attention_scale(self, keys: Keys, heads: int, head_dim: int) -> float:
        return head_dim**-0.5

    def attention_softcap(self, keys: Keys) -> float | None:
        return None

    def window(self, keys: Keys, index: int) -> int | None:
        return None

    def mlp(self, keys: Keys, tensors, index: int) -> MlpSpec | MoeSpec:
        return self.dense(keys, tensors, index)

    def dense(self, keys: Keys, tensors, index: int) -> MlpSpec:
        size = keys.counts("feed_forward_length", keys.count("block_count"))[index]
        if not size:
            raise OnboardingError(f"{keys.what}: block {index} has a feed-forward of size 0")
        return MlpSpec(size, self.activation, bias=f"blk.{index}.ffn_down.bias" in tensors)

    def moe(self, keys: Keys, tensors, index: int, **changes) -> MoeSpec:
        return MoeSpec(keys.count("expert_count"), keys.count("expert_used_count"), keys.count("expert_feed_forward_length"),
                       self.activation, **changes)


def is_conv(layer: LayerSpec) -> bool:
    return isinstance(layer.mixer, ShortConvSpec)
