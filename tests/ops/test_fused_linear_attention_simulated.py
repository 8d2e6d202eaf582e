"""The kernels of FusedLinearAttention (recurrent, short_conv) on the simulated chips, through the op package: numbers, states, order,
refusals."""

import numpy as np
import pytest
import torch
from compare import F32, Tolerance, assert_matches
from linear_attention_cases import CONV, FAMILIES, GDN, KDA, RECURRENT, SHORT_CONV, VARLEN, Case, assert_only_sequences_in_order_count
from linear_attention_cases import attributes_of, inputs_of, kernel, on_every_chip, run

import custom_ops
from custom_ops import reference_linear_attention as reference
from custom_ops.sim import runtime


def scale_of(array, axes):
    return np.broadcast_to(np.abs(array).max(axes, keepdims=True), array.shape)


def assert_case_matches(got, case: Case, tensors: dict, where: str):
    """Sums over dk and tokens round at every step: an error is measured against the largest value of its row (result) or head (state)."""
    want = reference.fused_linear_attention(**tensors, **attributes_of(case), token_major=True)
    roundoff = (64 + 4 * case.dims[0] + 8 * case.length) * F32
    for name, value, exact, axes in zip(("attn_out", "conv_state", "recurrent_state"), got, want, ((-1,), (), (-2, -1)), strict=True):
        assert (value is None) == (exact is None), name
        if value is None or value.numel() == 0:
            continue
        if name == "conv_state" and case.type != CONV:
            assert torch.equal(value.double(), torch.from_numpy(exact)), f"{where}: conv_state holds inputs as they were"
            continue
        narrow = value.dtype != torch.float32
        tolerance = Tolerance(0 if narrow else roundoff, 1e-30, tie=roundoff if narrow else 0)
        assert_matches(f"{case.type}.{name}", value, exact, tolerance, magnitude=scale_of(exact, axes) if axes else None, where=where)


CASES = [
    Case(why="the smallest decode"),
    Case(length=2, taps=4, why="L < K - 1"),
    Case(length=3, taps=1, why="no conv_state to speak of"),
    Case(length=5, taps=2, dtype="float32", bias=False),
    Case(batch=2, length=9, taps=8, dtype="float16"),
    Case(batch=3, length=21, heads=(2, 6), dims=(5, 63), dtype="float32", why="R = 3, odd dims, several chunks of tokens"),
    Case(batch=1, length=19, heads=(1, 3), dims=(65, 129), dtype="float16", gate="float32"),
    Case(length=3, heads=(1, 2), dims=(127, 65), dtype="bfloat16", gate="float32", fold=True),
    Case(batch=2, length=4, heads=(2, 2), dims=(1, 1), dtype="float32"),
    Case(batch=2, length=5, heads=(2, 4), dims=(20, 8), fold=True, norm=False, law="tiny"),
    Case(length=2, heads=(1, 1), dims=(512, 512), dtype="float32", taps=8, why="the largest state and window: tiles of few columns"),
    Case(length=3, batch=2, heads=(2, 4), dims=(512, 24), taps=8, why="one buffer: weights come first, of new key and value heads"),
    Case(type=KDA, length=9, heads=(1, 2), dims=(512, 16), dtype="float32", taps=8, fold=True),
    Case(batch=45, heads=(2, 4), dims=(16, 24), why="more items than cores"),
    Case(batch=2, length=3, states="none"), Case(batch=2, length=3, states="conv"), Case(batch=2, length=3, states="recurrent"),
    Case(length=40, heads=(1, 2), law="identical", dtype="float32"), Case(length=40, law="keep", dtype="float32"),
    Case(length=20, law="forget"), Case(length=12, law="beta", dtype="float32"), Case(length=6, law="large", dtype="float16", bias=False),
    Case(length=6, law="tiny", dtype="float16", bias=False),
    Case(**VARLEN, heads=(2, 4), why="zero-length sequences first, in the middle and last; padding; slots out of order"),
    Case(**VARLEN, dtype="float32", states="none"), Case(**VARLEN, states="conv", dtype="float16"),
    Case(length=6, ends=(0, 1, 2, 3, 4, 5, 6), heads=(2, 4), why="decode with cu_seqlens"),
    Case(batch=4, slots=(2, -1, 0, 3), has=(True, True, False, True), heads=(1, 4), dims=(32, 48)),
    Case(type=KDA, batch=2, length=19, heads=(2, 6), dims=(63, 5), fold=True),
    Case(type=KDA, length=3, heads=(2, 2), dims=(64, 64), dtype="float32"),
    Case(type=KDA, batch=3, heads=(1, 1), dims=(128, 128), gate="float32", fold=True),
    Case(type=KDA, length=1, heads=(1, 1), dims=(512, 256), dtype="float16", taps=4),
    Case(type=KDA, length=18, dims=(24, 16), law="forget", dtype="float32"),
    Case(type=KDA, **VARLEN, dims=(20, 16), dtype="float16", gate="float32", fold=True),
    *(Case(type=CONV, heads=(1, 1), dims=(h, h), length=length, taps=taps, batch=batch, dtype=dtype, bias=bias) for
      h, length, taps, batch, dtype, bias in ((64, 5, 1, 2, "bfloat16", False), (7, 1, 3, 3, "float32", True),
                                              (100, 2, 4, 1, "float16", False),
                                              (2048, 1, 3, 2, "bfloat16", False), (1000, 70, 3, 1, "bfloat16", True),
                                              (129, 300, 8, 2, "float32", False), (130, 1, 3, 90, "float16", True))),
    Case(type=CONV, heads=(1, 1), dims=(72, 72), taps=3, **VARLEN, bias=False),
    Case(type=CONV, heads=(1, 1), dims=(72, 72), taps=3, **VARLEN, dtype="float32", states="none"),
    Case(type=CONV, heads=(1, 1), dims=(200, 200), taps=4, length=400, ends=(0, 1, 1, 250, 252, 400), why="sequences across cores"),
]


@on_every_chip
@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_oracle(case, soc, rng):
    tensors = inputs_of(case, rng)
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    got, report = run(soc, case, tensors)
    assert report.findings == [] and report.tiling_key == (SHORT_CONV if case.type == CONV else RECURRENT)
    assert_case_matches(got, case, tensors, soc)
    assert all(torch.equal(tensors[name], before[name]) for name in tensors)


PLANS = {  # one of each way the work is split
    "whole": Case(batch=45, heads=(1, 2), length=3), "split": Case(batch=1, heads=(1, 8), dims=(32, 32), length=20),
    "kda": Case(type=KDA, batch=2, heads=(1, 2), dims=(24, 24), length=18, fold=True), "varlen": Case(**VARLEN, heads=(2, 4)),
    "conv": Case(type=CONV, heads=(1, 1), dims=(192, 192), taps=3, length=300),
    "conv-decode": Case(type=CONV, heads=(1, 1), dims=(64, 64), taps=3, batch=5),
}


@pytest.mark.parametrize("soc", FAMILIES)
@pytest.mark.parametrize("plan", PLANS)
def test_results_do_not_depend_on_how_the_simulator_runs(plan, soc, rng):
    """Two runs, host threads, and the order of everything the kernel leaves unordered: the same bits."""
    case = PLANS[plan]
    tensors = inputs_of(case, rng)
    want, report = run(soc, case, tensors)
    if plan in ("whole", "split"):
        assert report.plan["wholeItems"] == (plan == "whole")
    for options in ({}, {"host_threads": 1}, {"checks": False}, {"adversarial_seed": 1}, {"adversarial_seed": 2}):
        got, _ = run(soc, case, tensors, **options)
        assert all(torch.equal(one, other) for one, other in zip(got, want) if one is not None), options


@pytest.mark.parametrize("soc", FAMILIES)
@pytest.mark.parametrize("case", [
    Case(batch=2, length=11, heads=(1, 2), dims=(40, 24)), Case(type=KDA, batch=1, length=9, dims=(17, 16), dtype="float32", fold=True),
    Case(type=CONV, heads=(1, 1), dims=(80, 80), taps=4, length=9),
], ids=str)
def test_steps_give_the_bits_of_one_call(case, soc, rng):
    tensors = inputs_of(case, rng)
    want, _ = run(soc, case, tensors)
    for cuts in (range(case.length + 1), (0, 1, 4, case.length)):
        carried, outs = dict(tensors), []
        for first, last in zip(cuts, cuts[1:]):
            part = carried | {name: tensors[name][:, first:last].contiguous() for name in ("qkv", "gate", "beta")}
            (out, *states), _ = run(soc, case, part)
            outs.append(out)
            carried |= {name: state for name, state in zip(("conv_state", "recurrent_state"), states) if state is not None}
        assert torch.equal(torch.cat(outs, 1), want[0])
        for name, state in zip(("conv_state", "recurrent_state"), want[1:]):
            assert state is None or torch.equal(carried[name], state)


@pytest.mark.parametrize("soc", FAMILIES)
@pytest.mark.parametrize("type", [GDN, CONV])
def test_sequences_keep_to_themselves(type, soc, rng):
    """NaN in padding and in one sequence; a slot that does not exist: NaN rows. Neither touches a state or another sequence."""
    case = Case(type=type, **VARLEN | {"slots": (4, 1, -1, 1000, 2, -1, 0)}, heads=(1, 1 + (type == GDN)), dims=(32, 32))
    tensors = inputs_of(case, rng)
    clean, _ = run(soc, case, tensors)
    tensors["qkv"] = tensors["qkv"].clone()
    tensors["qkv"][:, 21:] = torch.nan  # padding
    tensors["qkv"][:, 3:20] = torch.nan  # slot 1000
    got, _ = run(soc, case, tensors)
    assert got[0][:, 21:].count_nonzero() == 0 and got[0][:, 3:20].isnan().all() and clean[0][:, 3:20].isnan().all()
    for rows in (slice(0, 3), slice(20, 21)):
        assert torch.equal(got[0][:, rows], clean[0][:, rows]) and got[0][:, rows].isfinite().all()
    for name, state in zip(("conv_state", "recurrent_state"), got[1:]):
        if state is None:
            continue
        untouched = [slot for slot in range(len(state)) if slot not in (4, 1, 2)]
        assert torch.equal(state[untouched], tensors[name][untouched]) and state.isfinite().all()
        assert not torch.equal(state[1], tensors[name][1]) and state[4].count_nonzero() == 0, "an empty sequence that starts anew"


@pytest.mark.parametrize("soc", FAMILIES)
@pytest.mark.parametrize("type", [GDN, CONV])
@pytest.mark.parametrize("ends", [(1, 20, 40), (0, 30, 20, 40), (0, 20, 39), (0, 50, 40), (0, 0, 3, -1, 40),
                                  (0, 2**31 - 1, -2**31, -1, 5, 40)], ids=str)
def test_boundaries_out_of_order_do_not_harm_the_sequences_before(ends, type, soc, rng):
    case = Case(type=type, length=40, ends=ends, heads=(1, 1), dims=(32, 32))
    assert_only_sequences_in_order_count(soc, case, rng, SHORT_CONV if type == CONV else RECURRENT)


@pytest.mark.parametrize("soc", FAMILIES)
def test_many_sequences(soc, rng):
    """More boundaries than are checked at a time."""
    ends = [0]
    while len(ends) < 1101:
        ends.append(ends[-1] + len(ends) % 2)
    case = Case(length=ends[-1], ends=tuple(ends), dims=(8, 8), heads=(1, 1), taps=2)
    tensors = inputs_of(case, rng)
    got, _ = run(soc, case, tensors)
    assert_case_matches(got, case, tensors, soc)
    broken = case.ends[:1050] + (0,) + case.ends[1051:]
    (out, *_), _ = run(soc, case, tensors | {"cu_seqlens": torch.tensor(broken, dtype=torch.int32)})
    rows = ends[1049]
    assert out[:, rows:].isnan().all() and torch.equal(out[:, :rows], got[0][:, :rows])


@pytest.mark.parametrize("soc", FAMILIES)
@pytest.mark.parametrize("shape", [(0, 4), (2, 0)], ids=str)
def test_no_tokens(shape, soc, rng):
    case = Case(batch=shape[0], length=shape[1])
    tensors = inputs_of(case, rng)
    got, _ = run(soc, case, tensors)
    assert got[0].shape == (*shape, 2, 16)
    assert torch.equal(got[1], tensors["conv_state"]) and torch.equal(got[2], tensors["recurrent_state"])


@on_every_chip
@pytest.mark.parametrize("type", [GDN, KDA])
@pytest.mark.parametrize("batch, fold", [(8, True), (12, False)])
def test_decode_is_bound_by_the_bytes_of_the_states(batch, fold, type, soc, rng):
    """Hk = 16, Hv = 32, d = 128: at least 70 % of the HBM bandwidth in modelled time, the launch aside; and nothing but states is moved."""
    case = Case(type=type, batch=batch, heads=(16, 32), dims=(128, 128), bias=fold, fold=fold)
    tensors = inputs_of(case, rng)
    _, report = run(soc, case, tensors, checks=False)
    chip, size = runtime.find_soc(soc), 2 * tensors["recurrent_state"].nbytes
    assert size / (report.modelled_seconds - chip["launchSeconds"]) > 0.7 * chip["hbmBytesPerSecond"]
    assert report.hbm_bytes < 1.05 * size


@pytest.mark.parametrize("changes, sentence", [
    (dict(attn_type="mamba2"), "attn_type 'mamba2' is not known, known are gated_delta_rule, kda, short_conv"),
    (dict(num_k_heads=3),
     "qkv must have D = 2 * num_k_heads * head_k_dim + num_v_heads * head_v_dim = 128 channels (last dimension), got [2, 3, 64]"),
    (dict(gate=torch.zeros(2, 3, 1, dtype=torch.bfloat16)), "gate must be [2, 3, 2] for qkv [2, 3, 64], got [2, 3, 1]"),
    (dict(beta=torch.zeros(2, 2, 2, dtype=torch.bfloat16)), "beta must be [2, 3, 2] for qkv [2, 3, 64], got [2, 2, 2]"),
    (dict(conv_weight=torch.zeros(63, 1, 4, dtype=torch.bfloat16)), "conv_weight must be [64, 1, K] for qkv [2, 3, 64], got [63, 1, 4]"),
    (dict(conv_weight=torch.zeros(64, 1, 9, dtype=torch.bfloat16), conv_state=None), "conv_weight has K = 9 taps, supported are 1 to 8"),
    (dict(conv_bias=torch.zeros(63, dtype=torch.bfloat16)), "conv_bias must be [64] for qkv [2, 3, 64], got [63]"),
    (dict(conv_state=torch.zeros(2, 64, 4, dtype=torch.bfloat16)), "conv_state must be [2, 64, 3] for qkv [2, 3, 64], got [2, 64, 4]"),
    (dict(recurrent_state=torch.zeros(2, 2, 16, 15)), "recurrent_state must be [2, 2, 16, 16] for qkv [2, 3, 64], got [2, 2, 16, 15]"),
    (dict(recurrent_state=torch.zeros(3, 2, 16, 16)), "conv_state must be [3, 64, 3] for qkv [2, 3, 64], got [2, 64, 3]"),
    (dict(recurrent_state=torch.zeros(3, 2, 16, 16), conv_state=None), "one slot for each of the 2 sequences, got 3"),
    (dict(gate_fold=True), "gate_fold needs gate_coef and gate_bias"),
    (dict(gate_coef=torch.zeros(2)), "gate_coef and gate_bias are read with gate_fold only"),
    (dict(cu_seqlens=torch.tensor([0, 3], dtype=torch.int32)), "qkv must be [1, L, D] with cu_seqlens, got [2, 3, 64]"),
    (dict(qkv=torch.zeros(1, 3, 64, dtype=torch.bfloat16), gate=torch.zeros(1, 3, 2, dtype=torch.bfloat16), conv_state=None,
          beta=torch.zeros(1, 3, 2, dtype=torch.bfloat16), cu_seqlens=torch.zeros(1, dtype=torch.int32), recurrent_state=None),
     "cu_seqlens [1] has no sequence for the tokens of qkv [1, 3, 64]"),
    (dict(state_indices=torch.zeros(3, dtype=torch.int32)), "state_indices must be [2] for qkv [2, 3, 64], got [3]"),
    (dict(has_initial_state=torch.ones(1, dtype=torch.bool)), "has_initial_state must be [2] for qkv [2, 3, 64], got [1]"),
    (dict(attn_type="short_conv"), "short_conv has one head and head_k_dim = head_v_dim, got num_k_heads = 1, num_v_heads = 2"),
], ids=str)
def test_host_refuses(changes, sentence, rng):
    case = Case(batch=2, length=3)
    call = {**inputs_of(case, rng), **attributes_of(case)} | changes
    with pytest.raises(custom_ops.KernelError) as refused:
        kernel("ascend910_93")(**call)
    assert sentence in str(refused.value) and "fused_linear_attention: " in str(refused.value)
