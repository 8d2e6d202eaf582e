"""Family maps: what is refused, how they inherit, and that each fits the models transformers builds."""

import json

import pytest
from tiny_models import FAMILIES, WITH_TOWERS, build_with_towers, save

from custom_ops.onboarding import OnboardingError, UnknownFamily
from custom_ops.onboarding.analyze import analyze
from custom_ops.onboarding.checkpoint import Checkpoint
from custom_ops.onboarding.mapping import choose, family, identify, load_maps
from custom_ops.onboarding.names import resolve_names
from custom_ops.onboarding.report import require
from custom_ops.onboarding.resolve import resolve_config
from custom_ops.onboarding.rope import resolve_rope, resolve_ropes
from custom_ops.onboarding.vocabulary import LEVELS, TRAITS
from custom_ops.onboarding.weights import load


@pytest.fixture
def maps_with(tmp_path):
    """load_maps with files of a user's folder: {file name: text}."""
    def load(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.toml").write_text(text)
        return load_maps([tmp_path])
    return load


@pytest.mark.parametrize("model_type", FAMILIES)
def test_map_fits_what_transformers_saves(model_type, tmp_path):
    save(model_type, tmp_path)
    checkpoint = Checkpoint(tmp_path)
    entry = family(model_type, config=checkpoint.config)
    found = resolve_config(entry, checkpoint.config)
    paths = resolve_names(entry, checkpoint.names, found)
    require([*found.report, *paths.report], model_type)
    assert paths.unused == []
    assert None not in found.values.values()
    assert len(paths.layers) == found["num_hidden_layers"] == len(found["layer_types"])


@pytest.mark.parametrize("model_type", WITH_TOWERS)
def test_map_fits_models_with_towers_under_both_spellings(model_type, tmp_path):
    """Files keep the names of earlier versions; modules of transformers 5 have moved."""
    model = build_with_towers(model_type)
    model.save_pretrained(tmp_path)
    checkpoint = Checkpoint(tmp_path)
    entry = identify(load_maps(), checkpoint.config)
    found = resolve_config(entry, checkpoint.config)
    assert found["hidden_size"] == 32 and found["num_hidden_layers"] == 2
    for spelling in (checkpoint.names, list(model.state_dict())):
        paths = resolve_names(entry, spelling, found)
        require([*found.report, *paths.report], model_type)
        assert paths.unused == [] and len(paths.layers) == 2


IDS = """baichuan chatglm chatglm2 deepseek-vl funaudiochat gemma2 gemma3 gemma3_text gemma4 glm_ocr gpt_oss hunyuan_v1_dense hunyuan_vl
idefics3 smolvlm internvl_chat lfm2 lfm2_audio lfm2_moe lfm2_vl llama qwen2 internlm mobilellm llama4_text llava_qwen2 mimo minicpm minicpmv
phi phi-msft poi_qwen2_mtp qwen qwen2_5_omni qwen2_audio qwen2_vl qwen2_5_vl qwen3 qwen3_5 qwen3_5_moe qwen3_5_text qwen3_asr qwen3_moe
qwen3_tts qwen3_vl qwen3_vl_moe""".split()


def test_every_model_type_of_the_exporters_is_mapped():
    assert len(IDS) == 46 and set(IDS) <= set(load_maps())


GLM = {"model_type": "chatglm", "hidden_size": 32, "num_attention_heads": 4, "num_layers": 1, "layernorm_epsilon": 1e-5}
REMOTE = {  # model_type: (config.json, block prefix, names of the block, other names)
    "chatglm": ({**GLM, "vocab_size": 130528, "inner_hidden_size": 128}, "transformer.layers.0.",
                ["attention.query_key_value.weight", "attention.query_key_value.bias", "attention.dense.weight", "input_layernorm.weight",
                 "post_attention_layernorm.weight", "mlp.dense_h_to_4h.weight", "mlp.dense_4h_to_h.weight"],
                ["transformer.word_embeddings.weight", "transformer.final_layernorm.weight", "lm_head.weight"]),
    "chatglm2": ({**GLM, "padded_vocab_size": 65024, "kv_channels": 8, "multi_query_group_num": 2, "ffn_hidden_size": 48,
                  "rope_ratio": 50.0},
                 "transformer.encoder.layers.0.",
                 ["self_attention.query_key_value.weight", "self_attention.dense.weight", "input_layernorm.weight",
                  "post_attention_layernorm.weight", "mlp.dense_h_to_4h.weight", "mlp.dense_4h_to_h.weight"],
                 ["transformer.embedding.word_embeddings.weight", "transformer.encoder.final_layernorm.weight",
                  "transformer.output_layer.weight", "transformer.rotary_pos_emb.inv_freq"]),
    "qwen": ({"model_type": "qwen", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 1, "vocab_size": 64, "kv_channels": 8,
              "layer_norm_epsilon": 1e-6, "rotary_emb_base": 1e4, "intermediate_size": 96}, "transformer.h.0.",
             ["attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "ln_1.weight", "ln_2.weight", "mlp.w1.weight",
              "mlp.w2.weight",
              "mlp.c_proj.weight"], ["transformer.wte.weight", "transformer.ln_f.weight", "lm_head.weight"]),
    "phi-msft": ({"model_type": "phi-msft", "n_embd": 32, "n_head": 4, "n_layer": 1, "rotary_dim": 4, "vocab_size": 64,
                  "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}, "transformer.h.0.",
                 ["mixer.Wqkv.weight", "mixer.Wqkv.bias", "mixer.out_proj.weight", "ln.weight", "ln.bias", "mlp.fc1.weight",
                  "mlp.fc2.weight"],
                 ["transformer.embd.wte.weight", "lm_head.ln.weight", "lm_head.linear.weight", "lm_head.linear.bias"]),
    "baichuan": ({"model_type": "baichuan", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 1, "vocab_size": 64,
                  "rms_norm_eps": 1e-6, "hidden_act": "silu"}, "model.layers.0.",
                 ["self_attn.W_pack.weight", "self_attn.o_proj.weight", "input_layernorm.weight", "post_attention_layernorm.weight",
                  "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight", "self_attn.rotary_emb.inv_freq"],
                 ["model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"]),
}


@pytest.mark.parametrize("model_type", REMOTE)
def test_maps_of_remote_code(model_type):
    config, prefix, block, others = REMOTE[model_type]
    entry = identify(load_maps(), config)
    assert entry.remote_code and model_type in entry.ids
    found = resolve_config(entry, config)
    paths = resolve_names(entry, [*others, *(prefix + name for name in block)], found)
    require([*found.report, *paths.report], model_type)
    assert paths.unused == [] and found["head_dim"] == 8
    assert "qkv_proj" in paths.layers[0].attention


def test_a_configuration_without_model_type_is_known_by_its_keys():
    assert identify(load_maps(), {"lfm": {}, "preprocessor": {}}).ids == ("lfm2_audio",)
    with pytest.raises(OnboardingError, match="has no model_type, and no map knows it by its keys: hidden_size"):
        identify(load_maps(), {"hidden_size": 3})
    with pytest.raises(OnboardingError, match="must be a name, is 3"):
        identify(load_maps(), {"model_type": 3})


SIZES = """model_type hidden_size num_attention_heads num_hidden_layers vocab_size num_key_value_heads num_experts num_local_experts
num_experts_per_tok linear_conv_kernel_dim linear_key_head_dim linear_num_key_heads linear_num_value_heads linear_value_head_dim""".split()


@pytest.mark.parametrize("model_type", FAMILIES)
def test_defaults_are_those_of_the_configuration_class(model_type):
    """A config.json with sizes alone means what the class makes of it: norms, activation, caps, windows, layer types, rotation."""
    transformers = pytest.importorskip("transformers")
    kind = getattr(transformers, FAMILIES[model_type][0])
    layers = {"layer_types": ["conv", "full_attention"] * 12, "num_hidden_layers": 24} if model_type.startswith("lfm2") else {}
    whole = json.loads(json.dumps(kind(**layers).to_dict()))  # keys of objects are texts there
    bare = {key: whole[key] for key in [*SIZES, *layers] if key in whole}
    entry = family(model_type)
    want, got = resolve_config(entry, whole), resolve_config(entry, bare)
    require(got.report, model_type)
    ignored = {"rope_parameters", "rope_scaling", "max_position_embeddings", "bos_token_id", "eos_token_id", "pad_token_id",  # not used, or
               "intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size",  # the tensors say it
               "window_flag", "window_from",  # of layer_types
               "rope_flags",  # what rope_interval says
               "per_layer_config"}  # what global_head_dim says
    assert {key: value for key, value in want.values.items() if key not in ignored} == \
        {key: value for key, value in got.values.items() if key not in ignored}
    for layer_type, rope in resolve_ropes(whole, entry, want).items():
        other = resolve_rope(bare, entry, layer_type, got)
        assert (other.theta, other.dims, other.pairing, other.scaling) == (rope.theta, rope.dims, rope.pairing, rope.scaling)
        assert "default of" in other.source


def test_every_sentence_is_there():
    assert all(entry.sentence for keys in LEVELS.values() for entry in keys.values())
    assert all(trait.sentence for trait in TRAITS.values())


def test_unknown_model_type_names_the_nearest():
    with pytest.raises(UnknownFamily, match=r"'qwen3_5_txt' is not mapped; nearest: 'qwen3_5_text'") as caught:
        family("qwen3_5_txt")
    assert caught.value.nearest[0] == "qwen3_5_text"


def test_a_file_in_a_folder_adds_a_family(maps_with):
    maps = maps_with(mine='ids = ["mine"]\ninherit = "qwen3"\n[attention]\no_proj = "out"\nq_norm = ""\n[traits]\nnorm_offset = true\n')
    entry = choose(maps, "mine", {})
    assert entry.attention == {"q_proj": ("q_proj",), "k_proj": ("k_proj",), "v_proj": ("v_proj",), "o_proj": ("out",),
                               "k_norm": ("k_norm",)}
    assert entry.traits["norm_offset"] is True and entry.traits["qk_norm"] == "before_rope" and entry.replaces is None


def test_a_users_map_replaces_the_packages_and_may_inherit_it(maps_with):
    maps = maps_with(llama='ids = ["llama"]\ninherit = "llama"\n[model]\nembed = ["wte", "model.embed_tokens"]\n')
    entry = choose(maps, "llama", {})
    assert entry.model["embed"] == ("wte", "model.embed_tokens") and entry.replaces.name == "llama.toml"
    assert choose(maps, "qwen2", {}).model["embed"] == ("model.embed_tokens",)
    assert choose(maps, "qwen3", {}).model["embed"] == ("model.embed_tokens",)


BROKEN = {
    "unknown key": ('ids = ["x"]\ninherit = "llama"\n[attention]\nqproj = "q"\n', r"mine.toml: \[attention\] has no key 'qproj'; "
                    r"nearest: 'q_proj'"),
    "unknown level": ('ids = ["x"]\ninherit = "llama"\n[expert]\ngate = "g"\n', "unknown key 'expert'"),
    "unknown trait": ('ids = ["x"]\ninherit = "llama"\n[traits]\nresidul = "parallel"\n', "unknown trait 'residul'; nearest: 'residual'"),
    "wrong choice": ('ids = ["x"]\ninherit = "llama"\n[traits]\nresidual = "both"\n', "must be one of standard, parallel"),
    "number for a flag": ('ids = ["x"]\ninherit = "llama"\n[traits]\nnorm_offset = 1\n', "norm_offset .* must be bool, is 1"),
    "flag for a number": ('ids = ["x"]\ninherit = "llama"\n[traits]\nrope_default_theta = true\n', "must be int or float, is True"),
    "no ids": ('inherit = "llama"\n', "ids must be a list"),
    "ids a string": ('ids = "x"\ninherit = "llama"\n', "ids must be a list"),
    "source a number": ('ids = ["x"]\ninherit = "llama"\n[model]\nlm = 3\n', "must be a dotted path"),
    "source with spaces": ('ids = ["x"]\ninherit = "llama"\n[model]\nlm = "a b"\n', "must be a dotted path"),
    "source climbs": ('ids = ["x"]\ninherit = "llama"\n[model]\nlm = "../a"\n', "must be a dotted path"),
    "unknown parent": ('ids = ["x"]\ninherit = "lama"\n', "inherit 'lama' is not mapped; nearest: 'llama'"),
    "itself": ('ids = ["x"]\ninherit = "x"\n', "inherit 'x' is not mapped"),
    "no model level": ('ids = ["x"]\n[config]\nhidden_size = "h"\n[decoder]\nmlp = "m"\n[attention]\nq_proj = "q"\n',
                       r"\[model\] is empty"),
    "unknown default": ('ids = ["x"]\ninherit = "llama"\n[defaults]\nhiden_size = 3\n',
                        r"\[defaults\] has no key 'hiden_size'; nearest: 'hidden_size'"),
    "default of the wrong kind": ('ids = ["x"]\ninherit = "llama"\n[defaults]\nhidden_size = "wide"\n',
                                  "hidden_size must be an integer >= 1"),
    "unknown role": ('ids = ["x"]\ninherit = "llama"\n[traits]\nmlp_names = { gates = "g" }\n', "has no role 'gates'; nearest: 'gate'"),
    "role a number": ('ids = ["x"]\ninherit = "llama"\n[traits]\nmlp_names = { gate = 3 }\n', "mlp_names.gate must be a dotted path"),
    "unknown layer type": ('ids = ["x"]\ninherit = "llama"\n[traits]\nlayer_pattern = ["mamba"]\n', "must be a list of full_attention"),
    "prefix without dot": ('ids = ["x"]\ninherit = "llama"\nconfig_prefix = "text_config"\n', "ends with a dot"),
    "optional of no level": ('ids = ["x"]\ninherit = "llama"\noptional = ["q_proj"]\n', "is no level.key"),
    "no TOML": ("ids = [", "cannot be read as TOML"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_maps_are_refused(case, maps_with):
    text, message = BROKEN[case]
    with pytest.raises(OnboardingError, match=message):
        maps_with(mine=text)


def test_circles_and_doubles_are_refused(maps_with):
    with pytest.raises(OnboardingError, match="inherits from itself: a.toml -> b.toml -> a.toml"):
        maps_with(a='ids = ["a"]\ninherit = "b"\n', b='ids = ["b"]\ninherit = "a"\n')
    with pytest.raises(OnboardingError, match="id 'a' is also in a.toml"):
        maps_with(a='ids = ["a"]\ninherit = "llama"\n', b='ids = ["a"]\ninherit = "llama"\n')


def test_when_tells_two_maps_of_one_id_apart(maps_with):
    maps = maps_with(a='ids = ["a"]\ninherit = "llama"\n',
                     b='ids = ["a"]\ninherit = "llama"\nwhen = { vocab_size = 7 }\n[model]\nlm = "head"\n')
    assert choose(maps, "a", {"vocab_size": 7}).model["lm"] == ("head",)
    assert choose(maps, "a", {"vocab_size": 8}).model["lm"] == ("lm_head",)
    with pytest.raises(OnboardingError, match="'a' is mapped, but not for this config.json: b.toml wants vocab_size = 7; .*--map-dir"):
        choose({"a": maps["a"][1:]}, "a", {"vocab_size": 8})


def test_folders_must_hold_maps(tmp_path):
    with pytest.raises(OnboardingError, match="holds no map"):
        load_maps([tmp_path])
    with pytest.raises(OnboardingError, match="no such folder"):
        load_maps([tmp_path / "none"])


def test_what_the_model_lacks_is_refused_by_name(tmp_path):
    save("llama", tmp_path / "model")
    (tmp_path / "llama.toml").write_text('ids = ["llama"]\ninherit = "llama"\nunsupported = "ALiBi"\n')
    with pytest.raises(OnboardingError, match="llama has what LlmModel does not: ALiBi"):
        load(tmp_path / "model", map_dirs=[tmp_path])
    analysis = analyze(tmp_path / "model", [tmp_path])
    assert not analysis.ready and analysis.missing == ["LlmModel does not have: ALiBi"]
