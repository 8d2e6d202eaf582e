"""onboard analyze: every family is ready as transformers saves it, whatever is wrong is told, an unknown model gets a map that fits."""

import json
import re
import struct
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file
from tiny_models import FAMILIES, WITH_TOWERS, build_variant, build_with_towers, save

from custom_ops.cli_commands import main
from custom_ops.onboarding.analyze import analyze
from custom_ops.onboarding.checkpoint import INDEX, SINGLE
from custom_ops.onboarding.mapping import identify, load_maps
from custom_ops.onboarding.weights import load

TIERS = {"llama": [1], "qwen2": [1], "qwen3": [1], "hunyuan_v1_dense": [1], "gemma2": [2], "gemma3_text": [2], "phi": [2], "glm4": [2],
         "olmo2": [2], "qwen3_moe": [3], "gpt_oss": [3], "lfm2": [6], "qwen3_5_text": [6], "lfm2_moe": [3, 6], "qwen3_next": [3, 6],
         "qwen3_5_moe_text": [3, 6], "gemma3": [2, 5], "qwen2_audio": [4], "qwen3_5": [5, 6], "qwen3_5_moe": [3, 5, 6], "lfm2_vl": [5, 6]}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folder of a family's tiny model, built once; tests that change one copy what they change."""
    done = {}

    def get(model_type):
        if model_type not in done:
            done[model_type] = tmp_path_factory.mktemp(model_type)
            if model_type in FAMILIES:
                save(model_type, done[model_type])
            else:
                build_with_towers(model_type).save_pretrained(done[model_type])
        return done[model_type]
    return get


@pytest.fixture
def variant(saved, tmp_path):
    """A family's folder with config.json and tensors changed by functions of (config) and (tensors)."""
    def make(model_type, config=lambda config: None, tensors=None):
        source = saved(model_type)
        values = json.loads((source / "config.json").read_text())
        config(values)
        (tmp_path / "config.json").write_text(json.dumps(values))
        if tensors is None:
            (tmp_path / SINGLE).write_bytes((source / SINGLE).read_bytes())
        else:
            save_file(tensors(load_file(source / SINGLE)), tmp_path / SINGLE)
        return tmp_path
    return make


def run(*arguments, code):
    result = CliRunner().invoke(main, ["onboard", "analyze", *map(str, arguments)])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def state(analysis):
    return [check.state for check in analysis.checks]


@pytest.mark.parametrize("model_type", [*FAMILIES, *WITH_TOWERS])
def test_every_family_is_ready(model_type, saved):
    analysis = analyze(saved(model_type))
    assert analysis.missing == [] and analysis.ready and analysis.proposal is None
    assert state(analysis) == ["ok"] * 6 and len(analysis.answers) == 10 and len(analysis.tests) == 6
    assert analysis.tiers == TIERS.get(model_type, analysis.tiers)
    assert all(answer.answer and answer.evidence for answer in analysis.answers)


def answers(folder):
    return {answer.question: "\n".join(answer.answer) for answer in analyze(folder).answers}


def test_answers_of_a_hybrid_model(saved):
    told = answers(saved("qwen3_next"))
    assert told["weight paths"] == "embed: model.embed_tokens\nblocks: model.layers\nfinal_layernorm: model.norm\nlm: lm_head"
    assert "q_proj also holds an output gate per head" in told["attention"] and "gated delta rule: out_proj" in told["attention"]
    assert told["rotation"] == "theta 10000, 2 of 8 elements of a head, half pairs\nnorm of query and key before the rotation"
    assert "weight used as 1 + w" in told["norm weights"] and "norm inside the delta rule: weight used as w" in told["norm weights"]
    assert told["experts"].splitlines() == ["4 experts, k = 2: softmax over all experts, then the top k", "one tensor per expert and matrix",
                                            "chosen weights divided by their sum", "a shared expert beside them, gated"]
    assert told["block by block"] == "linear_attention: blocks 0-2\nfull_attention: block 3"
    assert told["carried state"] == ("linear_attention: convolution state [64, 3] and recurrent state [4, 8, 8]\n"
                                     "full_attention: keys and values, 32 numbers a token")


def test_answers_of_other_forms(saved):
    gemma = answers(saved("gemma2"))
    assert gemma["head"] == "tied: the head is the embedding" and gemma["weight paths"].endswith("lm: tied to embed")
    assert gemma["residual form"] == ("four norm: x + n2(attn(n1(x))), then x + n4(mlp(n3(x)))\n"
                                      "embedding times sqrt_hidden, logits capped at 30")
    assert "sliding_attention: keys and values, 32 numbers a token, of the last 16 tokens" in gemma["carried state"]
    gpt = answers(saved("gpt_oss"))
    assert "fused 3-D tensors, interleaved" in gpt["experts"] and "one sink logit per head" in gpt["attention"]
    assert "biases: q_proj, k_proj, v_proj, o_proj" in gpt["attention"] and "yarn (" in gpt["rotation"]
    lfm = answers(saved("lfm2_moe"))
    assert "in 1 of 2 blocks" in lfm["experts"] and "conv: convolution state [32, 2]" in lfm["carried state"]
    assert "parallel" in answers(saved("phi"))["residual form"]


def test_answers_of_gemma4(tmp_path):
    for name in ("gemma4", "gemma4_moe"):
        build_variant(name).save_pretrained(tmp_path / name)
    dense, experts = answers(tmp_path / "gemma4"), answers(tmp_path / "gemma4_moe")
    assert dense["carried state"] == ("sliding_attention: keys and values, 64 numbers a token, of the last 8 tokens\n"
                                      "full_attention: keys and values, 128 numbers a token\n"
                                      "block 3: nothing of its own, keys and values of block 2\n"
                                      "block 4: nothing of its own, keys and values of block 1")
    assert "full_attention: theta 1000000, 8 of 32 elements of a head, half pairs, proportional\n" in dense["rotation"]
    assert "adds a gated input of its own of 8 numbers, the block's result times layer_scalar" in dense["residual form"]
    assert "every head of the value is normed, without weight" in dense["attention"] and "projected key" not in dense["attention"]
    assert "the value is the projected key, before norm and rotation, in 1, 3" in experts["attention"]
    assert "experts beside the dense MLP with norms of their own" in experts["residual form"]
    assert experts["experts"].splitlines() == ["4 experts, k = 2: softmax over all experts, then the top k", "fused 3-D tensors, halves",
                                               "chosen weights divided by their sum", "times a factor of each expert",
                                               "beside the dense MLP"]
    assert dense["experts"] == "no experts" and "1, 3" in experts["block by block"]


@pytest.mark.parametrize("model_type", [*FAMILIES, *WITH_TOWERS])
def test_an_unknown_id_with_known_names_gets_the_family_it_has(model_type, variant):
    """The proposal is two lines, and what it means is what the family's own map says."""
    analysis = analyze(variant(model_type, lambda config: config.update(model_type="zzz")))
    assert not analysis.ready and not analysis.mapped and "model_type 'zzz' is not mapped" in analysis.missing[0]
    proposal = analysis.proposal
    assert proposal.missing == () and proposal.unused == ()
    assert [line for line in proposal.text.splitlines() if line[0] != "#"] == ['ids = ["zzz"]', f'inherit = "{proposal.base}"']
    own = identify(load_maps(), {"model_type": model_type})
    for level in ("decoder", "attention", "linear_attention", "mlp"):
        assert proposal.family.level(level) == own.level(level)
    assert proposal.family.traits == own.traits


RENAMED = {  # a Llama and a Phi as nobody calls them
    "llama": ({"hidden_size": "d_model", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers", "vocab_size": "n_vocab",
               "rms_norm_eps": "norm_eps", "num_key_value_heads": "n_kv_heads"},
              [("model.layers.", "backbone.stack."), ("model.embed_tokens", "backbone.tok_embeddings"), ("model.norm", "backbone.ln_out"),
               ("lm_head", "unembed"), ("self_attn", "att"), ("input_layernorm", "norm_attn_pre"),
               ("post_attention_layernorm", "norm_mlp_pre"),
               ("q_proj", "wq"), ("k_proj", "wk"), ("v_proj", "wv"), ("o_proj", "wo"), ("mlp.gate_proj", "feed.w1"),
               ("mlp.up_proj", "feed.w3"),
               ("mlp.down_proj", "feed.w2")]),
    "phi": ({"hidden_size": "n_embd", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer",
             "layer_norm_eps": "layer_norm_epsilon"},
            [("model.layers.", "transformer.h."), ("model.embed_tokens", "transformer.wte"), ("model.final_layernorm", "transformer.ln_f"),
             ("self_attn", "attn"), ("input_layernorm", "ln_1"), ("dense", "out_proj"), ("mlp.fc1", "mlp.c_fc"),
             ("mlp.fc2", "mlp.c_proj")]),
    "qwen3_moe": ({}, [("mlp", "block_sparse_moe"), ("q_norm", "query_norm"), ("k_norm", "key_norm")]),
    "olmo2": ({}, [("post_attention_layernorm", "post_attn_norm")]),
    "qwen3": ({}, [("self_attn", "attn_block"), ("gate_proj", "w_gate"), ("up_proj", "w_up"), ("down_proj", "w_down")]),
    "glm4": ({}, [("gate_up_proj", "gate_and_up"), ("down_proj", "downwards")]),
    "lfm2": ({}, [("operator_norm", "input_layernorm"), ("feed_forward.w1", "mlp.gate_proj"), ("feed_forward.w3", "mlp.up_proj"),
                  ("feed_forward.w2", "mlp.down_proj"), ("ffn_norm", "post_attention_layernorm"), ("model.embedding_norm", "model.norm")]),
}


@pytest.mark.parametrize("model_type", RENAMED)
def test_a_proposed_map_makes_an_unknown_model_run(model_type, saved, variant, tmp_path_factory):
    keys, renames = RENAMED[model_type]

    def config(values):
        values["model_type"] = "zzz"
        for old, new in keys.items():
            values[new] = values.pop(old)

    def tensors(old):
        new = {}
        for name, tensor in old.items():
            for before, after in renames:
                name = name.replace(before, after)
            new[name] = tensor
        assert len(new) == len(old)
        return new

    folder = variant(model_type, config, tensors)
    file = tmp_path_factory.mktemp("maps") / "made" / "zzz.toml"
    output = run(folder, "--save-map", file, code=1)
    assert "nothing is missing with it" in output
    analysis = analyze(folder, [file.parent])
    assert analysis.ready and analysis.family.file == file, analysis.missing
    own = identify(load_maps(), {"model_type": model_type})
    normed = ("qk_norm", "qk_norm_over") if model_type != "phi" else ()  # without such norms what is said of them does not matter
    for trait in ("residual", "norm", *normed, "mlp", "output_gate", "linear", "sinks", "norm_offset"):
        assert analysis.family.traits[trait] == own.traits[trait], trait
    assert set(analysis.family.traits["mlp_names"]) == set(own.traits["mlp_names"])
    tokens = torch.randint(3, 64, (2, 12))
    assert torch.equal(load(folder, map_dirs=[file.parent])(tokens), load(saved(model_type))(tokens))
    assert "ready: onboard verify can run it" in run(folder, "--map-dir", file.parent, code=0)


def test_a_known_family_with_one_more_part_gets_it_named(variant):
    def add_norms(tensors):
        return tensors | {f"model.layers.{layer}.self_attn.{part}.weight": torch.ones(8)
                          for layer in range(2) for part in ("q_norm", "k_norm")}

    analysis = analyze(variant("llama", tensors=add_norms))
    assert not analysis.ready and state(analysis) == ["ok", "ok", "ok", "wrong", "ok", "ok"]
    assert analysis.missing == [f"model.layers.{layer}.self_attn.{part}.weight" for layer in range(2) for part in ("k_norm", "q_norm")]
    assert analysis.proposal.base == "qwen3" and analysis.proposal.unused == ()


WRONG = {  # case: (model_type, change of config.json, change of tensors, which check, message)
    "no hidden_size": ("llama", lambda c: c.pop("hidden_size"), None, 0, "hidden_size <- hidden_size: absent"),
    "sliding without a window": ("gemma2", lambda c: c.update(sliding_window=None), None, 0, "sliding_window.*null in config.json"),
    "one block too many": ("llama", lambda c: c.update(num_hidden_layers=3), None, 2, "config.json has 3 blocks, the checkpoint 2 of them"),
    "one block too few": ("llama", lambda c: c.update(num_hidden_layers=1), None, 3, r"model.layers.1.input_layernorm.weight"),
    "no key": ("llama", lambda c: None, lambda t: {k: v for k, v in t.items() if "0.self_attn.k_proj" not in k}, 2,
               "block 0 attention: k_proj"),
    "stray tensor": ("llama", lambda c: None, lambda t: {**t, "extra": torch.ones(1)}, 3, "extra"),
    "heads swapped": ("llama", lambda c: c.update(num_key_value_heads=1), None, 4,
                      r"k_proj.weight: \[16, 32\], config.json makes it \[8, 32\] = \[num_key_value_heads head_dim, hidden_size\]"),
    "vocabulary": ("llama", lambda c: c.update(vocab_size=63), None, 4, r"embed_tokens.weight: \[64, 32\], config.json makes it \[63, "
                   r"32\]"),
    "short kernel": ("lfm2", lambda c: c.update(conv_L_cache=4), None, 4, r"conv.weight: \[32, 1, 3\], config.json makes it \[32, 1, 4\]"),
    "delta heads": ("qwen3_next", lambda c: c.update(linear_num_key_heads=1), None, 4, "in_proj_qkvz.weight"),
    "one expert too few": ("qwen3_moe", lambda c: c.update(num_local_experts=5), None, 2, "config.json has 5 experts, the checkpoint 4"),
    "fused experts turned": ("gpt_oss", lambda c: None, lambda t: {k: v.mT.contiguous() if "gate_up_proj" in k and "bias" not in k else v
                                                                   for k, v in t.items()}, 4, r"gate_up_proj: \[4, 96, 32\]"),
    "integers": ("llama", lambda c: None, lambda t: {k: v.to(torch.int8) if "q_proj" in k else v for k, v in t.items()}, 4,
                 "q_proj.weight: weights of dtype I8, floating point is needed"),
    "quantised": ("llama", lambda c: c.update(quantization_config={"quant_method": "gptq"}), None, 4,
                  r"quantised weights \('gptq'\) are not read"),
    "two bases": ("llama", lambda c: c.update(rope_theta=5e5), None, 5, "states rope_theta differently: rope_theta = 500000, "
                  "rope_parameters"),
    "unknown scaling": ("llama", lambda c: c["rope_parameters"].update(rope_type="ntk"), None, 5, "rope_type 'ntk' is not known"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_by_the_check_it_belongs_to(case, variant):
    model_type, config, tensors, which, message = WRONG[case]
    analysis = analyze(variant(model_type, config, tensors))
    assert not analysis.ready and analysis.checks[which].state == "wrong"
    assert any(re.search(message, finding) for finding in analysis.checks[which].findings), analysis.checks[which]
    assert analysis.checks[which].advice


def test_damaged_weights_are_a_finding(variant):
    folder = variant("llama")
    (folder / SINGLE).write_bytes((folder / SINGLE).read_bytes()[:-1])
    analysis = analyze(folder)
    assert state(analysis) == ["ok", "wrong", "unknown", "unknown", "unknown", "ok"]
    assert "cut short" in analysis.missing[0] and len(analysis.answers) == 10
    assert "cut short" in run(folder, code=1)


def test_an_index_without_its_shards_still_tells_the_names(variant):
    folder = variant("llama")
    names = list(load_file(folder / SINGLE))
    (folder / SINGLE).unlink()
    (folder / INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(names, "model-00001-of-00001.safetensors")}))
    analysis = analyze(folder)
    assert state(analysis) == ["ok", "wrong", "ok", "ok", "unknown", "ok"]
    assert "1 of 1 shards are missing" in analysis.missing[0]


def test_config_json_alone_is_answered_as_far_as_it_goes(variant):
    folder = variant("qwen3_next")
    (folder / SINGLE).unlink()
    analysis = analyze(folder)
    assert analysis.tiers == [3, 6] and "no model.safetensors" in analysis.missing[0]
    told = {answer.question: answer.answer for answer in analysis.answers}
    assert told["rotation"][0].startswith("theta 10000") and told["block by block"][0] == "linear_attention: blocks 0-2"


HOSTILE = {
    "model_type of control characters": {"model_type": "a\x1b[31m\x00\x7f\"]\n\u202e"}, "half a surrogate": {"model_type": "\ud800"},
    "markup": {"model_type": "[bold]x[/bold][/]"}, "no model_type": {}, "model_type a number": {"model_type": 3},
    "empty": {"model_type": ""},
    "model_type very long": {"model_type": "x" * 100_000},
    "everything of the wrong kind": {"model_type": "llama", "hidden_size": [], "rope_parameters": 3, "layer_types": {}, "vocab_size": "x",
                                     "quantization_config": 7, "vision_config": [], "num_experts": "many", "text_config": 1},
    "a tower of objects": {"model_type": "zzz", "text_config": {"text_config": {"text_config": {"hidden_size": 3}}}},
    "head sizes of texts": {"model_type": "gemma4_text", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2,
                            "per_layer_config": {"1": {"head_dim": "x"}, "01": {"head_dim": 1e99}}},
    "more shared blocks than there are": {"model_type": "gemma4_text", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2,
                                          "num_kv_shared_layers": 2**31 - 1, "global_head_dim": "x", "attention_k_eq_v": "y"},
    "per_layer_config of lists": {"model_type": "gemma4", "per_layer_config": {"0": []}, "hidden_size": 32, "num_attention_heads": 4},
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("weights", ["none", "llama", "odd names"])
def test_hostile_configurations_end_in_a_report(case, weights, saved, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(HOSTILE[case]))
    if weights == "llama":
        (tmp_path / SINGLE).write_bytes((saved("llama") / SINGLE).read_bytes())
    elif weights == "odd names":
        odd = ["", ".", "..", "a..b", "model.layers.0.", "model.layers.1e9.x", "\x1b[2J", "[red]", "model.l\u00e4yers.0.x", "9." * 5000,
               "a\nb"]
        save_file({name: torch.ones(2, 2) for name in odd}, tmp_path / SINGLE)
    output = run(tmp_path, code=1)
    assert "\x1b" not in output and "\x00" not in output and "not ready" in output
    assert json.loads(run(tmp_path, "--json", code=1))["ready"] is False


DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "onboarding" / "analyze.md").read_text()


def test_experts_that_config_json_does_not_speak_of(tmp_path):
    """They are left over, for analyze as for a load."""
    build_variant("gemma4_moe").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"enable_moe_block": False}))
    analysis = analyze(tmp_path)
    assert not analysis.ready and "model.layers.0.experts.down_proj" in analysis.missing and state(analysis)[3] == "wrong"


def test_the_document_shows_what_is_printed(saved):
    folder = saved("lfm2_moe")
    printed = [line.strip() for line in run(folder, code=0).replace(str(folder), "lfm2_moe").splitlines()]
    shown = re.search(r"as transformers 5.24 saves it:\n\n((?:    .*\n|\n)+)", DOCUMENT)[1]
    assert [line.strip() for line in shown.splitlines() if line.strip()] == [line for line in printed if line]


def test_the_documents_map_is_one(tmp_path):
    (tmp_path / "my_moe.toml").write_text(re.search(r"```toml\n(.*?)```", DOCUMENT, re.S)[1])
    entry = identify(load_maps([tmp_path]), {"model_type": "my_moe"})
    assert entry.decoder["mlp"] == ("feed_forward",) and "q_norm" not in entry.attention and entry.traits["qk_norm"] == "none"


def test_json_has_all_of_it(saved):
    found = json.loads(run(saved("lfm2_moe"), "--json", code=0))
    assert found["ready"] and found["model_type"] == "lfm2_moe" and found["parameters"] > 0 and found["proposed_map"] is None
    assert [tier["tier"] for tier in found["tiers"]] == [3, 6]
    assert found["steps"] == ["analyze", "map", "new attention op", "verify", "export"]
    assert len(found["questions"]) == 10 and len(found["checks"]) == 6 and len(found["tests"]) == 6
    assert found["family"]["traits"]["linear"] == "short_conv"


def test_command_line_errors(saved, tmp_path):
    assert "no such model directory" in run(tmp_path / "none", code=2)
    (tmp_path / "config.json").write_text("{")
    assert "JSON cannot be read" in run(tmp_path, code=2)
    (tmp_path / "bad.toml").write_text('ids = ["x"]\ninherit = "lama"\n')
    assert "inherit 'lama' is not mapped; nearest: 'llama'" in run(saved("llama"), "--map-dir", tmp_path, code=2)
    assert "there is nothing to propose; the map fits" in run(saved("llama"), "--save-map", tmp_path / "x.toml", code=2)
    assert not (tmp_path / "x.toml").exists()


def test_every_command_of_the_group_reports_alike(tmp_path):
    for command in main.commands["onboard"].list_commands(None):
        result = CliRunner().invoke(main, ["onboard", command, "--help"])
        assert result.exit_code == 0 and "MODEL_DIR" in result.output, command
    result = CliRunner().invoke(main, ["onboard", "export", str(tmp_path / "none"), "--format", "gguf", "-o", str(tmp_path / "x.gguf")])
    assert result.exit_code == 2 and "no such model directory" in result.output and result.exception.code == 2


def test_a_saved_map_never_overwrites(variant, tmp_path_factory):
    folder = variant("llama", lambda config: config.update(model_type="zzz"))
    file = tmp_path_factory.mktemp("maps") / "mine.toml"
    file.write_text("precious")
    assert "exists already; choose another name" in run(folder, "--save-map", file, code=2)
    assert file.read_text() == "precious"


def test_an_index_of_70_billion_parameters(tmp_path):
    """Headers of 30 shards with 140 GB of holes behind them: only headers are read."""
    d, wide, blocks, heads, kv_heads, vocab = 8192, 28672, 80, 64, 8, 128256
    config = dict(model_type="llama", hidden_size=d, intermediate_size=wide, num_hidden_layers=blocks, num_attention_heads=heads,
                  num_key_value_heads=kv_heads, vocab_size=vocab, rope_theta=5e5, hidden_act="silu")
    (tmp_path / "config.json").write_text(json.dumps(config))
    shapes = {"model.embed_tokens.weight": (vocab, d), "lm_head.weight": (vocab, d), "model.norm.weight": (d,)}
    for block in range(blocks):
        parts = {"self_attn.q_proj": (d, d), "self_attn.k_proj": (1024, d), "self_attn.v_proj": (1024, d), "self_attn.o_proj": (d, d),
                 "mlp.gate_proj": (wide, d), "mlp.up_proj": (wide, d), "mlp.down_proj": (d, wide), "input_layernorm": (d,),
                 "post_attention_layernorm": (d,)}
        shapes |= {f"model.layers.{block}.{part}.weight": shape for part, shape in parts.items()}
    listed = {}
    for shard in range(30):
        file, header, end = f"model-{shard + 1:05d}-of-00030.safetensors", {}, 0
        for name in list(shapes)[shard::30]:
            size = 2 * int(torch.Size(shapes[name]).numel())
            header[name] = {"dtype": "BF16", "shape": shapes[name], "data_offsets": [end, end + size]}
            end, listed[name] = end + size, file
        text = json.dumps(header).encode()
        with open(tmp_path / file, "wb") as stream:
            stream.write(struct.pack("<Q", len(text)) + text)
            stream.truncate(8 + len(text) + end)
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": listed}))
    analysis = analyze(tmp_path)
    assert analysis.ready and analysis.parameters == 70_553_706_496

