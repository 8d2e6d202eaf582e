"""The rotary base: every place it has stood in, with its source; places that disagree and missing ones are errors."""

import pytest
from tiny_models import COMMON, FAMILIES

from custom_ops.onboarding import OnboardingError
from custom_ops.onboarding.mapping import choose, family, load_maps
from custom_ops.onboarding.rope import resolve_rope, resolve_ropes

BASE = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 64}


def rope(config, model_type="llama", layer_type="full_attention"):
    return resolve_rope({**BASE, **config}, family(model_type), layer_type)


PLACES = {  # case: (model_type, config, layer type, theta, source)
    "rope_parameters": ("llama", {"rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}}, "", 5e5,
                        "config.json rope_parameters.rope_theta"),
    "top level": ("llama", {"rope_theta": 5e5}, "", 5e5, "config.json rope_theta"),
    "top level of an integer": ("llama", {"rope_theta": 500000}, "", 5e5, "config.json rope_theta"),
    "rope_scaling": ("llama", {"rope_scaling": {"rope_theta": 5e5, "type": "default"}}, "", 5e5, "config.json rope_scaling.rope_theta"),
    "both, equal": ("llama", {"rope_theta": 5e5, "rope_parameters": {"rope_theta": 5e5}}, "", 5e5,
                    "config.json rope_theta, rope_parameters.rope_theta"),
    "documented default": ("llama", {}, "", 1e4, "default of llama"),
    "documented default that is not 10000": ("lfm2", {}, "", 1e6, "default of lfm2"),
    "10000 as stated": ("lfm2", {"rope_theta": 1e4}, "", 1e4, "config.json rope_theta"),
    "text_config": ("qwen3_vl", {"text_config": {**BASE, "rope_theta": 5e6}}, "", 5e6, "config.json text_config.rope_theta"),
    "text_config.rope_parameters": ("qwen3_vl", {"text_config": {**BASE, "rope_parameters": {"rope_theta": 5e6}}}, "", 5e6,
                                    "config.json text_config.rope_parameters.rope_theta"),
    "flat before 5": ("qwen2_vl", {"rope_theta": 1e6, "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]}}, "", 1e6,
                      "config.json rope_theta"),
    "another name": ("qwen", {"rotary_emb_base": 2e4, "kv_channels": 8}, "", 2e4, "config.json rotary_emb_base"),
    "default scaling, base stated": ("gpt_oss", {"rope_theta": 2e5}, "", 2e5, "config.json rope_theta"),
    "ratio": ("chatglm2", {"kv_channels": 8, "rope_ratio": 50}, "", 5e5, "default of chatglm2 times config.json rope_ratio 50"),
    "per layer, full": ("gemma3_text", {"rope_parameters": {"full_attention": {"rope_theta": 1e6},
                                                            "sliding_attention": {"rope_theta": 1e4}}},
                        "", 1e6, "config.json rope_parameters.full_attention.rope_theta"),
    "per layer, sliding": ("gemma3_text", {"rope_parameters": {"full_attention": {"rope_theta": 1e6},
                                                               "sliding_attention": {"rope_theta": 1e4}}},
                           "sliding_attention", 1e4, "config.json rope_parameters.sliding_attention.rope_theta"),
    "local before 5": ("gemma3_text", {"rope_theta": 1e6, "rope_local_base_freq": 2e4,
                                       "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
                       "sliding_attention", 2e4, "config.json rope_local_base_freq"),
    "global before 5": ("gemma3_text", {"rope_theta": 2e6, "rope_local_base_freq": 1e4}, "", 2e6, "config.json rope_theta"),
    "local default": ("gemma3_text", {"rope_theta": 1e6}, "sliding_attention", 1e4, "default of gemma3_text"),
}


@pytest.mark.parametrize("case", PLACES)
def test_every_place_is_found_and_stated(case):
    model_type, config, layer_type, theta, source = PLACES[case]
    found = rope(config, model_type, layer_type or "full_attention")
    assert (found.theta, found.source) == (theta, source)


REFUSED = {  # case: (config, message)
    "disagreement": ({"rope_theta": 1e4, "rope_parameters": {"rope_theta": 5e5}},
                     "states rope_theta differently: rope_theta = 10000, rope_parameters.rope_theta = 500000"),
    "disagreement with text_config": ({"rope_theta": 1e4, "text_config": {"rope_theta": 5e5}}, "differently"),
    "a string": ({"rope_theta": "10000"}, "rope_theta: must be a finite number above 1, is '10000'"),
    "true": ({"rope_theta": True}, "is True"), "zero": ({"rope_theta": 0}, "is 0"), "infinite": ({"rope_theta": float("inf")}, "is inf"),
    "a list for a dict": ({"rope_parameters": [1e4]}, "rope_parameters: must be an object"),
    "unknown type": ({"rope_scaling": {"type": "yarm", "factor": 2.0}}, "rope_type 'yarm' is not known; nearest: 'yarn'"),
    "type a number": ({"rope_scaling": {"type": 3}}, "rope_type 3 is not known"),
    "numbers missing": ({"rope_scaling": {"type": "llama3", "factor": 8.0}}, "llama3 needs low_freq_factor, high_freq_factor, "
                        "original_max"),
    "two scalings": ({"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": {"rope_type": "yarn", "factor": 2.0}},
                     "scales the rotary embedding differently in rope_parameters and rope_scaling"),
    "factor a text": ({"rope_scaling": {"type": "linear", "factor": "4"}},
                      "rope_scaling.factor: must be a finite number above 0, is '4'"),
    "factor 0": ({"rope_scaling": {"type": "linear", "factor": 0}}, "must be a finite number above 0, is 0"),
    "factors of other pairs": ({"rope_scaling": {"type": "longrope", "factor": 2.0, "short_factor": [1.0], "long_factor": [1.0] * 4}},
                               r"short_factor: must be a list of 4 numbers above 0, one for each pair that rotates, is \[1.0\]"),
    "low above high": ({"rope_scaling": {"type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0,
                                         "original_max_position_embeddings": 64}},
                      "low_freq_factor 4.0 must be below high_freq_factor 1.0"),
    "no length": ({"rope_scaling": {"type": "dynamic", "factor": 2.0}, "max_position_embeddings": None}, "needs max_position_embeddings"),
    "share above 1": ({"partial_rotary_factor": 1.5}, "partial_rotary_factor: must be above 0 and at most 1"),
    "shares disagree": ({"partial_rotary_factor": 0.5, "rope_parameters": {"partial_rotary_factor": 0.25}},
                        "partial_rotary_factor differently"),
    "odd dims": ({"head_dim": 6, "partial_rotary_factor": 0.5}, "3 of the 6 elements of a head would rotate"),
    "other layer types only": ({"rope_parameters": {"sliding_attention": {"rope_theta": 1e4}}}, "has no entry for full_attention blocks"),
    "no head_dim": ({"hidden_size": None}, "needs head_dim"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_contradictions_and_nonsense_are_refused(case):
    config, message = REFUSED[case]
    with pytest.raises(OnboardingError, match=message):
        rope(config)


def test_without_a_documented_default_nothing_is_assumed(tmp_path):
    (tmp_path / "x.toml").write_text('ids = ["x"]\ninherit = "llama"\n[traits]\nrope_default_theta = ""\n')
    entry = choose(load_maps([tmp_path]), "x", {})
    with pytest.raises(OnboardingError, match=r"nowhere in config.json \(looked at rope_theta, text_config.rope_theta\) and the map "
                       r"x.toml"):
        resolve_rope(BASE, entry)


def test_dims_pairing_and_scaling():
    assert rope({}).dims == 8 and rope({}).pairing == "half" and rope({}).scaling == {"rope_type": "default"}
    assert rope({"partial_rotary_factor": 0.25}).dims == 2
    assert rope({}, "phi").dims == 4 and rope({"rope_parameters": {"partial_rotary_factor": 0.25}}, "phi").dims == 2
    assert rope({"head_dim": 8}, "glm4").pairing == "interleaved"
    glm = rope({"kv_channels": 8}, "chatglm2")
    assert glm.dims == 4 and glm.pairing == "interleaved"
    assert rope({"n_embd": 32, "n_head": 4, "rotary_dim": 6}, "phi-msft").dims == 6
    parameters = {"rope_type": "yarn", "rope_theta": 1.5e5, "factor": 32.0, "beta_fast": 32.0, "truncate": False}
    yarn = rope({"max_position_embeddings": 4096, "rope_parameters": parameters}, "gpt_oss")
    assert yarn.scaling == {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "truncate": False}
    longrope = {"type": "su", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
    assert rope({"max_position_embeddings": 64, "rope_scaling": longrope}).scaling["rope_type"] == "longrope"
    assert rope({"rope_scaling": {"type": "dynamic", "alpha": 1000.0}}).scaling == {"rope_type": "dynamic", "alpha": 1000.0}
    local = rope({"rope_theta": 1e6, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}, "gemma3_text", "sliding_attention")
    assert local.scaling == {"rope_type": "default"}
    assert str(yarn) == "theta 150000, 64 dims, half, yarn (config.json rope_parameters.rope_theta)"


def stated(model_type, theta):
    """gemma4's class takes a base in rope_parameters alone."""
    if model_type != "gemma4_text":
        return {"rope_theta": theta}
    return {"rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                                "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": theta}}}


@pytest.mark.parametrize("model_type", FAMILIES)
@pytest.mark.parametrize("theta", [1e4, 123456.0])
def test_agrees_with_transformers(model_type, theta):
    """inv_freq of the model's own rotary module: theta^(-2 i / dims), i < dims / 2."""
    transformers = pytest.importorskip("transformers")
    name, arguments = FAMILIES[model_type]
    head = {"head_dim": 32} if "head_dim" in arguments else {}  # a quarter of it still has several frequencies
    config = getattr(transformers, name)(**{**COMMON, **arguments, **head}, **stated(model_type, theta))
    ropes = resolve_ropes(config.to_dict(), family(model_type))
    full = ropes.get("full_attention") or ropes["chunked_attention"]  # a llama4 of two blocks has no full one
    assert full.theta == theta
    model = transformers.AutoModelForCausalLM.from_config(config)
    module = next(part for part_name, part in model.named_modules() if part_name.endswith(("rotary_emb", "pos_emb")))
    for kind, found in ropes.items():
        inv_freq = getattr(module, f"{kind}_inv_freq", None)
        inv_freq = getattr(module, "inv_freq", None) if inv_freq is None else inv_freq
        assert int((inv_freq != 0).sum()) == found.dims // 2
        assert "config.json rope_parameters" in found.source
        if found.scaling["rope_type"] == "default":
            assert float(inv_freq[1]) == pytest.approx(found.theta ** (-2 / found.dims), rel=1e-6)
