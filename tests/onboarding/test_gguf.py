"""GGUF files: gguf_file, read back into LlmModel, and refused. In llama.cpp itself: test_gguf_llama_cpp.py."""

import subprocess
import sys

import pytest
import torch
from gguf_models import MODELS, SIZES, save_model
from tiny_models import COMMON, DELTA, save

from custom_ops.onboarding import OnboardingError
from custom_ops.onboarding.architecture import AttentionSpec, DeltaRuleSpec, RotarySpec
from custom_ops.onboarding.export import FORMATS, export
from custom_ops.onboarding.export.gguf.transforms import TRANSFORMS
from custom_ops.onboarding.weights import load as load_checkpoint

pytest.importorskip("gguf", reason="pip install 'custom_ops[gguf]'")
pytest.importorskip("transformers", reason="pip install 'custom_ops[onboard]'")

from safetensors.torch import load_file, save_file  # noqa: E402

from custom_ops.onboarding.export.gguf.read import GgufFile, load  # noqa: E402

TOKENS = torch.arange(3, 51).view(1, 48)


# --- transforms

ATTENTION = AttentionSpec(4, 2, 6, 1.0, RotarySpec(1e4, 6))
RULE = DeltaRuleSpec(2, 6, 4, 3, 4)  # dk != dv: rows of keys and of values are told apart
SHAPES = {
    "pairs_of_queries": [(24, 5)], "pairs_of_keys": [(12, 5)], "kernel": [(7, 1, 4)], "decay": [(6,)], "tiled_decay": [(6,)],
    "beta_alpha": [(6, 5), (6, 5)], "tiled": [(18, 5)], "tiled_values": [(2 * 8 + 18, 5)], "tiled_columns": [(5, 18)],
    "tiled_kernel": [(2 * 8 + 18, 1, 4)], "same": [(3, 4)],
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_undone(name, rng):
    mixer = ATTENTION if "pairs" in name else RULE
    parameters = [torch.randn(shape, generator=rng) for shape in SHAPES[name]]
    back = TRANSFORMS[name].backward(TRANSFORMS[name].forward(parameters, mixer), mixer)
    assert len(back) == len(parameters)
    for one, other in zip(parameters, back):
        torch.testing.assert_close(other, one, **({"rtol": 1e-6, "atol": 1e-6} if "decay" in name else {"rtol": 0, "atol": 0}))


def test_pairs_stand_beside_each_other():
    rows = torch.arange(24)
    moved = TRANSFORMS["pairs_of_queries"].forward([rows], ATTENTION).tolist()
    assert moved[:12] == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]


def test_value_heads_are_tiled():
    """3 value heads for each of 2 key heads: 0 1 2 | 3 4 5 becomes 0 3 | 1 4 | 2 5."""
    heads = torch.arange(6.)
    assert TRANSFORMS["tiled"].forward([heads], RULE).tolist() == [0, 3, 1, 4, 2, 5]
    rows = torch.arange(16 + 18)
    moved = TRANSFORMS["tiled_values"].forward([rows], RULE).tolist()
    assert moved[:16] == list(range(16))
    assert moved[16:] == [16 + 3 * head + row for head in (0, 3, 1, 4, 2, 5) for row in range(3)]


def test_beta_and_alpha_by_key_head():
    beta, alpha = torch.arange(6), torch.arange(10, 16)
    assert TRANSFORMS["beta_alpha"].forward([beta, alpha], RULE).tolist() == [0, 1, 2, 10, 11, 12, 3, 4, 5, 13, 14, 15]


# --- files

@pytest.mark.parametrize("name", MODELS)
def test_read_back(name, gguf_folders, gguf_file):
    """float32: every parameter and so every logit as from safetensors; A_log passes through exp and log."""
    file, model = load(gguf_file(name)), load_checkpoint(gguf_folders(name))
    for (key, one), (other_key, other) in zip(model.named_parameters(), file.named_parameters(), strict=True):
        assert key == other_key
        torch.testing.assert_close(other, one, rtol=3e-7 if key.endswith("A_log") else 0, atol=3e-7 if key.endswith("A_log") else 0)
    torch.testing.assert_close(file(TOKENS), model(TOKENS), rtol=0, atol=2e-4)


TYPES = ("f16", "bf16", "q8_0")


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", ["llama", "qwen35", "lfm2moe", "qwen3next"])
def test_types_round(name, type, gguf_folders, gguf_file):
    """Every value within half a step of its type; norms, routers and kernels exact; and really rounded, so really stored so."""
    file, model = dict(load(gguf_file(name, type)).named_parameters()), load_checkpoint(gguf_folders(name))
    exact = ("norm", "conv", "mlp.gate.weight", "shared_expert_gate", "expert_bias", "dt_bias", "A_log")
    rounded = 0
    for key, values in model.named_parameters():
        if any(part in key for part in exact) and "embed" not in key:
            torch.testing.assert_close(file[key], values, rtol=3e-7, atol=3e-7)
            continue
        error = (file[key] - values).abs()
        assert (error <= half_step(values, type)).all(), key
        rounded += (error > 0).float().mean() > 0.5
    assert rounded > 10


def half_step(values, type):
    if type != "q8_0":
        bits = {"f16": 10, "bf16": 7}[type]
        return torch.exp2(values.abs().log2().floor().clamp(min=-14) - bits - 1)
    if values.shape[-1] % 32:
        return half_step(values, "f16")
    return values.abs().amax(-1, keepdim=True) / 127 * (0.5 + 127 * 2**-11) * 1.001  # of a row: columns may move; the scale is a float16


TENSORS = {  # of a block, and outside the blocks
    "llama": ["attn_k.weight", "attn_norm.weight", "attn_output.weight", "attn_q.weight", "attn_v.weight", "ffn_down.weight",
              "ffn_gate.weight", "ffn_norm.weight", "ffn_up.weight", "output.weight", "output_norm.weight", "token_embd.weight"],
    "gemma2": ["attn_k.weight", "attn_norm.weight", "attn_output.weight", "attn_q.weight", "attn_v.weight", "ffn_down.weight",
               "ffn_gate.weight", "ffn_norm.weight", "ffn_up.weight", "output_norm.weight", "post_attention_norm.weight",
               "post_ffw_norm.weight", "token_embd.weight"],
    "lfm2moe": ["attn_k.weight", "attn_k_norm.weight", "attn_norm.weight", "attn_output.weight", "attn_q.weight", "attn_q_norm.weight",
                "attn_v.weight", "exp_probs_b.bias", "ffn_down.weight", "ffn_down_exps.weight", "ffn_gate.weight", "ffn_gate_exps.weight",
                "ffn_gate_inp.weight", "ffn_norm.weight", "ffn_up.weight", "ffn_up_exps.weight", "shortconv.conv.weight",
                "shortconv.in_proj.weight", "shortconv.out_proj.weight", "token_embd.weight", "token_embd_norm.weight"],
    "qwen35": ["attn_gate.weight", "attn_k.weight", "attn_k_norm.weight", "attn_norm.weight", "attn_output.weight", "attn_q.weight",
               "attn_q_norm.weight", "attn_qkv.weight", "attn_v.weight", "ffn_down.weight", "ffn_gate.weight", "ffn_up.weight",
               "output.weight", "output_norm.weight", "post_attention_norm.weight", "ssm_a", "ssm_alpha.weight", "ssm_beta.weight",
               "ssm_conv1d.weight", "ssm_dt.bias", "ssm_norm.weight", "ssm_out.weight", "token_embd.weight"],
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensor_names(name, gguf_file):
    file = GgufFile(gguf_file(name))
    assert sorted({key.split(".", 2)[2] if key.startswith("blk.") else key for key in file.tensors}) == TENSORS[name]


def test_keys_and_shapes(gguf_file):
    file = GgufFile(gguf_file("qwen3next", "bf16"))
    want = {"general.architecture": "qwen3next", "general.file_type": 32, "qwen3next.ssm.conv_kernel": 4, "qwen3next.ssm.state_size": 16,
            "qwen3next.ssm.group_count": 2, "qwen3next.ssm.time_step_rank": 4, "qwen3next.ssm.inner_size": 64,
            "qwen3next.rope.dimension_count": 8, "qwen3next.attention.recurrent_layers": [True, True, True, False],
            "qwen3next.full_attention_interval": 4, "qwen3next.expert_count": 4, "qwen3next.expert_used_count": 2,
            "qwen3next.expert_feed_forward_length": 32, "qwen3next.expert_shared_feed_forward_length": 32, "qwen3next.block_count": 4}
    assert {key: file.values.get(key) for key in want} == want
    assert file.shapes["blk.0.ssm_ba.weight"] == (8, 64) and file.shapes["blk.0.attn_qkv.weight"] == (128, 64)
    assert file.shapes["blk.0.ffn_gate_exps.weight"] == (4, 32, 64) and file.shapes["blk.0.ssm_conv1d.weight"] == (128, 4)


def test_convolutions_have_no_key_heads(gguf_file):
    file = GgufFile(gguf_file("lfm2moe"))
    assert file.values["lfm2moe.attention.head_count_kv"] == [0, 2, 0, 0]
    assert file.values["lfm2moe.leading_dense_block_count"] == 1 and file.values["lfm2moe.expert_gating_func"] == 2


def test_rotary_factors_are_the_scaling_of_llama3(gguf_file):
    """Fast pairs stay, slow ones turn 8 times slower."""
    factors = GgufFile(gguf_file("llama3")).read("rope_freqs.weight")
    assert factors[0] == 1 and factors[-1] == 8 and (factors.diff() >= 0).all()


def test_shards_are_read_and_written_alike(gguf_folders, gguf_file, tmp_path):
    path = gguf_file("lfm2moe")
    model = save_model("lfm2moe", tmp_path / "one")
    model.save_pretrained(tmp_path / "many", max_shard_size="60KB")
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 3
    export(tmp_path / "many", "gguf", tmp_path / "many.gguf", type="f32", tokenizer=False)
    one, many = GgufFile(path), GgufFile(tmp_path / "many.gguf")
    assert one.shapes == many.shapes and all(torch.equal(one.read(name), many.read(name)) for name in one.tensors)


def test_towers_and_further_heads_are_left_out(tmp_path):
    """The text model of a Qwen3.5 with vision and with layers that predict several tokens; the report names what is left out."""
    transformers = pytest.importorskip("transformers")
    text = {**COMMON, **DELTA, **SIZES, **MODELS["qwen35"][2], "initializer_range": 0.2}
    vision = dict(depth=1, hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=64, num_position_embeddings=16)
    model = transformers.Qwen3_5ForConditionalGeneration(transformers.Qwen3_5Config(text_config=text, vision_config=vision)).float().eval()
    model.save_pretrained(tmp_path / "model")
    tensors = load_file(tmp_path / "model" / "model.safetensors")
    save_file(tensors | {"mtp.fc.weight": torch.ones(64, 128)}, tmp_path / "model" / "model.safetensors", {"format": "pt"})
    report = export(tmp_path / "model", "gguf", tmp_path / "out.gguf", type="f32", tokenizer=False)
    assert len(report.notes) == 1 and "text model does not use are left out: m" in report.notes[0]
    with torch.no_grad():
        got, want = load(tmp_path / "out.gguf")(TOKENS), model(TOKENS).logits
    assert (got - want).square().sum() / want.square().sum() <= 1e-6


MEMORY = """
import resource, sys
from custom_ops.onboarding.export import export
from custom_ops.onboarding.export.gguf import families, read, write
export(sys.argv[1] + "/small", "gguf", sys.argv[1] + "/small.gguf", type="f16", tokenizer=False)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
export(sys.argv[1] + "/large", "gguf", sys.argv[1] + "/large.gguf", type="f16", tokenizer=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("changes, most", [(dict(intermediate_size=2048, num_hidden_layers=8), 30), (dict(vocab_size=32_000), 125)])
def test_streams(changes, most, tmp_path):
    """140 MB of weights whose largest tensor has 4 MB; and an embedding of 66 MB, which is there once, beside the 33 MB that are written."""
    save("llama", tmp_path / "small")
    save("llama", tmp_path / "large", hidden_size=512, **changes)
    done = subprocess.run([sys.executable, "-c", MEMORY, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < most * 1000  # kB


# --- what the format cannot say

REFUSED = {
    "family": ("phi", {}, r"model_type 'phi' has no GGUF architecture here; .*qwen3_5_text.*--format mnn"),
    "gemma4": ("gemma4_text", {}, "model_type 'gemma4_text' has no GGUF architecture here"),
    "window": ("qwen2", dict(use_sliding_window=True, sliding_window=8, max_window_layers=1), "block 1: window 8, the file says none"),
    "two_sizes": ("qwen3_5_text", dict(linear_value_head_dim=16), "blocks 0, 1, 2: head_v_dim 16, the file says 8"),
    "scale": ("gemma2", dict(query_pre_attn_scalar=24), "blocks 0, 1: scale 0.204124, the file says 0.353553"),
    "cap": ("gemma2", dict(attn_logit_softcapping=None), "always has both softcaps"),
    "order": ("gemma2", dict(layer_types=["full_attention", "sliding_attention"]), "block 0: window none, the file says 16"),
    "sum": ("qwen3_moe", dict(norm_topk_prob=False), "blocks 0, 1: normalise False, the file says True"),
    "dense": ("qwen3_moe", dict(norm_topk_prob=True, mlp_only_layers=[0]), "block 0: mlp MlpSpec, the file says MoeSpec"),
    "biases": ("lfm2", dict(conv_bias=True), "has no tensor for blocks.0.linear_attn.conv.bias"),
    "factor": ("lfm2_moe", dict(routed_scaling_factor=1.5), "block 1: scale 1.5, the file says 1"),
    "part": ("llama", dict(rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)),
             "rotates whole heads; 4 of 8"),
    "scaling": ("llama", dict(rope_parameters=dict(rope_type="dynamic", rope_theta=1e4, factor=2.0)), "has no rotary scaling 'dynamic'"),
    "llama3": ("qwen3", dict(rope_parameters=dict(rope_type="llama3", rope_theta=1e4, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                  original_max_position_embeddings=64)), "'qwen3' has no rotary scaling 'llama3'"),
    "activation": ("llama", dict(hidden_act="gelu"), "activation 'gelu', the file says 'silu'"),
    "sections": ("qwen3_5_text", dict(rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=1.0,
                                                           mrope_section=[11, 11, 10])),
                 r"mrope_section \[11, 11, 10\] does not share out the 4"),
    "only_attention": ("qwen3_next", dict(layer_types=["full_attention"] * 4), "needs a block with the gated delta rule"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, tmp_path):
    model_type, changes, message = REFUSED[case]
    save(model_type, tmp_path / "model", **changes)
    with pytest.raises(OnboardingError, match=message):
        export(tmp_path / "model", "gguf", tmp_path / "out.gguf", tokenizer=False)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_unknown_format_and_type(gguf_folders, tmp_path):
    with pytest.raises(OnboardingError, match=f"format 'ggml' is not known; nearest: '{next(iter(FORMATS))}'"):
        export(gguf_folders("llama"), "ggml", tmp_path / "out")
    with pytest.raises(OnboardingError, match="type 'q4_k' is not known"):
        export(gguf_folders("llama"), "gguf", tmp_path / "out", type="q4_k", tokenizer=False)
    assert not list(tmp_path.iterdir())


def test_existing_output(gguf_folders, tmp_path):
    path = tmp_path / "out.gguf"
    path.write_text("mine")
    with pytest.raises(OnboardingError, match=r"exists already; .*\(--force\)"):
        export(gguf_folders("llama"), "gguf", path, tokenizer=False)
    assert path.read_text() == "mine"
    export(gguf_folders("llama"), "gguf", path, tokenizer=False, overwrite=True)
    assert GgufFile(path).values["general.architecture"] == "llama"
    for name in ("model.safetensors", "config.json"):
        with pytest.raises(OnboardingError, match=f"{name}: is a file of the model that is read"):
            export(gguf_folders("llama"), "gguf", gguf_folders("llama") / name, tokenizer=False, overwrite=True)
    with pytest.raises(OnboardingError, match="is a directory"):
        export(gguf_folders("llama"), "gguf", tmp_path, tokenizer=False, overwrite=True)
    with pytest.raises(OnboardingError, match="no such folder"):
        export(gguf_folders("llama"), "gguf", tmp_path / "absent" / "out.gguf", tokenizer=False)


@pytest.mark.parametrize("value, type, message", [(float("nan"), "f32", "1 of the 4096 values of model.layers.3.* are NaN or infinite"),
                                                  (1e6, "f16", r"blk\.3\..*beyond float16's 65504; use --type bf16 or f32")])
def test_nothing_is_left_of_a_file_half_written(value, type, message, gguf_folders, tmp_path):
    """The fault is in the last block: most of the file is written when it is found."""
    model = tmp_path / "model"
    model.mkdir()
    for path in gguf_folders("llama").iterdir():
        (model / path.name).write_bytes(path.read_bytes())
    tensors = load_file(model / "model.safetensors")
    tensors["model.layers.3.self_attn.o_proj.weight"][5, 7] = value
    save_file(tensors, model / "model.safetensors", {"format": "pt"})
    output = tmp_path / "out.gguf"
    for overwrite in (False, True):
        with pytest.raises(OnboardingError, match=message):
            export(model, "gguf", output, type=type, tokenizer=False, overwrite=overwrite)
        assert {path.name for path in tmp_path.iterdir()} == {"model"} | ({output.name} if overwrite else set())
        output.write_text("mine")
    assert output.read_text() == "mine"


def test_without_the_package(gguf_folders, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(OnboardingError, match=r"need the package 'gguf' .*custom_ops\[gguf\]"):
        export(gguf_folders("llama"), "gguf", tmp_path / "out.gguf", tokenizer=False)


# --- command line

def test_command(gguf_folders, tmp_path):
    from click.testing import CliRunner

    from custom_ops.onboarding.export.command import command

    path = tmp_path / "out.gguf"
    arguments = [str(gguf_folders("qwen3moe")), "--format", "gguf", "--type", "q8_0", "--no-tokenizer", "-o", str(path)]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0 and "51 tensors" in done.output, done.output
    assert GgufFile(path).values["general.file_type"] == 7
    again = CliRunner().invoke(command, arguments)
    assert isinstance(again.exception, OnboardingError)
    assert CliRunner().invoke(command, [*arguments, "--force"]).exit_code == 0
