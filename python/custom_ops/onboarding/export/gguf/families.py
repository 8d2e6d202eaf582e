"""The architectures of llama.cpp, each with what its graph assumes and no key says."""

from __future__ import annotations

from ...architecture import Architecture, AttentionSpec, DeltaRuleSpec, MlpSpec, ShortConvSpec
from ...build import SIGMOID_EPS
from ...errors import OnboardingError
from .keys import Keys
from .registry import GgufArchitecture, is_conv, of_file, of_model_type, register
from .rope import sections

__all__ = ["of_file", "of_model_type"]  # of registry.py, which this module fills
_SIGMOID = 2  # expert_gating_func


@register("llama", "llama")
class Llama(GgufArchitecture):
    """Rotates neighbouring values (2 i, 2 i + 1), always all of a head: rows of q and k are stored in that order."""

    def attention(self, keys, tensors, index):
        spec = super().attention(keys, tensors, index)
        if spec.rotary.dims != spec.head_dim:
            raise OnboardingError(f"GGUF architecture 'llama' rotates whole heads; {spec.rotary.dims} of {spec.head_dim} values would turn")
        return spec


@register("qwen2", "qwen2")
class Qwen2(GgufArchitecture):
    pass


@register("qwen3", "qwen3")
class Qwen3(GgufArchitecture):
    qk_norm = "before_rope"


@register("qwen3moe", "qwen3_moe")
class Qwen3Moe(Qwen3):
    """Experts in every block; their weights are always divided by their sum."""

    def mlp(self, keys, tensors, index):
        return self.moe(keys, tensors, index)


@register("gemma2", "gemma2")
class Gemma2(GgufArchitecture):
    """Even blocks have the window. The 27B model, recognised by its 46 blocks, scales by hidden / heads instead of the head's size."""

    activation = "gelu_pytorch_tanh"
    residual = "four_norm"

    def keys(self, a: Architecture):
        attention = self._attention_of(a)
        if attention.softcap is None or a.softcap is None:
            raise OnboardingError("GGUF architecture 'gemma2' always has both softcaps; this model lacks one")
        windows = [layer.mixer.window for layer in a.layers if layer.mixer.window]
        window = {"attention.sliding_window": windows[0]} if windows else {}
        return super().keys(a) | window | {"attn_logit_softcapping": attention.softcap, "final_logit_softcapping": a.softcap}

    def embed_scale(self, keys):
        return keys.count("embedding_length") ** 0.5

    def softcap(self, keys):
        return keys.number("final_logit_softcapping", 30.0)

    def attention_softcap(self, keys):
        return keys.number("attn_logit_softcapping", 50.0)

    def attention_scale(self, keys, heads, head_dim):
        return (keys.count("embedding_length") // heads if keys.count("block_count") == 46 else head_dim) ** -0.5

    def window(self, keys, index):
        return keys.count("attention.sliding_window", 4096) if index % 2 == 0 else None


@register("lfm2", "lfm2")
class Lfm2(GgufArchitecture):
    """A block without key heads is a short convolution. A window holds for all blocks of attention."""

    qk_norm = "before_rope"

    def keys(self, a):
        kernels = [layer.mixer.kernel for layer in a.layers if is_conv(layer)]
        if not kernels:
            raise OnboardingError(f"GGUF architecture {self.arch!r} needs a block of short convolution")
        return super().keys(a) | {"shortconv.l_cache": kernels[0]}

    def kv_heads(self, a, attention: AttentionSpec):
        return [0 if is_conv(layer) else attention.kv_heads for layer in a.layers]

    def mixer(self, keys: Keys, tensors, index):
        if keys.counts("attention.head_count_kv", keys.count("block_count"))[index]:
            return self.attention(keys, tensors, index)
        return ShortConvSpec(keys.count("shortconv.l_cache"))

    def window(self, keys, index):
        window = keys.count("attention.sliding_window", 0, least=0) if self.arch == "lfm2" else 0
        return window or None


@register("lfm2moe", "lfm2_moe")
class Lfm2Moe(Lfm2):
    """Experts from leading_dense_block_count on, chosen by sigmoid plus bias."""

    def keys(self, a):
        dense = [isinstance(layer.mlp, MlpSpec) for layer in a.layers]
        return super().keys(a) | {"leading_dense_block_count": dense.index(False) if False in dense else len(dense),
                                  "expert_gating_func": _SIGMOID}

    def mlp(self, keys, tensors, index):
        if index < keys.count("leading_dense_block_count", 0, least=0):
            return self.dense(keys, tensors, index)
        if keys.count("expert_gating_func") != _SIGMOID:
            raise OnboardingError(f"{keys.what}: expert_gating_func {keys.get('expert_gating_func')} is not read, only {_SIGMOID}, sigmoid")
        return self.moe(keys, tensors, index, routing="sigmoid_bias", normalise_eps=SIGMOID_EPS, selection_bias=True)


class DeltaRule(GgufArchitecture):
    """Gated delta rule and attention with an output gate. Key and value heads of the delta rule have one size."""

    qk_norm = "before_rope"
    output_gate = True

    def keys(self, a):
        delta = next((layer.mixer for layer in a.layers if isinstance(layer.mixer, DeltaRuleSpec)), None)
        if delta is None:
            raise OnboardingError(f"GGUF architecture {self.arch!r} needs a block with the gated delta rule")
        recurrent = [not layer.is_attention for layer in a.layers]
        keys = super().keys(a) | {
            "ssm.conv_kernel": delta.kernel, "ssm.state_size": delta.head_k_dim, "ssm.group_count": delta.k_heads,
            "ssm.time_step_rank": delta.v_heads, "ssm.inner_size": delta.v_heads * delta.head_v_dim,
            "attention.recurrent_layers": recurrent}
        interval = recurrent.index(False) + 1
        if all(flag == bool((i + 1) % interval) for i, flag in enumerate(recurrent)):
            keys["full_attention_interval"] = interval  # what readers older than recurrent_layers know
        return keys

    def mixer(self, keys: Keys, tensors, index):
        return self.delta(keys) if self.recurrent(keys, index) else self.attention(keys, tensors, index)

    def recurrent(self, keys: Keys, index: int) -> bool:
        layers = keys.get("attention.recurrent_layers")
        if layers is None:
            return (index + 1) % keys.count("full_attention_interval", 4) != 0
        if not isinstance(layers, list) or len(layers) != keys.count("block_count"):
            raise OnboardingError(f"{keys.what}: key {self.arch}.attention.recurrent_layers must have one value for each block")
        return bool(layers[index])

    def delta(self, keys: Keys) -> DeltaRuleSpec:
        size, v_heads = keys.count("ssm.state_size"), keys.count("ssm.time_step_rank")
        return DeltaRuleSpec(keys.count("ssm.group_count"), v_heads, size, size, keys.count("ssm.conv_kernel"),
                             keys.number("attention.layer_norm_rms_epsilon"))

    def shared_experts(self, keys: Keys, tensors, index):
        shared = MlpSpec(keys.count("expert_shared_feed_forward_length"), self.activation)
        return self.moe(keys, tensors, index, shared=shared, shared_gate=True)


@register("qwen3next", "qwen3_next")
class Qwen3Next(DeltaRule):
    def mlp(self, keys, tensors, index):
        return self.shared_experts(keys, tensors, index)


@register("qwen35", "qwen3_5_text", "qwen3_5")
class Qwen35(DeltaRule):
    def keys(self, a):
        return super().keys(a) | {"rope.dimension_sections": sections(self._attention_of(a).rotary)}


@register("qwen35moe", "qwen3_5_moe_text", "qwen3_5_moe")
class Qwen35Moe(Qwen35):
    def mlp(self, keys, tensors, index):
        return self.shared_experts(keys, tensors, index)
