"""GGUF files: written, read back into LlmModel, and refused. In llama.cpp itself: test_gguf_llama_cpp.py."""

import json
import struct
import subprocess
import sys

import pytest
import torch
from gguf_models import MODELS, SIZES, TOKENIZERS, rewrite, save_model, save_tokenizer
from tiny_models import COMMON, DELTA, save

from custom_ops.onboarding import OnboardingError
from custom_ops.onboarding.architecture import AttentionSpec, DeltaRuleSpec, RotarySpec
from custom_ops.onboarding.export import FORMATS, export
from custom_ops.onboarding.export.gguf.transforms import TRANSFORMS
from custom_ops.onboarding.weights import load as load_checkpoint

pytest.importorskip("gguf", reason="pip install 'custom_ops[gguf]'")
pytest.importorskip("transformers", reason="pip install 'custom_ops[onboard]'")

from safetensors.torch import load_file, save_file  # noqa: E402

from custom_ops.onboarding.export.gguf.read import GgufFile, architecture, load  # noqa: E402

TOKENS = torch.arange(3, 51).view(1, 48)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of MODELS."""
    made = {}

    def folder(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            save_model(name, made[name])
        return made[name]
    return folder


@pytest.fixture
def written(folders, tmp_path):
    def write(name, type="f32", **options):
        export(folders(name), "gguf", tmp_path / "model.gguf", type=type, tokenizer=False, **options)
        return tmp_path / "model.gguf"
    return write


@pytest.fixture
def with_tokenizer(folders, tmp_path):
    """A copy of the llama model with a tokenizer of this kind."""
    def make(kind="qwen2", name="llama"):
        for path in folders(name).iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        if kind:
            save_tokenizer(kind, tmp_path)
        return tmp_path
    return make


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
def test_read_back(name, folders, written):
    """float32: every parameter and so every logit as from safetensors; A_log passes through exp and log."""
    file, model = load(written(name)), load_checkpoint(folders(name))
    for (key, one), (other_key, other) in zip(model.named_parameters(), file.named_parameters(), strict=True):
        assert key == other_key
        torch.testing.assert_close(other, one, rtol=3e-7 if key.endswith("A_log") else 0, atol=3e-7 if key.endswith("A_log") else 0)
    torch.testing.assert_close(file(TOKENS), model(TOKENS), rtol=0, atol=2e-4)


TYPES = ("f16", "bf16", "q8_0")


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", ["llama", "qwen35", "lfm2moe", "qwen3next"])
def test_types_round(name, type, folders, written):
    """Every value within half a step of its type; norms, routers and kernels exact; and really rounded, so really stored so."""
    file, model = dict(load(written(name, type)).named_parameters()), load_checkpoint(folders(name))
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
def test_tensor_names(name, written):
    file = GgufFile(written(name))
    assert sorted({key.split(".", 2)[2] if key.startswith("blk.") else key for key in file.tensors}) == TENSORS[name]


def test_keys_and_shapes(written):
    file = GgufFile(written("qwen3next", "bf16"))
    want = {"general.architecture": "qwen3next", "general.file_type": 32, "qwen3next.ssm.conv_kernel": 4, "qwen3next.ssm.state_size": 16,
            "qwen3next.ssm.group_count": 2, "qwen3next.ssm.time_step_rank": 4, "qwen3next.ssm.inner_size": 64,
            "qwen3next.rope.dimension_count": 8, "qwen3next.attention.recurrent_layers": [True, True, True, False],
            "qwen3next.full_attention_interval": 4, "qwen3next.expert_count": 4, "qwen3next.expert_used_count": 2,
            "qwen3next.expert_feed_forward_length": 32, "qwen3next.expert_shared_feed_forward_length": 32, "qwen3next.block_count": 4}
    assert {key: file.values.get(key) for key in want} == want
    assert file.shapes["blk.0.ssm_ba.weight"] == (8, 64) and file.shapes["blk.0.attn_qkv.weight"] == (128, 64)
    assert file.shapes["blk.0.ffn_gate_exps.weight"] == (4, 32, 64) and file.shapes["blk.0.ssm_conv1d.weight"] == (128, 4)


def test_convolutions_have_no_key_heads(written):
    file = GgufFile(written("lfm2moe"))
    assert file.values["lfm2moe.attention.head_count_kv"] == [0, 2, 0, 0]
    assert file.values["lfm2moe.leading_dense_block_count"] == 1 and file.values["lfm2moe.expert_gating_func"] == 2


def test_rotary_factors_are_the_scaling_of_llama3(written):
    """Fast pairs stay, slow ones turn 8 times slower."""
    factors = GgufFile(written("llama3")).read("rope_freqs.weight")
    assert factors[0] == 1 and factors[-1] == 8 and (factors.diff() >= 0).all()


def test_shards_are_read_and_written_alike(folders, written, tmp_path):
    path = written("lfm2moe")
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


def test_streams(tmp_path):
    """140 MB of weights whose largest tensor has 4 MB, written with far less than a tenth of that."""
    save("llama", tmp_path / "small")
    save("llama", tmp_path / "large", hidden_size=512, intermediate_size=2048, num_hidden_layers=8)
    done = subprocess.run([sys.executable, "-c", MEMORY, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 30_000  # kB


# --- tokenizers

@pytest.mark.parametrize("kind", TOKENIZERS)
def test_tokenizer_keys(kind, with_tokenizer):
    folder = with_tokenizer(kind)
    export(folder, "gguf", folder / "out.gguf")
    values = {key.removeprefix("tokenizer.ggml."): value for key, value in GgufFile(folder / "out.gguf", words=True).values.items()}
    spm = kind.startswith("sentencepiece")
    assert values["model"] == ("llama" if spm else "gpt2") and values.get("pre") == (None if spm else kind)
    words, kinds = values["tokens"], values["token_type"]
    assert len(words) == len(kinds) == len(set(words)) == 512
    if spm:
        assert words[:3] == ["<unk>", "<s>", "</s>"] and kinds[:4] == [2, 3, 3, 6] and len(values["scores"]) == 512
        assert values["add_bos_token"] and values["add_space_prefix"]
    else:
        assert values["eos_token_id"] == 0 and values["bos_token_id"] == 1 and values["padding_token_id"] == 2
        assert kinds[0] == 3 and kinds[words.index("<tool>")] == 4 and words[-1] == "[PAD511]" and kinds[-1] == 5
        assert values["add_bos_token"] == (kind == "llama-bpe") and values["tokenizer.chat_template"] == "{{ messages }}"
        merged = json.loads((folder / "tokenizer.json").read_text())["model"]["merges"]
        assert values["merges"] == [pair if isinstance(pair, str) else " ".join(pair) for pair in merged]


def test_several_ends_and_a_template_file(with_tokenizer):
    folder = with_tokenizer()
    (folder / "generation_config.json").write_text('{"eos_token_id": [7, 0]}')
    (folder / "chat_template.jinja").write_text("{# own #}")
    export(folder, "gguf", folder / "out.gguf")
    values = GgufFile(folder / "out.gguf", words=True).values
    assert values["tokenizer.ggml.eos_token_id"] == 0 and values["tokenizer.ggml.eot_token_id"] == 7
    assert values["tokenizer.chat_template"] == "{# own #}"


def test_a_named_pre_tokenizer(with_tokenizer):
    folder = with_tokenizer("gpt-2")
    export(folder, "gguf", folder / "out.gguf", pre="olmo")
    assert GgufFile(folder / "out.gguf", words=True).values["tokenizer.ggml.pre"] == "olmo"


def change(part, value):
    def apply(folder):
        path = folder / "tokenizer.json"
        content = json.loads(path.read_text())
        inner = content
        for step in part[:-1]:
            inner = inner[step]
        inner[part[-1]] = value(inner[part[-1]]) if callable(value) else value
        path.write_text(json.dumps(content))
    return apply


TOKENIZER_ERRORS = {
    "missing": (None, lambda folder: None, r"no tokenizer\.json and no tokenizer\.model; save the tokenizer .* \(--no-tokenizer\)"),
    "no_json": ("qwen2", lambda folder: (folder / "tokenizer.json").write_text("{"), "tokenizer.json: JSON cannot be read"),
    "unknown_split": ("qwen2", change(["pre_tokenizer", "pretokenizers", 0, "pattern"], {"Regex": "x+"}),
                      r"pre-tokenizer is none of gpt-2, .*: split \['x\+'\].*--pre NAME"),
    "unknown_step": ("gpt-2", change(["pre_tokenizer"], {"type": "Sequence", "pretokenizers": [
        {"type": "Punctuation"}, {"type": "ByteLevel"}]}), r"split \['<Punctuation>'\]"),
    "normaliser": ("qwen2", change(["normalizer"], {"type": "Lowercase"}), r"its normalizer \(Lowercase\) has no counterpart"),
    "too_many": ("qwen2", change(["model", "vocab"], lambda vocab: vocab | {"zzz": 512}), "ids up to 512, the embedding 512 rows"),
    "two_of_one_id": ("qwen2", change(["model", "vocab"], lambda vocab: vocab | {"zzz": 5}), "gives two tokens one id"),
    "two_ids": ("qwen2", change(["added_tokens"], lambda added: [*added, {"id": 510, "content": "<tool>"}]), "token '<tool>' has two ids"),
    "nul": ("qwen2", change(["added_tokens"], lambda added: [*added, {"id": 510, "content": "a\0b"}]), "holds a NUL character"),
    "bad_added": ("qwen2", change(["added_tokens"], [{"id": "0"}]), "added_tokens must be a list of objects"),
    "bad_merge": ("qwen2", change(["model", "merges"], ["a b c"]), "merge 'a b c' is no pair"),
    "word_piece": ("qwen2", change(["model"], {"type": "WordPiece", "vocab": {}}), "of kind 'WordPiece' has no counterpart"),
    "list": ("qwen2", lambda folder: (folder / "tokenizer.json").write_text("[]"), "of kind None has no counterpart"),
    "template": ("qwen2", lambda folder: (folder / "chat_template.jinja").write_bytes(b"\xff\xfe"), "is no UTF-8 text"),
    "settings": ("qwen2", lambda folder: (folder / "tokenizer_config.json").write_text("[]"), "must hold an object, holds list"),
    "cut_model": ("sentencepiece", lambda folder: (folder / "tokenizer.model").write_bytes((folder / "tokenizer.model").read_bytes()[:-9]),
                  "no SentencePiece model, or damaged"),
    "no_model": ("sentencepiece", lambda folder: (folder / "tokenizer.model").write_bytes(b"\xff" * 100),
                 "no SentencePiece model, or damaged"),
    "empty_model": ("sentencepiece", lambda folder: (folder / "tokenizer.model").write_bytes(b""), "has no pieces"),
    "unigram": ("sentencepiece", lambda folder: (folder / "tokenizer.model").write_bytes(b"\x0a\x03\x0a\x01a"), "is of kind 1"),
}


@pytest.mark.parametrize("case", TOKENIZER_ERRORS)
def test_tokenizer_errors(case, with_tokenizer):
    kind, break_it, message = TOKENIZER_ERRORS[case]
    folder = with_tokenizer(kind)
    break_it(folder)
    before = sorted(folder.iterdir())
    with pytest.raises(OnboardingError, match=message):
        export(folder, "gguf", folder / "out.gguf")
    assert sorted(folder.iterdir()) == before


# --- what the format cannot say

REFUSED = {
    "family": ("phi", {}, r"model_type 'phi' has no GGUF architecture here; .*qwen3_5_text"),
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


def test_unknown_format_and_type(folders, tmp_path):
    with pytest.raises(OnboardingError, match=f"format 'ggml' is not known; nearest: '{next(iter(FORMATS))}'"):
        export(folders("llama"), "ggml", tmp_path / "out")
    with pytest.raises(OnboardingError, match="type 'q4_k' is not known"):
        export(folders("llama"), "gguf", tmp_path / "out", type="q4_k", tokenizer=False)
    assert not list(tmp_path.iterdir())


def test_existing_output(folders, tmp_path):
    path = tmp_path / "out.gguf"
    path.write_text("mine")
    with pytest.raises(OnboardingError, match=r"exists already; .*\(--force\)"):
        export(folders("llama"), "gguf", path, tokenizer=False)
    assert path.read_text() == "mine"
    export(folders("llama"), "gguf", path, tokenizer=False, overwrite=True)
    assert GgufFile(path).values["general.architecture"] == "llama"
    for name in ("model.safetensors", "config.json"):
        with pytest.raises(OnboardingError, match=f"{name}: is a file of the model that is read"):
            export(folders("llama"), "gguf", folders("llama") / name, tokenizer=False, overwrite=True)
    with pytest.raises(OnboardingError, match="is a directory"):
        export(folders("llama"), "gguf", tmp_path, tokenizer=False, overwrite=True)
    with pytest.raises(OnboardingError, match="no such folder"):
        export(folders("llama"), "gguf", tmp_path / "absent" / "out.gguf", tokenizer=False)


@pytest.mark.parametrize("value, type, message", [(float("nan"), "f32", "1 of the 4096 values of model.layers.3.* are NaN or infinite"),
                                                  (1e6, "f16", r"blk\.3\..*beyond float16's 65504; use --type bf16 or f32")])
def test_nothing_is_left_of_a_file_half_written(value, type, message, folders, tmp_path):
    """The fault is in the last block: most of the file is written when it is found."""
    model = tmp_path / "model"
    model.mkdir()
    for path in folders("llama").iterdir():
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


def test_without_the_package(folders, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(OnboardingError, match=r"need the package 'gguf' .*custom_ops\[gguf\]"):
        export(folders("llama"), "gguf", tmp_path / "out.gguf", tokenizer=False)


# --- reading what others wrote

def test_damaged_files(written, tmp_path):
    path = written("llama")
    content = path.read_bytes()
    for size in (3, 8, 100, 3000, len(content) // 2, len(content) - 1):
        (tmp_path / "cut.gguf").write_bytes(content[:size])
        with pytest.raises(OnboardingError, match="not a GGUF file, or damaged"):
            load(tmp_path / "cut.gguf")
    (tmp_path / "cut.gguf").write_bytes(b"")
    with pytest.raises(OnboardingError, match="cannot be read"):
        load(tmp_path / "cut.gguf")
    with pytest.raises(OnboardingError, match="no such file"):
        load(tmp_path / "absent.gguf")


def text(value):
    return struct.pack("<Q", len(value)) + value


def tensor(name, shape=(32,), kind=0, offset=0, dims=None):
    return text(name) + struct.pack("<I", len(shape) if dims is None else dims) + struct.pack(f"<{len(shape)}QIQ", *shape, kind, offset)


HUGE = 2**62
HOSTILE = {  # what follows "GGUF" and the version; numbers of tensors and keys first
    "tensors": (struct.pack("<QQ", HUGE, 0), "4611686018427387904 values where 0 bytes are left"),
    "keys": (struct.pack("<QQ", 0, HUGE), "4611686018427387904 values where"),
    "text": (struct.pack("<QQ", 0, 1) + struct.pack("<Q", HUGE) + b"x" * 50, "cut short: 4611686018427387904 bytes"),
    "list": (struct.pack("<QQ", 0, 1) + text(b"a") + struct.pack("<IIQ", 9, 0, HUGE) + b"x" * 50, "4611686018427387904 values where 50"),
    "list_of_texts": (struct.pack("<QQ", 0, 1) + text(b"a") + struct.pack("<IIQ", 9, 8, HUGE) + b"x" * 50, "values where 50 bytes"),
    "list_of_lists": (struct.pack("<QQ", 0, 1) + text(b"a") + struct.pack("<IIQ", 9, 9, 1) + b"x" * 50, "a value of type 9"),
    "kind_of_value": (struct.pack("<QQ", 0, 1) + text(b"a") + struct.pack("<I", 77) + b"x" * 50, "a value of type 77"),
    "name": (struct.pack("<QQ", 0, 1) + text(b"\xff\xfe") + b"x" * 50, "a name is no UTF-8 text"),
    "twice": (struct.pack("<QQ", 0, 2) + 2 * (text(b"a") + struct.pack("<II", 4, 1)), "key 'a' stands twice"),
    "alignment": (struct.pack("<QQ", 0, 1) + text(b"general.alignment") + struct.pack("<II", 4, 24), "24 is no power of 2"),
    "dims": (struct.pack("<QQ", 1, 0) + tensor(b"t", dims=9), "tensor 't' has 9 dimensions"),
    "kind": (struct.pack("<QQ", 1, 0) + tensor(b"t", kind=999), "is of type 999"),
    "size": (struct.pack("<QQ", 1, 0) + tensor(b"t", (HUGE, HUGE)), r"ends at byte \d+, the file at"),
    "blocks": (struct.pack("<QQ", 1, 0) + tensor(b"t", (31,), kind=8), r"\[31\] at 0 does not fit blocks of 32"),
    "offset": (struct.pack("<QQ", 1, 0) + tensor(b"t", offset=4), "at 4 does not fit .* multiples of 32"),
    "same_name": (struct.pack("<QQ", 2, 0) + 2 * tensor(b"t") + bytes(512), "tensor 't' stands twice"),
    "overlap": (struct.pack("<QQ", 2, 0) + tensor(b"s") + tensor(b"t", offset=64) + bytes(512), "tensor 't' overlaps"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files(case, tmp_path):
    content, message = HOSTILE[case]
    (tmp_path / "hostile.gguf").write_bytes(b"GGUF" + struct.pack("<I", 3) + content)
    with pytest.raises(OnboardingError, match=f"not a GGUF file, or damaged: .*{message}"):
        load(tmp_path / "hostile.gguf")


def test_changed_bytes(written, tmp_path, rng):
    """Any byte of the header changed: the file is read, or an error of ours says why not."""
    path = written("lfm2moe", "q8_0")
    content = bytearray(path.read_bytes())
    header = GgufFile(path).tensors["token_embd.weight"].begin
    refused = 0
    for _ in range(300):
        place, value = torch.randint(header, (), generator=rng).item(), torch.randint(256, (), generator=rng).item()
        kept, content[place] = content[place], value
        (tmp_path / "changed.gguf").write_bytes(content)
        try:
            architecture(GgufFile(tmp_path / "changed.gguf"))
        except OnboardingError:
            refused += 1
        content[place] = kept
    assert refused > 30


@pytest.mark.parametrize("name", ["gemma2", "lfm2moe", "qwen35moe"])
def test_wrong_numbers(name, written):
    """Every number of the keys made 0 or very large: an error of ours, or a model with that number where it has no size to fit."""
    path = written(name)
    values = GgufFile(path).values
    numbers = [key for key, value in values.items() if key.startswith(name) and isinstance(value, (int, float)) and "count_kv" not in key]
    unread = {f"{name}.{key}" for key in ("vocab_size", "context_length", "rope.freq_base", "attention.value_length", "ssm.inner_size",
                                          "full_attention_interval", "final_logit_softcapping", "attn_logit_softcapping",
                                          "attention.sliding_window", "attention.layer_norm_rms_epsilon", "leading_dense_block_count")}
    refused = set()
    for key in numbers:
        for wrong in (0, 2**31 - 1):
            try:
                load(rewrite(path, arch=name, keys=lambda this, value: wrong if this == key else value))
            except OnboardingError:
                refused.add(key)
    assert set(numbers) - unread <= refused, set(numbers) - unread - refused


@pytest.mark.parametrize("kind", ["Q4_0", "Q5_1", "Q8_0", "F16"])
def test_types_of_other_writers(kind, written, rng):
    """Tensors of any type that the gguf package decodes."""
    gguf = pytest.importorskip("gguf")
    values = torch.randn(64, 64, generator=rng).numpy()
    data = gguf.quants.quantize(values, gguf.GGMLQuantizationType[kind])
    path = rewrite(written("llama"), change=lambda name, old: data if name == "blk.2.attn_v.weight" else old,
                   kinds={"blk.2.attn_v.weight": gguf.GGMLQuantizationType[kind]})
    want = torch.from_numpy(gguf.quants.dequantize(data, gguf.GGMLQuantizationType[kind]).astype("float32"))
    assert torch.equal(GgufFile(path).read("blk.2.attn_v.weight"), want)
    assert (want - torch.from_numpy(values)).abs().max() < 0.5


def test_files_that_do_not_fit(written):
    path = written("llama")
    torch.testing.assert_close(load(rewrite(path))(TOKENS), load(path)(TOKENS))
    with pytest.raises(OnboardingError, match=r"1 missing tensors: blk\.1\.attn_k\.weight"):
        load(rewrite(path, drop=["blk.1.attn_k.weight"]))
    with pytest.raises(OnboardingError, match="GGUF architecture 'bert' is not read here"):
        load(rewrite(path, arch="bert"))
    with pytest.raises(OnboardingError, match="key llama.attention.head_count is missing"):
        load(rewrite(path, keys=lambda name, value: None if name.endswith("head_count") else value))
    with pytest.raises(OnboardingError, match="block 0 has 5 heads and 2 key heads"):
        load(rewrite(path, keys=lambda name, value: 5 if name.endswith("head_count") else value))
    with pytest.raises(OnboardingError, match=r"1 wrong shapes: blk\.0\.attn_k\.weight \[32, 32\], expected \[32, 64\]"):
        load(rewrite(path, change=lambda name, values: values[:, :32] if name == "blk.0.attn_k.weight" else values))
    with pytest.raises(OnboardingError, match=r"values of blk\.0\.attn_k\.weight are NaN or infinite"):
        load(rewrite(path, change=lambda name, values: values * float("nan") if name == "blk.0.attn_k.weight" else values))


# --- command line

def test_command(folders, tmp_path):
    from click.testing import CliRunner

    from custom_ops.onboarding.export.command import command

    path = tmp_path / "out.gguf"
    arguments = [str(folders("qwen3moe")), "--format", "gguf", "--type", "q8_0", "--no-tokenizer", "-o", str(path)]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0 and "51 tensors" in done.output, done.output
    assert GgufFile(path).values["general.file_type"] == 7
    again = CliRunner().invoke(command, arguments)
    assert isinstance(again.exception, OnboardingError)
    assert CliRunner().invoke(command, [*arguments, "--force"]).exit_code == 0
