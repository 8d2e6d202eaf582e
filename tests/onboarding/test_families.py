"""Every family against transformers, from a folder as transformers saves it: the five checkpoints of prefill and first decode, many decode
steps, batches with padding, 16 bits. Prompts are longer than the sliding windows (8)."""

import json
import re
from dataclasses import replace

import pytest
import torch

pytest.importorskip("transformers")  # the extra `onboard`
from tiny_models import (COMMON, DELTA_RULE, FAMILIES, LARGER, VARIANTS, WITH_TOWERS, build, build_variant,  # noqa: E402
                         build_with_towers)

from custom_ops.onboarding.errors import OnboardingError  # noqa: E402
from custom_ops.onboarding.model import LlmModel  # noqa: E402
from custom_ops.onboarding.source import open_source  # noqa: E402
from custom_ops.onboarding.taps import Reference  # noqa: E402
from custom_ops.onboarding.verify import MAX_ABS, compare, verify  # noqa: E402
from custom_ops.onboarding.weights import load, make_plan  # noqa: E402

VOCAB = LARGER["vocab_size"]

pytestmark = pytest.mark.usefixtures("one_thread")


def allowed(name, want):
    return (10 if name in DELTA_RULE else 1) * MAX_ABS[torch.float32] * max(1, want.std().item())


@pytest.mark.parametrize("name", VARIANTS)
def test_five_checkpoints(name, saved):
    report = verify(saved(name)[1])
    assert report.passed, str(report)
    assert [(m.phase, m.checkpoint) for m in report.measures][:6] == [
        ("prefill", "embedding"), ("prefill", "first layer"), ("prefill", "last layer"), ("prefill", "final norm"), ("prefill", "logits"),
        ("decode", "embedding")]
    assert all(m.nmse <= 1e-8 and m.std > 0.1 for m in report.measures), str(report)
    if name not in DELTA_RULE:
        assert all(m.bound <= 2e-4 * max(1, m.std) for m in report.measures), str(report)


@pytest.mark.parametrize("name", VARIANTS)
def test_decode_steps(name, saved, rng):
    """30 tokens one by one after a prompt of 20, each step compared."""
    reference, folder = saved(name)
    model, tokens = load(folder), torch.randint(VOCAB, (3, 50), generator=rng)
    memory, out = model.new_memory(3, capacity=16), reference(tokens[:, :20], use_cache=True)
    got, want = [model(tokens[:, :20], memory)], [out.logits]
    for t in range(20, 50):
        out = reference(tokens[:, t : t + 1], cache=out.cache, use_cache=True)
        want.append(out.logits)
        got.append(model(tokens[:, t : t + 1], memory))
    got, want = torch.cat(got, 1), torch.cat(want, 1)
    assert (got - want).abs().max() <= allowed(name, want)
    assert (got.argmax(-1) == want.argmax(-1)).all()


@pytest.mark.parametrize("name", VARIANTS)
def test_padded_batch(name, saved, rng):
    """Two prompts of unequal lengths, padded on the left, and three tokens after them."""
    reference, folder = saved(name)
    model, tokens = load(folder), torch.randint(1, VOCAB, (2, 27), generator=rng)
    mask = torch.ones(2, 27, dtype=torch.int64)
    mask[1, :9] = 0
    memory, cache, got, want = model.new_memory(2), None, [], []
    for begin, end in ((0, 24), (24, 25), (25, 26), (26, 27)):
        positions = (mask[:, :end].cumsum(1) - 1).clamp(min=0)[:, begin:end]
        out = reference(tokens[:, begin:end], attention_mask=mask[:, :end], position_ids=positions, use_cache=True,
                        **({} if cache is None else {"cache": cache}))
        cache = out.cache
        want.append(out.logits)
        got.append(model(tokens[:, begin:end], memory, mask[:, :24] if begin == 0 else None))
    got, want, seen = torch.cat(got, 1), torch.cat(want, 1), mask.bool()
    assert (got[seen] - want[seen]).abs().max() <= allowed(name, want)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gemma4", "gpt_oss", "lfm2_moe", "qwen3_next"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_16_bits_are_no_further_from_float32_than_transformers(name, dtype, tmp_path, rng):
    tokens = torch.randint(VOCAB, (2, 40), generator=rng)
    rounded = build_variant(name).to(dtype)
    rounded.save_pretrained(tmp_path)
    want = build_variant(name)
    want.load_state_dict(rounded.state_dict())
    exact = want(tokens).logits
    # The median over positions: a router's tie that falls the other way moves one position far, in either model.
    ours, theirs = ((logits.float() - exact).square().mean(-1).median() for logits in (load(tmp_path)(tokens), rounded(tokens).logits))
    assert ours <= 1.5 * theirs < 5e-2 * exact.var()


def test_temperature_of_blocks_that_do_not_turn(tmp_path):
    """Llama 4's queries are scaled by their position there; transformers counts padding too, so batches with padding are not compared."""
    reference = build_variant("llama4", floor_scale=8, attn_scale=0.7)
    reference.save_pretrained(tmp_path)
    report = verify(tmp_path)
    assert report.passed, str(report)
    source = open_source(tmp_path)
    model = load(source)
    assert [layer.mixer.temperature for layer in model.architecture.layers] == [None, None, None, (0.7, 8)]
    model.blocks[3].self_attn.spec = replace(model.blocks[3].self_attn.spec, temperature=None)
    tokens = torch.randint(VOCAB, (2, 41), generator=torch.Generator().manual_seed(0))
    report = compare(model, Reference(source, torch.float32, reference), source, tokens)
    assert report.finding.where == "block 3" and "temperature of queries: the reference agrees with 1 + 0.7" in report.finding.cause


def test_blocks_that_turn_where_only_their_interval_is_stated(tmp_path):
    """Published configurations have an empty list and no layer types."""
    build_variant("llama4").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    stated = load(tmp_path).architecture
    assert [layer.mixer.rotary is not None for layer in stated.layers] == [True, True, True, False]
    assert [layer.mixer.span for layer in stated.layers] == [(8, True)] * 3 + [(None, False)]
    del config["layer_types"]
    (tmp_path / "config.json").write_text(json.dumps({**config, "no_rope_layers": []}))
    assert load(tmp_path).architecture == stated


@pytest.mark.parametrize("flags", [[1, 0], [1, 2, 0, 1], "1011"])
def test_flags_of_rotation_are_checked(flags, tmp_path):
    build_variant("llama4").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "no_rope_layers": flags}))
    with pytest.raises(OnboardingError, match="no_rope_layers must be a list of 0 or 1 for each block"):
        load(tmp_path)


GEMMA4 = dict(num_hidden_layers=12, layer_types=(["sliding_attention"] * 3 + ["full_attention"]) * 3)


@pytest.mark.parametrize("changes", [{}, {"num_key_value_heads": 4, "num_global_key_value_heads": 2, "attention_k_eq_v": True}], ids=str)
def test_head_sizes_of_gemma4_in_every_spelling(changes, tmp_path):
    """By block, with numbers of equal width; or, as published, for all full blocks; and the last block is full whatever is said."""
    build_variant("gemma4", **GEMMA4, **changes).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    own = config["per_layer_config"]
    assert list(own) == ["03", "07", "11"]
    report = verify(tmp_path)
    assert report.passed, str(report)
    stated = load(tmp_path).architecture
    sizes = [(4, changes.get("num_key_value_heads", 2), 16)] * 3 + [(4, own["03"].get("num_key_value_heads", 2), 32)]
    assert [(spec.heads, spec.kv_heads, spec.head_dim) for spec in (layer.mixer for layer in stated.layers)] == sizes * 3
    assert [layer.mixer.shares for layer in stated.layers] == [None] * 10 + [9, 7] if not changes else True
    del config["per_layer_config"]
    config["layer_types"][-1] = "sliding_attention"
    (tmp_path / "config.json").write_text(json.dumps({**config, "global_head_dim": 32, **changes}))
    assert load(tmp_path).architecture == stated


def test_keys_and_values_that_nothing_uses_are_ignored(tmp_path):
    """Published files hold them for the blocks that use those of another."""
    from safetensors.torch import load_file, save_file

    build_variant("gemma4").save_pretrained(tmp_path)
    want = load(tmp_path)(torch.arange(20).view(1, -1))
    tensors = load_file(tmp_path / "model.safetensors")
    idle = {f"model.layers.3.self_attn.{name}.weight": torch.ones(size) for name, size in (
        ("k_proj", (32, 64)), ("v_proj", (32, 64)), ("k_norm", (16,)))}
    save_file({**tensors, **idle}, tmp_path / "model.safetensors")
    plan = make_plan(open_source(tmp_path), load(tmp_path))
    assert set(plan.ignored) == {*idle} and plan.unused == []
    assert torch.equal(load(tmp_path)(torch.arange(20).view(1, -1)), want)
    gone = "model.layers.2.self_attn.v_proj.weight"
    save_file({name: tensor for name, tensor in tensors.items() if name != gone}, tmp_path / "model.safetensors")
    with pytest.raises(OnboardingError, match=r"block 2 attention: v_proj <- .*: no tensor of this name"):
        load(tmp_path)


WRONG = {
    "must hold an object for each block that differs": {"per_layer_config": {"1": 7}},
    "block '9' is none of 5": {"per_layer_config": {"9": {"head_dim": 16}}},
    "block 1 has 'sliding_window'": {"per_layer_config": {"1": {"sliding_window": 4}}},
    "block 1 head_dim must be an integer >= 1, is 'x'": {"per_layer_config": {"1": {"head_dim": "x"}}},
    "block 1: num_attention_heads 4 is no multiple of num_key_value_heads 3": {"per_layer_config": {"1": {"num_key_value_heads": 3}}},
    "block 1: num_attention_heads 4 is no multiple of num_key_value_heads 8": {
        "per_layer_config": None, "global_head_dim": 32, "attention_k_eq_v": True, "num_global_key_value_heads": 8},
    "full_attention blocks differ in head_dim": {"per_layer_config": {"1": {"head_dim": 16}, "4": {"head_dim": 32}}},
    "must be an integer >= 0, is -1": {"num_kv_shared_layers": -1},
    "block 0 would share keys and values, and no block before block 0 is sliding_attention": {"num_kv_shared_layers": 5},
    "block 1 would share keys and values, and no block before block 1 is full_attention": {"num_kv_shared_layers": 4},
    "use_bidirectional_attention: every token sees later ones": {"use_bidirectional_attention": "all"},
    "block 0 decoder: router": {"enable_moe_block": True, "num_experts": 4, "top_k_experts": 2},
    "num_experts": {"enable_moe_block": True},
}


@pytest.mark.parametrize("message", WRONG)
def test_configurations_of_gemma4_are_checked(message, tmp_path):
    build_variant("gemma4").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **WRONG[message]}))
    with pytest.raises(OnboardingError, match=re.escape(message)):
        load(tmp_path)


TOWER = {"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": LARGER["hidden_size"]}
ENCODER = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
#: model_type with a vision tower: (the variant its text part is like, changes of it, the tower)
WRAPPED = {
    "gemma3": ("gemma3_text", {}, {**ENCODER, "image_size": 28, "patch_size": 14}),
    "glm_ocr": ("llama", {"head_dim": 16}, TOWER),
    "lfm2_vl": ("lfm2", {}, ENCODER),
    "qwen2_vl": ("llama", {}, {"depth": 1, "embed_dim": 32, "hidden_size": LARGER["hidden_size"], "num_heads": 2}),
    "qwen3_vl": ("qwen3_tied", {"head_dim": 16, "tie_word_embeddings": False}, {**TOWER, "deepstack_visual_indexes": [0]}),
    "qwen3_vl_moe": ("qwen3_moe", {"mlp_only_layers": []}, {**TOWER, "deepstack_visual_indexes": [0]}),
    "smolvlm": ("llama", {"model_type": "llama"}, ENCODER),
}
MROPE = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]}


@pytest.mark.parametrize("model_type", WRAPPED)
def test_text_part_of_models_with_vision(model_type, tmp_path):
    """Their names and configurations nest the text model; tensors of the tower are known and ignored."""
    from transformers import AutoConfig, AutoModelForImageTextToText

    variant, changes, vision = WRAPPED[model_type]
    family, own = VARIANTS[variant]
    text = {**COMMON, **FAMILIES[family][1], **own, **changes}
    if model_type in ("glm_ocr", "qwen2_vl", "qwen3_vl", "qwen3_vl_moe"):
        text["rope_parameters"] = MROPE
    torch.manual_seed(0)
    model = AutoModelForImageTextToText.from_config(AutoConfig.for_model(model_type, text_config=text, vision_config=vision)).float()
    scatter(model).save_pretrained(tmp_path)
    report = verify(tmp_path)
    assert report.passed, str(report)
    assert make_plan(open_source(tmp_path), load(tmp_path)).ignored


def scatter(model):
    """Weights from N(0, 0.2), those of norms around what they are."""
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.add_(torch.randn_like(parameter) * 0.2)
        else:
            parameter.normal_(0, 0.2)
    return model


@pytest.mark.parametrize("model_type", WITH_TOWERS)
def test_text_part_beside_towers_of_as_many_blocks(model_type, tmp_path):
    torch.manual_seed(0)
    scatter(build_with_towers(model_type).float()).save_pretrained(tmp_path)
    report = verify(tmp_path)
    assert report.passed, str(report)


@pytest.mark.parametrize("name", ["lfm2", "qwen3_5_text"])
def test_on_the_simulated_chip(name, saved):
    """Prompt and two decoded tokens with the linear layers' kernels simulated: every one of them runs there, and nothing is found."""
    import custom_ops

    model, tokens = load(saved(name)[1]), torch.arange(1, 9).view(1, 8)
    linear = sum(block.linear_attn is not None for block in model.blocks)

    def logits():
        memory = model.new_memory()
        return torch.cat([model(part, memory) for part in tokens.split([6, 1, 1], 1)], 1)

    want = logits()
    with custom_ops.simulate("ascend910b") as run:
        got = logits()
    assert len(run.calls) == 3 * linear and linear == 3
    assert (got - want).abs().max() <= allowed(name, want)


def test_minicpm(tmp_path):
    """transformers has no class: x + f attn(n) is Llama with o_proj and down_proj times f, an embedding times s, a head times d_0 / d."""
    scale_emb, scale_depth, base = 12.0, 1.4, 16
    reference = build("llama", 3, **LARGER, tie_word_embeddings=False)
    reference.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config.update(model_type="minicpm", scale_emb=scale_emb, scale_depth=scale_depth, dim_model_base=base)
    (tmp_path / "config.json").write_text(json.dumps(config))
    factor = scale_depth / LARGER["num_hidden_layers"] ** 0.5
    reference.model.embed_tokens.weight.mul_(scale_emb)
    reference.lm_head.weight.mul_(base / LARGER["hidden_size"])
    for layer in reference.model.layers:
        layer.self_attn.o_proj.weight.mul_(factor)
        layer.mlp.down_proj.weight.mul_(factor)
    source = open_source(tmp_path)
    tokens = torch.randint(VOCAB, (2, 41), generator=torch.Generator().manual_seed(0))
    report = compare(load(source), Reference(source, torch.float32, reference), source, tokens)
    assert report.passed, str(report)


def test_hyper_connections_of_one_stream_are_the_standard_residual(saved):
    """With n = 1, post 1 and comb 1 a site is x + block(x): the same weights give the same logits through hc_pre and hc_post."""
    from custom_ops.onboarding.architecture import StreamsSpec

    model = load(saved("lfm2")[1])
    a = model.architecture
    streams = StreamsSpec(1, 20, 1e-6, 0.0)
    other = LlmModel(replace(a.with_layers(lambda layer: replace(layer, residual="hyper_connection")), streams=streams)).eval()
    missing = other.load_state_dict(model.state_dict(), strict=False)
    assert not missing.unexpected_keys and all("_hc." in name for name in missing.missing_keys)
    for module in other.modules():
        if type(module).__name__ == "HyperConnection":  # pre = sigmoid(30) = 1, post = 2 sigmoid(0) = 1, comb = 1
            module.fn.zero_()
            module.base.copy_(torch.tensor([30.0] if module.is_head else [30.0, 0.0, 0.0]))
    tokens = torch.arange(1, 21).view(1, 20)
    torch.testing.assert_close(other(tokens), model(tokens), rtol=0, atol=2e-4)
