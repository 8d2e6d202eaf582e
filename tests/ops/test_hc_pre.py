"""npu_hc_pre against the float64 oracle: native and on every simulated chip, the same cases and the same asserts."""

import sys
from dataclasses import dataclass

import pytest
import torch
from compare import assert_pre_matches, assert_pre_tokens_are_independent
from hypothesis import given
from hypothesis import strategies as st
from inputs import DTYPES, before_guard, on_threads, pre_inputs

import custom_ops


@dataclass(frozen=True)
class Case:
    tokens: tuple
    d: int
    dtype: str = "bfloat16"
    n: int = 4
    law: str = "normal"
    iters: int = 20
    norm_eps: float = 1e-6
    hc_eps: float = 1e-6
    why: str = ""

    def __str__(self):
        eps = "" if self.norm_eps == self.hc_eps == 1e-6 else f"-eps{self.norm_eps:g},{self.hc_eps:g}"
        return f"{'x'.join(map(str, self.tokens))}-n{self.n}-d{self.d}-{self.dtype}-{self.law}-it{self.iters}{eps}"

    @property
    def attributes(self):
        return {"hc_mult": self.n, "hc_sinkhorn_iters": self.iters, "norm_eps": self.norm_eps, "hc_eps": self.hc_eps}


CASES = [
    Case((1,), 1, n=1, why="the smallest legal call"),
    Case((1,), 16, "float32"),
    Case((4, 4), 4096, law="published", why="the published test"),
    Case((2, 1), 7168, law="published", why="the published test"),
    Case((1,), 512, why="F6, F9: 208 MiB of workspace; more cube cores than the K split has parts"),
    Case((7,), 1296, law="rows", why="F11: tokens not a multiple of 16"),
    Case((31,), 512, "float16", law="rows", why="F11"),
    Case((128,), 512, law="rows", why="F1: only the first row's square sum of a pass was right"),
    Case((1, 512), 1280, law="rows", why="F2: rows per core not a multiple of the rows per pass"),
    Case((3, 43), 512, law="rows", iters=1),
    Case((3,), 100, why="F4: n * d not a multiple of 32"),
    Case((2,), 13, why="F4: n * d not a multiple of 8"),
    Case((5,), 130, n=6, law="rows", why="F5: 24 rows of hc_fn were hard-coded"),
    Case((41,), 72, n=2, law="rows", why="F5"),
    Case((17,), 40, "float32", n=3, iters=5),
    Case((9,), 33, "float16", n=16, law="rows"),
    Case((66,), 80, n=8),
    Case((5,), 64, law="rows", norm_eps=1e-2, hc_eps=1e-6, why="the OpDef has the two eps the other way round"),
    Case((5,), 64, law="rows", norm_eps=1e-6, hc_eps=1e-2),
    Case((5,), 64, law="zeros", norm_eps=1e-20, why="padded tokens: y is 0 and nothing else"),
    Case((5,), 64, law="constant", norm_eps=0.0),
    Case((7,), 128, law="streams", iters=2),
    Case((16,), 128, law="closed"),
    Case((16,), 128, law="saturated"),
    Case((5,), 128, law="subnormal"),
    Case((129,), 1040, law="rows"),
    Case((65,), 520, "float32", law="rows", iters=50),
]


def run(backend, inputs, **attributes):
    with backend:
        return custom_ops.hc_pre(**inputs, **attributes)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_oracle(case, backend, rng):
    inputs = pre_inputs(case.law, rng, case.tokens, case.n, case.d, DTYPES[case.dtype])
    before = {name: tensor.clone() for name, tensor in inputs.items()}
    got = run(backend, inputs, **case.attributes)
    assert_pre_matches(got, inputs, case.n, case.iters, case.norm_eps, case.hc_eps, str(backend))
    for name, tensor in inputs.items():
        assert torch.equal(tensor, before[name]), f"{name} was changed"
    for one, other in zip(got, run(backend, inputs, **case.attributes)):
        assert torch.equal(one, other), "two runs differ"


def test_defaults_are_the_published_ones(backend, rng):
    inputs = pre_inputs("rows", rng, (5,), 4, 64, torch.bfloat16)
    assert_pre_matches(run(backend, inputs), inputs, 4, 20, 1e-6, 1e-6, str(backend))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tokens", [1, 5, 16, 61])
def test_native_is_its_parts(tokens, dtype, rng):
    """Where the projection has no rounding, hc_pre is inv_rms, matmul and hc_pre_sinkhorn to the last bit."""
    x, fn, scale, base = pre_inputs("exact", rng, (tokens,), 4, 176, DTYPES[dtype]).values()
    got = custom_ops.hc_pre(x, fn, scale, base, hc_sinkhorn_iters=7, norm_eps=1e-3, hc_eps=1e-5)
    mixes = x.flatten(1).double() @ fn.double().t()
    assert torch.equal(mixes, mixes.float().double())
    want = custom_ops.hc_pre_sinkhorn(mixes.float(), custom_ops.hc_pre_inv_rms(x, epsilon=1e-3), scale, base, x, 4, 7, 1e-5)
    for name, one, other in zip(("y", "post", "comb_frag"), got, want):
        assert torch.equal(one, other), f"{name} differs in {(one != other).sum()} of {one.numel()} elements"


# The token whose x is not finite follows the formula (its mixes are NaN), other tokens do not notice.
NON_FINITE = {
    "x_nan": ("x", (2, 1, 5), torch.nan),
    "x_inf": ("x", (2, 1, 5), torch.inf),
    "x_-inf": ("x", (8, 3, 39), -torch.inf),
    "scale_nan": ("hc_scale", (1,), torch.nan),
    "base_-inf": ("hc_base", (9,), -torch.inf),
}


@pytest.mark.parametrize("case", NON_FINITE)
def test_non_finite_values_follow_the_formula(case, backend, rng):
    name, index, value = NON_FINITE[case]
    inputs = pre_inputs("normal", rng, (9,), 4, 40, torch.bfloat16)
    inputs["hc_scale"] = inputs["hc_scale"].abs()
    inputs[name][index] = value
    assert_pre_matches(run(backend, inputs), inputs, 4, where=str(backend))


@pytest.mark.parametrize("tokens", [(0,), (0, 3), (3, 0)], ids=str)
def test_no_tokens(tokens, backend, rng):
    y, post, comb = run(backend, pre_inputs("normal", rng, tokens, 4, 16, torch.bfloat16))
    assert y.shape == (*tokens, 16) and post.shape == (*tokens, 4) and comb.shape == (*tokens, 4, 4)
    assert y.dtype == torch.bfloat16 and post.dtype == comb.dtype == torch.float32


def test_strided_inputs(backend, rng):
    wide = pre_inputs("rows", rng, (12,), 4, 96, torch.bfloat16)
    inputs = {
        "x": wide["x"][::2, :, 31:64],
        "hc_fn": wide["hc_fn"][:, 5 : 5 + 264 : 2],
        "hc_scale": torch.stack([wide["hc_scale"]] * 2, -1)[:, 1],
        "hc_base": wide["hc_base"].repeat_interleave(3)[::3],
    }
    assert not any(tensor.is_contiguous() for tensor in inputs.values())
    got = run(backend, inputs)
    assert_pre_matches(got, inputs, 4, where=str(backend))
    dense = run(backend, {name: tensor.contiguous() for name, tensor in inputs.items()})
    assert all(torch.equal(one, other) for one, other in zip(got, dense))


def test_forms_agree(backend, rng):
    """[T, ...] and [b, s, ...] are the same memory and give the same bits."""
    flat = pre_inputs("rows", rng, (12,), 4, 48, torch.float32)
    want = run(backend, flat)
    for one, other in zip(run(backend, {**flat, "x": flat["x"].unflatten(0, (3, 4))}), want):
        assert torch.equal(one.reshape(other.shape), other)


@pytest.mark.parametrize("tokens", [45, 125])
@pytest.mark.parametrize("d", [272, 1030])
def test_native_tokens_are_independent(tokens, d, rng):
    """Reordered or split tokens give the same bits, whichever way the work is divided."""
    inputs = pre_inputs("rows", rng, (tokens,), 4, d, torch.bfloat16)
    assert_pre_tokens_are_independent(inputs, (1, 7, 40), rng)


@pytest.mark.parametrize("tokens", [1, 9, 333])
def test_native_does_not_depend_on_threads(tokens, rng):
    """Few tokens: the rows of hc_fn are split over the threads; many: the tokens."""
    inputs = pre_inputs("rows", rng, (tokens,), 4, 1040, torch.bfloat16)
    results = on_threads(lambda: custom_ops.hc_pre(**inputs), (1, 2, 3, 7, 30))
    for result in results:
        assert all(torch.equal(one, other) for one, other in zip(result, results[0]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [4096, 4111])
def test_native_many_tokens(dtype, d, rng):
    """Several blocks per thread, stores past the caches."""
    inputs = pre_inputs("rows", rng, (600,), 4, d, DTYPES[dtype])
    assert_pre_matches(custom_ops.hc_pre(**inputs), inputs, 4)


SHAPES = st.tuples(st.integers(0, 70), st.integers(1, 16), st.integers(1, 300), st.sampled_from(sorted(DTYPES)))


@given(SHAPES, st.integers(1, 30), st.sampled_from([1e-6, 1e-2]), st.sampled_from(["normal", "rows", "published"]), st.integers(0, 2**31))
def test_native_any_shape(shape, iters, eps, law, seed):
    tokens, n, d, dtype = shape
    inputs = pre_inputs(law, torch.Generator().manual_seed(seed), (tokens,), n, d, DTYPES[dtype])
    got = custom_ops.hc_pre(**inputs, hc_mult=n, hc_sinkhorn_iters=iters, hc_eps=eps)
    assert_pre_matches(got, inputs, n, iters, 1e-6, eps)


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect")
@pytest.mark.parametrize("tokens", [1, 19, 50])
@pytest.mark.parametrize("d", [16, 41, 1000, 1296])
def test_native_reads_nothing_past_the_inputs(tokens, d, rng):
    """Every input ends where an unreadable page begins."""
    inputs = pre_inputs("rows", rng, (tokens,), 4, d, torch.bfloat16)
    assert_pre_matches(custom_ops.hc_pre(**{name: before_guard(tensor) for name, tensor in inputs.items()}), inputs, 4)
