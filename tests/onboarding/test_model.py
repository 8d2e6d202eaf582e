"""LlmModel and its memory by themselves: any way to cut a sequence into calls, to batch it and to go back gives the same logits.
Against transformers: test_families.py."""

import copy
from dataclasses import replace

import pytest
import torch
from tiny_models import with_random_weights

from custom_ops.onboarding.architecture import (RESIDUAL_MODES, ROUTINGS, Architecture, AttentionSpec, DeltaRuleSpec, LayerInputsSpec,
                                                LayerSpec, MlpSpec, MoeSpec, NormSpec, RotarySpec, ShortConvSpec, Span, StreamsSpec)
from custom_ops.onboarding.model import LlmModel, Memory

pytestmark = pytest.mark.usefixtures("one_thread")

VOCAB, HIDDEN, WINDOW = 61, 32, 5
#: float32, of logits with standard deviation about 2: sums in another order, amplified by four random layers. Measured up to 8e-5.
CLOSE = {"rtol": 0, "atol": 5e-4}

NORM, MLP = NormSpec(), MlpSpec(40, "silu")
ROTARY = RotarySpec(1e4, 8)
FULL = AttentionSpec(4, 2, 8, 0.35, ROTARY, qk_norm="before_rope", norm=NORM)
SLIDING = replace(FULL, window=WINDOW, rotary=replace(ROTARY, pairing="interleaved", dims=4))
CHUNKED = replace(FULL, window=WINDOW, chunked=True, qk_norm="after_rope", norm=replace(NORM, weight=False))
TEMPERED = replace(FULL, rotary=None, qk_norm="none", temperature=(0.5, 4))
CONV, DELTA = ShortConvSpec(3), DeltaRuleSpec(2, 4, 8, 8, 4)
VALUES = replace(FULL, k_is_v=True, value_norm=replace(NORM, weight=False), head_dim=16, rotary=replace(ROTARY, dims=16))
MOE = MoeSpec(4, 2, 16, "silu", shared=MLP, shared_gate=True)


def architecture(mixers, residual="standard", mlp=MLP, **options):
    return Architecture(VOCAB, HIDDEN, tuple(LayerSpec(mixer, mlp, NORM, residual, 0.7) for mixer in mixers), NORM, **options)


MODELS = {
    "full": architecture([FULL, FULL]),
    "sliding": architecture([SLIDING, FULL]),
    "chunked": architecture([CHUNKED, TEMPERED, SLIDING]),
    "shared": architecture([SLIDING, VALUES, replace(SLIDING, shares=0), replace(VALUES, k_is_v=False, shares=1)]),
    "inputs": architecture([FULL, replace(FULL, shares=0), DELTA], layer_inputs=LayerInputsSpec(6, VOCAB, "gelu", NORM)),
    "experts_beside": architecture([FULL, CONV], "four_norm").with_layers(lambda layer: replace(
        layer, scalar=True, experts=replace(MOE, router_norm=NORM, expert_scale=True))),
    "recurrent": architecture([DELTA, CONV]),
    "hybrid": architecture([CONV, SLIDING, DELTA, FULL]),
    "moe": architecture([FULL, CONV], mlp=MOE),
    "gate_sinks_softcap": architecture([replace(FULL, output_gate=True, sinks=True), replace(SLIDING, softcap=3.0)], softcap=9.0),
    "norms_elsewhere": architecture([replace(FULL, qk_norm="after_rope"), replace(FULL, qk_norm_over="projection", rotary=None)]),
    "biases": architecture([replace(FULL, qkv_bias=True, out_bias=True)], mlp=MlpSpec(40, "gelu_new", gated=False, bias=True), lm_bias=True,
                           tied=True, embed_scale=3.0, logit_scale=0.5),
    **{mode: architecture([FULL, CONV], mode) for mode in RESIDUAL_MODES if mode != "hyper_connection"},
    "hyper_connection": architecture([FULL, DELTA], "hyper_connection", streams=StreamsSpec(4, 20, 1e-6, 1e-6)),
    **{routing: architecture([FULL], mlp=replace(MOE, routing=routing, selection_bias=routing == "sigmoid_bias")) for routing in ROUTINGS},
    "clamped_swiglu": architecture([FULL], mlp=replace(MOE, activation="clamped_swiglu", alpha=1.7, limit=0.5, expert_bias=True,
                                                       router_bias=True)),
}
MEMORIES = ["full", "sliding", "chunked", "shared", "recurrent", "hybrid", "gate_sinks_softcap", "hyper_connection"]


def make(name, rng):
    return with_random_weights(LlmModel(MODELS[name]).eval(), rng)


def some_tokens(rng, rows, length):
    return torch.randint(VOCAB, (rows, length), generator=rng)


@pytest.mark.parametrize("name", MODELS)
def test_any_split_into_calls(name, rng):
    model, tokens = make(name, rng), some_tokens(rng, 3, 30)
    whole = model(tokens)
    assert whole.isfinite().all() and whole.std() > 0.1
    for sizes in ([30], [1] * 30, [7, 1, 1, 21], [4, 26]):
        memory = model.new_memory(3, capacity=2)
        got = torch.cat([model(part, memory) for part in tokens.split(sizes, 1)], 1)
        torch.testing.assert_close(got, whole, **CLOSE)
        assert memory.lengths == [30] * 3
    torch.testing.assert_close(model(tokens, last_only=True), whole[:, -1:], **CLOSE)
    torch.testing.assert_close(model.head(model.hidden_states(tokens)), whole, **CLOSE)


@pytest.mark.parametrize("name", MODELS)
def test_causal(name, rng):
    """No token changes the logits before it; every token changes its own."""
    model, tokens = make(name, rng), some_tokens(rng, 1, 20)
    other = tokens.clone()
    other[0, 12] = (other[0, 12] + 1) % VOCAB
    one, two = model(tokens), model(other)
    torch.testing.assert_close(one[:, :12], two[:, :12], **CLOSE)
    assert (one[:, 12] - two[:, 12]).abs().max() > 1e-2


def test_a_chunk_sees_nothing_of_the_one_before(rng):
    """And its first token as little as the first of all."""
    model = LlmModel(architecture([CHUNKED])).eval()
    for parameter in model.parameters():
        parameter.normal_(0, 0.3, generator=rng)
    tokens = some_tokens(rng, 1, 3 * WINDOW)
    other = tokens.clone()
    other[0, WINDOW - 1] = (other[0, WINDOW - 1] + 1) % VOCAB
    one, two = model(tokens), model(other)
    torch.testing.assert_close(one[:, WINDOW:], two[:, WINDOW:], rtol=0, atol=0)
    later = model(tokens[:, WINDOW : WINDOW + 1])
    torch.testing.assert_close(one[:, WINDOW : WINDOW + 1], later, **CLOSE)  # alone in its chunk: where it stands does not matter
    other[0, WINDOW] = (other[0, WINDOW] + 1) % VOCAB
    assert (model(other)[:, WINDOW + 1] - one[:, WINDOW + 1]).abs().max() > 1e-3


@pytest.mark.parametrize("name", MEMORIES)
def test_left_padding(name, rng):
    """Rows padded on the left, through prefill and decode, are what they are alone."""
    model, lengths = make(name, rng), (17, 5, 1)
    rows = [some_tokens(rng, 1, length + 12) for length in lengths]
    prompts = torch.zeros(3, 17, dtype=torch.int64)
    mask = torch.zeros(3, 17, dtype=torch.int64)
    for i, (row, length) in enumerate(zip(rows, lengths)):
        prompts[i, 17 - length :], mask[i, 17 - length :] = row[0, :length], 1
    memory = model.new_memory(3)
    got = [model(prompts, memory, mask)]
    assert memory.starts == [0, 12, 16]
    got += [model(torch.cat([row[:, length + t : length + t + 1] for row, length in zip(rows, lengths)]), memory) for t in range(12)]
    got = torch.cat(got, 1)
    for i, (row, length) in enumerate(zip(rows, lengths)):
        torch.testing.assert_close(got[i : i + 1, 17 - length :], model(row), **CLOSE)


@pytest.mark.parametrize("name", MEMORIES)
def test_rows_of_unequal_lengths(name, rng):
    """Prompts read row by row through views, then all rows together: 1, 3 and then 150 tokens, more than a window's store has room for."""
    model, lengths = make(name, rng), (90, 4, 1)
    rows = [some_tokens(rng, 1, length + 154) for length in lengths]
    memory = model.new_memory(3, capacity=8)
    for i, (row, length) in enumerate(zip(rows, lengths)):
        model(row[:, :length], memory.view(i))
    assert memory.lengths == list(lengths)
    got, begin = [], 0
    for size in (1, 3, 150):
        got.append(model(torch.cat([row[:, n + begin : n + begin + size] for row, n in zip(rows, lengths)]), memory))
        begin += size
    got = torch.cat(got, 1)
    for i, (row, length) in enumerate(zip(rows, lengths)):
        torch.testing.assert_close(got[i : i + 1], model(row)[:, length:], **CLOSE)


@pytest.mark.parametrize("name", ["sliding", "shared"])
def test_a_sliding_store_keeps_a_window(name, rng):
    model, tokens = make(name, rng), some_tokens(rng, 1, 700)
    memory = model.new_memory()
    model(tokens[:, :400], memory)
    store = memory.store(Span(WINDOW))
    size = store.nbytes()
    got = torch.cat([model(tokens[:, t : t + 1], memory) for t in range(400, 700)], 1)
    torch.testing.assert_close(got, model(tokens)[:, 400:], **CLOSE)
    assert store.nbytes() == size and store.capacity < 200 and memory.store(Span()).capacity >= 700


@pytest.mark.parametrize("name", MEMORIES)
def test_snapshot_and_restore(name, rng):
    """A prefix shared by several continuations, also long ones and of one row alone."""
    model, prefix = make(name, rng), some_tokens(rng, 2, 11)
    memory = model.new_memory(2, capacity=4)
    model(prefix, memory)
    memory.snapshot()
    for length in (3, 200, 1):
        more = some_tokens(rng, 2, length)
        got = model(more, memory)
        torch.testing.assert_close(got, model(torch.cat((prefix, more), 1))[:, 11:], **CLOSE)
        memory.restore()
        assert memory.lengths == [11, 11] == memory.snapshot_lengths()
    model(some_tokens(rng, 2, 4), memory)
    memory.restore([1])
    assert memory.lengths == [15, 11]
    more = some_tokens(rng, 1, 3)
    torch.testing.assert_close(model(more, memory.view(1)), model(torch.cat((prefix[1:], more), 1))[:, 11:], **CLOSE)
    memory.reset([1])
    assert memory.snapshot_lengths() == [11, None]
    with pytest.raises(RuntimeError, match="row 1 has no snapshot"):
        memory.restore()
    assert memory.lengths == [15, 0]


@pytest.mark.parametrize("name", MEMORIES)
def test_rollback(name, rng):
    model, tokens = make(name, rng), some_tokens(rng, 1, 130)
    memory = model.new_memory()
    for t in range(0, 120, 8):
        model(tokens[:, t : t + 8], memory)
    if memory.kind in ("recurrent", "hybrid"):
        with pytest.raises(RuntimeError, match="row 0 of 120 tokens goes back to 0 tokens, not to 100: layers of linear attention"):
            memory.rollback(100)
        memory.snapshot()
        model(tokens[:, 120:], memory)
        memory.rollback(120)
        again = 120
    else:
        memory.rollback(100)
        again = 100
    assert memory.lengths == [again]
    torch.testing.assert_close(model(tokens[:, again:], memory), model(tokens)[:, again:], **CLOSE)
    memory.rollback(0)
    torch.testing.assert_close(model(tokens, memory), model(tokens), **CLOSE)
    with pytest.raises(RuntimeError, match="row 0 has 130 tokens and cannot go back to 131"):
        memory.rollback(131)


def test_layers_that_share_have_no_memory(rng):
    model = make("shared", rng)
    memory, alone = (LlmModel(replace(model.architecture, layers=model.architecture.layers[:many])).new_memory(2) for many in (4, 2))
    assert memory.nbytes() == alone.nbytes() and set(memory.store(Span()).tensors) == {1} and set(memory.store(Span(WINDOW)).tensors) == {0}
    assert model.blocks[2].self_attn.k_proj is None and model.blocks[1].self_attn.v_proj is None
    source, tokens = model.blocks[1].self_attn, some_tokens(rng, 1, 20)
    source.o_proj.weight.zero_()  # what it projects is seen by block 3 alone
    want = model(tokens)
    source.k_proj.weight.copy_(source.k_proj.weight.flip(0))
    assert (model(tokens) - want).abs().max() > 1e-2


@pytest.mark.parametrize("change", [{"shares": 2}, {"shares": 7}, {"shares": -1}, {"shares": 1}, {"shares": 0, "window": 9},
                                    {"shares": 0, "kv_heads": 4}], ids=str)
def test_keys_and_values_are_shared_with_an_earlier_layer_of_their_kind(change):
    with pytest.raises(RuntimeError, match="block 2 shares keys and values of block"):
        LlmModel(architecture([FULL, CONV, replace(FULL, **change)]))


def test_rollback_beyond_a_window(rng):
    model = make("sliding", rng)
    memory = model.new_memory()
    model(some_tokens(rng, 1, 300), memory)
    with pytest.raises(RuntimeError, match="row 0 of 300 tokens cannot go back to 200, tokens that a window of 5 sees from there are gone"):
        memory.rollback(200)
    memory.rollback(300 - 64)
    assert memory.lengths == [236]


def test_a_snapshot_of_tokens_taken_back_is_gone(rng):
    model = make("full", rng)
    memory = model.new_memory()
    model(some_tokens(rng, 1, 9), memory)
    memory.snapshot()
    memory.rollback(5)
    assert memory.snapshot_lengths() == [None]


@pytest.mark.parametrize("name", MEMORIES)
def test_reorder(name, rng):
    model, tokens = make(name, rng), some_tokens(rng, 3, 20)
    memory = model.new_memory(3)
    model(tokens[:, :12], memory)
    memory.reorder([2, 0, 0])
    order = torch.tensor([2, 0, 0])
    joined = torch.cat((tokens[order, :12], tokens[:, 12:]), 1)
    torch.testing.assert_close(model(tokens[:, 12:], memory), model(joined)[:, 12:], **CLOSE)


@pytest.mark.parametrize("name", MEMORIES)
def test_bfloat16(name, rng):
    """As far from float32 as bfloat16 rounding carries: relative RMS 5e-2 after up to four layers of random weights."""
    model, tokens = make(name, rng), some_tokens(rng, 2, 20)
    small = copy.deepcopy(model).to(torch.bfloat16)
    rounded = LlmModel(model.architecture)
    rounded.load_state_dict(small.state_dict())
    want = rounded(tokens)
    memory = small.new_memory(2)
    got = torch.cat([small(part, memory) for part in tokens.split([13, 1, 6], 1)], 1)
    assert got.dtype == torch.bfloat16
    assert (got.float() - want).square().mean().sqrt() < 5e-2 * want.square().mean().sqrt()


@pytest.mark.parametrize("name, kind", [("full", "kv"), ("sliding", "sliding"), ("recurrent", "recurrent"), ("hybrid", "hybrid")])
def test_memory_kind(name, kind):
    assert MODELS[name].memory_kind() == kind == Memory(MODELS[name]).kind
    assert Architecture(VOCAB, HIDDEN, (), NORM).memory_kind() == "none"


def test_copies_of_a_model_are_independent(rng):
    model, tokens = make("hybrid", rng), some_tokens(rng, 1, 9)
    want = model(tokens)
    twin = copy.deepcopy(model)
    assert torch.equal(twin(tokens), want)
    assert twin.blocks[1].self_attn.rotary is not model.blocks[1].self_attn.rotary


REFUSED = [
    (lambda model: model(torch.zeros(2, dtype=torch.int64)), r"tokens must be \[B, L\] int32 or int64 with L >= 1, got \[2\] torch.int64"),
    (lambda model: model(torch.zeros(1, 2)), "got .* torch.float32"),
    (lambda model: model(torch.tensor([[0, VOCAB]])), "tokens must be 0 to 60, got 0 to 61"),
    (lambda model: model(torch.tensor([[0, 1]]), model.new_memory(2)), "the memory has 2 rows"),
    (lambda model: model(torch.tensor([[0, 1]]), None, torch.tensor([[1, 0]])), "pad on the left"),
    (lambda model: model(torch.tensor([[0, 1]]), None, torch.tensor([[1]])), "attention_mask must be like tokens"),
    (lambda model: model(torch.tensor([[0, 1]]), Memory(MODELS["full"])), "the memory is another model's"),
    (lambda model: Memory(model.architecture, 0), "batch must be at least 1"),
    (lambda model: model.new_memory(2).view(1, 2), "view of rows 1 to 3 of 2"),
    (lambda model: model.new_memory(2).reset([2]), "rows must be 0 to 1"),
    (lambda model: model.new_memory(2).reorder([0]), "reorder takes 2 rows, got 1"),
]


@pytest.mark.parametrize("call, message", REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_refusals(call, message, rng):
    with pytest.raises(RuntimeError, match=message):
        call(make("hybrid", rng))


def test_padding_in_the_middle_of_a_sequence_is_refused(rng):
    model = make("full", rng)
    memory = model.new_memory()
    model(torch.tensor([[1, 2]]), memory)
    with pytest.raises(RuntimeError, match="padding comes with the first tokens"):
        model(torch.tensor([[1, 2]]), memory, torch.tensor([[0, 1]]))
    assert memory.lengths == [2]


@pytest.mark.parametrize("change, message", [({"residual": "sideways"}, "residual mode 'sideways' is not known"),
                                             ({"mlp": replace(MLP, activation="swoosh")}, "activation 'swoosh' is not known"),
                                             ({"residual": "hyper_connection"}, "go together")])
def test_unknown_parts_are_named(change, message):
    with pytest.raises(RuntimeError, match=message):
        LlmModel(MODELS["full"].with_layers(lambda layer: replace(layer, **change)))
