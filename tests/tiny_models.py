"""Tiny random models of transformers for tests/onboarding: one configuration per family, built when it is asked for."""

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
    "phi": ("PhiConfig", {}),
    "glm4": ("Glm4Config", dict(head_dim=8)),
    "gpt_oss": ("GptOssConfig", dict(head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=16)),
    "olmo2": ("Olmo2Config", {}),
    "hunyuan_v1_dense": ("HunYuanDenseV1Config", dict(head_dim=8)),
    "lfm2": ("Lfm2Config", dict(layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False)),
    "lfm2_moe": ("Lfm2MoeConfig", dict(layer_types=["conv", "full_attention"], num_dense_layers=1, **MOE)),
    "qwen3_5_text": ("Qwen3_5TextConfig", DELTA),
    "qwen3_5_moe_text": ("Qwen3_5MoeTextConfig", dict(DELTA, **MOE, **SHARED)),
    "qwen3_next": ("Qwen3NextConfig", dict(DELTA, **MOE, **SHARED)),
}


def build(model_type: str, seed: int = 0, **changes):
    """The model, float32, weights from N(0, 0.2): at transformers' own 0.02 a wrong rope or a swapped gate hardly shows."""
    transformers = pytest.importorskip("transformers")
    import torch

    name, arguments = FAMILIES[model_type]
    config = getattr(transformers, name)(**{**COMMON, **arguments, **changes}, initializer_range=0.2)
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():  # norms at 1 or 0 hide a wrong convention
        for key, weight in model.named_parameters():
            if weight.ndim == 1 and "norm" in key:
                weight.add_(torch.randn_like(weight) * 0.2)
    return model


def save(model_type: str, folder, seed: int = 0, **changes):
    """Builds and saves the model to `folder` as transformers writes it; returns the model."""
    model = build(model_type, seed, **changes)
    model.save_pretrained(folder)
    return model


SMALL = dict(COMMON, depth=2, num_heads=4, embed_dim=32, out_hidden_size=32, head_dim=8, num_experts=4, num_local_experts=4,
             num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=16, linear_key_head_dim=8,
             linear_value_head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4, d_model=32, encoder_layers=2,
             encoder_attention_heads=4, encoder_ffn_dim=48, image_size=28, patch_size=14, query_pre_attn_scalar=8, intermediate_size_mlp=48,
             output_dim=32, hidden_size_per_layer_input=8, vocab_size_per_layer_input=64, num_position_embeddings=16, n_window=4,
             downsample_hidden_size=16, deepstack_visual_indexes=[0], mm_tokens_per_image=1, num_mel_bins=16, num_kv_shared_layers=0,
             projector_hidden_size=32)
WITH_TOWERS = {  # model_type: (configuration class, model class); their text models are looked at, nothing is run
    "gemma3": ("Gemma3Config", "Gemma3ForConditionalGeneration"),
    "gemma4": ("Gemma4Config", "Gemma4ForConditionalGeneration"),
    "glm_ocr": ("GlmOcrConfig", "GlmOcrForConditionalGeneration"),
    "hunyuan_vl": ("HunYuanVLConfig", "HunYuanVLForConditionalGeneration"),
    "idefics3": ("Idefics3Config", "Idefics3ForConditionalGeneration"),
    "smolvlm": ("SmolVLMConfig", "SmolVLMForConditionalGeneration"),
    "lfm2_vl": ("Lfm2VlConfig", "Lfm2VlForConditionalGeneration"),
    "llama4_text": ("Llama4TextConfig", "Llama4ForCausalLM"),
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
    if known.get("layer_types"):
        small["layer_types"] = (sorted(set(known["layer_types"])) * 2)[:2]
    return kind(**small)
