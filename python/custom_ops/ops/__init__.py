"""One module per operator: NAME, OP_TYPE, check, fake, to_opdef and the gradient. Importing this package registers all of them."""

from . import fused_linear_attention, hc_post, hc_pre, hc_pre_inv_rms, hc_pre_sinkhorn

#: Modules by the operator's name in torch.ops.custom.
BY_NAME = {module.NAME: module for module in (fused_linear_attention, hc_post, hc_pre, hc_pre_inv_rms, hc_pre_sinkhorn)}
