"""GE node of npu_hc_pre_sinkhorn. hc_mult, hc_sinkhorn_iters and hc_eps are positional, as in the schema: fx nodes pass them so."""


def convert(mixes, rsqrt, hc_scale, hc_base, x, hc_mult=4, hc_sinkhorn_iters=20, hc_eps=1e-5, *, meta_outputs=None):
    from torchair import ge

    return ge.custom_op(
        "HcPreSinkhorn",
        inputs={"mixes": mixes, "rsqrt": rsqrt, "hc_scale": hc_scale, "hc_base": hc_base, "x": x},
        # All attributes, always: the OpDef's default of hc_eps is not the schema's.
        attrs={"hc_mult": ge.attr.Int(hc_mult), "hc_sinkhorn_iters": ge.attr.Int(hc_sinkhorn_iters), "hc_eps": ge.attr.Float(hc_eps)},
        outputs=["y", "post", "comb_frag"],
    )
