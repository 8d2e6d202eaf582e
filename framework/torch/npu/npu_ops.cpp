// The operators on NPU tensors (PrivateUse1): the same checks as on the CPU, then aclnn.
#include <tuple>

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "../fused_linear_attention.h"
#include "../hc_post.h"
#include "../hc_pre.h"
#include "../hc_pre_inv_rms.h"
#include "../hc_pre_sinkhorn.h"
#include "aclnn_op.h"

namespace custom_ops::npu {
namespace {

// gate and beta as the OpDef takes them: both in the dtype of qkv or both float32.
Tensor InDtype(const Tensor& tensor, ScalarType dtype) {
    return tensor.scalar_type() == dtype ? tensor : torch::stable::to(tensor, dtype);
}

// Indices as the OpDef takes them.
OptionalTensor Int32(const OptionalTensor& indices) {
    return indices && indices->scalar_type() == ScalarType::Long ? OptionalTensor(SaturatedToInt32(*indices)) : indices;
}

Tensor FusedLinearAttention(const Tensor& qkv, const Tensor& gate, const Tensor& beta, const Tensor& convWeight,
                            const OptionalTensor& convBias, const OptionalTensor& convState, const OptionalTensor& recurrentState,
                            const std::string& attnType, int64_t keyHeads, int64_t valueHeads, int64_t keyDim, int64_t valueDim, bool useQkL2norm, bool gateFold,
                            const OptionalTensor& gateCoef, const OptionalTensor& gateBias, const OptionalTensor& cuSeqlens,
                            const OptionalTensor& stateIndices, const OptionalTensor& hasInitialState, bool tokenMajor) {
    const LinearAttentionShape shape = CheckLinearAttention(
        {qkv, gate, beta, convWeight, convBias, convState, recurrentState, gateCoef, gateBias, cuSeqlens, stateIndices, hasInitialState},
        {attnType, {keyHeads, valueHeads, keyDim, valueDim}, useQkL2norm, gateFold, tokenMajor});
    const OnDeviceOf device(qkv);
    const int64_t sizes[] = {shape.batch, shape.length, valueHeads, valueDim};
    Tensor out = NewEmpty(qkv, Sizes(sizes, 4), qkv.scalar_type());
    const ScalarType gates = gate.scalar_type() == beta.scalar_type() ? gate.scalar_type() : ScalarType::Float;
    const OptionalTensor none, ends = Int32(cuSeqlens), slots = Int32(stateIndices);
    static const AclnnOp op("FusedLinearAttention");
    op(tokenMajor ? qkv : torch::stable::transpose(qkv, 1, 2), InDtype(gate, gates), InDtype(beta, gates), convWeight, convBias,
       InPlace{shape.taps == 1 ? none : convState}, InPlace{recurrentState}, gateCoef, gateBias, ends, slots, hasInitialState, attnType,
       keyHeads, valueHeads, keyDim, valueDim, useQkL2norm, gateFold, Out{out});
    return out;
}

Tensor HcPost(const Tensor& x, const Tensor& residual, const Tensor& post, const Tensor& comb) {
    const HcPostShape shape = CheckHcPost({x, residual, post, comb});
    const OnDeviceOf device(x);
    Tensor y = NewEmpty(residual, shape.y, residual.scalar_type());
    if (shape.tokens == 0) return y;
    static const AclnnOp op("HcPost");
    op(x, residual, post, comb, Out{y});
    return y;
}

std::tuple<Tensor, Tensor, Tensor> HcPre(const Tensor& x, const Tensor& hcFn, const Tensor& hcScale, const Tensor& hcBase, int64_t hcMult,
                                         int64_t iterations, double normEps, double hcEps) {
    const HcMixingShape shape = CheckHcPre({x, hcFn, hcScale, hcBase}, {hcMult, iterations, normEps, hcEps});
    const OnDeviceOf device(x);
    Tensor y = NewEmpty(x, shape.y, x.scalar_type());
    Tensor post = NewEmpty(x, shape.post, ScalarType::Float);
    Tensor comb = NewEmpty(x, shape.comb, ScalarType::Float);
    if (shape.tokens != 0) {
        static const AclnnOp op("HcPre");
        op(x, hcFn, hcScale, hcBase, hcMult, iterations, hcEps, normEps, Out{y}, Out{post}, Out{comb});  // hcEps first, as in the OpDef
    }
    return {std::move(y), std::move(post), std::move(comb)};
}

Tensor HcPreInvRms(const Tensor& x, double epsilon) {
    const HcPreInvRmsShape shape = CheckHcPreInvRms(x, epsilon);
    const OnDeviceOf device(x);
    Tensor y = NewEmpty(x, shape.y, ScalarType::Float);
    if (shape.tokens == 0) return y;
    static const AclnnOp op("HcPreInvRms");
    op(x, epsilon, Out{y});
    return y;
}

std::tuple<Tensor, Tensor, Tensor> HcPreSinkhorn(const Tensor& mixes, const Tensor& rsqrt, const Tensor& hcScale, const Tensor& hcBase,
                                                 const Tensor& x, int64_t hcMult, int64_t iterations, double eps) {
    const HcMixingShape shape = CheckHcPreSinkhorn({mixes, rsqrt, hcScale, hcBase, x}, hcMult, iterations, eps);
    const OnDeviceOf device(x);
    Tensor y = NewEmpty(x, shape.y, x.scalar_type());
    Tensor post = NewEmpty(x, shape.post, ScalarType::Float);
    Tensor comb = NewEmpty(x, shape.comb, ScalarType::Float);
    if (shape.tokens != 0) {
        static const AclnnOp op("HcPreSinkhorn");
        op(mixes, rsqrt, hcScale, hcBase, x, hcMult, iterations, eps, Out{y}, Out{post}, Out{comb});
    }
    return {std::move(y), std::move(post), std::move(comb)};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(custom, PrivateUse1, m) {
    m.impl("npu_fused_linear_attention", TORCH_BOX(&FusedLinearAttention));
    m.impl("npu_hc_post", TORCH_BOX(&HcPost));
    m.impl("npu_hc_pre", TORCH_BOX(&HcPre));
    m.impl("npu_hc_pre_inv_rms", TORCH_BOX(&HcPreInvRms));
    m.impl("npu_hc_pre_sinkhorn", TORCH_BOX(&HcPreSinkhorn));
}

}  // namespace custom_ops::npu
