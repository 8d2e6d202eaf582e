"""What hc_head does not accept, in the words of the operators."""

import refusals
import torch

import custom_ops

OP = "hc_head"


def good(tokens=(3,), n=4, d=16):
    return {"x": torch.zeros(*tokens, n, d, dtype=torch.bfloat16), "hc_fn": torch.zeros(n, n * d), "hc_scale": torch.ones(1),
            "hc_base": torch.zeros(n)}


case = refusals.cases(OP, good)
Z = torch.zeros
REFUSED = {
    "hc_eps": case("hc_eps must be finite in float32 and >= 0, got -1", hc_eps=-1.0),
    "norm_eps": case("norm_eps must be finite in float32 and >= 0, got nan", norm_eps=float("nan")),
    "x_rank2": case("x must be [T, hc_mult, d] or [b, s, hc_mult, d], got [4, 16]", x=Z(4, 16)),
    "x_float64": case("x dtype float64 is not supported, use bfloat16, float16 or float32", x=Z(3, 4, 16).double()),
    "streams17": case("hc_mult (dim -2 of x) must be 1 to 16, got x [3, 17, 16]", x=Z(3, 17, 16)),
    "d0": case("d (dim -1 of x) must be at least 1, got x [3, 4, 0]", x=Z(3, 4, 0)),
    "fn_of_a_site": case("hc_fn must be [hc_mult, hc_mult * d] = [4, 64] to match x [3, 4, 16], got [24, 64]", hc_fn=Z(24, 64)),
    "fn_dtype": case("hc_fn dtype bfloat16 is not supported, use float32", hc_fn=Z(4, 64).bfloat16()),
    "scale_of_a_site": case("hc_scale must be [1], got [3]", hc_scale=Z(3)),
    "base": case("hc_base must be [hc_mult] = [4] to match x [2, 3, 4, 16], got [24]", (2, 3), hc_base=Z(24)),
}

globals().update(refusals.tests(OP, custom_ops.hc_head, good, REFUSED))
