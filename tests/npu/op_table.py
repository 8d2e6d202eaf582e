"""What the tests of this folder know about each operator. A further operator is a further entry of OPS."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))  # the refusals, and beside it compare and inputs

import test_hc_post_refusals as post_refusals  # noqa: E402
import test_hc_pre_inv_rms as inv_rms  # noqa: E402
import test_hc_pre_refusals as pre_refusals  # noqa: E402
import test_hc_pre_sinkhorn_refusals as sinkhorn_refusals  # noqa: E402
from compare import assert_matches, assert_post_matches, assert_pre_matches, assert_sinkhorn_matches  # noqa: E402
from inputs import post_inputs, pre_inputs, sinkhorn_inputs, x_of  # noqa: E402

import custom_ops  # noqa: E402
from custom_ops import reference  # noqa: E402

DEVICE = "npu:0"


@dataclass(frozen=True)
class Op:
    name: str
    inputs: Callable        # (rng, tokens, d, dtype) -> CPU tensors by argument name
    attributes: dict        # what DeepSeek-V4 passes
    matches: Callable       # (results, CPU inputs, attributes, where): asserts against the float64 oracle
    refused: dict           # id -> (arguments, message)
    hidden: str = "x"       # an argument in the dtype of the activations

    def __call__(self, *args, **kwargs) -> tuple[torch.Tensor, ...]:
        results = getattr(custom_ops, self.name)(*args, **kwargs)
        return results if isinstance(results, tuple) else (results,)

    @property
    def overload(self):
        return getattr(torch.ops.custom, f"npu_{self.name}").default


def _inv_rms_matches(results, inputs, attributes, where=""):
    with np.errstate(divide="ignore"):
        assert_matches(inv_rms.NAME, results[0], reference.hc_pre_inv_rms(inputs["x"], **attributes), where=where)


def _pre_matches(results, inputs, attributes, where=""):
    assert_pre_matches(results, inputs, attributes.get("hc_mult", 4), attributes.get("hc_sinkhorn_iters", 20),
                       attributes.get("norm_eps", 1e-6), attributes.get("hc_eps", 1e-6), where)


def _sinkhorn_matches(results, inputs, attributes, where=""):
    assert_sinkhorn_matches(results, inputs, attributes.get("hc_mult", 4), attributes.get("hc_sinkhorn_iters", 20),
                            attributes.get("hc_eps", 1e-5), where)


OPS = {
    op.name: op
    for op in (
        Op("hc_post",
           inputs=lambda rng, tokens, d, dtype: post_inputs("rows", rng, tokens, 4, d, dtype),
           attributes={},
           matches=lambda results, inputs, attributes, where="": assert_post_matches(results[0], inputs, where),
           refused=post_refusals.REFUSED),
        Op("hc_pre",
           inputs=lambda rng, tokens, d, dtype: pre_inputs("rows", rng, tokens, 4, d, dtype),
           attributes={"hc_mult": 4, "hc_sinkhorn_iters": 20, "norm_eps": 1e-6, "hc_eps": 1e-5},
           matches=_pre_matches,
           refused=pre_refusals.REFUSED),
        Op("hc_pre_inv_rms",
           inputs=lambda rng, tokens, d, dtype: {"x": x_of("rows", rng, tokens, 4, d, dtype)},
           attributes={"epsilon": 1e-6},
           matches=_inv_rms_matches,
           refused={name: ({"x": x, **attributes}, message) for name, (x, attributes, message) in inv_rms.REFUSED.items()}),
        Op("hc_pre_sinkhorn",
           inputs=lambda rng, tokens, d, dtype: sinkhorn_inputs("rows", rng, tokens, 4, d, dtype, rsqrt_keepdim=len(tokens) == 1),
           attributes={"hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps": 1e-6},
           matches=_sinkhorn_matches,
           refused=sinkhorn_refusals.REFUSED),
    )
}
REFUSED = [(op, case) for op in OPS for case in OPS[op].refused]


def on(device, arguments: dict) -> dict:
    return {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in arguments.items()}


def to_cpu(results) -> tuple[torch.Tensor, ...]:
    return tuple(result.cpu() for result in results)


def assert_same_bits(got, want):
    for index, (one, other) in enumerate(zip(got, want, strict=True)):
        assert torch.equal(one, other), f"result {index} differs"
