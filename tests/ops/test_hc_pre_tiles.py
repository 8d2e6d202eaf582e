"""Native npu_hc_pre with many tokens of bfloat16: by matrix tiles on a CPU that has them, by vectors elsewhere; the same tests hold."""

import sys

import pytest
import torch
from compare import assert_pre_matches, assert_pre_tokens_are_independent
from inputs import before_guard, on_threads, pre_inputs

import custom_ops

MANY = 128  # from here on by tiles, framework/torch/hc_pre.cpp


@pytest.mark.parametrize("law", ["normal", "rows", "published", "exact", "zeros", "subnormal"])
@pytest.mark.parametrize("tokens, n, d",
                         [(MANY, 4, 512), (MANY + 13, 4, 1287), (MANY + 1, 1, 37), (257, 2, 2049), (200, 6, 130), (200, 16, 70)])
def test_matches_oracle(law, tokens, n, d, rng):
    """Rows that end within a tile or a chunk of K, tokens that end within a tile, up to 54 tiles of columns."""
    inputs = pre_inputs(law, rng, (tokens,), n, d, torch.bfloat16)
    assert_pre_matches(custom_ops.hc_pre(**inputs, hc_mult=n), inputs, n)


@pytest.mark.parametrize("d", [272, 1030])
def test_tokens_are_independent(d, rng):
    """Reordered tokens, other tokens beside them and more or fewer of them give the same bits."""
    inputs = pre_inputs("rows", rng, (3 * MANY + 5,), 4, d, torch.bfloat16)
    assert_pre_tokens_are_independent(inputs, (MANY, MANY + 7, 2 * MANY + 5), rng)


@pytest.mark.parametrize("tokens", [MANY, 700])
def test_threads_do_not_matter(tokens, rng):
    inputs = pre_inputs("rows", rng, (tokens,), 4, 1040, torch.bfloat16)
    results = on_threads(lambda: custom_ops.hc_pre(**inputs), (1, 2, 3, 7, 30))
    for result in results:
        assert all(torch.equal(one, other) for one, other in zip(result, results[0]))


def test_special_tokens_keep_to_themselves(rng):
    """Tokens that are not finite, or too large or small for tiles, are as in the formula; their neighbours do not notice."""
    inputs = pre_inputs("normal", rng, (MANY,), 4, 40, torch.bfloat16)
    plain = custom_ops.hc_pre(**inputs)
    special = {3: torch.nan, 17: torch.inf, 40: -torch.inf}
    for token, value in special.items():
        inputs["x"][token, 1, 5] = value
    for token, scale in ((50, 1e30), (51, 1e-38), (52, 1e-25), (MANY - 1, 0.0)):
        inputs["x"][token] *= scale
        special[token] = scale
    got = custom_ops.hc_pre(**inputs, norm_eps=1e-30)
    assert_pre_matches(got, inputs, 4, norm_eps=1e-30)
    others = [token for token in range(MANY) if token not in special]
    for one, other in zip(custom_ops.hc_pre(**inputs), plain):
        assert torch.equal(one[others], other[others])


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf, 1e36, 1e20, 1e-40])
@pytest.mark.parametrize("where", [(0, 0), (9, 77), (23, 159)])
def test_any_weight(value, where, rng):
    """hc_fn with an element that is not finite, too large for tiles, or subnormal."""
    inputs = pre_inputs("normal", rng, (MANY,), 4, 40, torch.bfloat16)
    inputs["hc_fn"][where] = value
    assert_pre_matches(custom_ops.hc_pre(**inputs), inputs, 4)


def test_small_elements_of_large_tokens(rng):
    """Subnormal elements count as zero in tiles: beside elements of order 1, with the largest weights tiles take, it does not show."""
    inputs = pre_inputs("normal", rng, (MANY,), 4, 40, torch.bfloat16)
    inputs["x"][:, 2] *= 1e-39
    inputs["hc_fn"][:, 80:120] *= 2.0**40 / 8
    assert_pre_matches(custom_ops.hc_pre(**inputs), inputs, 4)


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect")
@pytest.mark.parametrize("tokens", [MANY, MANY + 3])
@pytest.mark.parametrize("d", [8, 41, 1000, 1296])
def test_reads_nothing_past_the_inputs(tokens, d, rng):
    """Every input ends where an unreadable page begins."""
    inputs = pre_inputs("rows", rng, (tokens,), 4, d, torch.bfloat16)
    assert_pre_matches(custom_ops.hc_pre(**{name: before_guard(tensor) for name, tensor in inputs.items()}), inputs, 4)
