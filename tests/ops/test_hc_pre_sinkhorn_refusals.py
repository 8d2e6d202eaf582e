"""What npu_hc_pre_sinkhorn does not accept: one case per check, in the same words on the CPU, on every simulated chip and for fake tensors."""

import refusals
import torch

import custom_ops

OP = "npu_hc_pre_sinkhorn"


def good(tokens=(3,), n=4, d=16):
    mix = (2 + n) * n
    return {"mixes": torch.zeros(*tokens, mix), "rsqrt": torch.ones(*tokens, 1), "hc_scale": torch.ones(3),
            "hc_base": torch.zeros(mix), "x": torch.zeros(*tokens, n, d, dtype=torch.bfloat16)}


case = refusals.cases(OP, good)
Z = torch.zeros
REFUSED = {
    "hc_mult0": case("hc_mult must be 1 to 16, got 0", hc_mult=0),
    "hc_mult17": case("hc_mult must be 1 to 16, got 17", hc_mult=17),
    "hc_mult-1": case("hc_mult must be 1 to 16, got -1", hc_mult=-1),
    "iters0": case("hc_sinkhorn_iters must be 1 to 2147483647, got 0", hc_sinkhorn_iters=0),
    "iters-1": case("hc_sinkhorn_iters must be 1 to 2147483647, got -1", hc_sinkhorn_iters=-1),
    "iters_huge": case("hc_sinkhorn_iters must be 1 to 2147483647, got 2147483648", hc_sinkhorn_iters=2**31),
    "eps_negative": case("hc_eps must be finite in float32 and >= 0, got -1e-06", hc_eps=-1e-6),
    "eps_nan": case("hc_eps must be finite in float32 and >= 0, got nan", hc_eps=float("nan")),
    "eps_inf": case("hc_eps must be finite in float32 and >= 0, got inf", hc_eps=float("inf")),
    "x_rank2": case("x must be [T, hc_mult, d] or [b, s, hc_mult, d] with hc_mult = 4, got [4, 16]", x=Z(4, 16)),
    "x_rank5": case("x must be [T, hc_mult, d] or [b, s, hc_mult, d] with hc_mult = 4, got [1, 1, 3, 4, 16]", x=Z(1, 1, 3, 4, 16)),
    "x_streams": case("x must be [T, hc_mult, d] or [b, s, hc_mult, d] with hc_mult = 4, got [3, 5, 16]", x=Z(3, 5, 16)),
    "attr_streams": case("x must be [T, hc_mult, d] or [b, s, hc_mult, d] with hc_mult = 5, got [3, 4, 16]", hc_mult=5),
    "d0": case("d (dim -1 of x) must be at least 1, got x [3, 4, 0]", x=Z(3, 4, 0)),
    "x_float64": case("x dtype float64 is not supported, use bfloat16, float16 or float32", x=Z(3, 4, 16).double()),
    "x_int32": case("x dtype int32 is not supported, use bfloat16, float16 or float32", x=Z(3, 4, 16).int()),
    "mixes_width": case("mixes must be [T, (2 + hc_mult) * hc_mult] = [3, 24] to match x [3, 4, 16], got [3, 23]", mixes=Z(3, 23)),
    "mixes_tokens": case("mixes must be [T, (2 + hc_mult) * hc_mult] = [3, 24] to match x [3, 4, 16], got [4, 24]", mixes=Z(4, 24)),
    "mixes_form": case("mixes must be [T, (2 + hc_mult) * hc_mult] = [3, 24] to match x [3, 4, 16], got [3, 1, 24]", mixes=Z(3, 1, 24)),
    "mixes_form4": case("mixes must be [b, s, (2 + hc_mult) * hc_mult] = [2, 3, 24] to match x [2, 3, 4, 16], got [6, 24]",
                        (2, 3), mixes=Z(6, 24)),
    "mixes_dtype": case("mixes dtype float16 is not supported, use float32", mixes=Z(3, 24).half()),
    "rsqrt_tokens": case("rsqrt must be [T] or [T, 1] = [3, 1] to match x [3, 4, 16], got [4, 1]", rsqrt=Z(4, 1)),
    "rsqrt_flat": case("rsqrt must be [T] or [T, 1] = [3, 1] to match x [3, 4, 16], got [2]", rsqrt=Z(2)),
    "rsqrt_wide": case("rsqrt must be [T] or [T, 1] = [3, 1] to match x [3, 4, 16], got [3, 2]", rsqrt=Z(3, 2)),
    "rsqrt_form4": case("rsqrt must be [b, s] or [b, s, 1] = [2, 3, 1] to match x [2, 3, 4, 16], got [6]", (2, 3), rsqrt=Z(6)),
    "rsqrt_dtype": case("rsqrt dtype bfloat16 is not supported, use float32", rsqrt=Z(3, 1).bfloat16()),
    "rsqrt_flat_dtype": case("rsqrt dtype float64 is not supported, use float32", rsqrt=Z(3).double()),
    "scale_size": case("hc_scale must be [3], got [4]", hc_scale=Z(4)),
    "scale_rank": case("hc_scale must be [3], got [1, 3]", hc_scale=Z(1, 3)),
    "scale_dtype": case("hc_scale dtype float64 is not supported, use float32", hc_scale=Z(3).double()),
    "base_size": case("hc_base must be [(2 + hc_mult) * hc_mult] = [24] to match x [3, 4, 16], got [3]", hc_base=Z(3)),
    "base_rank": case("hc_base must be [(2 + hc_mult) * hc_mult] = [24] to match x [3, 4, 16], got []", hc_base=Z(())),
    "base_dtype": case("hc_base dtype int64 is not supported, use float32", hc_base=Z(24).long()),
}

globals().update(refusals.tests(OP, custom_ops.hc_pre_sinkhorn, good, REFUSED))
