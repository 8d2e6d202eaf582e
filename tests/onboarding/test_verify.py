"""verify: faults put into a model are found in the block and named; what cannot be compared is refused."""

from dataclasses import replace

import pytest
import torch
from torch import nn

pytest.importorskip("transformers")  # the extra `onboard`
from custom_ops.onboarding import OnboardingError  # noqa: E402
from custom_ops.onboarding.architecture import NormSpec, Span  # noqa: E402
from custom_ops.onboarding.causes import hypotheses  # noqa: E402
from custom_ops.onboarding.locate import nmse  # noqa: E402
from custom_ops.onboarding.model import LlmModel  # noqa: E402
from custom_ops.onboarding.model.norms import Norm  # noqa: E402
from custom_ops.onboarding.model.rotary import Rotary  # noqa: E402
from custom_ops.onboarding.source import open_source  # noqa: E402
from custom_ops.onboarding.taps import Reference  # noqa: E402
from custom_ops.onboarding.verify import compare, measure, verify  # noqa: E402
from custom_ops.onboarding.weights import load  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def sources(saved):
    """(source, reference) by variant."""
    made = {}

    def get(name):
        if name not in made:
            model, folder = saved(name)
            source = open_source(folder)
            made[name] = source, Reference(source, torch.float32, model)
        return made[name]
    return get


def tokens_of(source, length=49):
    vocab = source.shape(source.paths.model["embed"] + ".weight")[0]
    return torch.randint(vocab, (2, length), generator=torch.Generator().manual_seed(7))


# --- faults


def attentions(model):
    return [block.self_attn for block in model.blocks if block.self_attn is not None]


def turn(model, **changes):
    for attention in attentions(model):
        attention.rotary = Rotary(replace(attention.rotary.spec, **changes))


def spec(parts, **changes):
    for part in parts:
        part.spec = replace(part.spec, **changes)


def put(module, name, value):
    module.register_parameter(name, nn.Parameter(value.contiguous()))


def drop(model, part):
    for attention in attentions(model):
        setattr(attention, part, None)


def swap_gate_up(model, where="mlp"):
    for block in model.blocks:
        whole = getattr(block, where)
        for mlp in (whole, getattr(whole, "experts", None), getattr(whole, "shared_expert", None)):
            if hasattr(mlp, "gate_proj"):
                mlp.gate_proj, mlp.up_proj = mlp.up_proj, mlp.gate_proj
                if getattr(mlp, "gate_bias", None) is not None:
                    mlp.gate_bias, mlp.up_bias = mlp.up_bias, mlp.gate_bias


def set_eps(model, eps):
    for norm in model.modules():
        if isinstance(norm, Norm):
            norm.spec = replace(norm.spec, eps=eps)
        elif hasattr(norm, "norm_eps"):
            norm.norm_eps = eps


def swap_thirds(model):
    for block in model.blocks:
        if block.linear_attn is not None:
            b, c, x = block.linear_attn.in_proj.weight.chunk(3)
            put(block.linear_attn.in_proj, "weight", torch.cat((c, b, x)))


def flip_convolutions(model):
    for block in model.blocks:
        conv = getattr(block.linear_attn, "conv", None) or getattr(block.linear_attn, "conv1d", None)
        if conv is not None:
            put(conv, "weight", conv.weight.flip(-1))


def swap_decay(model):
    for block in model.blocks:
        if block.linear_attn is not None:
            block.linear_attn.in_proj_a, block.linear_attn.in_proj_b = block.linear_attn.in_proj_b, block.linear_attn.in_proj_a


def offset(norms, plus):
    for norm in norms:
        put(norm, "weight", norm.weight + plus)


def norms_of_stream(model):
    return [getattr(block, name) for block in model.blocks for name in block.spec.norms()]


def qk_norms(model):
    return [norm for attention in attentions(model) for norm in (attention.q_norm, attention.k_norm)]


def drop_qk_norm(model):
    for attention in attentions(model):
        attention.q_norm = attention.k_norm = None
    spec(attentions(model), qk_norm="none")


def without_windows(model):
    changed = model.architecture.with_layers(lambda layer: replace(layer, mixer=replace(layer.mixer, window=None, chunked=False)))
    other = LlmModel(changed)
    other.load_state_dict(model.state_dict())
    return other


def architecture(model, **changes):
    model.architecture = replace(model.architecture, **changes)


FAULTS = [  # variant, fault, where, what is said
    ("llama", lambda m: turn(m, theta=1e4), "block 0", "rotary base: theta is 10000, the reference agrees with 500000"),
    ("lfm2", lambda m: turn(m, theta=1e4), "block 1", "rotary base: theta is 10000, the reference agrees with 1e+06"),
    ("gemma3_text", lambda m: turn(m, theta=1e4), "block 1", "rotary base: theta is 10000, the reference agrees with 1e+06"),
    ("llama", lambda m: turn(m, pairing="interleaved"), "block 0", "rotary pairing: is 'interleaved', the reference agrees with 'half'"),
    ("glm4", lambda m: turn(m, pairing="half"), "block 0", "rotary pairing: is 'half', the reference agrees with 'interleaved'"),
    ("phi", lambda m: turn(m, dims=16), "block 0", "rotary dims: 16 of 16 turn, the reference agrees with 8"),
    ("llama3", lambda m: turn(m, kind="default"), "block 0", "rotary scaling: is 'default', the reference agrees with 'llama3'"),
    ("gpt_oss", lambda m: turn(m, kind="default"), "block 0", "rotary scaling: is 'default', the reference agrees with 'yarn'"),
    ("llama", swap_gate_up, "block 0", "gate and up are swapped in the MLP"),
    ("lfm2", swap_gate_up, "block 0", "gate and up are swapped in the MLP"),
    ("qwen3_moe", swap_gate_up, "block 0", "gate and up are swapped in the experts"),
    ("gpt_oss", swap_gate_up, "block 0", "gate and up are swapped in the experts"),
    ("llama", lambda m: set_eps(m, 1e-5), "block 0", "epsilon of the norms: is 1e-05, the reference agrees with 1e-06"),
    ("lfm2", lambda m: set_eps(m, 1e-6), "block 0", "epsilon of the norms: is 1e-06, the reference agrees with 1e-05"),
    ("phi", lambda m: set_eps(m, 1e-6), "block 0", "epsilon of the norms: is 1e-06, the reference agrees with 1e-05"),
    ("qwen3_tied", drop_qk_norm, "block 0", "norm of query and key is missing: the reference has one before the rope"),
    ("olmo2", drop_qk_norm, "block 0", "norm of query and key is missing: the reference has one before the rope"),
    ("lfm2", drop_qk_norm, "block 1", "norm of query and key is missing: the reference has one before the rope"),
    ("hunyuan_v1_dense", lambda m: spec(attentions(m), qk_norm="before_rope"), "block 0",
     "norm of query and key: is before_rope, the reference agrees with after_rope"),
    ("lfm2", swap_thirds, "block 0", "B and C are swapped in in_proj"),
    ("lfm2", flip_convolutions, "block 0", "the convolution is flipped"),
    ("qwen3_5_text", flip_convolutions, "block 0", "the convolution is flipped"),
    ("qwen3_next", swap_decay, "block 0", "a and b are swapped"),
    ("gemma2", lambda m: offset(norms_of_stream(m), -1.0), "block 0",
     "norms of the residual stream: weights are used as they are stored, the reference uses 1 + w"),
    ("llama", lambda m: offset(norms_of_stream(m), 1.0), "block 0",
     "norms of the residual stream: used as 1 + w, the reference uses the weights as they are stored"),
    ("qwen3_5_text", lambda m: offset(qk_norms(m), -1.0), "block 3",
     "norms of query and key: weights are used as they are stored, the reference uses 1 + w"),
    ("gemma2", lambda m: spec(attentions(m), scale=0.25), "block 0", "attention scale: is 0.25, the reference agrees with 0.204124"),
    ("gemma2", lambda m: spec(attentions(m), softcap=None), "block 0", "attention softcap: is None, the reference agrees with 5"),
    ("gemma2", without_windows, "block 0", "sliding window: is None, the reference agrees with 8"),
    ("llama4", without_windows, "block 0", "attention is not chunked by 8, the reference's is"),
    ("llama4", drop_qk_norm, "block 0", "norm of query and key is missing: the reference has one without weights"),
    ("llama4", lambda m: setattr(m.blocks[3].self_attn, "rotary", m.blocks[0].self_attn.rotary), "block 3",
     "the reference does not rotate this block's queries and keys"),
    ("llama4", lambda m: spec([b.mlp for b in m.blocks[1::2]] + [b.mlp.experts for b in m.blocks[1::2]], routing="topk_softmax"), "block 1",
     "routing"),
    ("gemma4", lambda m: drop(m, "v_norm"), "block 0", "norm of the value is missing: the reference has one"),
    ("gemma4", lambda m: spec(attentions(m), scale=0.25), "block 0", "attention scale: is 0.25, the reference agrees with 1"),
    ("gemma4", lambda m: put(m.blocks[2], "scalar", torch.ones(1)), "block 2",
     "the block's result is multiplied by 1, in the reference by"),
    ("gemma4", lambda m: setattr(m.blocks[4].input_gate, "act", torch.tanh), "block 4", "activation of the block's input: "),
    ("gemma4_moe", lambda m: swap_gate_up(m, "experts"), "block 0", "gate and up are swapped in the experts"),
    ("gemma4_moe", lambda m: spec([b.experts for b in m.blocks], top_k=1), "block 0",
     "experts per token: are 1, the reference agrees with 2"),
    ("qwen2_sliding", without_windows, "block 2", "sliding window: is None, the reference agrees with 8"),
    ("llama", lambda m: setattr(m.blocks[2].mlp, "act", torch.relu), "block 2", "the reference agrees with 'silu'"),
    ("qwen3_moe_plain_sum", lambda m: spec([b.mlp for b in m.blocks], normalise=True), "block 0",
     "routing: weights of the chosen experts are divided by their sum, in the reference not divided"),
    ("lfm2_moe", lambda m: spec([b.mlp for b in m.blocks[1:]], scale=1.0), "block 1",
     "routing: weights are multiplied by 1, the reference agrees with 1.5"),
    ("llama", lambda m: spec(m.blocks, residual="parallel"), "block 0", "residual: is 'parallel', the reference agrees with 'standard'"),
    ("gemma2", lambda m: architecture(m, embed_scale=1.0), "embedding", "the embedding is multiplied by 1, in the reference by 8"),
    ("gemma2", lambda m: architecture(m, softcap=None), "head", "softcap of the logits: is None, the reference agrees with 8"),
    ("llama", lambda m: architecture(m, logit_scale=0.5), "head", "logits are multiplied by 0.5, in the reference by 1"),
    ("llama", lambda m: setattr(m.lm, "weight", m.embed.weight), "head", "the head is the embedding, in the reference a weight of its own"),
    ("gemma2", lambda m: offset([m.final_layernorm], -1.0), "final norm", "final norm: weights are used as they are stored"),
    ("llama", lambda m: spec([m.final_layernorm], eps=1e-2), "final norm",
     "epsilon of the final norm: is 0.01, the reference agrees with 1e-06"),
    ("llama", lambda m: turn(m, theta=1e4) or swap_gate_up(m), "block 0", "gate and up are swapped in the MLP"),
]


@pytest.mark.parametrize("variant, fault, where, text", FAULTS, ids=[f"{i}-{case[0]}-{case[3][:30]}" for i, case in enumerate(FAULTS)])
def test_fault_is_named(variant, fault, where, text, sources):
    source, reference = sources(variant)
    model = load(source)
    model = fault(model) or model
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    report = compare(model, reference, source, tokens_of(source))
    assert not report.passed
    assert report.finding.where == where, str(report)
    assert text in report.finding.cause, str(report)
    after = dict(model.named_parameters())
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)  # every trial was undone
    assert f"first difference: {where}" in str(report) and "FAILED" in str(report) and "DIFFERS" in str(report)


def test_two_faults_are_both_named(sources):
    source, reference = sources("llama")
    model = load(source)
    turn(model, theta=1e4)
    swap_gate_up(model)
    causes = compare(model, reference, source, tokens_of(source)).finding.causes
    assert len(causes) == 2 and any("rotary base" in cause for cause in causes) and any("gate and up" in cause for cause in causes)


def test_the_part_is_found(sources):
    """What no usual mistake explains: the part and how to read it."""
    source, reference = sources("lfm2")
    for path, part in (("self_attn.k_proj", "k_proj"), ("mlp.down_proj", "mlp down")):
        model = load(source)
        module = model.blocks[1].get_submodule(path)
        put(module, "weight", module.weight + 0.1 * torch.randn(module.weight.shape, generator=torch.Generator().manual_seed(0)))
        report = compare(model, reference, source, tokens_of(source))
        assert (report.finding.where, report.finding.part, report.finding.causes) == ("block 1", part, [])
        assert "no usual mistake explains it" in str(report)


def test_a_fault_of_the_memory(sources):
    """Prefill agrees, the decoded token does not."""
    source, reference = sources("llama")
    model = load(source)
    attention = model.blocks[1].self_attn
    forward = attention.forward

    def forgets(x, call, layer):
        if call.before[0]:
            call.memory.store(Span()).tensors[layer][0][:, :, :5] = 0
        return forward(x, call, layer)

    attention.forward = forgets
    report = compare(model, reference, source, tokens_of(source))
    assert not report.passed and report.finding.where == "memory"
    assert all(measure.passed for measure in report.measures if measure.phase == "prefill")


def test_every_hypothesis_changes_something_and_is_undone(sources):
    """A hypothesis that did nothing could never be the cause; one that stayed would spoil the next."""
    from custom_ops.onboarding.locate import _Search

    for variant in ("gemma2", "gemma4", "gemma4_moe", "lfm2", "qwen3_next", "gpt_oss"):
        source, reference = sources(variant)
        model = load(source)
        search = _Search(model, reference, source, tokens_of(source)[:, :-1])
        for index in range(len(model.blocks)):
            want = search.block(index)
            tried = list(hypotheses(model.blocks[index], search.hints(index)))
            assert len(tried) > 10 and len({h.text for h in tried}) > 10
            silent = []
            for hypothesis in tried:
                with hypothesis.applied():
                    if torch.equal(search.block(index), want):
                        silent.append(hypothesis.text)
                assert torch.equal(search.block(index), want), hypothesis.text
            # What cannot show here: an epsilon below rounding, a window that holds the prompt.
            assert all("epsilon" in text or "window" in text for text in silent), silent


# --- measures


def test_measure():
    want = torch.tensor([[1.0, -1.0, 3.0, -3.0]])
    exact = measure("prefill", "logits", want, want)
    assert exact.passed and exact.nmse == exact.max_abs == 0 and exact.top1 == 1 and exact.bound == pytest.approx(1e-4 * 5**0.5)
    assert not measure("prefill", "x", want + 1e-3, want).passed
    assert measure("prefill", "x", want + 1e-3, want, noise=1e-3).nmse > 1e-8  # the allowance is of the largest difference alone
    assert not measure("prefill", "x", want * torch.nan, want).passed
    assert not measure("prefill", "x", want + 1e-2, want, noise=1.0).passed  # however noisy the reference
    zeros = torch.zeros(3)
    assert measure("prefill", "x", zeros, zeros).passed and not measure("prefill", "x", zeros + 1, zeros).passed
    half = want.bfloat16()
    assert measure("prefill", "x", half * 1.01, half).passed and not measure("prefill", "x", half * 1.1, half).passed
    with pytest.raises(OnboardingError, match=r"prefill, x: LlmModel gives \[.*\], the reference \["):
        measure("prefill", "x", want[:, :2], want)
    assert nmse(torch.ones(2), torch.ones(2)) == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_16_bits(dtype, sources):
    report = verify(sources("qwen3_tied")[0].checkpoint.folder, dtype=dtype)
    assert report.passed and report.dtype == dtype, str(report)


def test_own_tokens(sources):
    source = sources("llama")[0]
    report = verify(source.checkpoint.folder, tokens=torch.arange(12).view(1, 12))
    assert report.passed and report.tokens == (1, 11)


def test_a_folder_that_transformers_cannot_load(sources, tmp_path):
    """Remote code is never run: minicpm has no class of its own."""
    import json
    import shutil

    for path in sources("llama")[0].checkpoint.folder.iterdir():
        shutil.copy(path, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "minicpm"}))
    with pytest.raises(OnboardingError, match="transformers 5.24.0 cannot load it, so there is no reference"):
        verify(tmp_path)


def test_norm_spec_of_a_layer_norm_is_found(sources):
    source, reference = sources("phi")
    model = load(source)
    spec([norm for norm in model.modules() if isinstance(norm, Norm)], kind="rms")
    report = compare(model, reference, source, tokens_of(source))
    assert "norms: are 'layer', the reference agrees with 'rms'" not in report.finding.cause
    assert report.finding.where == "block 0" and NormSpec().kind == "rms"
