"""A decode step through the operators of the CPU gives what the modules give, and leaves to them what is theirs."""

from dataclasses import replace

import pytest
import torch
from tiny_models import with_random_weights

from custom_ops.onboarding.architecture import (Architecture, AttentionSpec, DeltaRuleSpec, LayerSpec, MlpSpec, NormSpec, RotarySpec,
                                                ShortConvSpec)
from custom_ops.onboarding.model import LlmModel, llm, step

pytestmark = pytest.mark.usefixtures("one_thread")

NORM, MLP, ROTARY = NormSpec(), MlpSpec(40, "silu"), RotarySpec(1e4, 8)
FULL = AttentionSpec(4, 2, 8, 0.35, ROTARY, qk_norm="before_rope", norm=NORM)
BLOCKS = {  # mixer, mlp
    "full": (FULL, MLP),
    "gate": (replace(FULL, output_gate=True, qkv_bias=True, out_bias=True), MlpSpec(40, "gelu_pytorch_tanh", bias=True)),
    "window": (replace(FULL, window=5, qk_norm="none", rotary=replace(ROTARY, pairing="interleaved", dims=4)), MLP),
    "no_rotation": (replace(FULL, rotary=None), MLP),
    "short_conv": (ShortConvSpec(3, bias=True), MLP),
    "delta_rule": (DeltaRuleSpec(2, 4, 8, 8, 4), MLP),
}


def make(blocks, rng, dtype=torch.float32):
    layers = tuple(LayerSpec(mixer, mlp, NORM, "standard", 1.0) for mixer, mlp in blocks)
    return with_random_weights(LlmModel(Architecture(61, 32, layers, NORM), dtype=dtype).eval(), rng)


def decoded(model, rng, rows=1):
    tokens = torch.randint(61, (rows, 20), generator=torch.Generator().manual_seed(5))
    memory = model.new_memory(rows, capacity=12)
    model(tokens[:, :9], memory)
    return torch.cat([model(tokens[:, i : i + 1], memory) for i in range(9, 20)], 1)


@pytest.fixture
def calls(monkeypatch):
    """Names of the operators that steps call."""
    seen = []
    for name in ("linear", "mlp", "attention_step"):
        def counted(*args, real=getattr(step, name), name=name, **options):
            seen.append(name)
            return real(*args, **options)
        monkeypatch.setattr(step, name, counted)
    return seen


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", BLOCKS)
def test_as_the_modules(name, rows, rng, calls, monkeypatch):
    model = make([BLOCKS[name]] * 2, rng)
    got = decoded(model, rng, rows)
    mixer, tokens = BLOCKS[name][0], 11
    assert calls.count("mlp") == 2 * tokens and calls.count("linear") == 4 * tokens
    assert calls.count("attention_step") == (2 * tokens if isinstance(mixer, AttentionSpec) else 0)
    monkeypatch.setattr(llm, "is_step", lambda call, x: False)
    # sums in another order, amplified by two random layers; logits of standard deviation about 2
    torch.testing.assert_close(got, decoded(model, rng, rows), rtol=0, atol=5e-4)
    assert calls.count("mlp") == 2 * tokens


def test_bfloat16(rng, monkeypatch):
    model = make(list(BLOCKS.values()), rng, torch.bfloat16)
    wide = make(list(BLOCKS.values()), rng)
    wide.load_state_dict(model.state_dict())
    want = decoded(wide, rng)
    got = decoded(model, rng).float()
    monkeypatch.setattr(llm, "is_step", lambda call, x: False)
    modules = decoded(model, rng).float()
    # a step rounds less often than the modules do
    assert (got - want).square().mean() <= 1.5 * (modules - want).square().mean()


@pytest.mark.parametrize("part", ["self_attn", "self_attn.q_proj", "self_attn.k_norm", "self_attn.o_proj", "input_layernorm", "mlp",
                                  "mlp.up_proj", "post_attention_layernorm"])
def test_hooks_are_called(part, rng):
    model = make([BLOCKS["full"]], rng)
    want, seen = decoded(model, rng), []
    model.blocks[0].get_submodule(part).register_forward_hook(lambda *_: seen.append(part))
    torch.testing.assert_close(decoded(model, rng), want, rtol=0, atol=5e-4)
    assert len(seen) == 12  # the prompt and 11 tokens


def test_gradients_go_through_the_modules(rng, calls):
    model = make([BLOCKS["full"]], rng)
    with torch.enable_grad():
        assert decoded(model, rng).requires_grad
    assert not calls


def test_rows_of_unequal_lengths(rng, calls):
    """They have other positions and slots: attention goes through its modules, the rest does not."""
    model, tokens = make([BLOCKS["full"]], rng), torch.tensor([[3, 4, 5, 6, 7], [8, 9, 10, 11, 12]])
    memory = model.new_memory(2)
    model(tokens[:1], memory.view(0, 1)), model(tokens[1:, :3], memory.view(1, 1))
    got = model(torch.tensor([[13], [11]]), memory)
    assert calls == ["mlp"]
    alone = model.new_memory()
    model(tokens[1:, :3], alone)
    torch.testing.assert_close(got[1:], model(tokens[1:, 3:4], alone), rtol=0, atol=5e-4)
