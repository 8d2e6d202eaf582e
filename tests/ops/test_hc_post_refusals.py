"""What npu_hc_post does not accept: one case per check, in the same words on the CPU, on every simulated chip and for fake tensors."""

import refusals
import torch

import custom_ops

OP = "npu_hc_post"


def good(tokens=(3,), n=4, d=16):
    return {"x": torch.zeros(*tokens, d).bfloat16(), "residual": torch.zeros(*tokens, n, d).bfloat16(),
            "post": torch.zeros(*tokens, n), "comb": torch.zeros(*tokens, n, n)}


case = refusals.cases(OP, good)
Z = torch.zeros
REFUSED = {
    "residual_rank2": case("residual must be [T, hc_mult, d] or [b, s, hc_mult, d], got [4, 16]", residual=Z(4, 16).bfloat16()),
    "residual_rank5": case("residual must be [T, hc_mult, d] or [b, s, hc_mult, d], got [1, 1, 3, 4, 16]", residual=Z(1, 1, 3, 4, 16).bfloat16()),
    "streams0": case("hc_mult (dim -2 of residual) must be 1 to 16, got residual [3, 0, 16]", residual=Z(3, 0, 16).bfloat16()),
    "streams17": case("hc_mult (dim -2 of residual) must be 1 to 16, got residual [3, 17, 16]", residual=Z(3, 17, 16).bfloat16()),
    "d0": case("d (dim -1 of residual) must be at least 1, got residual [3, 4, 0]", residual=Z(3, 4, 0).bfloat16()),
    "residual_float64": case("residual dtype float64 is not supported, use bfloat16, float16 or float32", residual=Z(3, 4, 16).double()),
    "residual_int8": case("residual dtype int8 is not supported, use bfloat16, float16 or float32", residual=Z(3, 4, 16).char()),
    "post_float64": case("post dtype float64 is not supported, use bfloat16, float16 or float32", post=Z(3, 4).double()),
    "x_dtype": case("x must have the dtype of residual, bfloat16, got float16", x=Z(3, 16).half()),
    "comb_dtype": case("comb must have the dtype of post, float32, got bfloat16", comb=Z(3, 4, 4).bfloat16()),
    "x_tokens": case("x must be [T, d] = [3, 16] to match residual [3, 4, 16], got [2, 16]", x=Z(2, 16).bfloat16()),
    "x_hidden": case("x must be [T, d] = [3, 16] to match residual [3, 4, 16], got [3, 17]", x=Z(3, 17).bfloat16()),
    "x_form": case("x must be [T, d] = [3, 16] to match residual [3, 4, 16], got [3, 1, 16]", x=Z(3, 1, 16).bfloat16()),
    "x_form4": case("x must be [b, s, d] = [2, 3, 16] to match residual [2, 3, 4, 16], got [6, 16]", (2, 3), x=Z(6, 16).bfloat16()),
    "post_tokens": case("post must be [T, hc_mult] = [3, 4] to match residual [3, 4, 16], got [1, 4]", post=Z(1, 4)),
    "post_streams": case("post must be [T, hc_mult] = [3, 4] to match residual [3, 4, 16], got [3, 5]", post=Z(3, 5)),
    "post_form4": case("post must be [b, s, hc_mult] = [2, 3, 4] to match residual [2, 3, 4, 16], got [6, 4]", (2, 3), post=Z(6, 4)),
    "comb_flat": case("comb must be [T, hc_mult, hc_mult] = [3, 4, 4] to match residual [3, 4, 16], got [3, 16]", comb=Z(3, 16)),
    "comb_streams": case("comb must be [T, hc_mult, hc_mult] = [3, 4, 4] to match residual [3, 4, 16], got [3, 4, 3]", comb=Z(3, 4, 3)),
    "comb_form4": case("comb must be [b, s, hc_mult, hc_mult] = [2, 3, 4, 4] to match residual [2, 3, 4, 16], got [2, 3, 4, 5]", (2, 3),
                       comb=Z(2, 3, 4, 5)),
}

globals().update(refusals.tests(OP, custom_ops.hc_post, good, REFUSED))
