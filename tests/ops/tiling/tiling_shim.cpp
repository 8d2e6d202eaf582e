// C entry points for the pure tiling functions: 0 and a plan, or 1 and the sentence that says why not.
#include <cstring>

#include "op_host/fused_linear_attention/fused_linear_attention_tiling.h"
#include "op_host/hc_post/hc_post_tiling.h"
#include "op_host/hc_pre/hc_pre_tiling.h"
#include "op_host/hc_pre_inv_rms/hc_pre_inv_rms_tiling.h"
#include "op_host/hc_pre_sinkhorn/hc_pre_sinkhorn_tiling.h"

namespace {

template <typename Plan>
int Answer(const custom_ops::Result<Plan>& result, Plan* plan, char* message, uint64_t capacity) {
    if (result) {
        *plan = *result;
        return 0;
    }
    std::strncpy(message, result.Message().c_str(), capacity - 1);
    return 1;
}

}  // namespace

extern "C" {

uint64_t PostPlanBytes() { return sizeof(HcPostTilingData); }
uint64_t InvRmsPlanBytes() { return sizeof(HcPreInvRmsTilingData); }
uint64_t LinearAttentionPlanBytes() { return sizeof(custom_ops::FusedLinearAttentionPlan); }
uint64_t PrePlanBytes() { return sizeof(custom_ops::HcPrePlan); }
uint64_t SinkhornPlanBytes() { return sizeof(HcPreSinkhornTilingData); }

int PlanPost(uint64_t tokens, int64_t hcMult, uint64_t hidden, uint32_t elementBytes, uint32_t weightBytes, uint32_t cores,
             uint64_t ubBytes, int regbase, HcPostTilingData* plan, char* message, uint64_t capacity) {
    return Answer(custom_ops::TileHcPost({tokens, hcMult, hidden, elementBytes, weightBytes}, {"chip", cores, ubBytes, regbase != 0}),
                  plan, message, capacity);
}

int PlanPre(uint64_t tokens, int64_t hcMult, uint64_t hidden, int64_t iters, uint32_t type, float normEps, float hcEps, uint32_t cores,
            uint64_t ubBytes, int regbase, uint32_t cubeCores, uint64_t l1, uint64_t l0a, uint64_t l0b, uint64_t l0c, uint64_t l2,
            custom_ops::HcPrePlan* plan, char* message, uint64_t capacity) {
    return Answer(custom_ops::TileHcPre({tokens, hcMult, hidden, iters, static_cast<custom_ops::HcPreType>(type), normEps, hcEps},
                                        {"chip", cores, ubBytes, regbase != 0, cubeCores, l1, l0a, l0b, l0c, l2}),
                  plan, message, capacity);
}

int PlanInvRms(uint64_t tokens, uint64_t rowElements, uint32_t elementBytes, float epsilon, uint32_t cores, uint64_t ubBytes,
               int regbase, HcPreInvRmsTilingData* plan, char* message, uint64_t capacity) {
    return Answer(custom_ops::TileHcPreInvRms({tokens, rowElements, elementBytes, epsilon}, {"chip", cores, ubBytes, regbase != 0}),
                  plan, message, capacity);
}

int PlanSinkhorn(uint64_t tokens, int64_t hcMult, uint64_t hidden, int64_t iters, uint32_t elementBytes, float eps, uint32_t cores,
                 uint64_t ubBytes, int regbase, HcPreSinkhornTilingData* plan, char* message, uint64_t capacity) {
    return Answer(custom_ops::TileHcPreSinkhorn({tokens, hcMult, hidden, iters, elementBytes, eps},
                                                {"chip", cores, ubBytes, regbase != 0}),
                  plan, message, capacity);
}

int PlanLinearAttention(const char* type, int64_t keyHeads, int64_t valueHeads, int64_t keyDim, int64_t valueDim, uint64_t batch,
                        uint64_t length, uint64_t sequences, int packed, uint64_t slots, int64_t taps, int convState, int norm, int fold,
                        uint32_t elementBytes, uint32_t gateBytes, uint32_t cores, uint64_t ubBytes, int regbase, uint32_t cubeCores,
                        custom_ops::FusedLinearAttentionPlan* plan, char* message, uint64_t capacity) {
    const custom_ops::FusedLinearAttentionShape shape{
        custom_ops::linear_attention::FindAttnType(type), {keyHeads, valueHeads, keyDim, valueDim}, batch, length, sequences, packed != 0,
        slots, taps, convState != 0, norm != 0, fold != 0, elementBytes, gateBytes};
    return Answer(custom_ops::TileFusedLinearAttention(shape, {"chip", cores, ubBytes, regbase != 0, cubeCores}), plan, message, capacity);
}

}
