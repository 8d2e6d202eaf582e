// From the tiling context to TileHcPreInvRms and back.
#include "../common/gert_support.h"
#include "hc_pre_inv_rms_tiling.h"
#include "register/op_impl_registry.h"

namespace custom_ops {
namespace {

struct HcPreInvRmsCompileInfo {};

ge::graphStatus TilingHcPreInvRms(gert::TilingContext* context) {
    const gert::StorageShape* xShape = context->GetInputShape(0);
    const auto* xDesc = context->GetInputDesc(0);
    const auto* attrs = context->GetAttrs();
    const float* epsilon = attrs == nullptr ? nullptr : attrs->GetFloat(0);
    if (xShape == nullptr || xDesc == nullptr || epsilon == nullptr) return Refuse("hc_pre_inv_rms: x or epsilon is missing");

    const gert::Shape& x = xShape->GetStorageShape();
    const size_t rank = x.GetDimNum();
    if (rank != 3 && rank != 4)
        return Refuse("hc_pre_inv_rms: x must be [T, hc_mult, d] or [b, s, hc_mult, d], got " + Text(x));
    HcPreInvRmsShape shape{};
    shape.tokens = static_cast<uint64_t>(LeadingSize(x, 2));
    shape.rowElements = static_cast<uint64_t>(x.GetDim(rank - 2)) * static_cast<uint64_t>(x.GetDim(rank - 1));
    shape.elementBytes = xDesc->GetDataType() == ge::DT_FLOAT ? 4 : 2;
    shape.epsilon = *epsilon;

    const Result<HcPreInvRmsTilingData> plan = TileHcPreInvRms(shape, ChipOf(context));
    if (!plan) return Refuse(plan.Message());
    return Accept(context, "hc_pre_inv_rms", *plan, plan->usedCores);
}

ge::graphStatus ParseHcPreInvRms(gert::TilingParseContext*) { return ge::GRAPH_SUCCESS; }

}  // namespace

IMPL_OP_OPTILING(HcPreInvRms).Tiling(TilingHcPreInvRms).TilingParse<HcPreInvRmsCompileInfo>(ParseHcPreInvRms);

}  // namespace custom_ops
