"""The operators on every simulated chip: what must not change the numbers, and sizes beyond the list of cases."""

import pytest
import torch
from compare import assert_post_matches, assert_sinkhorn_matches
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import DTYPES, SIMULATED, sinkhorn_inputs

import custom_ops


def model(inputs, soc, n=4, iters=20, eps=1e-6, **options):
    """(y, post, comb, inv_rms of x, streams) and the report of the three calls."""
    with custom_ops.simulate(soc, **options) as run:
        inv_rms = custom_ops.hc_pre_inv_rms(inputs["x"], epsilon=eps)
        y, post, comb = custom_ops.hc_pre_sinkhorn(**inputs, hc_mult=n, hc_sinkhorn_iters=iters, hc_eps=eps)
        streams = custom_ops.hc_post(y, inputs["x"], post, comb)
    return (y, post, comb, inv_rms, streams), run


def assert_model_matches(results, inputs, soc, n=4, iters=20, eps=1e-6):
    assert_sinkhorn_matches(results[:3], inputs, n, iters, eps, soc)
    y, post, comb, _, streams = results
    assert_post_matches(streams, {"x": y, "residual": inputs["x"], "post": post, "comb": comb}, soc)


@pytest.mark.parametrize("soc", SIMULATED)
def test_calls_run_on_the_simulated_chip(soc, rng):
    inputs = sinkhorn_inputs("rows", rng, (50,), 4, 96, torch.bfloat16)
    _, run = model(inputs, soc)
    assert [call.op for call in run.calls] == ["HcPreInvRms", "HcPreSinkhorn", "HcPost"]
    assert not any(call.findings for call in run.calls)


@pytest.mark.parametrize("soc", SIMULATED)
def test_numbers_do_not_depend_on_how_the_simulator_runs(soc, rng):
    """Host threads, checks, and the order of everything the kernel leaves unordered."""
    inputs = sinkhorn_inputs("rows", rng, (83,), 4, 1296, torch.bfloat16)
    want, _ = model(inputs, soc)
    for options in ({"host_threads": 1}, {"host_threads": 5}, {"checks": False}, {"adversarial_seed": 1}, {"adversarial_seed": 2},
                    {"adversarial_seed": 3}):
        got, _ = model(inputs, soc, **options)
        assert all(torch.equal(one, other) for one, other in zip(got, want)), options


@pytest.mark.parametrize("soc", SIMULATED)
def test_many_tokens(soc, rng):
    inputs = sinkhorn_inputs("rows", rng, (4097,), 4, 16, torch.bfloat16)
    results, _ = model(inputs, soc, checks=False)
    assert_model_matches(results, inputs, soc)


SHAPES = st.tuples(st.integers(1, 70), st.integers(1, 16), st.integers(1, 200), st.sampled_from(sorted(DTYPES)), st.integers(1, 6))


@pytest.mark.parametrize("soc", SIMULATED)
@settings(max_examples=12)
@given(shape=SHAPES, seed=st.integers(0, 2**31))
def test_any_shape(soc, shape, seed):
    tokens, n, d, dtype, iters = shape
    inputs = sinkhorn_inputs("rows", torch.Generator().manual_seed(seed), (tokens,), n, d, DTYPES[dtype])
    results, _ = model(inputs, soc, n, iters)
    assert_model_matches(results, inputs, soc, n, iters)
