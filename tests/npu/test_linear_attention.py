"""npu_fused_linear_attention on an NPU tensor: the oracle, states in place, both layouts of qkv, indices of either width, refusals."""

import pytest
import torch
from inputs import refusal
from op_table import DEVICE, assert_same_bits, on
from test_fused_linear_attention_simulated import CONV, GDN, KDA, VARLEN, Case, assert_case_matches, attributes_of, inputs_of

import custom_ops

STATES = ("conv_state", "recurrent_state")
CASES = [
    Case(batch=2, heads=(2, 4), dims=(32, 32)), Case(length=19, heads=(1, 3), dims=(40, 24), dtype="float16", gate="float32"),
    Case(type=KDA, batch=2, length=5, dims=(32, 16), fold=True), Case(**VARLEN, heads=(2, 4)), Case(length=6, taps=1, dtype="float32"),
    Case(length=3, states="none"), Case(length=3, states="recurrent"),
    Case(type=CONV, heads=(1, 1), dims=(130, 130), taps=3, length=70), Case(type=CONV, heads=(1, 1), dims=(64, 64), taps=4, **VARLEN),
]


def call(tensors, case, **changes):
    """attn_out and the states that the call has written; `tensors` keep theirs."""
    tensors = {name: value.clone() if name in STATES else value for name, value in tensors.items()}
    out = torch.ops.custom.npu_fused_linear_attention(**tensors, **attributes_of(case) | {"token_major": True} | changes)
    return out, *(tensors.get(name) for name in STATES)


def to_cpu(results):
    return tuple(result if result is None else result.cpu() for result in results)


def assert_same(got, want):
    assert_same_bits(*([result for result in to_cpu(results) if result is not None] for results in (got, want)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_oracle(case, rng):
    tensors = inputs_of(case, rng)
    on_npu = on(DEVICE, tensors)
    got = call(on_npu, case)
    assert got[0].device == torch.device(DEVICE) and got[0].is_contiguous()
    given = {name: value for name, value in tensors.items() if not (name == "conv_state" and case.taps == 1)}
    results = to_cpu(got)
    assert_case_matches((results[0], None if case.taps == 1 else results[1], results[2]), case, given, DEVICE)
    assert_same(call(on_npu, case), got)


def test_is_what_simulate_gives(rng, simulated):
    case = CASES[3]
    tensors = inputs_of(case, rng)
    with custom_ops.simulate(torch.npu.get_device_name()):
        want = call(tensors, case)
    assert_same(call(on(DEVICE, tensors), case), want)


@pytest.mark.parametrize("type", [GDN, CONV])
def test_channel_major(type, rng):
    case = Case(type=type, batch=2, length=5, heads=(1, 1), dims=(32, 32))
    tensors = on(DEVICE, inputs_of(case, rng))
    want = call(tensors, case)
    turned = tensors["qkv"].transpose(1, 2)
    for qkv in (turned, turned.contiguous()):
        assert_same(call(tensors | {"qkv": qkv}, case, token_major=False), want)


def test_indices_of_64_bits_and_mixed_gates(rng):
    case = Case(**VARLEN, heads=(1, 2), dims=(16, 24))
    tensors = on(DEVICE, inputs_of(case, rng))
    want = call(tensors | {name: tensors[name].float() for name in ("gate", "beta")}, case)
    wide = tensors | {name: tensors[name].long() for name in ("cu_seqlens", "state_indices")} | {"gate": tensors["gate"].float()}
    assert_same(call(wide, case), want)


@pytest.mark.parametrize("type", [GDN, CONV])
def test_wide_indices_that_do_not_fit(type, rng):
    """Not their low 32 bits, which would be -1, 1 and the right end: rows of NaN, and no state is touched."""
    case = Case(type=type, batch=3, heads=(1, 1), dims=(16, 16), slots=(0, 1, 2))
    tensors = on(DEVICE, inputs_of(case, rng))
    slots = torch.tensor([2**32 - 1, 2**32 + 1, 2]).to(DEVICE)
    out, *states = to_cpu(call(tensors | {"state_indices": slots}, case))
    assert out[:2].isnan().all() and out[2].isfinite().all()
    for name, state in zip(STATES, states):
        assert state is None or torch.equal(state[:2], tensors[name][:2].cpu())

    case = Case(type=type, length=6, heads=(1, 1), dims=(16, 16), ends=(0, 6))
    tensors = on(DEVICE, inputs_of(case, rng))
    out, *states = to_cpu(call(tensors | {"cu_seqlens": torch.tensor([0, 2**32 + 6]).to(DEVICE)}, case))
    assert out.isnan().all()
    for name, state in zip(STATES, states):
        assert state is None or torch.equal(state, tensors[name].cpu())


def test_decode_carries_the_states_in_place(rng):
    case = Case(batch=2, length=6, heads=(2, 4), dims=(32, 32))
    tensors = on(DEVICE, inputs_of(case, rng))
    want = call(tensors, case)
    states = {name: tensors[name].clone() for name in STATES}
    outs = []
    for t in range(case.length):
        part = tensors | states | {name: tensors[name][:, t : t + 1].contiguous() for name in ("qkv", "gate", "beta")}
        outs.append(torch.ops.custom.npu_fused_linear_attention(**part, **attributes_of(case), token_major=True))
    assert_same((torch.cat(outs, 1), *states.values()), want)


def test_refuses_in_the_words_of_the_cpu(rng):
    case = Case(batch=2, length=3)
    tensors = inputs_of(case, rng)
    for changes in ({"gate": tensors["gate"][:, :2]}, {"conv_state": tensors["conv_state"].transpose(0, 1)}):
        words = [refusal(lambda: call(on(device, tensors | changes), case)) for device in ("cpu", DEVICE)]
        assert words[0] == words[1] and words[0].startswith("npu_fused_linear_attention: ")
    with pytest.raises(RuntimeError, match="attn_type 'mamba2' is not known"):
        call(on(DEVICE, tensors), case, attn_type="mamba2")
