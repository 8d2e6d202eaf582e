"""npu_hc_pre_inv_rms against the float64 oracle: native and on every simulated chip, the same cases and the same asserts."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from compare import Tolerance, assert_matches
from hypothesis import given
from hypothesis import strategies as st
from inputs import DTYPES, on_threads, refusal, x_of

import custom_ops
from custom_ops import reference

NAME = "npu_hc_pre_inv_rms.y"


@dataclass(frozen=True)
class Case:
    tokens: tuple
    d: int
    dtype: str = "bfloat16"
    n: int = 4
    law: str = "uniform"
    epsilon: float = 1e-6
    why: str = ""

    def __str__(self):
        return f"{'x'.join(map(str, self.tokens))}-n{self.n}-d{self.d}-{self.dtype}-{self.law}-eps{self.epsilon:g}"


CASES = [
    Case((1,), 1, n=1, why="the smallest legal call"),
    Case((1,), 16, "float32"),
    Case((2,), 17, "float16", n=3),
    Case((4, 4), 4096, why="the published test"),
    Case((4, 4), 7168, "float16", why="the published test"),
    Case((3, 43), 512, law="rows"),
    Case((1, 16), 1296, "float32", law="rows"),
    Case((16, 1), 1296),
    Case((41,), 520, law="normal", why="one more than the vector cores of 910B3, d not a multiple of 16"),
    Case((65,), 48, law="normal"),
    Case((128,), 512, law="rows", why="I1: only the first row of a group was squared"),
    Case((2,), 512, law="constant", why="I2: 224 stale partial sums"),
    Case((2,), 2560, law="constant", why="I2: 96 stale partial sums"),
    Case((2,), 5120, law="constant", why="I2: 64 of 320 partial sums dropped, result x 1.118"),
    Case((2,), 6144, why="I3: no row fitted"),
    Case((2,), 8192, why="I3: no row fitted"),
    Case((2,), 8192, "float32", why="I4: no row fitted on 950"),
    Case((1,), 16384, n=8, why="I5: a 16-bit loop count"),
    Case((3,), 100, epsilon=0.0, why="I6: torch allows 0, the tiling did not"),
    Case((3,), 100, epsilon=1e-20, why="the schema's default"),
    Case((5,), 64, law="zeros", epsilon=1e-20, why="padded tokens: 1e10"),
    Case((5,), 64, law="zeros", epsilon=0.0, why="inf, as the formula"),
    Case((3,), 64, law="subnormal"),
    Case((7,), 33, "float32", n=16, law="normal"),
    Case((7,), 33, n=13, law="normal"),
    Case((129,), 7168, law="rows"),
    Case((513,), 512, law="rows"),
]


def run(backend, x, **attributes):
    with backend:
        return custom_ops.hc_pre_inv_rms(x, **attributes)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_oracle(case, backend, rng):
    x = x_of(case.law, rng, case.tokens, case.n, case.d, DTYPES[case.dtype])
    before = x.clone()
    with np.errstate(divide="ignore"):
        want = reference.hc_pre_inv_rms(x, case.epsilon)
    got = run(backend, x, epsilon=case.epsilon)
    assert_matches(NAME, got, want, where=str(backend))
    assert torch.equal(x.view(torch.uint8), before.view(torch.uint8)), "x was changed"
    assert torch.equal(got, run(backend, x, epsilon=case.epsilon)), "two runs differ"


def test_float16_does_not_overflow(backend):
    """I9: 6e4 squared is 3.6e9, far outside float16."""
    x = torch.full((2, 4, 128), 6e4, dtype=torch.float16)
    assert_matches(NAME, run(backend, x, epsilon=1e-6), reference.hc_pre_inv_rms(x, 1e-6))


@pytest.mark.parametrize("value", [3e38, 1e30, 1e-25, 1e-40])
@pytest.mark.parametrize("epsilon", [0.0, 1e-20])
@pytest.mark.parametrize("d", [16, 24, 1000])
def test_native_squares_outside_float32(value, epsilon, d):
    x = torch.full((2, 4, d), value)
    got = custom_ops.hc_pre_inv_rms(x, epsilon=epsilon)
    assert_matches(NAME, got, reference.hc_pre_inv_rms(x, epsilon), Tolerance(1e-5, 0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_non_finite_values_stay_in_their_token(dtype, backend, rng):
    x = x_of("normal", rng, (9,), 4, 40, DTYPES[dtype])
    x[2, 1, 7], x[4, 3, 39], x[6, 0, 0] = torch.nan, torch.inf, -torch.inf
    x[8, 0, 0], x[8, 1, 1] = torch.inf, torch.nan
    assert_matches(NAME, run(backend, x, epsilon=1e-6), reference.hc_pre_inv_rms(x, 1e-6), where=str(backend))


@pytest.mark.parametrize("shape", [(0, 4, 16), (0, 3, 4, 16), (3, 0, 4, 16)])
def test_no_tokens(shape, backend):
    got = run(backend, torch.empty(shape, dtype=torch.bfloat16))
    assert got.shape == (*shape[:-2], 1) and got.dtype == torch.float32


def test_strided_inputs(backend, rng):
    wide = x_of("rows", rng, (6,), 8, 96, torch.bfloat16)
    for x in (wide[:, 2:6, 16:64], wide[::2], wide.transpose(1, 2)[:, :4], wide[1:, :4]):
        assert torch.equal(run(backend, x, epsilon=1e-6), run(backend, x.contiguous(), epsilon=1e-6))


def test_tokens_are_independent(backend, rng):
    """Reordered or split tokens give the same bits."""
    x = x_of("rows", rng, (37,), 4, 272, torch.bfloat16)
    whole = run(backend, x)
    order = torch.randperm(37, generator=rng)
    assert torch.equal(run(backend, x[order]), whole[order])
    assert torch.equal(torch.cat([run(backend, x[:5]), run(backend, x[5:])]), whole)


def test_native_does_not_depend_on_threads(rng):
    x = x_of("rows", rng, (333,), 4, 1040, torch.bfloat16)
    results = on_threads(lambda: custom_ops.hc_pre_inv_rms(x))
    assert all(torch.equal(result, results[0]) for result in results)


def test_native_many_tokens(rng):
    x = x_of("rows", rng, (64000,), 4, 128, torch.bfloat16)
    assert_matches(NAME, custom_ops.hc_pre_inv_rms(x, epsilon=1e-6), reference.hc_pre_inv_rms(x, 1e-6))


SHAPES = st.tuples(st.integers(0, 70), st.integers(1, 16), st.integers(1, 300), st.sampled_from(sorted(DTYPES)))


@given(SHAPES, st.integers(0, 2**31))
def test_native_any_shape(shape, seed):
    tokens, n, d, dtype = shape
    x = x_of("rows", torch.Generator().manual_seed(seed), (tokens,), n, d, DTYPES[dtype])
    assert_matches(NAME, custom_ops.hc_pre_inv_rms(x, epsilon=1e-6), reference.hc_pre_inv_rms(x, 1e-6))


X = torch.zeros(3, 4, 16, dtype=torch.bfloat16)
REFUSED = {
    "rank2": (X[0], {}, "npu_hc_pre_inv_rms: x must be [T, hc_mult, d] or [b, s, hc_mult, d], got [4, 16]"),
    "rank5": (X[None, None], {}, "npu_hc_pre_inv_rms: x must be [T, hc_mult, d] or [b, s, hc_mult, d], got [1, 1, 3, 4, 16]"),
    "float64": (X.double(), {}, "npu_hc_pre_inv_rms: x dtype float64 is not supported, use bfloat16, float16 or float32"),
    "int8": (X.to(torch.int8), {}, "npu_hc_pre_inv_rms: x dtype int8 is not supported, use bfloat16, float16 or float32"),
    "hc_mult17": (X.new_zeros(3, 17, 16), {}, "npu_hc_pre_inv_rms: hc_mult (dim -2 of x) must be 1 to 16, got x [3, 17, 16]"),
    "hc_mult0": (X[:, :0], {}, "npu_hc_pre_inv_rms: hc_mult (dim -2 of x) must be 1 to 16, got x [3, 0, 16]"),
    "d0": (X[..., :0], {}, "npu_hc_pre_inv_rms: d (dim -1 of x) must be at least 1, got x [3, 4, 0]"),
    "negative": (X, {"epsilon": -1e-6}, "npu_hc_pre_inv_rms: epsilon must be finite in float32 and >= 0, got -1e-06"),
    "nan": (X, {"epsilon": float("nan")}, "npu_hc_pre_inv_rms: epsilon must be finite in float32 and >= 0, got nan"),
    "inf": (X, {"epsilon": float("inf")}, "npu_hc_pre_inv_rms: epsilon must be finite in float32 and >= 0, got inf"),
    "overflow": (X, {"epsilon": 1e39}, "npu_hc_pre_inv_rms: epsilon must be finite in float32 and >= 0, got 1e+39"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case, backend):
    x, attributes, message = REFUSED[case]
    assert refusal(lambda: run(backend, x, **attributes)).startswith(message)
    assert refusal(lambda: custom_ops.hc_pre_inv_rms(x.to("meta"), **attributes)) == message
