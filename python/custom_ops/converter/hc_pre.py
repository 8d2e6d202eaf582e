"""GE node of npu_hc_pre. The attributes are given by name: the OpDef has hc_eps before norm_eps, the schema after it."""


def convert(x, hc_fn, hc_scale, hc_base, *, hc_mult=4, hc_sinkhorn_iters=20, norm_eps=1e-6, hc_eps=1e-6, meta_outputs=None):
    from torchair import ge

    return ge.custom_op(
        "HcPre",
        inputs={"x": x, "hc_fn": hc_fn, "hc_scale": hc_scale, "hc_base": hc_base},
        attrs={"hc_mult": ge.attr.Int(hc_mult), "hc_sinkhorn_iters": ge.attr.Int(hc_sinkhorn_iters), "hc_eps": ge.attr.Float(hc_eps),
               "norm_eps": ge.attr.Float(norm_eps)},
        outputs=["y", "post", "comb_frag"],
    )
