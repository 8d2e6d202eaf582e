"""GE node of npu_hc_post."""


def convert(x, residual, post, comb, *, meta_outputs=None):
    from torchair import ge

    return ge.custom_op("HcPost", inputs={"x": x, "residual": residual, "post": post, "comb": comb}, attrs={}, outputs=["y"])
