// npu_fused_linear_attention: causal convolution and recurrent state of a linear attention layer.
#include "fused_linear_attention.h"

#include <string>

#include <torch/csrc/stable/library.h>

namespace custom_ops {
namespace {

// A line with the limits, then one per variant: what python/custom_ops/ops/_attn_types.py reads.
std::string AttnTypes() {
    using namespace linear_attention;
    std::string text = std::to_string(kMaxHeadDim) + " " + std::to_string(kMaxTaps);
    for (const AttnType& type : kAttnTypes)
        text += "\n" + std::string(type.name) + " " + Name(type.convolution) + " " + Name(type.state) + " " + Name(type.gate);
    return text;
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(custom, m) {
    m.def("npu_fused_linear_attention(Tensor qkv, Tensor gate, Tensor beta, Tensor conv_weight, Tensor? conv_bias=None, "
          "Tensor(a!)? conv_state=None, Tensor(b!)? recurrent_state=None, *, str attn_type, int num_k_heads, int num_v_heads, "
          "int head_k_dim, int head_v_dim, bool use_qk_l2norm=True, bool gate_fold=False, Tensor? gate_coef=None, Tensor? gate_bias=None, "
          "Tensor? cu_seqlens=None, Tensor? state_indices=None, Tensor? has_initial_state=None, bool token_major=False) -> Tensor");
    m.def("_attn_types() -> str");
}
STABLE_TORCH_LIBRARY_IMPL(custom, CompositeExplicitAutograd, m) { m.impl("_attn_types", TORCH_BOX(&AttnTypes)); }

}  // namespace custom_ops
