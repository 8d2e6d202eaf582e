"""What npu_hc_pre does not accept: one case per check, in the same words on the CPU, on every simulated chip and for fake tensors."""

import refusals
import torch

import custom_ops

OP = "npu_hc_pre"


def good(tokens=(3,), n=4, d=16):
    mix = (2 + n) * n
    return {"x": torch.zeros(*tokens, n, d, dtype=torch.bfloat16), "hc_fn": torch.zeros(mix, n * d), "hc_scale": torch.ones(3),
            "hc_base": torch.zeros(mix)}


case = refusals.cases(OP, good)
Z = torch.zeros
FN = "hc_fn must be [(2 + hc_mult) * hc_mult, hc_mult * d] = [24, 64] to match x [3, 4, 16], got"
REFUSED = {
    "hc_mult0": case("hc_mult must be 1 to 16, got 0", hc_mult=0),
    "hc_mult17": case("hc_mult must be 1 to 16, got 17", hc_mult=17),
    "iters0": case("hc_sinkhorn_iters must be 1 to 2147483647, got 0", hc_sinkhorn_iters=0),
    "iters_huge": case("hc_sinkhorn_iters must be 1 to 2147483647, got 2147483648", hc_sinkhorn_iters=2**31),
    "hc_eps_negative": case("hc_eps must be finite in float32 and >= 0, got -1e-06", hc_eps=-1e-6),
    "hc_eps_nan": case("hc_eps must be finite in float32 and >= 0, got nan", hc_eps=float("nan")),
    "norm_eps_negative": case("norm_eps must be finite in float32 and >= 0, got -1e-06", norm_eps=-1e-6),
    "norm_eps_inf": case("norm_eps must be finite in float32 and >= 0, got inf", norm_eps=float("inf")),
    "norm_eps_overflow": case("norm_eps must be finite in float32 and >= 0, got 1e+39", norm_eps=1e39),
    "x_rank2": case("x must be [T, hc_mult, d] or [b, s, hc_mult, d] with hc_mult = 4, got [4, 16]", x=Z(4, 16)),
    "x_rank5": case("x must be [T, hc_mult, d] or [b, s, hc_mult, d] with hc_mult = 4, got [1, 1, 3, 4, 16]", x=Z(1, 1, 3, 4, 16)),
    "x_streams": case("x must be [T, hc_mult, d] or [b, s, hc_mult, d] with hc_mult = 4, got [3, 5, 16]", x=Z(3, 5, 16)),
    "attr_streams": case("x must be [T, hc_mult, d] or [b, s, hc_mult, d] with hc_mult = 6, got [3, 4, 16]", hc_mult=6),
    "d0": case("d (dim -1 of x) must be at least 1, got x [3, 4, 0]", x=Z(3, 4, 0)),
    "x_float64": case("x dtype float64 is not supported, use bfloat16, float16 or float32", x=Z(3, 4, 16).double()),
    "x_int32": case("x dtype int32 is not supported, use bfloat16, float16 or float32", x=Z(3, 4, 16).int()),
    "fn_rows": case(f"{FN} [23, 64]", hc_fn=Z(23, 64)),
    "fn_columns": case(f"{FN} [24, 63]", hc_fn=Z(24, 63)),
    "fn_transposed": case(f"{FN} [64, 24]", hc_fn=Z(64, 24)),
    "fn_rank": case(f"{FN} [24, 4, 16]", hc_fn=Z(24, 4, 16)),
    "fn_dtype": case("hc_fn dtype bfloat16 is not supported, use float32", hc_fn=Z(24, 64).bfloat16()),
    "fn_form4": case("hc_fn must be [(2 + hc_mult) * hc_mult, hc_mult * d] = [24, 64] to match x [2, 3, 4, 16], got [4, 64]", (2, 3),
                     hc_fn=Z(4, 64)),
    "scale_size": case("hc_scale must be [3], got [1]", hc_scale=Z(1)),
    "scale_dtype": case("hc_scale dtype float64 is not supported, use float32", hc_scale=Z(3).double()),
    "base_size": case("hc_base must be [(2 + hc_mult) * hc_mult] = [24] to match x [3, 4, 16], got [4]", hc_base=Z(4)),
    "base_dtype": case("hc_base dtype float16 is not supported, use float32", hc_base=Z(24).half()),
}

globals().update(refusals.tests(OP, custom_ops.hc_pre, good, REFUSED))
