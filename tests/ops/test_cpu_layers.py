"""cpu_linear, cpu_mlp, cpu_rms_norm and cpu_attention_step, the operators of a decode step on the CPU, against float64."""

import numpy as np
import pytest
import torch
from compare import F32, Tolerance, assert_matches
from hypothesis import given
from hypothesis import strategies as st
from inputs import DTYPES, before_guard, on_threads, refusal

from custom_ops.nn import few_tokens
from custom_ops.nn.few_tokens import attention_step, linear, mlp
from custom_ops.reference import to_float64

SHAPES = [(1, 1, 1), (1, 8, 16), (1, 9, 33), (3, 70, 100), (2, 64, 512), (5, 130, 257), (1, 513, 2560), (4, 8, 31), (6, 1, 640)]


def rand(rng, *shape, dtype=torch.float32):
    return torch.randn(*shape, generator=rng).to(dtype)


def assert_linear(got, x, weight, bias=None, residual=None):
    """A sum of K products in at least 4 lanes takes K / 4 additions, with products that are rounded first twice as many roundings, then at
    most 4 additions of lanes, bias and residual."""
    x, weight = to_float64(x), to_float64(weight)
    extra = [0.0 if tensor is None else to_float64(tensor) for tensor in (bias, residual)]
    want, magnitude = x @ weight.T + sum(extra), np.abs(x) @ np.abs(weight).T + sum(map(np.abs, extra))
    roundoff = (2 * -(-x.shape[-1] // 4) + 8) * F32
    narrow = got.dtype != torch.float32
    assert_matches("cpu_linear", got, want, Tolerance(0 if narrow else roundoff, 1e-30, roundoff if narrow else 0), magnitude=magnitude)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tokens, rows, columns", SHAPES)
def test_linear(tokens, rows, columns, dtype, rng):
    x, weight, bias = (rand(rng, *shape, dtype=DTYPES[dtype]) for shape in ((tokens, columns), (rows, columns), (rows,)))
    residual = rand(rng, tokens, rows, dtype=DTYPES[dtype])
    assert_linear(linear(x, [weight], [None])[0], x, weight)
    assert_linear(linear(x, [weight], [bias])[0], x, weight, bias)
    assert_linear(linear(x, [weight], [bias], residual=residual)[0], x, weight, bias, residual)


@given(st.tuples(st.integers(1, 9), st.integers(1, 80), st.integers(1, 300), st.sampled_from(sorted(DTYPES)), st.integers(0, 2**31)))
def test_linear_any_shape(case):
    tokens, rows, columns, dtype, seed = case
    rng = torch.Generator().manual_seed(seed)
    x, weight = rand(rng, tokens, columns, dtype=DTYPES[dtype]), rand(rng, rows, columns, dtype=DTYPES[dtype])
    assert_linear(linear(x, [weight], [None])[0], x, weight)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_depends_on_nothing_else(dtype, rng):
    """Not on other tokens, other rows, other matrices of the call, or threads."""
    x, weight, bias = (rand(rng, *shape, dtype=DTYPES[dtype]) for shape in ((7, 600), (1000, 600), (1000,)))
    whole = linear(x, [weight], [bias])[0]
    for parts in on_threads(lambda: linear(x, list(weight.split(333)), list(bias.split(333)))):
        assert torch.equal(torch.cat(parts, 1), whole)
    assert torch.equal(torch.cat([linear(token, [weight], [bias])[0] for token in x.split(1)]), whole)


def test_linear_of_non_finite_values(rng):
    x, weight = rand(rng, 2, 40), rand(rng, 20, 40)
    x[1, 3], weight[5, 39], weight[7, 0] = torch.nan, torch.inf, -torch.inf
    got = linear(x, [weight], [None])[0]
    assert got[1].isnan().all() and got[0].isinf().nonzero().flatten().tolist() == [5, 7] and not got[0].isnan().any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [16, 40, 100])
def test_linear_reads_nothing_past_the_inputs(columns, dtype, rng):
    x, weight, bias = (before_guard(rand(rng, *shape, dtype=DTYPES[dtype])) for shape in ((3, columns), (19, columns), (19,)))
    assert_linear(linear(x, [weight], [bias])[0], x, weight, bias)


def test_strided_inputs(rng):
    wide = rand(rng, 6, 2, 64)
    x, weight = wide[::2, 1:, ::2], rand(rng, 32, 18).T
    assert_linear(linear(x, [weight], [None])[0].flatten(0, 1), x.flatten(0, 1), weight)


def normed(x, weight, epsilon):
    x = to_float64(x)
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + epsilon) * to_float64(weight)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (2, 3, 513), (1, 2, 4, 64), (70, 700)], ids=str)
def test_rms_norm(shape, dtype, rng):
    x, weight = rand(rng, *shape, dtype=DTYPES[dtype]), rand(rng, shape[-1])
    # 70 roundoffs are of the sum of squares (kernels/inverse_rms.h), of which the root takes half; 4 of root, quotient and products
    roundoff, narrow = 39 * F32, DTYPES[dtype] != torch.float32
    got = few_tokens.rms_norm(x, weight, 1e-6)
    assert_matches("cpu_rms_norm", got, normed(x, weight, 1e-6), Tolerance(0 if narrow else roundoff, 1e-30, roundoff if narrow else 0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_linear_with_norm(dtype, rng):
    """The product of the normed x, rounded as the norm rounds it."""
    x, weight, factor = rand(rng, 3, 96, dtype=DTYPES[dtype]), rand(rng, 40, 96, dtype=DTYPES[dtype]), rand(rng, 96)
    got = linear(x, [weight], [None], norm_weight=factor, epsilon=1e-5)[0]
    assert torch.equal(got, linear(few_tokens.rms_norm(x, factor, 1e-5), [weight], [None])[0])


ACTIVATIONS = {"silu": lambda v: v / (1 + np.exp(-v)),
               "gelu_tanh": lambda v: v / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))}


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_mlp(dtype, activation, biased, rng):
    hidden, size, kind = 96, 200, DTYPES[dtype]
    x, factor = rand(rng, 2, 1, hidden, dtype=kind), rand(rng, hidden)
    gate, up, down = rand(rng, size, hidden) / 10, rand(rng, size, hidden) / 10, rand(rng, hidden, size) / 14
    gate, up, down = (weight.to(kind) for weight in (gate, up, down))
    biases = [rand(rng, rows, dtype=kind) for rows in (size, size, hidden)] if biased else [None] * 3
    got = mlp(x, gate, up, down, biases, activation, factor, 1e-6)
    n = to_float64(few_tokens.rms_norm(x, factor, 1e-6))
    of = [0.0 if bias is None else to_float64(bias) for bias in biases]
    between = ACTIVATIONS[activation](n @ to_float64(gate).T + of[0]) * (n @ to_float64(up).T + of[1])
    want = to_float64(x) + between @ to_float64(down).T + of[2]
    magnitude = np.abs(to_float64(x)) + np.abs(between) @ np.abs(to_float64(down)).T + np.abs(of[2])
    # gate and up, the activation's slope of at most 1.13 and the product are rounded to the dtype: four times its roundoff, on values whose
    # own size the sums of gate and up may exceed by cancellation
    roundoff = {torch.float32: 200 * F32, torch.bfloat16: 16 * 2.0**-9, torch.float16: 16 * 2.0**-12}[kind]
    assert (np.abs(to_float64(got) - want) <= roundoff * magnitude).all()


def attention_oracle(q, k, v, keys, values, norms, epsilon, cosines, sines, interleaved, first, slot, scale, gated):
    """(out, keys, values) after the step, float64, one row and head after the other."""
    rows, kv_heads, _, dim = keys.shape
    keys, values, q = keys.copy(), values.copy(), q.reshape(rows, -1, 2 if gated else 1, dim)
    pairs = len(cosines)

    def turned(vector, norm):
        vector = vector if norm is None else normed(vector, norm, epsilon)
        a, b = (np.s_[0 : 2 * pairs : 2], np.s_[1 : 2 * pairs : 2]) if interleaved else (np.s_[:pairs], np.s_[pairs : 2 * pairs])
        out = vector.copy()
        out[a], out[b] = vector[a] * cosines - vector[b] * sines, vector[b] * cosines + vector[a] * sines
        return out

    heads, out = q.shape[1], np.zeros((rows, q.shape[1], dim))
    for row in range(rows):
        for head in range(kv_heads):
            keys[row, head, slot] = turned(k.reshape(rows, kv_heads, dim)[row, head], norms[1])
            values[row, head, slot] = v.reshape(rows, kv_heads, dim)[row, head]
        for head in range(heads):
            kv = head // (heads // kv_heads)
            scores = keys[row, kv, first : slot + 1] @ turned(q[row, head, 0], norms[0]) * scale
            weights = np.exp(scores - scores.max())
            out[row, head] = weights @ values[row, kv, first : slot + 1] / weights.sum()
            if gated:
                out[row, head] /= 1 + np.exp(-q[row, head, 1])
    return out.reshape(rows, 1, -1), keys, values


STEPS = {  # rows, heads, kv_heads, dim, pairs, capacity, first, slot
    "first_token": (1, 1, 1, 8, 4, 4, 0, 0), "grouped": (2, 6, 2, 64, 32, 200, 0, 150), "window": (1, 4, 4, 40, 10, 64, 30, 63),
    "no_rotation": (3, 2, 1, 17, 0, 33, 0, 20), "long": (1, 8, 2, 128, 64, 3000, 0, 2999),
}


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize("interleaved", [False, True], ids=["half", "interleaved"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", STEPS)
def test_attention_step(case, dtype, interleaved, gated, rng):
    rows, heads, kv_heads, dim, pairs, capacity, first, slot = STEPS[case]
    kind = DTYPES[dtype]
    q = rand(rng, rows, 1, heads * dim * (2 if gated else 1), dtype=kind)
    k, v = (rand(rng, rows, 1, kv_heads * dim, dtype=kind) for _ in range(2))
    keys, values = (rand(rng, rows, kv_heads, capacity, dim, dtype=kind) for _ in range(2))
    norms = (None, None) if interleaved else (rand(rng, dim), rand(rng, dim))
    angles = rand(rng, 1, pairs) * 3
    cosines, sines = (angles.cos().to(kind), angles.sin().to(kind)) if pairs else (None, None)
    tables = [np.zeros(0) if table is None else to_float64(table)[0] for table in (cosines, sines)]
    wide_norms = [None if norm is None else to_float64(norm) for norm in norms]
    want = attention_oracle(*map(to_float64, (q, k, v, keys, values)), wide_norms, 1e-6, *tables, interleaved, first, slot, 0.3, gated)
    arguments = q, k, v, *norms, 1e-6, cosines, sines, interleaved, keys, values, first, slot, 0.3, gated
    got = attention_step(*arguments)
    for name, have, need in zip(("out", "keys", "values"), (got, keys, values), want):
        # scores of up to 60 in float32, whose error is that of the weights; narrow types round the new key and the result
        bound = {torch.float32: 2e-5, torch.bfloat16: 2.0**-6, torch.float16: 2.0**-9}[kind]
        np.testing.assert_allclose(to_float64(have), need, rtol=bound, atol=bound, err_msg=name)
    if interleaved and not gated and case == "grouped":  # threads: the same bits
        (again,) = on_threads(lambda: attention_step(*arguments), [1 if torch.get_num_threads() > 1 else 3])
        assert torch.equal(again, got)


def test_refusals():
    x, weight = torch.zeros(2, 8), torch.zeros(4, 8)
    norm, cache = torch.ones(8), torch.zeros(1, 1, 4, 8)
    step = (torch.zeros(1, 1, 16), torch.zeros(1, 1, 8), torch.zeros(1, 1, 8), None, None, 0.0, None, None, False)
    for call, words in (
            (lambda: linear(x.double(), [weight], [None]), "cpu_linear: x dtype float64 is not supported"),
            (lambda: linear(x, [weight.bfloat16()], [None]), "weight must have the dtype of x, float32, got bfloat16"),
            (lambda: linear(x, [weight[:, :7]], [None]), "weight must be [rows, 8] to match x [2, 8], got [4, 7]"),
            (lambda: linear(x, [weight], [torch.zeros(3)]), "bias must be [rows] = [4], got [3]"),
            (lambda: linear(x, [weight], []), "weights and biases must be as many, got 1 and 0"),
            (lambda: linear(x, [weight], [None], residual=x), "residual must be [2, 4] float32 as the result, got [2, 8] float32"),
            (lambda: linear(x, [weight, weight], [None, None], residual=x), "residual is taken with one weight, got 2"),
            (lambda: linear(x, [weight], [None], norm_weight=norm[:4]), "norm_weight must be [8] to match x [2, 8], got [4]"),
            (lambda: linear(x, [weight], [None], norm_weight=norm, epsilon=-1.0), "epsilon must be finite in float32 and >= 0"),
            (lambda: mlp(x, weight, weight, weight, [None] * 3, "silu", norm, 0.0),
             "weight must be [rows, 4] to match x [2, 8], got [4, 8]"),
            (lambda: mlp(x, weight, weight, weight.T, [None] * 3, "tanh", norm, 0.0),
             "activation 'tanh' is not known, use silu or gelu_tanh"),
            (lambda: torch.ops.custom.cpu_rms_norm(x, norm.bfloat16(), 0.0), "weight dtype bfloat16 is not supported, use float32"),
            (lambda: attention_step(*step, cache, cache.clone(), 0, 4, 1.0, False), "slot must be 0 to 3, got 4"),
            (lambda: attention_step(*step, cache, cache.clone(), 3, 2, 1.0, False), "first must be 0 to 2, got 3"),
            (lambda: attention_step(*step, cache[..., :4], cache[..., :4], 0, 0, 1.0, False), "k must be [1, 1, 4], got [1, 1, 8]")):
        assert words in refusal(call)


def test_opcheck(rng):
    checks = ("test_schema", "test_faketensor")
    x, weight, norm = rand(rng, 2, 8), rand(rng, 4, 8), rand(rng, 8)
    ops = torch.ops.custom
    torch.library.opcheck(ops.cpu_linear.default, (x, [weight, weight], [None, rand(rng, 4)]), {"norm_weight": norm, "epsilon": 1e-6},
                          test_utils=checks)
    torch.library.opcheck(ops.cpu_mlp.default, (x, weight, weight, rand(rng, 8, 4), [None] * 3, "silu", norm, 1e-6), test_utils=checks)
    torch.library.opcheck(ops.cpu_rms_norm.default, (x, norm, 1e-6), test_utils=checks)
    step = (rand(rng, 1, 1, 32), rand(rng, 1, 1, 8), rand(rng, 1, 1, 8), norm, norm, 1e-6, None, None, False, rand(rng, 1, 1, 4, 8),
            rand(rng, 1, 1, 4, 8), 0, 2, 0.5, True)
    torch.library.opcheck(ops.cpu_attention_step.default, step, test_utils=checks)


def test_gradients_and_autocast_are_pytorchs(rng):
    layer, x = few_tokens.Linear(8, 4), rand(rng, 1, 8)
    layer(x).sum().backward()
    torch.testing.assert_close(layer.weight.grad, x.expand(4, 8))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    assert layer.double()(x.double()).dtype == torch.float64


def test_hooks_are_called(rng):
    layers = [few_tokens.Linear(8, 4) for _ in range(2)]
    seen = []
    layers[1].register_forward_hook(lambda module, args, out: seen.append(out))
    with torch.no_grad():
        results = few_tokens.project(rand(rng, 1, 8), *layers)
    assert len(seen) == 1 and seen[0] is results[1]
