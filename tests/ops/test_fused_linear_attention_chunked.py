"""The chunked plan of FusedLinearAttention (gated delta rule on the cube): numbers, states, order, windows, ranges, and when it is taken.

Errors are relative RMS by sequence and value head. float16 operands cost 6e-4, 8e-4 where keys are alike and 2.2e-3 where nothing is
forgotten as well (facts on linear attention, 4.4); float32 less than 1e-6 (4.6). The result's own rounding is added.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from linear_attention_cases import CHUNKED, FAMILIES, KDA, RECURRENT, VARLEN, Case, assert_only_sequences_in_order_count, attributes_of
from linear_attention_cases import inputs_of, on_every_chip, run

from custom_ops import reference_linear_attention as reference

PLAIN, ALIKE = {2: 2e-3, 4: 5e-6}, {2: 5e-3, 4: 5e-6}  # by the bytes of an element
on_both = pytest.mark.parametrize("soc", FAMILIES)
ROUNDING = {torch.bfloat16: 2**-9, torch.float16: 2**-12, torch.float32: 2**-24}


def tensors_of(case: Case, rng, law: str) -> dict:
    """inputs_of, changed by a law for chunks; its own are "model", "keep" (g = 0, beta = 1), "identical", "forget" and "beta"."""
    tensors = inputs_of(replace(case, law=law if law in ("keep", "identical", "forget", "beta", "tiny", "large") else "model"), rng)
    qkv, gate = tensors["qkv"], tensors["gate"]
    if law in ("alike", "alike-keep"):
        tensors["qkv"] = (0.9 * qkv[:, :1].float() + 0.44 * qkv.float()).to(qkv.dtype)
    if law in ("alike-keep", "no decay"):
        tensors["gate"] = torch.zeros_like(gate)
    if law == "identical-keep":
        tensors["qkv"], tensors["gate"], tensors["beta"] = qkv[:, :1].expand(qkv.shape).contiguous(), gate * 0, tensors["beta"] * 0 + 1
    if law == "mixed decay":  # some tokens forget everything, the others next to nothing
        tensors["gate"] = torch.where(torch.rand(gate.shape, generator=rng) < 0.1, -100.0, -1e-3).to(gate.dtype)
    return tensors


def places(case: Case):
    if not case.ends:
        return [(b, slice(0, case.length)) for b in range(case.batch)]
    return [(0, slice(first, last)) for first, last in zip(case.ends, case.ends[1:])]


def relative_rms(got, exact, axes, floor):
    """Over `axes`, of what the error exceeds `floor` by; no error where both are zeros."""
    error, size = (np.sqrt((np.asarray(x, np.float64) ** 2).mean(axes)) for x in (got - exact, exact))
    error = np.maximum(error - floor, 0)
    return np.divide(error, size, out=error.copy(), where=size != 0)


def assert_close(got, case: Case, tensors: dict, limit: float, where="", floor=0.0):
    want = reference.fused_linear_attention(**tensors, **attributes_of(case), token_major=True)
    out, conv, state = (None if part is None else part.double().numpy() for part in got)
    assert np.array_equal(np.isnan(out), np.isnan(want[0])), where
    for row, tokens in places(case):
        if tokens.start != tokens.stop:
            worst = relative_rms(out[row, tokens], want[0][row, tokens], (0, 2), floor).max()
            assert worst <= limit + ROUNDING[got[0].dtype], f"{where} attn_out of tokens {tokens}: {worst:.2e}"
    assert conv is None or np.array_equal(conv, want[1]), f"{where} conv_state holds inputs as they were"
    if state is not None:
        worst = relative_rms(state, want[2], (2, 3), floor).max()
        assert worst <= limit, f"{where} recurrent_state: {worst:.2e}"


def limit_of(case: Case, law: str) -> float:
    return (ALIKE if law not in ("model", "forget", "no decay") else PLAIN)[4 if case.dtype == "float32" else 2]


CASES = [
    (Case(length=65, heads=(1, 1), dims=(64, 64)), "model"), (Case(length=127, heads=(1, 2), dims=(128, 128), dtype="float16"), "model"),
    (Case(length=128, heads=(1, 3), dims=(64, 128), dtype="float32"), "model"), (Case(length=200, heads=(2, 4), dims=(128, 64)), "model"),
    (Case(length=257, heads=(2, 6), dims=(128, 128), dtype="float32"), "model"), (Case(length=257, heads=(1, 3), dims=(96, 112)), "model"),
    (Case(length=200, heads=(3, 3), dims=(64, 64), dtype="float16", gate="float32", fold=True), "model"),
    (Case(length=130, batch=3, heads=(1, 2), dims=(16, 32), taps=8, dtype="float32", fold=True), "model"),
    (Case(length=130, batch=3, heads=(1, 2), dims=(32, 16), taps=1, bias=False), "model"),
    (Case(length=130, batch=25, heads=(1, 2), dims=(32, 32), taps=2), "model"),
    *((Case(length=200, heads=(1, 2), dims=(128, 64), states=states), "model") for states in ("none", "conv", "recurrent")),
    *((Case(length=257, heads=(1, 2), dims=(64, 128), dtype=dtype), law) for dtype in ("float16", "float32") for law in (
        "alike", "alike-keep", "no decay", "keep", "identical", "identical-keep", "forget", "mixed decay", "beta")),
    (Case(**VARLEN | {"length": 640, "ends": (0, 0, 3, 3, 200, 201, 500, 640)}, heads=(2, 4), dims=(64, 64)), "model"),
    (Case(**VARLEN | {"length": 640, "ends": (0, 64, 128, 128, 320, 321, 640, 640)}, heads=(1, 2), dims=(32, 128),
          dtype="float32"), "model"),
    (Case(**VARLEN | {"length": 640, "ends": (0, 0, 3, 3, 200, 201, 500, 640)}, heads=(1, 1), dims=(64, 64), states="none"), "model"),
]


@on_every_chip
@pytest.mark.parametrize("case, law", CASES, ids=lambda part: str(part).replace(" ", "-"))
def test_matches_oracle(case, law, soc, rng):
    tensors = tensors_of(case, rng, law)
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    got, report = run(soc, case, tensors)
    assert report.findings == [] and report.tiling_key == CHUNKED
    assert_close(got, case, tensors, limit_of(case, law), soc)
    assert all(torch.equal(tensors[name], before[name]) for name in tensors)


@on_both
@pytest.mark.parametrize("ends, dtype", [((), "float32"), ((0, 100, 8300, 8301, 8500), "float16")], ids=["one", "several"])
def test_windows(ends, dtype, soc, rng):
    """More chunks than are in the workspace at a time: the state of a sequence that is cut goes on in the next window."""
    case = Case(length=ends[-1] if ends else 8400, ends=ends, heads=(1, 1), dims=(16, 16), dtype=dtype)
    tensors = inputs_of(case, rng)
    got, report = run(soc, case, tensors)
    assert report.findings == [] and report.tiling_key == CHUNKED
    assert -(-case.length // 64) > report.plan["chunked"]["windowChunks"]
    assert_close(got, case, tensors, limit_of(case, "model"))


@on_both
@pytest.mark.parametrize("case", [
    Case(length=200, heads=(1, 3), dims=(64, 128)), Case(length=200, batch=2, heads=(2, 2), dims=(64, 64), dtype="float32"),
    Case(**VARLEN | {"length": 640, "ends": (0, 0, 3, 3, 200, 201, 500, 640)}, heads=(2, 4), dims=(32, 64)),
], ids=str)
def test_results_do_not_depend_on_how_the_simulator_runs(case, soc, rng):
    tensors = inputs_of(case, rng)
    want, _ = run(soc, case, tensors)
    for options in ({}, {"host_threads": 1}, {"checks": False}, {"adversarial_seed": 1}, {"adversarial_seed": 2}):
        got, _ = run(soc, case, tensors, **options)
        assert all(torch.equal(one, other) for one, other in zip(got, want)), options


@on_both
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_cuts_anywhere(dtype, soc, rng):
    """Several calls that hand on the states, some of them of the recurrent plan: within the bounds of one call."""
    case = Case(length=330, heads=(1, 2), dims=(64, 64), dtype=dtype)
    tensors = inputs_of(case, rng)
    carried, outs, keys = dict(tensors), [], []
    for first, last in ((0, 130), (130, 131), (131, 140), (140, 330)):
        part = carried | {name: tensors[name][:, first:last].contiguous() for name in ("qkv", "gate", "beta")}
        (out, *states), report = run(soc, replace(case, length=last - first), part)
        outs.append(out)
        keys.append(report.tiling_key)
        carried |= dict(zip(("conv_state", "recurrent_state"), states))
    assert keys == [CHUNKED, RECURRENT, RECURRENT, CHUNKED]
    assert_close((torch.cat(outs, 1), carried["conv_state"], carried["recurrent_state"]), case, tensors, 2 * limit_of(case, "model"))


@on_both
@pytest.mark.parametrize("dtype, values, state", [
    ("bfloat16", 2.0**20, 1.0), ("bfloat16", 2.0**10, 2.0**20),
    ("bfloat16", 2.0**-14, 2.0**-14), ("float16", 30000.0, 0.0), ("float16", 1.0, 1e4),
    ("float32", 2.0**60, 2.0**60)], ids=str)
def test_values_and_states_of_any_size(dtype, values, state, soc, rng):
    """What v and the state are divided by keeps them within float16: up to 2^20 with room to grow by 2^10. What forgets most of a large
    state within a chunk keeps 2^-24 of it as an error: the decay there is a factor of a float16 key."""
    case = Case(length=200, heads=(1, 2), dims=(64, 64), dtype=dtype, bias=False)
    tensors = inputs_of(case, rng)
    channels = slice(2 * 64, None)
    v = torch.randn(1, 200, 128, generator=rng).abs() * values
    tensors["qkv"][:, :, channels] = v.clamp(max=6e4 if dtype == "float16" else 1e30).to(tensors["qkv"].dtype)
    tensors["conv_weight"][channels] = torch.tensor([0, 0, 0, 1.0], dtype=tensors["qkv"].dtype)
    tensors["recurrent_state"] *= state
    got, report = run(soc, case, tensors)
    assert report.findings == [] and report.tiling_key == CHUNKED
    largest = max(tensors["qkv"][:, :, channels].abs().max().item(), tensors["recurrent_state"].abs().max().item())
    assert_close(got, case, tensors, limit_of(case, "model"), floor=0.0 if dtype == "float32" else 2**-24 * largest)


@on_every_chip
def test_sequences_keep_to_themselves(soc, rng):
    """NaN in padding and in one sequence (where it fills its chunk), a slot that does not exist: rows of zeros and of NaN, no
    other sequence and no state is touched."""
    ends = (0, 0, 100, 100, 230, 231, 500, 640)
    case = Case(**VARLEN | {"length": 640, "ends": ends, "slots": (4, 1, -1, 1000, 2, -1, 0)}, heads=(1, 2), dims=(32, 32))
    tensors = inputs_of(case, rng)
    clean, _ = run(soc, case, tensors)
    tensors["qkv"] = tensors["qkv"].clone()
    tensors["qkv"][:, 231:500] = torch.nan  # padding
    tensors["qkv"][:, 100:230] = torch.nan  # slot 1000
    tensors["qkv"][:, 150] = torch.nan
    tensors["qkv"][:, 630] = torch.nan      # slot 0, near its end
    got, report = run(soc, case, tensors)
    assert report.findings == [] and report.tiling_key == CHUNKED
    assert got[0][:, 231:500].count_nonzero() == 0 and got[0][:, 100:230].isnan().all() and clean[0][:, 100:230].isnan().all()
    for rows in (slice(0, 100), slice(230, 231), slice(500, 564)):  # chunks before that of the NaN
        assert torch.equal(got[0][:, rows], clean[0][:, rows]) and got[0][:, rows].isfinite().all()
    assert got[0][:, 630:].isnan().all()
    for name, state in zip(("conv_state", "recurrent_state"), got[1:]):
        untouched = [slot for slot in range(len(state)) if slot not in (4, 1, 2, 0)]
        assert torch.equal(state[untouched], tensors[name][untouched]) and state[[4, 1, 2]].isfinite().all()
        assert state[0].isnan().any() == (name == "recurrent_state"), "its last K - 1 inputs are finite"
        assert state[4].count_nonzero() == 0, "an empty sequence that starts anew"


@on_both
@pytest.mark.parametrize("ends", [(1, 200, 400), (0, 300, 200, 400), (0, 130, 330), (0, 500, 400), (0, 0, 0, 140, 340, 339, 400)], ids=str)
def test_boundaries_out_of_order_do_not_harm_the_sequences_before(ends, soc, rng):
    assert_only_sequences_in_order_count(soc, Case(length=400, ends=ends, heads=(1, 1), dims=(32, 32)), rng, CHUNKED)


@on_both
@pytest.mark.parametrize("case", [
    Case(length=64, heads=(1, 2), dims=(128, 128)), Case(length=130, heads=(1, 2), dims=(127, 128)),
    Case(length=130, heads=(1, 2), dims=(32, 32), norm=False, law="tiny"), Case(type=KDA, length=130, heads=(1, 2), dims=(32, 32)),
], ids=str)
def test_the_recurrent_plan_takes_what_is_not_for_chunks(case, soc, rng):
    _, report = run(soc, case, inputs_of(case, rng), checks=False)
    assert report.tiling_key == RECURRENT
