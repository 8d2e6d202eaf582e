"""npu_hc_pre_sinkhorn against the float64 oracle: native and on every simulated chip, the same cases and the same asserts."""

import sys
from dataclasses import dataclass

import pytest
import torch
from compare import assert_sinkhorn_matches
from hypothesis import given
from hypothesis import strategies as st
from inputs import DTYPES, before_guard, on_threads, sinkhorn_inputs, x_of

import custom_ops


@dataclass(frozen=True)
class Case:
    tokens: tuple
    d: int
    dtype: str = "bfloat16"
    n: int = 4
    law: str = "uniform"
    iters: int = 20
    eps: float = 1e-6
    keepdim: bool = True  # of rsqrt
    why: str = ""

    def __str__(self):
        flat = "" if self.keepdim else "-flat"
        return f"{'x'.join(map(str, self.tokens))}-n{self.n}-d{self.d}-{self.dtype}-{self.law}-it{self.iters}-eps{self.eps:g}{flat}"


CASES = [
    Case((1,), 1, n=1, why="the smallest legal call"),
    Case((1,), 16, "float32", keepdim=False),
    Case((4, 4), 4096, keepdim=False, why="the published test"),
    Case((4, 4), 7168, why="the published test; two tiles of d on 910B"),
    Case((1, 16), 4096, "float16", iters=1),
    Case((16, 1), 2560, law="rows", iters=2),
    Case((3, 43), 512, law="rows", keepdim=False, why="S2, S3, S5: several rows per pass, every row its own rsqrt"),
    Case((128,), 512, law="streams", why="S5: weights of rows after the first came from padding"),
    Case((128,), 512, law="rows", eps=1e-2, why="S6: eps missing in half of the column sums"),
    Case((512,), 512, law="normal", why="S1: the last pass of the last core is short, x read past its end"),
    Case((1,), 1296, law="streams", why="S4: columns past a multiple of 64 used one weight for all streams"),
    Case((2,), 4128, law="streams", why="S4"),
    Case((5,), 130, n=10, why="S7: more than 64 comb columns"),
    Case((41,), 72, n=2, law="rows", why="S8: four rows were hard-coded"),
    Case((41,), 72, "float32", n=6, law="rows", why="S8"),
    Case((3,), 100, n=16, law="normal", why="S10: n * n > 64"),
    Case((17,), 40, n=3, iters=5),
    Case((9,), 24, n=5, iters=3),
    Case((9,), 24, n=7, iters=3),
    Case((66,), 80, n=8, law="normal"),
    Case((2,), 8, n=13, iters=2),
    Case((40,), 15, "float16"),
    Case((41,), 17, "float32", law="normal", iters=1),
    Case((49,), 520, eps=1e-5),
    Case((65,), 33, law="rows", iters=100),
    Case((7,), 256, eps=0.0, why="hc_eps 0 is legal"),
    Case((16,), 512, law="saturated"),
    Case((16,), 512, "float32", law="saturated", iters=1),
    Case((16,), 128, law="closed"),
    Case((5,), 128, law="zeros"),
    Case((5,), 128, law="subnormal"),
    Case((5,), 128, "float32", law="subnormal"),
    Case((127,), 128, law="constant"),
    Case((129,), 7168, law="rows"),
    Case((512,), 4096, law="normal", why="S1 on 950"),
    Case((257,), 2560, "float32", law="rows"),
    Case((16,), 4096, n=8),
]


def run(backend, inputs, **attributes):
    with backend:
        return custom_ops.hc_pre_sinkhorn(**inputs, **attributes)


def attributes_of(case):
    return {"hc_mult": case.n, "hc_sinkhorn_iters": case.iters, "hc_eps": case.eps}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_oracle(case, backend, rng):
    inputs = sinkhorn_inputs(case.law, rng, case.tokens, case.n, case.d, DTYPES[case.dtype], case.keepdim)
    before = {name: tensor.clone() for name, tensor in inputs.items()}
    got = run(backend, inputs, **attributes_of(case))
    assert_sinkhorn_matches(got, inputs, case.n, case.iters, case.eps, str(backend))
    for name, tensor in inputs.items():
        assert torch.equal(tensor, before[name]), f"{name} was changed"
    for one, other in zip(got, run(backend, inputs, **attributes_of(case))):
        assert torch.equal(one, other), "two runs differ"


def test_defaults_are_the_published_ones(backend, rng):
    inputs = sinkhorn_inputs("uniform", rng, (5,), 4, 64, torch.bfloat16)
    assert_sinkhorn_matches(run(backend, inputs), inputs, 4, 20, 1e-5, str(backend))


def test_weights_are_in_range(backend, rng):
    inputs = sinkhorn_inputs("normal", rng, (130,), 4, 16, torch.bfloat16)
    _, post, comb = run(backend, inputs, hc_eps=1e-6)
    assert (comb > 0).all() and (post >= 0).all() and (post <= 2).all()
    # The last step is over columns, so these sum to s / (s + eps) whatever the logits; rows only at convergence.
    assert (comb.double().sum(-2) - 1).abs().max() < 2e-6


# Where a value is not finite, the rest of its token follows the formula and other tokens do not notice.
NON_FINITE = {
    "x_nan": ("x", (2, 1, 5), torch.nan),
    "x_inf": ("x", (2, 1, 5), torch.inf),
    "x_-inf": ("x", (2, 3, 39), -torch.inf),
    "pre_nan": ("mixes", (4, 1), torch.nan),
    "pre_inf": ("mixes", (4, 2), torch.inf),
    "pre_-inf": ("mixes", (4, 2), -torch.inf),
    "post_inf": ("mixes", (4, 5), torch.inf),
    "post_-inf": ("mixes", (4, 7), -torch.inf),
    "comb_nan_first": ("mixes", (6, 8), torch.nan),
    "comb_nan_last": ("mixes", (6, 23), torch.nan),
    "comb_inf": ("mixes", (6, 13), torch.inf),
    "comb_-inf": ("mixes", (6, 13), -torch.inf),
    "comb_row_-inf": ("mixes", (6, slice(12, 16)), -torch.inf),
    "rsqrt_inf": ("rsqrt", (3, 0), torch.inf),
    "rsqrt_nan": ("rsqrt", (8, 0), torch.nan),
    "base_-inf": ("hc_base", (9,), -torch.inf),
    "scale_nan": ("hc_scale", (1,), torch.nan),
}


@pytest.mark.parametrize("case", NON_FINITE)
def test_non_finite_values_follow_the_formula(case, backend, rng):
    name, index, value = NON_FINITE[case]
    inputs = sinkhorn_inputs("uniform", rng, (9,), 4, 40, torch.bfloat16)
    inputs["hc_scale"] = inputs["hc_scale"].abs()
    inputs[name][index] = value
    assert_sinkhorn_matches(run(backend, inputs, hc_eps=1e-6), inputs, 4, 20, 1e-6, str(backend))


def test_overflow_of_the_output_type_is_inf(backend, rng):
    inputs = sinkhorn_inputs("uniform", rng, (3,), 4, 32, torch.float16)
    inputs["x"] = torch.full_like(inputs["x"], 6e4)
    inputs["hc_base"][:4] = 20
    assert_sinkhorn_matches(run(backend, inputs), inputs, 4, 20, 1e-5, str(backend))


@pytest.mark.parametrize("tokens", [(0,), (0, 3), (3, 0)], ids=str)
def test_no_tokens(tokens, backend, rng):
    inputs = sinkhorn_inputs("uniform", rng, tokens, 4, 16, torch.bfloat16)
    y, post, comb = run(backend, inputs)
    assert y.shape == (*tokens, 16) and post.shape == (*tokens, 4) and comb.shape == (*tokens, 4, 4)
    assert y.dtype == torch.bfloat16 and post.dtype == comb.dtype == torch.float32


def test_strided_inputs(backend, rng):
    wide = sinkhorn_inputs("rows", rng, (12,), 4, 96, torch.bfloat16)
    inputs = {
        "mixes": torch.cat([wide["mixes"], wide["mixes"]], -1)[::2, 24:],
        "rsqrt": wide["rsqrt"].expand(12, 5)[::2, 2:3],
        "hc_scale": torch.stack([wide["hc_scale"]] * 2, -1)[:, 1],
        "hc_base": wide["hc_base"].repeat_interleave(3)[::3],
        "x": wide["x"][::2, :, 31:64],
    }
    assert not any(tensor.is_contiguous() for tensor in inputs.values())
    got = run(backend, inputs)
    assert_sinkhorn_matches(got, inputs, 4, 20, 1e-5, str(backend))
    dense = run(backend, {name: tensor.contiguous() for name, tensor in inputs.items()})
    assert all(torch.equal(one, other) for one, other in zip(got, dense))


def test_tokens_are_independent(backend, rng):
    """Reordered or split tokens give the same bits."""
    inputs = sinkhorn_inputs("rows", rng, (45,), 4, 272, torch.bfloat16)
    per_token = ("mixes", "rsqrt", "x")

    def rows(index):
        return {name: tensor[index] if name in per_token else tensor for name, tensor in inputs.items()}

    whole = run(backend, inputs)
    order = torch.randperm(45, generator=rng)
    for one, other in zip(run(backend, rows(order)), whole):
        assert torch.equal(one, other[order])
    for first, rest, other in zip(run(backend, rows(slice(0, 7))), run(backend, rows(slice(7, None))), whole):
        assert torch.equal(torch.cat([first, rest]), other)


def test_forms_agree(backend, rng):
    """[T, ...] and [b, s, ...] are the same memory and give the same bits; so do the shapes of rsqrt."""
    flat = sinkhorn_inputs("uniform", rng, (12,), 4, 48, torch.float32)
    folded = {name: tensor.unflatten(0, (3, 4)) if name in ("mixes", "rsqrt", "x") else tensor for name, tensor in flat.items()}
    want = run(backend, flat)
    for inputs in (folded, {**folded, "rsqrt": folded["rsqrt"][..., 0]}, {**flat, "rsqrt": flat["rsqrt"][:, 0]}):
        for one, other in zip(run(backend, inputs), want):
            assert torch.equal(one.reshape(other.shape), other)


def test_native_does_not_depend_on_threads(rng):
    inputs = sinkhorn_inputs("rows", rng, (333,), 4, 1040, torch.bfloat16)
    results = on_threads(lambda: custom_ops.hc_pre_sinkhorn(**inputs))
    for result in results:
        assert all(torch.equal(one, other) for one, other in zip(result, results[0]))


def test_native_many_tokens(rng):
    """Large enough for the stores that pass the caches by."""
    inputs = sinkhorn_inputs("rows", rng, (64000,), 4, 64, torch.bfloat16)
    assert_sinkhorn_matches(custom_ops.hc_pre_sinkhorn(**inputs), inputs, 4, 20, 1e-5)


def test_native_large_results_are_separate(rng):
    """Large results come from recycled memory: one that is alive is never given out again, one that died may be."""
    def y_of(value):
        x = torch.full((20, 1, 1 << 20), value, dtype=torch.bfloat16)
        half = torch.zeros(20, 3), torch.ones(20), torch.ones(3), torch.zeros(3)  # pre = sigmoid(0)
        return custom_ops.hc_pre_sinkhorn(*half, x, 1, 1, 0.0)[0]

    results = {value: y_of(value) for value in (1.0, 2.0, 3.0)}
    for value in (4.0, 5.0):
        del results[value - 3]
        results[value] = y_of(value)
    assert len({y.data_ptr() for y in results.values()}) == 3
    for value, y in results.items():
        assert (y == value / 2).all()
    for _ in range(2):  # more than is kept as it is: of the oldest the system may take the pages
        results = {value: y_of(value) for value in (1.0, 2.0, 3.0, 4.0, 5.0)}
        for value, y in results.items():
            assert (y == value / 2).all()
        del results, y


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [4096, 4104, 4111])
def test_native_stores_past_the_cache(dtype, d, rng):
    inputs = sinkhorn_inputs("rows", rng, (600,), 4, d, DTYPES[dtype])
    assert_sinkhorn_matches(custom_ops.hc_pre_sinkhorn(**inputs), inputs, 4, 20, 1e-5)


SHAPES = st.tuples(st.integers(0, 70), st.integers(1, 16), st.integers(1, 300), st.sampled_from(sorted(DTYPES)))


@given(SHAPES, st.integers(1, 30), st.sampled_from([1e-6, 1e-5, 1e-2]), st.sampled_from(["uniform", "rows", "saturated"]),
       st.integers(0, 2**31))
def test_native_any_shape(shape, iters, eps, law, seed):
    tokens, n, d, dtype = shape
    inputs = sinkhorn_inputs(law, torch.Generator().manual_seed(seed), (tokens,), n, d, DTYPES[dtype])
    got = custom_ops.hc_pre_sinkhorn(**inputs, hc_mult=n, hc_sinkhorn_iters=iters, hc_eps=eps)
    assert_sinkhorn_matches(got, inputs, n, iters, eps)


@pytest.mark.parametrize("law", ["uniform", "rows", "closed"])
def test_native_ends_also_after_2_31_iterations(law, rng):
    """In float32 the rounds end in a cycle: the rest of 2^31 of them is not computed, and gives the same bits."""
    inputs = sinkhorn_inputs(law, rng, (19,), 4, 16, torch.float32)
    comb = {iters: custom_ops.hc_pre_sinkhorn(**inputs, hc_sinkhorn_iters=iters)[2] for iters in (100_000, 2**31 - 1)}
    torch.testing.assert_close(comb[100_000], comb[2**31 - 1], rtol=2e-6, atol=0)
    assert_sinkhorn_matches(custom_ops.hc_pre_sinkhorn(**inputs, hc_sinkhorn_iters=200), inputs, 4, 200, 1e-5)


def test_inputs_feed_each_other(backend, rng):
    """The model's composition: rsqrt from hc_pre_inv_rms, mixes from a projection of the same x."""
    x = x_of("rows", rng, (33,), 4, 64, torch.bfloat16)
    fn = torch.randn(24, 256, generator=rng) / 16
    with backend:
        rsqrt = custom_ops.hc_pre_inv_rms(x, epsilon=1e-6)
    inputs = {"mixes": x.flatten(1).float() @ fn.T, "rsqrt": rsqrt, "hc_scale": torch.ones(3), "hc_base": torch.zeros(24), "x": x}
    assert_sinkhorn_matches(run(backend, inputs), inputs, 4, 20, 1e-5, str(backend))


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect")
@pytest.mark.parametrize("d", [16, 40, 1000, 1296])
def test_native_reads_nothing_past_the_inputs(d, rng):
    """Every input ends where an unreadable page begins (S1: x was read past its end)."""
    inputs = sinkhorn_inputs("rows", rng, (19,), 4, d, torch.bfloat16)
    guarded = {name: before_guard(tensor) for name, tensor in inputs.items()}
    assert_sinkhorn_matches(custom_ops.hc_pre_sinkhorn(**guarded), inputs, 4, 20, 1e-5)
    assert torch.equal(custom_ops.hc_pre_inv_rms(guarded["x"]), custom_ops.hc_pre_inv_rms(inputs["x"]))
