"""npu_fused_linear_attention on the CPU against the float64 oracle, and what must hold to the bit."""

import dataclasses
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import before_guard, on_threads
from linear_attention import REGIMES, STATES, Layer, assert_matches_oracle, assert_same, clone, run

import custom_ops
from custom_ops import reference_linear_attention

B16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
KINDS = ("gated_delta_rule", "kda", "short_conv")

LAYERS = [
    Layer(),
    Layer(Hk=1, Hv=3, dk=4, dv=5, dtype=B16, bias=True),                          # R = 3, odd
    Layer(Hk=2, Hv=2, dk=128, dv=128, dtype=B16),
    Layer(Hk=1, Hv=2, dk=64, dv=192, K=3, dtype=F16, fold=True),
    Layer(Hk=1, Hv=1, dk=65, dv=127, K=2, l2norm=False, gates=F32),
    Layer(Hk=3, Hv=3, dk=60, dv=100, K=1, dtype=B16, fold=True, gates=F32),       # no window
    Layer(Hk=1, Hv=1, dk=16, dv=512, K=8, bias=True),
    Layer(Hk=1, Hv=1, dk=512, dv=33, dtype=F16),
    Layer("kda"),
    Layer("kda", Hk=1, Hv=3, dk=33, dv=63, dtype=B16, fold=True, bias=True),
    Layer("kda", Hk=2, Hv=2, dk=128, dv=128, dtype=F16, gates=F32),
    Layer("short_conv", dv=48, K=3),
    Layer("short_conv", dv=2048, K=3, dtype=B16),
    Layer("short_conv", dv=33, K=4, dtype=F16, bias=True),
    Layer("short_conv", dv=70, K=1, dtype=B16),
    Layer("short_conv", dv=16, K=8, dtype=F32, bias=True),
]


@pytest.mark.parametrize("length", [1, 2, 3, 5, 17, 64, 65, 130])
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_matches_oracle(layer, length, rng):
    call = layer.tensors(rng, 2 if length < 64 else 1, length)
    assert_matches_oracle(layer, call, run(layer, call))


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [B16, F32], ids=str)
def test_value_regimes(kind, regime, dtype, rng):
    layer = Layer(kind, Hk=1, Hv=2, dk=32, dv=48, dtype=dtype)
    call = layer.tensors(rng, 1, 200, regime)
    if regime == "zeros":
        call["conv_state"].zero_()
    assert_matches_oracle(layer, call, run(layer, call), regime)


def test_decayed_state_becomes_zero_and_only_there(rng):
    """Subnormal numbers would stay in the state for ever; the arithmetic of others on these threads keeps them."""
    layer = Layer(Hk=1, Hv=64, dk=64, dv=64)
    call = layer.tensors(rng, 1, 1)
    call["qkv"].zero_()
    call["conv_state"].zero_()
    call["gate"].fill_(-1)
    call["recurrent_state"].fill_(1e-37)
    states = []
    for _ in range(5):
        call["recurrent_state"] = run(layer, call)[2]
        states.append(call["recurrent_state"])
    torch.testing.assert_close(states[0], torch.full_like(states[0], 1e-37 / np.e), rtol=1e-6, atol=0)
    assert (states[-1] == 0).all()
    assert (torch.full((1 << 20,), 1e-40) * 0.5 > 0).all()


def test_512_identical_tokens(rng):
    layer = Layer(Hk=1, Hv=1, dk=64, dv=64)
    call = layer.tensors(rng, 1, 512, "identical")
    assert_matches_oracle(layer, call, run(layer, call))


def test_thousands_of_tokens(rng):
    layer = Layer(Hk=1, Hv=1, dk=32, dv=32)
    call = layer.tensors(rng, 1, 4096, "slow")
    # With hardly any decay the rounding of every update of the state stays in it: 2^-24 * sqrt(4096), single elements some times that.
    assert_matches_oracle(layer, call, run(layer, call), bound=16 * 2**-24 * 4096**0.5)


SHAPES = st.tuples(st.sampled_from(KINDS), st.integers(1, 3), st.integers(1, 4), st.integers(1, 70), st.integers(1, 140), st.integers(1, 8),
                   st.sampled_from([F32, B16, F16]), st.booleans(), st.booleans(), st.integers(1, 3), st.integers(0, 40))


@settings(max_examples=60)
@given(SHAPES, st.integers(0, 2**31))
def test_any_shape(shape, seed):
    kind, Hk, R, dk, dv, K, dtype, bias, fold, batch, length = shape
    layer = Layer(kind, Hk, Hk * R, dk, dv, K, dtype, bias, fold and kind != "short_conv")
    call = layer.tensors(torch.Generator().manual_seed(seed), batch, length)
    assert_matches_oracle(layer, call, run(layer, call))


def without(call: dict, *names: str) -> dict:
    return {**call, **dict.fromkeys(names)}


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_states_left_out_are_zeros(layer, rng):
    call = layer.tensors(rng, 2, 7)
    zeros = {**call, **{name: None if call[name] is None else torch.zeros_like(call[name]) for name in STATES}}
    want = run(layer, zeros)
    for left_out in (STATES, STATES[:1], STATES[1:]):
        got = run(layer, without(zeros, *left_out))
        assert_same(got, tuple(None if name in left_out else tensor for name, tensor in zip(("attn_out", *STATES), want)))


def tokens_of(call: dict, first: int, last: int) -> dict:
    return {name: value[:, first:last] if name in ("qkv", "gate", "beta") else value for name, value in call.items()}


@pytest.mark.parametrize("pieces", [(1,) * 70, (1, 69), (2, 1, 40, 27), (64, 0, 6)], ids=str)
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_any_split_gives_the_same_bits(layer, pieces, rng):
    call = layer.tensors(rng, 2, 70)
    want, state = run(layer, call), clone(call)
    ends = np.cumsum((0, *pieces))
    outs = [custom_ops.fused_linear_attention(**tokens_of(state, first, last), **layer.attributes(), token_major=True)
            for first, last in zip(ends, ends[1:])]
    assert_same((torch.cat(outs, 1), state["conv_state"], state["recurrent_state"]), want)


def rows_of(call: dict, rows) -> dict:
    return {name: value[rows] if name in ("qkv", "gate", "beta", *STATES) and value is not None else value for name, value in call.items()}


@pytest.mark.parametrize("length", [1, 9])
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_rows_do_not_depend_on_their_batch(layer, length, rng):
    call = layer.tensors(rng, 5, length)
    whole = run(layer, call)
    for rows in (slice(0, 1), slice(3, 5), torch.tensor([4, 0, 2])):
        assert_same(run(layer, rows_of(call, rows)), tuple(None if tensor is None else tensor[rows] for tensor in whole))


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_threads_do_not_matter(layer, rng):
    """Also where a sequence is split: into blocks of tokens (short_conv), a key head into strips of its values."""
    layer = dataclasses.replace(layer, Hk=1, Hv=layer.Hv // layer.Hk, dv=layer.dv if layer.heads else 2048)
    call = layer.tensors(rng, 1, 333)
    results = on_threads(lambda: run(layer, call))
    for result in results[1:]:
        assert_same(result, results[0])


@pytest.mark.parametrize("length", [1, 2, 67])
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_layouts_give_the_same_bits(layer, length, rng):
    call = layer.tensors(rng, 2, length)
    want = run(layer, call)
    view = call["qkv"].transpose(1, 2)
    for qkv in (view, view.contiguous(), view.repeat_interleave(2, 2)[..., ::2], view.repeat_interleave(2, 1)[:, ::2]):
        assert_same(run(layer, {**call, "qkv": qkv}, token_major=False), want)
    wide = torch.cat([call["qkv"], call["qkv"]], 2)[..., : layer.qkv_channels]
    strided = {name: torch.stack([call[name], call[name]], -1)[..., 0] for name in ("gate", "beta", "conv_weight")}
    assert_same(run(layer, {**call, **strided, "qkv": wide}), want)


PACKED = [(15,), (1, 99, 3), (0, 5, 0, 7, 0), (1, 1, 1, 40, 1, 1), (0, 0), (64, 1, 65)]


@pytest.mark.parametrize("lengths", PACKED, ids=str)
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_packed_sequences(layer, lengths, rng):
    """As each alone, in slots of a pool in any order; the other slots stay."""
    count, ends = len(lengths), [int(end) for end in np.cumsum((0, *lengths))]
    call = layer.tensors(rng, 1, sum(lengths), slots=count + 3)
    slots = torch.randperm(count + 3, generator=rng)[:count]
    begins = torch.rand(count, generator=rng) < 0.7
    pool = {"cu_seqlens": torch.tensor(ends, dtype=torch.int32), "state_indices": slots, "has_initial_state": begins}
    got = run(layer, {**call, **pool})
    assert_matches_oracle(layer, {**call, **pool}, got)
    want = clone(call)
    for slot, has_state, first, last in zip(slots.tolist(), begins, ends, ends[1:]):
        own = {name: None if want[name] is None else want[name][slot : slot + 1] for name in STATES}
        if not has_state:
            for state in own.values():
                if state is not None:
                    state.zero_()
        out = custom_ops.fused_linear_attention(**{**tokens_of(want, first, last), **own}, **layer.attributes(), token_major=True)
        assert torch.equal(out, got[0][:, first:last])
    assert_same(got[1:], tuple(want[name] for name in STATES))


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_padding_and_stale_states_do_not_leak(layer, rng):
    """Sequence 1 is padding, its tokens and the slots nobody names are NaN; sequence 2 starts in a slot full of NaN."""
    call = layer.tensors(rng, 4, 6, slots=6)
    pool = {"state_indices": torch.tensor([2, -1, 0, 5]), "has_initial_state": torch.tensor([True, True, False, True])}
    clean = run(layer, {**call, **pool})
    for name in ("qkv", "gate", "beta"):
        call[name][1] = torch.nan
    for name in STATES:
        if call[name] is not None:
            call[name][torch.tensor([0, 1, 3, 4])] = torch.nan
    got = run(layer, {**call, **pool})
    assert torch.equal(got[0], clean[0]) and not got[0][1].any()
    for name, state, want in zip(STATES, got[1:], clean[1:]):
        if state is not None:
            assert torch.equal(state[pool["state_indices"][[0, 2, 3]]], want[pool["state_indices"][[0, 2, 3]]]), name
            assert state.numel() == 0 or state[[1, 3, 4]].isnan().all(), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [B16, F16, F32], ids=str)
def test_non_finite_values_stay_in_their_sequence(kind, dtype, rng):
    layer = Layer(kind, Hk=1, Hv=2, dk=16, dv=33, dtype=dtype)
    call = layer.tensors(rng, 3, 5)
    clean = run(layer, call)
    call["qkv"][1, 2] = torch.nan
    got = run(layer, call)
    assert_same(tuple(None if t is None else t[[0, 2]] for t in got), tuple(None if t is None else t[[0, 2]] for t in clean))
    assert torch.equal(got[0][1, :2], clean[0][1, :2]) and got[0][1, 2:].isnan().all()


def test_exact_recall():
    """beta = 1 and orthonormal keys: q = k reads v back, by the scale of q."""
    dim = 16
    layer = Layer(Hk=1, Hv=1, dk=dim, dv=dim, K=1, l2norm=False)
    values = torch.randn(dim, dim, generator=torch.Generator().manual_seed(1))
    keys = torch.eye(dim)
    raw = torch.full((2 * dim, 3 * dim), -100.0)  # SiLU: 0
    inverse = torch.linspace(1.2, 1.3, 4001, dtype=torch.float64)
    table = inverse * torch.sigmoid(inverse)
    unit = inverse[(table - 1).abs().argmin()]
    raw[:dim, dim : 2 * dim] = torch.where(keys == 1, unit.float(), raw[:dim, dim : 2 * dim])
    raw[:dim, 2 * dim :] = values
    raw[dim:, :dim] = torch.where(keys == 1, unit.float(), raw[dim:, :dim])
    beta = torch.cat([torch.ones(dim), torch.zeros(dim)])
    call = {"qkv": raw[None], "gate": torch.zeros(1, 2 * dim, 1), "beta": beta[None, :, None], "conv_weight": torch.ones(3 * dim, 1, 1),
            "conv_state": None, "recurrent_state": torch.zeros(1, 1, dim, dim)}
    out = run(layer, call)[0][0, dim:, 0]
    torch.testing.assert_close(out, torch.nn.functional.silu(values) / dim**0.5, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if layer.heads and not layer.fold], ids=str)
def test_without_beta_the_state_only_decays(layer, rng):
    call = layer.tensors(rng, 2, 9, "beta0")
    _, _, state = run(layer, call)
    decay = call["gate"].double().sum(1).exp()
    want = call["recurrent_state"].double() * (decay[..., None] if layer.attn_type == "kda" else decay[..., None, None])
    torch.testing.assert_close(state.double(), want, rtol=2e-6, atol=1e-30)


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if layer.fold], ids=str)
def test_folded_gate_is_the_gate(layer, rng):
    call = layer.tensors(rng, 1, 9)
    gate = reference_linear_attention.folded_gate(*(call[name].double().numpy() for name in ("gate", "gate_coef", "gate_bias")))
    ready = {**without(call, "gate_coef", "gate_bias"), "gate": torch.from_numpy(gate).float(), "beta": call["beta"].double().sigmoid().float()}
    plain = dataclasses.replace(layer, fold=False)
    want = reference_linear_attention.fused_linear_attention(**ready, **plain.attributes(), token_major=True)[0]
    got = run(layer, call)[0].double().numpy()
    assert np.abs(got - want).max() <= (2**-8 if layer.dtype == B16 else 2**-10) * np.abs(want).max()


@pytest.mark.parametrize("a", [-80.0, -20.0, -8.0, 0.0, 8.0, 80.0, 1e4])
def test_softplus_has_both_tails(a, rng):
    """log(1 + exp(x)) step by step is 0 below -17 in float32 and inf above 88. The coefficient makes the decay exp(-1)."""
    layer = Layer(Hk=1, Hv=1, dk=1, dv=1, K=1, fold=True, l2norm=False)
    call = layer.tensors(rng, 1, 1)
    call |= {"gate": torch.full((1, 1, 1), a), "gate_bias": torch.zeros(1), "gate_coef": torch.tensor([-1 / np.logaddexp(0, a)]).float(),
             "beta": torch.full((1, 1, 1), -1e4), "recurrent_state": torch.ones(1, 1, 1, 1)}
    assert run(layer, call)[2].item() == pytest.approx(np.exp(-1), rel=1e-6)


def test_two_runs_are_the_same(rng):
    layer = Layer(Hk=4, Hv=8, dk=64, dv=64, dtype=B16)
    call = layer.tensors(rng, 2, 100)
    assert_same(run(layer, call), run(layer, call))


def test_calls_of_several_threads(rng):
    """Each with states of its own."""
    layers = [layer for layer in LAYERS if layer.dv < 128]
    calls = [(layer, layer.tensors(rng, 2, length)) for layer in layers for length in (1, 40)]
    want = [run(*call) for call in calls]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for got, one in zip(pool.map(lambda call: run(*call), calls), want, strict=True):
                assert_same(got, one)


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_inputs_are_not_written(layer, rng):
    call = layer.tensors(rng, 2, 5)
    before = {name: value.clone() for name, value in call.items() if value is not None}
    custom_ops.fused_linear_attention(**call, **layer.attributes(), token_major=True)
    assert all(torch.equal(call[name], value) for name, value in before.items() if name not in STATES)
    assert all(not torch.equal(call[name], before[name]) for name in STATES if call[name] is not None and call[name].numel())


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect")
@pytest.mark.parametrize("length", [1, 3, 20])
@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_reads_nothing_past_the_inputs(layer, length, rng):
    """Every input, and every state, ends where an unreadable page begins."""
    call = layer.tensors(rng, 1, length)
    want = run(layer, call)
    for major in (True, False):
        guarded = {name: value if value is None or value.numel() == 0 else before_guard(value) for name, value in call.items()}
        if not major:
            guarded["qkv"] = before_guard(call["qkv"].transpose(1, 2).clone(memory_format=torch.contiguous_format))
        out = custom_ops.fused_linear_attention(**guarded, **layer.attributes(), token_major=major)
        assert_same((out, guarded["conv_state"], guarded["recurrent_state"]), want)


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_no_tokens(kind, shape, rng):
    layer = Layer(kind)
    call = layer.tensors(rng, *shape)
    got = run(layer, call)
    assert got[0].shape == (*shape, *((4, 16) if layer.heads else (1, 16)))
    assert_same(got[1:], tuple(call[name] for name in STATES))
