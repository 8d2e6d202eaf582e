"""A map applied to configurations and tensor names that are broken, incomplete or hostile: reported by name, never written as None."""

import pytest

from custom_ops.onboarding import OnboardingError
from custom_ops.onboarding.architecture import ACTIVATION_NAMES
from custom_ops.onboarding.mapping import family
from custom_ops.onboarding.model.mlp import ACTIVATIONS
from custom_ops.onboarding.names import resolve_names
from custom_ops.onboarding.report import require
from custom_ops.onboarding.resolve import resolve_config
from custom_ops.onboarding.rope import resolve_ropes

LLAMA = {"model_type": "llama", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 64}
BLOCK = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
         "input_layernorm", "post_attention_layernorm"]
NAMES = ["lm_head.weight", "model.embed_tokens.weight", "model.norm.weight",
         *(f"model.layers.{layer}.{part}.weight" for layer in range(2) for part in BLOCK)]


def resolved(config, names=NAMES, model_type="llama"):
    entry = family(model_type)
    found = resolve_config(entry, config)
    return found, resolve_names(entry, names, found)


def test_derived_values_say_where_they_come_from():
    found, _ = resolved({**LLAMA, "head_dim": None})
    assert found["head_dim"] == 8 and found.sources["head_dim"] == "hidden_size / num_attention_heads"
    assert found["num_key_value_heads"] == 4 and found.sources["num_key_value_heads"] == "num_attention_heads"
    assert found["rms_norm_eps"] == 1e-6 and found.sources["rms_norm_eps"] == "default of llama"
    assert found.sources["hidden_size"] == "config.json hidden_size"


def test_null_is_a_statement_and_takes_no_default():
    gemma = {**LLAMA, "model_type": "gemma2", "head_dim": 8}
    assert resolved(gemma, model_type="gemma2")[0]["final_softcap"] == 30.0
    found, _ = resolved({**gemma, "final_logit_softcapping": None}, model_type="gemma2")
    assert "final_softcap" not in found and None not in found.values.values()


def test_missing_sources_are_reported_with_every_place_looked_at():
    found, _ = resolved({"model_type": "qwen2_vl", "text_config": {"num_attention_heads": 4}}, model_type="qwen2_vl")
    missing = {entry.dst: entry for entry in found.report if entry.required}
    assert set(missing) == {"hidden_size", "num_hidden_layers", "vocab_size"}
    assert str(missing["hidden_size"]) == "config: hidden_size <- text_config.hidden_size | hidden_size: absent"
    with pytest.raises(OnboardingError, match=r"here: 3 required entries are missing\n  config: hidden_size <- "):
        require(found.report, "here")


@pytest.mark.parametrize("key, value, message", [
    ("hidden_size", "32", "must be an integer >= 1, is '32'"), ("hidden_size", True, "is True"), ("hidden_size", 32.0, "is 32.0"),
    ("hidden_size", -1, "is -1"), ("hidden_size", 2**40, "is 1099511627776"), ("hidden_size", [32], r"is \[32\]"),
    ("num_hidden_layers", 10**9, "at most 100000 blocks"), ("hidden_size", 33, "no multiple of num_attention_heads 4"),
    ("num_key_value_heads", 3, "no multiple of it"), ("rms_norm_eps", "tiny", "must be a finite number"),
    ("layer_types", ["full_attention"], "has 1 entries for 2 blocks"), ("layer_types", "full_attention", "must be a list"),
    ("layer_types", ["full_attention", "mamba"], "unknown 'mamba'; known: full_attention"), ("layer_types", [[], {}], "unknown"),
    ("layer_types", ["full_attention", "sliding_attention"], "sliding_window.*absent"), ("tie_word_embeddings", 1, "must be true or false"),
    ("hidden_act", 3, "must be one of silu, swish"), ("hidden_act", "quick_gelu", "must be one of silu.*, is 'quick_gelu'"),
    ("rms_norm_eps", -1e-6, "must be a finite number >= 0, is -1e-06"), ("rms_norm_eps", 1e308, "must be a finite number >= 0"),
    ("hidden_act", None, "activation.*null"), ("vocab_size", None, "vocab_size.*null"),
])
def test_values_that_make_no_sense_are_required_entries(key, value, message):
    found, _ = resolved({**LLAMA, key: value})
    with pytest.raises(OnboardingError, match=message):
        require(found.report, "config.json")
    assert None not in found.values.values()


@pytest.mark.parametrize("model_type, changes, message", [
    ("gemma2", {"query_pre_attn_scalar": 0, "sliding_window": 8}, "attention_scale.*must be a finite number above 0, is 0"),
    ("gemma2", {"final_logit_softcapping": 0.0, "sliding_window": 8}, "final_softcap.*above 0"),
    ("llama4_text", {"floor_scale": None, "num_local_experts": 4, "num_experts_per_tok": 2}, "floor_scale.*null"),
    ("minicpm", {"scale_depth": None}, "scale_depth.*null"), ("minicpm", {"dim_model_base": None}, "dim_model_base.*null"),
    ("gemma3_text", {"use_bidirectional_attention": True, "sliding_window": 8}, "every token sees later ones, no decoder"),
    ("qwen3_moe", {"num_experts": 4, "num_experts_per_tok": 5}, "top_k.*5 of 4 experts"),
    ("qwen3_next", {"linear_num_key_heads": 3, "linear_num_value_heads": 4}, "4 is no multiple of linear_num_key_heads 3")])
def test_numbers_that_no_model_can_have(model_type, changes, message):
    found, _ = resolved({**LLAMA, **changes}, model_type=model_type)
    with pytest.raises(OnboardingError, match=message):
        require(found.report, "config.json")


def test_every_activation_that_may_be_named_is_there():
    assert tuple(ACTIVATIONS) == ACTIVATION_NAMES


def test_layer_types_from_older_configurations():
    gemma, _ = resolved({**LLAMA, "num_hidden_layers": 8, "sliding_window_pattern": 4}, model_type="gemma3_text")
    assert gemma["layer_types"] == (["sliding_attention"] * 3 + ["full_attention"]) * 2
    qwen, _ = resolved({**LLAMA, "use_sliding_window": True, "max_window_layers": 1, "sliding_window": 8}, model_type="qwen2")
    assert qwen["layer_types"] == ["full_attention", "sliding_attention"]
    off, _ = resolved({**LLAMA, "use_sliding_window": False, "max_window_layers": 1, "sliding_window": 8}, model_type="qwen2")
    assert off["layer_types"] == ["full_attention"] * 2
    lfm, _ = resolved({**LLAMA, "full_attn_idxs": [1]}, model_type="lfm2")
    assert lfm["layer_types"] == ["conv", "full_attention"] and lfm.sources["layer_types"] == "config.json full_attn_idxs"
    bare, _ = resolved(LLAMA, model_type="lfm2")
    assert any(entry.dst == "layer_types" and entry.required for entry in bare.report)


def test_a_text_config_may_leave_out_what_its_class_has():
    text = {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}
    config = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27}}
    found, _ = resolved(config, model_type="gemma3")
    require(found.report, "gemma3")
    assert (found["num_attention_heads"], found["num_key_value_heads"], found["head_dim"], found["vocab_size"]) == (8, 4, 256, 262208)
    assert found["layer_types"].count("full_attention") == 5 and found["tie_word_embeddings"] is True
    ropes = resolve_ropes(config, family("gemma3"), found)
    assert (ropes["full_attention"].theta, ropes["full_attention"].scaling["factor"]) == (1e6, 8.0)
    assert (ropes["sliding_attention"].theta, ropes["sliding_attention"].scaling) == (1e4, {"rope_type": "default"})


def missing(paths):
    return [str(entry) for entry in paths.report if entry.required]


def test_tensors_that_are_missing_or_unknown_are_named():
    _, paths = resolved(LLAMA)
    assert missing(paths) == [] and paths.unused == []
    _, paths = resolved(LLAMA, [name for name in NAMES if name != "model.layers.1.self_attn.k_proj.weight"])
    assert missing(paths) == ["block 1 attention: k_proj <- model.layers.1.self_attn.k_proj: no tensor of this name"]
    _, paths = resolved(LLAMA, [name for name in NAMES if "layers.1.mlp.up" not in name])
    assert missing(paths) == ["block 1 mlp: up <- model.layers.1.mlp.up_proj: no tensor of this name (trait mlp_names)"]
    extra = ["model.layers.0.self_attn.q_norm.weight", "model.layers.2.input_layernorm.weight", "visual.conv.weight"]
    _, paths = resolved(LLAMA, [*NAMES, *extra, "model.layers.0.self_attn.rotary_emb.inv_freq"])
    assert missing(paths) == [] and paths.unused == extra


def test_blocks_that_are_not_there():
    _, paths = resolved({**LLAMA, "num_hidden_layers": 90_000})
    assert missing(paths) == ["block 2 model: blocks <- model.layers.2: config.json has 90000 blocks, the checkpoint 2 of them; block 2 "
                              "is the "
                              "first that is missing"]
    _, paths = resolved(LLAMA, [name for name in NAMES if "layers" not in name])
    assert missing(paths) == ["model: blocks <- model.layers: no tensor of this name"]
    _, paths = resolved(LLAMA, [*NAMES, f"model.layers.{'9' * 5000}.input_layernorm.weight"])
    assert missing(paths) == [] and len(paths.unused) == 1


def test_head_is_needed_only_where_it_is_not_tied():
    names = [name for name in NAMES if name != "lm_head.weight"]
    assert missing(resolved(LLAMA, names)[1]) == ["model: lm <- lm_head: no tensor of this name"]
    assert missing(resolved({**LLAMA, "tie_word_embeddings": True}, names)[1]) == []


def test_layer_types_and_tensors_must_agree():
    config = {**LLAMA, "layer_types": ["full_attention", "conv"]}
    _, paths = resolved(config)
    assert missing(paths) == ["block 1 decoder: self_attn <- config.json layer_types: layer_types says 'conv', the checkpoint holds "
                              "self_attn"]
    _, paths = resolved(LLAMA, [name for name in NAMES if "layers.0.self_attn" not in name])
    assert missing(paths) == ["block 0 decoder: self_attn <- model.layers.0.self_attn: no tensor of these names"]
