"""hc_head against the float64 oracle."""

import pytest
import torch
from compare import assert_matches
from inputs import DTYPES, pre_inputs

import custom_ops
from custom_ops import reference


def head_inputs(law, rng, tokens, n, d, dtype):
    inputs = pre_inputs(law, rng, tokens, n, d, dtype)
    return {"x": inputs["x"], "hc_fn": inputs["hc_fn"][:n], "hc_scale": inputs["hc_scale"][:1], "hc_base": inputs["hc_base"][:n]}


def assert_head_matches(got, inputs, norm_eps=1e-6, hc_eps=1e-6):
    want = reference.hc_head(**inputs, norm_eps=norm_eps, hc_eps=hc_eps)
    magnitude = reference.hc_head(**{**inputs, "x": inputs["x"].abs(), "hc_fn": torch.zeros_like(inputs["hc_fn"]),
                                     "hc_base": torch.full_like(inputs["hc_base"], 50)}, norm_eps=norm_eps, hc_eps=hc_eps)  # weights 1
    assert_matches("hc_head.y", got, want, magnitude=magnitude)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tokens, n, d, law", [((1,), 1, 1, "normal"), ((5,), 4, 512, "rows"), ((2, 3), 4, 40, "rows"), ((33,), 6, 33, "normal"),
                                               ((2,), 4, 7168, "published"), ((3,), 16, 24, "normal"), ((4,), 4, 64, "zeros")], ids=str)
def test_matches_oracle(tokens, n, d, law, dtype, rng):
    inputs = head_inputs(law, rng, tokens, n, d, DTYPES[dtype])
    for norm_eps, hc_eps in ((1e-6, 1e-6), (1e-2, 1e-5), (1e-6, 1e-2)):
        got = custom_ops.hc_head(**inputs, norm_eps=norm_eps, hc_eps=hc_eps)
        assert got.is_contiguous()
        assert_head_matches(got, inputs, norm_eps, hc_eps)


def test_is_the_weighted_sum_of_hc_pre(rng):
    """The same weights as hc_pre's, with hc_pre's other rows left out."""
    site = pre_inputs("rows", rng, (7,), 4, 48, torch.float32)
    head = {"x": site["x"], "hc_fn": site["hc_fn"][:4], "hc_scale": site["hc_scale"][:1], "hc_base": site["hc_base"][:4]}
    magnitude = head["x"].abs().sum(-2)
    assert ((custom_ops.hc_head(**head) - custom_ops.hc_pre(**site)[0]).abs() <= 1e-5 * magnitude).all()


@pytest.mark.parametrize("tokens", [(0,), (0, 3)], ids=str)
def test_no_tokens(tokens, rng):
    y = custom_ops.hc_head(**head_inputs("normal", rng, tokens, 4, 16, torch.bfloat16))
    assert y.shape == (*tokens, 16) and y.dtype == torch.bfloat16


def test_strided_inputs(rng):
    wide = head_inputs("rows", rng, (6,), 4, 96, torch.bfloat16)
    inputs = {**wide, "x": wide["x"][::2, :, 31:64], "hc_fn": wide["hc_fn"][:, 5 : 5 + 264 : 2]}
    assert_head_matches(custom_ops.hc_head(**inputs), inputs)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad], ids=lambda m: m.__name__)
def test_its_operator_is_simulated(mode, rng):
    inputs = head_inputs("rows", rng, (3,), 4, 32, torch.float32)
    with mode(), custom_ops.simulate("ascend910b") as run:
        assert_head_matches(custom_ops.hc_head(**inputs), inputs)
    assert [call.op for call in run.calls] == ["HcPreInvRms"]


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_without_graph_breaks(dynamic, rng):
    torch._dynamo.reset()
    compiled = torch.compile(custom_ops.hc_head, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for tokens in ((6,), (9,), (2, 3)):
        inputs = head_inputs("rows", rng, tokens, 4, 32, torch.bfloat16)
        assert torch.equal(compiled(**inputs), custom_ops.hc_head(**inputs))
