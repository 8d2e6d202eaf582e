"""Weights into LlmModel: the three lists, streaming, checkpoints that do not fit. That the numbers are right: test_families.py."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import build_variant

from custom_ops.onboarding import OnboardingError
from custom_ops.onboarding.analyze import analyze
from custom_ops.onboarding.build import build_architecture
from custom_ops.onboarding.model import LlmModel
from custom_ops.onboarding.source import open_source
from custom_ops.onboarding.weights import Piece, load, make_plan

TOKENS = torch.arange(1, 13).view(1, 12)


@pytest.fixture
def changed(folders, tmp_path):
    """A copy of a saved model with changed tensors and configuration."""
    def change(name, tensors=lambda tensors: None, config=lambda config: None):
        for path in folders(name).iterdir():
            shutil.copy(path, tmp_path)
        content = load_file(tmp_path / "model.safetensors")
        tensors(content)
        save_file(content, tmp_path / "model.safetensors", {"format": "pt"})
        values = json.loads((tmp_path / "config.json").read_text())
        config(values)
        (tmp_path / "config.json").write_text(json.dumps(values))
        return tmp_path
    return change


def logits(folder, **options):
    with torch.no_grad():
        return load(folder, **options)(TOKENS)


def test_shards(folders, tmp_path):
    build_variant("lfm2_moe").save_pretrained(tmp_path, max_shard_size="40KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 3
    assert torch.equal(logits(tmp_path), logits(folders("lfm2_moe")))


def test_lists_are_empty_for_what_fits(folders):
    source = open_source(folders("qwen3_next"))
    plan = make_plan(source, LlmModel(build_architecture(source), device="meta"))
    assert not plan.unmapped and not plan.unused and not plan.wrong_shape and not plan.ignored
    assert set(plan.pieces) == set(source.checkpoint.names)


LISTS = [
    ("unused", lambda t: t.update({"model.layers.1.self_attn.q_norm.weight": torch.ones(16)}),
     r"1 unused tensors: model\.layers\.1\.self_attn\.q_norm\.weight"),
    ("unused_outside_the_blocks", lambda t: t.update(extra=torch.ones(1)), "1 unused tensors: extra"),
    ("bias_without_a_place", lambda t: t.update({"model.layers.2.mlp.up_proj.bias": torch.ones(80)}),
     r"1 wrong shapes: model\.layers\.2\.mlp\.up_proj\.bias \[80\]: the model has no blocks\.2\.mlp\.up_proj\.bias"),
    ("wrong_shape", lambda t: t.update({"model.layers.0.self_attn.k_proj.weight": torch.ones(16, 64)}),
     r"wrong shapes: model\.layers\.0\.self_attn\.k_proj\.weight \[16, 64\] does not fit blocks\.0\.self_attn\.k_proj\.weight \[32, 64\]"),
    ("unmapped", lambda t: [t.update({f"model.layers.{i}.self_attn.q_proj.bias": torch.ones(64)}) for i in range(4)],
     r"8 unmapped parameters: blocks\.0\.self_attn\.k_proj\.bias"),
]


@pytest.mark.parametrize("change, message", [case[1:] for case in LISTS], ids=[case[0] for case in LISTS])
def test_lists_name_what_does_not_fit(change, message, changed):
    with pytest.raises(OnboardingError, match="the weights do not fit the model\n(?s:.)*" + message):
        load(changed("llama", change))


def test_a_missing_part_is_named(changed):
    with pytest.raises(OnboardingError, match=r"block 3 attention: v_proj <- model\.layers\.3\.self_attn\.v_proj: no tensor of this name"):
        load(changed("llama", lambda t: t.pop("model.layers.3.self_attn.v_proj.weight")))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(value, changed):
    def poison(tensors):
        tensors["model.layers.1.mlp.up_proj.weight"][3, 5] = value
    with pytest.raises(OnboardingError, match=r"1 of the 5120 values of model\.layers\.1\.mlp\.up_proj\.weight are NaN or infinite"):
        load(changed("llama", poison))


def test_integers_are_no_weights(changed):
    with pytest.raises(OnboardingError, match=r"weights must be one of F64, F32, F16, BF16: model\.norm\.weight I32"):
        load(changed("llama", lambda t: t.update({"model.norm.weight": torch.ones(64, dtype=torch.int32)})))


def test_quantised_checkpoints_are_refused(changed):
    with pytest.raises(OnboardingError, match=r"quantised weights \('mxfp4'\) are not read"):
        load(changed("llama", config=lambda c: c.update(quantization_config={"quant_method": "mxfp4"})))


@pytest.mark.parametrize("tensor, ready", [("model.layers.0.self_attn.q_proj.bias", False), ("model.layers.0.mlp.up_proj.weight", False),
                                           ("vision_tower.weight", True)])
def test_analysis_and_loader_agree_on_dtypes(tensor, ready, changed):
    def put(tensors):
        shape = tensors[tensor].shape if tensor in tensors else (64,)
        tensors[tensor] = torch.ones(shape, dtype=torch.int32)
    folder = changed("llama3", put)
    opens = True
    try:
        open_source(folder)
    except OnboardingError as error:
        opens = False
        assert f"{tensor} I32" in str(error)
    assert opens == ready == all("dtype" not in text for text in analyze(folder).missing)


def test_analysis_and_loader_agree_where_nothing_is_quantised(changed):
    folder = changed("llama", config=lambda c: c.update(quantization_config=None))
    assert analyze(folder).ready and torch.isfinite(logits(folder)).all()


def test_a_family_that_writes_no_model_type(folders, changed):
    """An LFM2 with a conformer: the key lfm of config.json tells it."""
    def rename(tensors):
        for name in [*tensors]:
            tensors[name.replace("model.", "lfm.")] = tensors.pop(name)

    def nest(config):
        inner = dict(config)
        config.clear()
        config["lfm"] = inner
    want = logits(folders("lfm2"))
    folder = changed("lfm2", rename, nest)
    assert analyze(folder).ready and open_source(folder).model_type == "lfm2_audio"
    assert torch.equal(logits(folder), want)


def test_other_modalities_and_further_heads_are_ignored_by_name(changed):
    folder = changed("qwen3_5_text", lambda t: t.update({"mtp.fc.weight": torch.ones(2, 2)}))
    source = open_source(folder)
    plan = make_plan(source, LlmModel(build_architecture(source), device="meta"))
    assert plan.ignored == ["mtp.fc.weight"] and not plan.unused
    assert torch.isfinite(logits(folder)).all()


def test_dtype(folders, tmp_path):
    model = load(folders("lfm2"), dtype=torch.bfloat16)
    assert model.embed.weight.dtype == model.blocks[0].linear_attn.in_proj.weight.dtype == torch.bfloat16
    assert model.blocks[0].input_layernorm.weight.dtype == torch.float32
    delta = load(folders("qwen3_next"), dtype=torch.bfloat16).blocks[0].linear_attn
    assert delta.A_log.dtype == delta.dt_bias.dtype == torch.float32 and delta.in_proj_qkv.weight.dtype == torch.bfloat16
    build_variant("lfm2").to(torch.float16).save_pretrained(tmp_path)
    assert load(tmp_path).dtype == torch.float16


def test_tied_head_shares_its_storage(folders):
    model = load(folders("lfm2"))
    assert model.lm.weight is model.embed.weight
    assert load(folders("llama")).lm.weight is not model.embed.weight


def test_fused_experts_as_in_memory(folders, changed):
    """Checkpoints that hold the 3-D tensors of transformers 5 instead of one per expert."""
    def fuse(tensors):
        for layer in (0, 2, 3):
            prefix = f"model.layers.{layer}.mlp.experts"
            each = [[tensors.pop(f"{prefix}.{e}.{name}_proj.weight") for e in range(4)] for name in ("gate", "up", "down")]
            gate, up, down = map(torch.stack, each)
            tensors[f"{prefix}.gate_up_proj"], tensors[f"{prefix}.down_proj"] = torch.cat((gate, up), 1), down
    want = logits(folders("qwen3_moe"))
    assert torch.equal(logits(changed("qwen3_moe", fuse)), want)


@pytest.mark.parametrize("layout", ["stacked", "per_head"])
def test_fused_query_key_value(layout, folders, changed, tmp_path_factory):
    """qkv_proj in both layouts, by a map of the user's."""
    def fuse(tensors):
        for layer in range(4):
            parts = [tensors.pop(f"model.layers.{layer}.self_attn.{name}_proj.weight") for name in "qkv"]
            if layout == "per_head":
                parts = [torch.stack([part.view(4, -1, 64) for part in parts], 1).flatten(0, 2)]
            tensors[f"model.layers.{layer}.self_attn.W_pack.weight"] = torch.cat(parts)
    maps = tmp_path_factory.mktemp("maps")
    names = 'qkv_proj = "W_pack"\nq_proj = ""\nk_proj = ""\nv_proj = ""\n'
    (maps / "fused.toml").write_text(f'ids = ["llama"]\ninherit = "llama"\n[attention]\n{names}[traits]\nqkv_layout = "{layout}"\n')
    if layout == "stacked":
        want, folder = logits(folders("llama")), changed("llama", fuse)
    else:
        folder = tmp_path_factory.mktemp("heads")
        model = build_variant("llama", num_key_value_heads=4)
        model.save_pretrained(folder)
        want = logits(folder)
        tensors = load_file(folder / "model.safetensors")
        fuse(tensors)
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    assert torch.equal(logits(folder, map_dirs=[maps]), want)


def test_piece_shapes():
    tensor = torch.arange(2 * 6 * 4.0).view(2, 6, 4)
    for piece, want in ((Piece("a", "b", rows=slice(1, 2)), tensor[1:2]), (Piece("a", "b", second=slice(3, 6)), tensor[:, 3:6]),
                        (Piece("a", "b", last=slice(1, None, 2), transpose=True), tensor[..., 1::2].mT),
                        (Piece("a", "b", rows=torch.tensor([1, 0]), plus=1.0), tensor.flip(0) + 1)):
        assert torch.equal(piece.apply(tensor), want) and piece.shape((2, 6, 4)) == tuple(want.shape)


def test_memory_while_loading(folders, tmp_path):
    """Resident peak of a load in a fresh process: the model and its largest tensor, not the file and the model. A small model first: what
    torch and the operators allocate once."""
    build_variant("llama", hidden_size=512, intermediate_size=2048, num_hidden_layers=8, head_dim=128).save_pretrained(tmp_path)
    size = (tmp_path / "model.safetensors").stat().st_size
    script = f"""
from custom_ops.onboarding.weights import load
def resident(field):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field)) * 1024
load({str(folders("llama"))!r})
before = resident("VmRSS")
load({str(tmp_path)!r})
print(resident("VmHWM") - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert size < int(done.stdout.split()[-1]) < 1.3 * size
