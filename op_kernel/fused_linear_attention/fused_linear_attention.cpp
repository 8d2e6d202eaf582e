// qkv -> convolution -> gated delta rule, kda or gate -> attn_out; conv_state and recurrent_state in place.
#include "chunked.h"
#if defined(__DAV_C310__)
#include "recurrent_regbase.h"
#else
#include "recurrent_membase.h"
#endif
#include "short_conv.h"

namespace hc {

#if defined(__DAV_C310__)
template <typename T, typename G>
using Recurrent = RecurrentRegbase<T, G>;
#else
template <typename T, typename G>
using Recurrent = RecurrentMembase<T, G>;
#endif

// Op: Recurrent, ShortConv
template <typename Op>
__aicore__ inline void Run(const LinearAttentionTensors& tensors, const FusedLinearAttentionTilingData& plan, AscendC::TPipe* pipe) {
    FusedLinearAttentionTilingData known = plan;
    if (tensors.cuSeqlens != nullptr) {
        BoundaryCheck check;
        known.sequences = check.Count(tensors.cuSeqlens, plan, pipe);
        pipe->Reset();
    }
    Op op;
    op.Init(tensors, &known, pipe);
    if (known.sequences != 0) op.Process();
    op.FillRest();
}

template <typename T, typename G>
__aicore__ inline void RunChunked(const LinearAttentionTensors& tensors, GM_ADDR workspace, const FusedLinearAttentionTilingData& plan,
                                  AscendC::TPipe* pipe) {
    Chunked<T, G> op;
    op.Init(tensors, workspace, &plan, pipe);
    op.Process();
}

}  // namespace hc

extern "C" __global__ __aicore__ void fused_linear_attention(GM_ADDR qkv, GM_ADDR gate, GM_ADDR beta, GM_ADDR convWeight, GM_ADDR convBias,
                                                             GM_ADDR convState, GM_ADDR recurrentState, GM_ADDR gateCoef, GM_ADDR gateBias,
                                                             GM_ADDR cuSeqlens, GM_ADDR stateIndices, GM_ADDR hasInitialState,
                                                             GM_ADDR attnOut, GM_ADDR convStateOut, GM_ADDR recurrentStateOut,
                                                             GM_ADDR workspace, GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(FusedLinearAttentionTilingData);
    GET_TILING_DATA(plan, tiling);
    KERNEL_TASK_TYPE(2, KERNEL_TYPE_MIX_AIC_1_2);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);  // SyncAll needs the inter-core scheduler
    if (plan.sequences == 0) return;
    AscendC::TPipe pipe;
    const hc::LinearAttentionTensors tensors{
        qkv,      gate,      beta,         convWeight,      convBias, convState,    recurrentState,   gateCoef,
        gateBias, cuSeqlens, stateIndices, hasInitialState, attnOut,  convStateOut, recurrentStateOut};
    if (TILING_KEY_IS(0)) {
        hc::Run<hc::ShortConv<DTYPE_QKV>>(tensors, plan, &pipe);
    } else if (TILING_KEY_IS(1)) {
        hc::Run<hc::Recurrent<DTYPE_QKV, DTYPE_GATE>>(tensors, plan, &pipe);
    } else if (TILING_KEY_IS(2)) {
        hc::RunChunked<DTYPE_QKV, DTYPE_GATE>(tensors, AscendC::GetUserWorkspace(workspace), plan, &pipe);
    }
}
