// From the tiling context to TileHcPre and back; here the shapes are checked against each other.
#include "../common/gert_support.h"
#include "hc_pre_tiling.h"
#include "register/op_impl_registry.h"

namespace custom_ops {
namespace {

struct HcPreCompileInfo {};

enum Input : size_t { kX, kFn, kScale, kBase, kInputs };
enum Attribute : size_t { kHcMult, kIters, kHcEps, kNormEps };

// The sentence that names what does not fit, or "".
std::string Misfit(const gert::Shape& x, const gert::Shape& fn, const gert::Shape& scale, const gert::Shape& base, int64_t streams) {
    const int64_t mix = (2 + streams) * streams;
    const size_t rank = x.GetDimNum();
    if (rank != 3 && rank != 4) return "x must be [T, hc_mult, d] or [b, s, hc_mult, d], got " + Text(x);
    if (x.GetDim(rank - 2) != streams)
        return "x must have hc_mult = " + std::to_string(streams) + " streams (dimension -2), got " + Text(x);
    const int64_t columns = streams * x.GetDim(rank - 1);
    if (fn.GetDimNum() != 2 || fn.GetDim(0) != mix || fn.GetDim(1) != columns)
        return "hc_fn must be [(2 + hc_mult) * hc_mult, hc_mult * d] = [" + std::to_string(mix) + ", " + std::to_string(columns) +
               "] for x " + Text(x) + ", got " + Text(fn);
    if (scale.GetShapeSize() != 3) return "hc_scale must hold 3 values (pre, post, comb), got " + Text(scale);
    if (base.GetShapeSize() != mix)
        return "hc_base must hold (2 + hc_mult) * hc_mult = " + std::to_string(mix) + " values, got " + Text(base);
    return "";
}

HcPreType TypeOf(ge::DataType type) {
    return type == ge::DT_BF16 ? HcPreType::BFloat16 : type == ge::DT_FLOAT16 ? HcPreType::Float16 : HcPreType::Float32;
}

ge::graphStatus TilingHcPre(gert::TilingContext* context) {
    const gert::StorageShape* shapes[kInputs];
    for (size_t i = 0; i < kInputs; ++i)
        if ((shapes[i] = context->GetInputShape(i)) == nullptr) return Refuse("hc_pre: an input is missing");
    const auto* xDesc = context->GetInputDesc(kX);
    const auto* attrs = context->GetAttrs();
    const int64_t* hcMult = attrs == nullptr ? nullptr : attrs->GetInt(kHcMult);
    const int64_t* iters = attrs == nullptr ? nullptr : attrs->GetInt(kIters);
    const float* hcEps = attrs == nullptr ? nullptr : attrs->GetFloat(kHcEps);
    const float* normEps = attrs == nullptr ? nullptr : attrs->GetFloat(kNormEps);
    if (xDesc == nullptr || hcMult == nullptr || iters == nullptr || hcEps == nullptr || normEps == nullptr)
        return Refuse("hc_pre: an attribute is missing");

    const gert::Shape& x = shapes[kX]->GetStorageShape();
    const std::string misfit = Misfit(x, shapes[kFn]->GetStorageShape(), shapes[kScale]->GetStorageShape(),
                                      shapes[kBase]->GetStorageShape(), *hcMult);
    if (!misfit.empty()) return Refuse("hc_pre: " + misfit);

    HcPreShape shape{};
    shape.tokens = static_cast<uint64_t>(LeadingSize(x, 2));
    shape.hcMult = *hcMult;
    shape.hidden = static_cast<uint64_t>(x.GetDim(x.GetDimNum() - 1));
    shape.sinkhornIters = *iters;
    shape.type = TypeOf(xDesc->GetDataType());
    shape.normEps = *normEps;
    shape.hcEps = *hcEps;
    const Result<HcPrePlan> plan = TileHcPre(shape, ChipOf(context));
    if (!plan) return Refuse(plan.Message());
    context->SetScheduleMode(1);  // batch: SyncAll needs all blocks on a core at once
    return Accept(context, "hc_pre", plan->data, plan->blockDim, plan->key, LibraryWorkspace(context) + plan->workspaceBytes);
}

ge::graphStatus ParseHcPre(gert::TilingParseContext*) { return ge::GRAPH_SUCCESS; }

}  // namespace

IMPL_OP_OPTILING(HcPre).Tiling(TilingHcPre).TilingParse<HcPreCompileInfo>(ParseHcPre);

}  // namespace custom_ops
