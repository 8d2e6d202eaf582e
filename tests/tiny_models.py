"""Tiny random models of transformers for tests/onboarding: one configuration per family, built when it is asked for."""

import zlib

import pytest

COMMON = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
              max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
MOE = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)
DELTA = dict(linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4, linear_conv_kernel_dim=4,
             num_hidden_layers=4, head_dim=8)
SHARED = dict(shared_expert_intermediate_size=16)
GEMMA = dict(head_dim=8, query_pre_attn_scalar=8, sliding_window=16)

FAMILIES = {  # model_type: (configuration class, its arguments beside COMMON)
    "llama": ("LlamaConfig", {}),
    "qwen2": ("Qwen2Config", {}),
    "qwen3": ("Qwen3Config", dict(head_dim=8)),
    "qwen3_moe": ("Qwen3MoeConfig", dict(head_dim=8, **MOE)),
    "gemma2": ("Gemma2Config", GEMMA),
    "gemma3_text": ("Gemma3TextConfig", dict(GEMMA, layer_types=["sliding_attention", "full_attention"])),
    "gemma4_text": ("Gemma4TextConfig", dict(head_dim=8, global_head_dim=16, sliding_window=16, hidden_size_per_layer_input=8,
                                             vocab_size_per_layer_input=96, layer_types=["sliding_attention", "full_attention"])),
    "phi": ("PhiConfig", {}),
    "glm4": ("Glm4Config", dict(head_dim=8)),
    "llama4_text": ("Llama4TextConfig", dict(head_dim=8, intermediate_size_mlp=56, num_local_experts=4, num_experts_per_tok=2,
                                             interleave_moe_layer_step=2)),
    "gpt_oss": ("GptOssConfig", dict(head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=16)),
    "olmo2": ("Olmo2Config", {}),
    "hunyuan_v1_dense": ("HunYuanDenseV1Config", dict(head_dim=8)),
    "lfm2": ("Lfm2Config", dict(layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False)),
    "lfm2_moe": ("Lfm2MoeConfig", dict(layer_types=["conv", "full_attention"], num_dense_layers=1, **MOE)),
    "qwen3_5_text": ("Qwen3_5TextConfig", DELTA),
    "qwen3_5_moe_text": ("Qwen3_5MoeTextConfig", dict(DELTA, **MOE, **SHARED)),
    "qwen3_next": ("Qwen3NextConfig", dict(DELTA, **MOE, **SHARED)),
}


LARGER = dict(vocab_size=96, hidden_size=64, intermediate_size=80, num_hidden_layers=4, max_position_embeddings=512)
CONVS = dict(layer_types=["conv", "full_attention", "conv", "conv"])
WINDOW = dict(head_dim=16, sliding_window=8)
RECTANGLE = dict(head_dim=32, linear_key_head_dim=16, linear_value_head_dim=24)  # dk != dv, head_dim != hidden / heads

#: name -> (model_type, changes): every family with what its configurations can switch, prompts of tests longer than the windows.
VARIANTS = {name: (model_type, {**LARGER, **changes}) for name, model_type, changes in (
    ("llama", "llama", dict(rope_theta=5e5)),
    ("llama3", "llama", dict(attention_bias=True, mlp_bias=True, rope_parameters=dict(
        rope_type="llama3", rope_theta=1e4, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64))),
    ("qwen2_sliding", "qwen2", dict(use_sliding_window=True, sliding_window=8, max_window_layers=2)),
    ("qwen3_tied", "qwen3", dict(head_dim=32, tie_word_embeddings=True)),
    ("qwen3_moe", "qwen3_moe", dict(norm_topk_prob=True, mlp_only_layers=[1])),
    ("qwen3_moe_plain_sum", "qwen3_moe", dict(norm_topk_prob=False)),
    ("gemma2", "gemma2", dict(WINDOW, query_pre_attn_scalar=24, attn_logit_softcapping=5.0, final_logit_softcapping=8.0)),
    ("gemma3_text", "gemma3_text", dict(WINDOW, query_pre_attn_scalar=24, layer_types=["sliding_attention", "full_attention"] * 2)),
    ("gemma4", "gemma4_text", dict(
        WINDOW, global_head_dim=32, num_hidden_layers=5, num_kv_shared_layers=2, use_double_wide_mlp=True, final_logit_softcapping=8.0,
        layer_types=["sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "full_attention"])),
    ("gemma4_moe", "gemma4_text", dict(
        WINDOW, global_head_dim=32, num_global_key_value_heads=1, attention_k_eq_v=True, hidden_size_per_layer_input=0,
        enable_moe_block=True, num_experts=4, top_k_experts=2, moe_intermediate_size=24,
        layer_types=["sliding_attention", "full_attention"] * 2)),
    ("phi", "phi", {}),
    ("phi_normed", "phi", dict(qk_layernorm=True, partial_rotary_factor=0.25)),
    ("glm4", "glm4", dict(head_dim=16, partial_rotary_factor=0.5, attention_bias=True)),
    ("gpt_oss", "gpt_oss", WINDOW),
    ("llama4", "llama4_text", dict(head_dim=16, attention_chunk_size=8, attention_bias=True)),
    ("llama4_plain", "llama4_text", dict(head_dim=16, attention_chunk_size=16, use_qk_norm=False, no_rope_layers=[1, 0, 0, 1],
                                         moe_layers=[0, 3], num_experts_per_tok=1)),
    ("olmo2", "olmo2", dict(rope_theta=5e5)),
    ("hunyuan_v1_dense", "hunyuan_v1_dense", dict(head_dim=16)),
    ("hunyuan_alpha", "hunyuan_v1_dense", dict(head_dim=16, rope_parameters=dict(rope_type="dynamic", rope_theta=1e4, alpha=50.0, factor=1.))),
    ("lfm2", "lfm2", CONVS),
    ("lfm2_biased", "lfm2", dict(CONVS, conv_bias=True, conv_L_cache=4, intermediate_size=96, block_auto_adjust_ff_dim=True,
                                 block_multiple_of=32)),
    ("lfm2_moe", "lfm2_moe", dict(CONVS, num_dense_layers=1, routed_scaling_factor=1.5)),
    ("qwen3_next", "qwen3_next", RECTANGLE),
    ("qwen3_5_text", "qwen3_5_text", dict(RECTANGLE, rope_parameters=dict(
        rope_type="default", rope_theta=1e6, partial_rotary_factor=0.5, mrope_section=[3, 3, 2], mrope_interleaved=True))),
    ("qwen3_5_moe_text", "qwen3_5_moe_text", RECTANGLE),
)}
#: Families whose reference differs from itself by up to 4e-4, prefill against single tokens (see verify.py): logits within 1e-3.
DELTA_RULE = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")


def with_random_weights(model, rng):
    """The LlmModel itself: matrices around 0, vectors around 1."""
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 0.25, generator=rng)
        else:
            parameter.uniform_(0.5, 1.5, generator=rng)
    return model


def build(model_type: str, seed: int = 0, **changes):
    """The model, float32, weights from N(0, 0.2): at transformers' own 0.02 a wrong rope or a swapped gate hardly shows."""
    transformers = pytest.importorskip("transformers")
    import torch

    name, arguments = FAMILIES[model_type]
    config = getattr(transformers, name)(**{**COMMON, **arguments, **changes}, initializer_range=0.2)
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():  # norms at 1 or 0 hide a wrong convention, biases at 0 a missing one
        for key, weight in [*model.named_parameters(), *model.named_buffers()]:
            if weight.ndim == 1 and "norm" in key:
                weight.add_(torch.randn_like(weight) * 0.2)
            elif weight.ndim == 1 and key.endswith(("layer_scalar", "router.scale", "expert_scale")):  # factors around 1
                weight.add_(torch.randn_like(weight) * 0.2)
            elif key.endswith(("bias", "sinks")):
                weight.normal_(0, 0.2)
    return model


def build_variant(name: str, **changes):
    model_type, own = VARIANTS[name]
    return build(model_type, zlib.crc32(name.encode()), **{**own, **changes})


def save(model_type: str, folder, seed: int = 0, **changes):
    """Builds and saves the model to `folder` as transformers writes it; returns the model."""
    model = build(model_type, seed, **changes)
    model.save_pretrained(folder)
    return model


def byte_tokenizer(texts: list[str], vocab_size: int, special: list[str], **settings):
    """A byte-level BPE tokenizer learned from `texts`; settings: of PreTrainedTokenizerFast."""
    tokenizers = pytest.importorskip("tokenizers")
    from transformers import PreTrainedTokenizerFast

    learned = tokenizers.ByteLevelBPETokenizer()
    learned.train_from_iterator(texts, vocab_size=vocab_size, min_frequency=1, special_tokens=special, show_progress=False)
    return PreTrainedTokenizerFast(tokenizer_object=learned._tokenizer, **settings)


SMALL = dict(COMMON, depth=2, num_heads=4, embed_dim=32, out_hidden_size=32, head_dim=8, num_experts=4, num_local_experts=4,
             num_experts_per_tok=2, moe_intermediate_size=12, shared_expert_intermediate_size=12, linear_key_head_dim=8,
             linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4, d_model=32, encoder_layers=2,
             encoder_attention_heads=4, encoder_ffn_dim=48, image_size=28, patch_size=14, query_pre_attn_scalar=8, intermediate_size_mlp=48,
             output_dim=32, hidden_size_per_layer_input=8, vocab_size_per_layer_input=64, num_position_embeddings=16, n_window=4,
             downsample_hidden_size=16, deepstack_visual_indexes=[0], mm_tokens_per_image=1, num_mel_bins=16, num_kv_shared_layers=0,
             projector_hidden_size=32)
SECTIONS = dict(mrope_section=[2, 1, 1])
WITH_TOWERS = {  # model_type: (configuration class, model class); their text models are looked at, nothing is run
    "gemma3": ("Gemma3Config", "Gemma3ForConditionalGeneration"),
    "gemma4": ("Gemma4Config", "Gemma4ForConditionalGeneration"),
    "glm_ocr": ("GlmOcrConfig", "GlmOcrForConditionalGeneration"),
    "hunyuan_vl": ("HunYuanVLConfig", "HunYuanVLForConditionalGeneration"),
    "idefics3": ("Idefics3Config", "Idefics3ForConditionalGeneration"),
    "smolvlm": ("SmolVLMConfig", "SmolVLMForConditionalGeneration"),
    "lfm2_vl": ("Lfm2VlConfig", "Lfm2VlForConditionalGeneration"),
    "qwen2_5_omni_thinker": ("Qwen2_5OmniThinkerConfig", "Qwen2_5OmniThinkerForConditionalGeneration"),
    "qwen2_audio": ("Qwen2AudioConfig", "Qwen2AudioForConditionalGeneration"),
    "qwen2_vl": ("Qwen2VLConfig", "Qwen2VLForConditionalGeneration"),
    "qwen2_5_vl": ("Qwen2_5_VLConfig", "Qwen2_5_VLForConditionalGeneration"),
    "qwen3_5": ("Qwen3_5Config", "Qwen3_5ForConditionalGeneration"),
    "qwen3_5_moe": ("Qwen3_5MoeConfig", "Qwen3_5MoeForConditionalGeneration"),
    "qwen3_vl": ("Qwen3VLConfig", "Qwen3VLForConditionalGeneration"),
    "qwen3_vl_moe": ("Qwen3VLMoeConfig", "Qwen3VLMoeForConditionalGeneration"),
    "qwen3_asr": ("Qwen3ASRConfig", "Qwen3ASRForConditionalGeneration"),
}


def build_with_towers(model_type: str):
    transformers = pytest.importorskip("transformers")
    config, model = WITH_TOWERS[model_type]
    return getattr(transformers, model)(_shrunk(getattr(transformers, config)))


def _shrunk(kind):
    """A configuration of this class with every size it knows made small, its sub-configurations too; one block of each layer type."""
    plain = kind()
    known = plain.to_dict()
    small = {key: value for key, value in SMALL.items() if key in known}
    for part in ("text_config", "vision_config", "audio_config"):
        if getattr(plain, part, None) is not None:
            small[part] = _shrunk(type(getattr(plain, part))).to_dict()
    if "text_config" not in known and "vocab_size" in known and "full_attention" not in (known.get("rope_parameters") or {}):
        small["rope_parameters"] = {**(known.get("rope_parameters") or {}), **SECTIONS}  # 4 pairs of a head of 8, shared out
    if known.get("layer_types"):
        small["layer_types"] = (sorted(set(known["layer_types"])) * 2)[:2]
    return kind(**small)
