"""npu_hc_post against the float64 oracle: native and on every simulated chip, the same cases and the same asserts."""

import itertools
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from compare import assert_post_matches
from hypothesis import given
from hypothesis import strategies as st
from inputs import DTYPES, before_guard, on_threads, post_inputs

import custom_ops
from custom_ops import reference


@dataclass(frozen=True)
class Case:
    tokens: tuple
    d: int
    dtype: str = "bfloat16"
    n: int = 4
    law: str = "uniform"
    weights: str = "float32"  # dtype of post and comb
    why: str = ""

    def __str__(self):
        return f"{'x'.join(map(str, self.tokens))}-n{self.n}-d{self.d}-{self.dtype}-{self.law}-{self.weights}"


CASES = [
    Case((1,), 1, n=1, why="the smallest legal call"),
    Case((1,), 16, "float32"),
    Case((1,), 4096, why="P8: one token on one core"),
    Case((1,), 7168, "float32", why="P8"),
    Case((4, 4), 4096, law="ten", why="the published test"),
    Case((4, 4), 7168, "float32", law="ten", why="the published test"),
    Case((2,), 4112, law="streams", why="P1, P4: the 16 columns past a multiple of 64"),
    Case((2,), 4104, law="streams", why="P2, P5: rows of 16 bits that are no multiple of 32 B in UB"),
    Case((3,), 4100, "float16", law="streams", why="P5: rows that are no multiple of 8 elements in GM"),
    Case((5,), 1296, n=6, law="rows", why="P3: more than four streams on 950"),
    Case((5,), 1040, n=10, law="rows", why="P3: more than eight streams on 910B"),
    Case((3,), 512, why="P6: columns of a tile that are not there"),
    Case((129,), 7168, law="rows"),
    Case((3, 43), 512, law="rows"),
    Case((1, 16), 2560, "float16", law="normal"),
    Case((16, 1), 1280, law="rows"),
    Case((47,), 72, law="normal"),
    Case((49,), 65, "float32", law="rows"),
    Case((97,), 520, law="rows"),
    Case((513,), 48, n=2, law="rows"),
    Case((130,), 33, n=3, law="rows"),
    Case((7,), 4097, n=8, law="normal"),
    Case((3,), 640, n=16, law="normal"),
    Case((33,), 17, "float16", n=13, law="rows"),
    Case((700,), 15, n=16, law="rows", why="weights of a core in several batches"),
    Case((65,), 100, law="zeros"),
    Case((9,), 128, law="subnormal"),
    Case((257,), 2560, law="cancel", why="large summands, small result"),
    Case((64,), 1536, "float32", law="cancel"),
    # every pair of types
    *(Case((19,), 200, x, law="rows", weights=w) for x, w in itertools.product(DTYPES, DTYPES) if w != "float32"),
    Case((400,), 31, n=5, law="rows", weights="bfloat16"),
    Case((400,), 31, n=5, law="rows", weights="float16"),
]


def run(backend, inputs):
    with backend:
        return custom_ops.hc_post(**inputs)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_oracle(case, backend, rng):
    inputs = post_inputs(case.law, rng, case.tokens, case.n, case.d, DTYPES[case.dtype], DTYPES[case.weights])
    before = {name: tensor.clone() for name, tensor in inputs.items()}
    got = run(backend, inputs)
    assert_post_matches(got, inputs, str(backend))
    assert all(torch.equal(tensor, before[name]) for name, tensor in inputs.items()), "an input was changed"
    assert torch.equal(got, run(backend, inputs)), "two runs differ"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, d", [(4, 520), (3, 33)])
def test_identity(dtype, n, d, backend, rng):
    inputs = post_inputs("normal", rng, (11,), n, d, DTYPES[dtype])
    inputs["post"].zero_()
    inputs["comb"] = torch.eye(n).expand(11, n, n)
    assert torch.equal(run(backend, inputs), inputs["residual"])


@pytest.mark.parametrize("dtype", DTYPES)
def test_broadcast(dtype, backend, rng):
    inputs = post_inputs("normal", rng, (11,), 4, 520, DTYPES[dtype])
    inputs["post"].fill_(1)
    inputs["comb"].zero_()
    assert torch.equal(run(backend, inputs), inputs["x"].unsqueeze(1).expand(11, 4, 520))


def test_comb_goes_from_row_to_column(backend, rng):
    """A comb that is read transposed passes every test with a converged, near symmetric matrix."""
    inputs = post_inputs("normal", rng, (5,), 4, 72, torch.bfloat16)
    inputs["post"].zero_()
    inputs["comb"].zero_()
    inputs["comb"][:, 0, 3] = 1
    got = run(backend, inputs)
    assert torch.equal(got[:, 3], inputs["residual"][:, 0])
    assert not got[:, :3].any()


@pytest.mark.parametrize("i, j", [(0, 0), (1, 5), (6, 2), (6, 6)])
def test_one_element_of_comb(i, j, backend, rng):
    inputs = post_inputs("normal", rng, (3,), 7, 80, torch.float32)
    inputs["post"].zero_()
    inputs["comb"].zero_()
    inputs["comb"][:, i, j] = -2
    want = torch.zeros(3, 7, 80)
    want[:, j] = -2 * inputs["residual"][:, i]
    assert torch.equal(run(backend, inputs), want)


def test_linear_in_x_and_residual(backend, rng):
    """Powers of two and their multiples leave no rounding: y is linear to the bit."""
    inputs = post_inputs("normal", rng, (13,), 4, 136, torch.float32)
    for name in ("post", "comb"):
        inputs[name] = torch.randint(-4, 5, inputs[name].shape, generator=rng) / 4
    one = {**inputs, "x": inputs["x"].half().float(), "residual": inputs["residual"].half().float()}
    other = {**inputs, "x": torch.randint(-99, 99, one["x"].shape, generator=rng).float(),
             "residual": torch.randint(-99, 99, one["residual"].shape, generator=rng).float()}
    one = {**one, "x": (one["x"] * 64).round(), "residual": (one["residual"] * 64).round()}
    both = {**inputs, "x": one["x"] * 2 - other["x"], "residual": one["residual"] * 2 - other["residual"]}
    assert torch.equal(run(backend, both), run(backend, one) * 2 - run(backend, other))


# Where a value is not finite, what it is summed into follows the formula and nothing else notices.
NON_FINITE = {
    "x_nan": ("x", (2, 5), torch.nan),
    "x_inf": ("x", (2, 39), torch.inf),
    "residual_nan": ("residual", (2, 1, 5), torch.nan),
    "residual_-inf": ("residual", (4, 3, 39), -torch.inf),
    "post_nan": ("post", (6, 1), torch.nan),
    "post_inf": ("post", (6, 3), torch.inf),
    "comb_nan": ("comb", (8, 3, 3), torch.nan),
    "comb_-inf": ("comb", (0, 0, 1), -torch.inf),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", NON_FINITE)
def test_non_finite_values_follow_the_formula(case, dtype, backend, rng):
    name, index, value = NON_FINITE[case]
    inputs = post_inputs("uniform", rng, (9,), 4, 40, DTYPES[dtype])
    inputs[name][index] = value
    assert_post_matches(run(backend, inputs), inputs, str(backend))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_nan_stays_nan(dtype, rng):
    """Rounding a NaN like a number may carry into its sign and give a zero."""
    inputs = post_inputs("uniform", rng, (8,), 4, 40, DTYPES[dtype])
    bits = {2: torch.int16, 4: torch.int32}
    for token, pattern in enumerate((-1, 0x7FFFFFFF, 0x7F800001, -0x7FFFFF)):
        inputs["post"].view(torch.int32)[token, 1] = pattern
        inputs["comb"].view(torch.int32)[token + 4, 2, 1] = pattern
    got = custom_ops.hc_post(**inputs)
    assert got[:, 1].isnan().all() and not got[:, (0, 2, 3)].isnan().any()
    wide = inputs["x"].element_size()
    for pattern in (-1, 2 ** (8 * wide - 1) - 1):
        inputs["x"].view(bits[wide])[:, 7] = pattern
        assert custom_ops.hc_post(**inputs)[:, :, 7].isnan().all()


def test_overflow_of_the_output_type_is_inf(backend, rng):
    inputs = post_inputs("uniform", rng, (3,), 4, 32, torch.float16)
    inputs["residual"] = torch.full_like(inputs["residual"], 6e4)
    inputs["comb"].fill_(0.9)
    assert_post_matches(run(backend, inputs), inputs, str(backend))


@pytest.mark.parametrize("tokens", [(0,), (0, 3), (3, 0)], ids=str)
def test_no_tokens(tokens, backend, rng):
    """P7: the published tiling divides by the number of cores in use."""
    got = run(backend, post_inputs("uniform", rng, tokens, 4, 16, torch.bfloat16))
    assert got.shape == (*tokens, 4, 16) and got.dtype == torch.bfloat16


def test_strided_inputs(backend, rng):
    wide = post_inputs("rows", rng, (12,), 8, 96, torch.bfloat16)
    inputs = {"x": wide["x"][::2, 31:64], "residual": wide["residual"][::2, 1::2, 31:64], "post": wide["post"][::2, :4],
              "comb": wide["comb"].transpose(1, 2)[::2, 2:6, ::2]}
    assert not any(tensor.is_contiguous() for tensor in inputs.values())
    got = run(backend, inputs)
    assert_post_matches(got, inputs, str(backend))
    assert torch.equal(got, run(backend, {name: tensor.contiguous() for name, tensor in inputs.items()}))


def test_tokens_are_independent(backend, rng):
    """Reordered or split tokens give the same bits, also where the split over cores is another one."""
    inputs = post_inputs("rows", rng, (77,), 4, 1296, torch.bfloat16)

    def rows(index):
        return {name: tensor[index] for name, tensor in inputs.items()}

    whole = run(backend, inputs)
    order = torch.randperm(77, generator=rng)
    assert torch.equal(run(backend, rows(order)), whole[order])
    assert torch.equal(torch.cat([run(backend, rows(slice(0, 5))), run(backend, rows(slice(5, None)))]), whole)
    assert torch.equal(run(backend, rows(slice(76, None))), whole[76:])


def test_forms_agree(backend, rng):
    """[T, ...] and [b, s, ...] are the same memory and give the same bits."""
    flat = post_inputs("uniform", rng, (12,), 4, 48, torch.float32)
    folded = {name: tensor.unflatten(0, (3, 4)) for name, tensor in flat.items()}
    assert torch.equal(run(backend, folded).flatten(0, 1), run(backend, flat))


def test_result_is_new_memory(rng):
    inputs = post_inputs("uniform", rng, (3,), 1, 16, torch.float32)
    got = custom_ops.hc_post(**inputs)
    assert got.data_ptr() not in {tensor.data_ptr() for tensor in inputs.values()}


def test_after_sinkhorn(backend, rng):
    """The model's composition: post and comb from hc_pre_sinkhorn, not converged (one iteration)."""
    mixes = torch.randn(33, 24, generator=rng)
    residual = torch.randn(33, 4, 64, generator=rng).bfloat16()
    with backend:
        y, post, comb = custom_ops.hc_pre_sinkhorn(mixes, torch.ones(33), torch.ones(3), torch.zeros(24), residual, 4, 1, 1e-6)
        got = custom_ops.hc_post(y, residual, post, comb)
    assert_post_matches(got, {"x": y, "residual": residual, "post": post, "comb": comb}, str(backend))


def test_native_does_not_depend_on_threads(rng):
    inputs = post_inputs("rows", rng, (333,), 4, 1040, torch.bfloat16)
    results = on_threads(lambda: custom_ops.hc_post(**inputs))
    assert all(torch.equal(result, results[0]) for result in results)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [4096, 4104, 4111])
def test_native_stores_past_the_cache(dtype, d, rng):
    inputs = post_inputs("rows", rng, (200,), 4, d, DTYPES[dtype])
    assert_post_matches(custom_ops.hc_post(**inputs), inputs)


def test_native_many_tokens(rng):
    inputs = post_inputs("rows", rng, (64000,), 4, 64, torch.bfloat16)
    assert_post_matches(custom_ops.hc_post(**inputs), inputs)


SHAPES = st.tuples(st.integers(0, 70), st.integers(1, 16), st.integers(1, 300), st.sampled_from(sorted(DTYPES)),
                   st.sampled_from(sorted(DTYPES)))


@given(SHAPES, st.sampled_from(["uniform", "rows", "cancel"]), st.integers(0, 2**31))
def test_native_any_shape(shape, law, seed):
    tokens, n, d, dtype, weights = shape
    inputs = post_inputs(law, torch.Generator().manual_seed(seed), (tokens,), n, d, DTYPES[dtype], DTYPES[weights])
    assert_post_matches(custom_ops.hc_post(**inputs), inputs)


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect")
@pytest.mark.parametrize("d", [16, 40, 1000, 1296])
def test_native_reads_nothing_past_the_inputs(d, rng):
    """Every input ends where an unreadable page begins."""
    inputs = post_inputs("rows", rng, (19,), 4, d, torch.bfloat16)
    assert_post_matches(custom_ops.hc_post(**{name: before_guard(tensor) for name, tensor in inputs.items()}), inputs)


def test_oracle_is_the_formula(rng):
    """The einsum of the oracle, spelled out once."""
    inputs = {name: tensor.double().numpy() for name, tensor in post_inputs("normal", rng, (2,), 3, 5, torch.float32).items()}
    want = np.zeros((2, 3, 5))
    for t, j in itertools.product(range(2), range(3)):
        want[t, j] = inputs["post"][t, j] * inputs["x"][t]
        for i in range(3):
            want[t, j] += inputs["comb"][t, i, j] * inputs["residual"][t, i]
    np.testing.assert_allclose(reference.hc_post(**inputs), want, rtol=1e-14)
