"""GE node of npu_hc_pre_inv_rms. The signature is the schema's, plus the meta_outputs that torchair passes by name."""


def convert(x, *, epsilon=1e-20, meta_outputs=None):
    from torchair import ge

    return ge.custom_op("HcPreInvRms", inputs={"x": x}, attrs={"epsilon": ge.attr.Float(epsilon)}, outputs=["y"])
