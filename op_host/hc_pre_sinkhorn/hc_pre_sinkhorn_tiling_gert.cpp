// From the tiling context to TileHcPreSinkhorn and back; here the shapes are checked against each other.
#include "../common/gert_support.h"
#include "hc_pre_sinkhorn_tiling.h"
#include "register/op_impl_registry.h"

namespace custom_ops {
namespace {

struct HcPreSinkhornCompileInfo {};

enum Input : size_t { kMixes, kRsqrt, kScale, kBase, kX };
enum Attribute : size_t { kHcMult, kIters, kEps };

// The sentence that names what does not fit, or "".
std::string Misfit(const gert::Shape& mixes, const gert::Shape& rsqrt, const gert::Shape& scale, const gert::Shape& base,
                   const gert::Shape& x, int64_t streams) {
    const std::string given = " for x " + Text(x) + ", got ";
    const int64_t mix = (2 + streams) * streams;
    if (x.GetDimNum() != 3 && x.GetDimNum() != 4)
        return "x must be [T, hc_mult, d] or [b, s, hc_mult, d], got " + Text(x);
    if (x.GetDim(x.GetDimNum() - 2) != streams)
        return "x must have hc_mult = " + std::to_string(streams) + " streams (dimension -2), got " + Text(x);
    if (mixes.GetDimNum() + 1 != x.GetDimNum() || !SameLeading(mixes, 1, x, 2) || mixes.GetDim(mixes.GetDimNum() - 1) != mix)
        return "mixes must have the leading dimensions of x and (2 + hc_mult) * hc_mult = " + std::to_string(mix) + " columns" +
               given + Text(mixes);
    const bool flat = rsqrt.GetDimNum() + 2 == x.GetDimNum() && SameLeading(rsqrt, 0, x, 2);
    const bool column = rsqrt.GetDimNum() + 1 == x.GetDimNum() && SameLeading(rsqrt, 1, x, 2) &&
                        rsqrt.GetDim(rsqrt.GetDimNum() - 1) == 1;
    if (!flat && !column) return "rsqrt must be one value per token, with or without a trailing dimension of 1," + given + Text(rsqrt);
    if (scale.GetShapeSize() != 3) return "hc_scale must hold 3 values (pre, post, comb), got " + Text(scale);
    if (base.GetShapeSize() != mix)
        return "hc_base must hold (2 + hc_mult) * hc_mult = " + std::to_string(mix) + " values, got " + Text(base);
    return "";
}

ge::graphStatus TilingHcPreSinkhorn(gert::TilingContext* context) {
    const gert::StorageShape* shapes[kX + 1];
    for (size_t i = 0; i <= kX; ++i)
        if ((shapes[i] = context->GetInputShape(i)) == nullptr) return Refuse("hc_pre_sinkhorn: an input is missing");
    const auto* xDesc = context->GetInputDesc(kX);
    const auto* attrs = context->GetAttrs();
    const int64_t* hcMult = attrs == nullptr ? nullptr : attrs->GetInt(kHcMult);
    const int64_t* iters = attrs == nullptr ? nullptr : attrs->GetInt(kIters);
    const float* eps = attrs == nullptr ? nullptr : attrs->GetFloat(kEps);
    if (xDesc == nullptr || hcMult == nullptr || iters == nullptr || eps == nullptr)
        return Refuse("hc_pre_sinkhorn: an attribute is missing");

    const gert::Shape& x = shapes[kX]->GetStorageShape();
    const std::string misfit =
        Misfit(shapes[kMixes]->GetStorageShape(), shapes[kRsqrt]->GetStorageShape(), shapes[kScale]->GetStorageShape(),
               shapes[kBase]->GetStorageShape(), x, *hcMult);
    if (!misfit.empty()) return Refuse("hc_pre_sinkhorn: " + misfit);

    HcPreSinkhornShape shape{};
    shape.tokens = static_cast<uint64_t>(LeadingSize(x, 2));
    shape.hcMult = *hcMult;
    shape.hidden = static_cast<uint64_t>(x.GetDim(x.GetDimNum() - 1));
    shape.sinkhornIters = *iters;
    shape.elementBytes = xDesc->GetDataType() == ge::DT_FLOAT ? 4 : 2;
    shape.hcEps = *eps;
    const Result<HcPreSinkhornTilingData> plan = TileHcPreSinkhorn(shape, ChipOf(context));
    if (!plan) return Refuse(plan.Message());
    return Accept(context, "hc_pre_sinkhorn", *plan, plan->usedCores);
}

ge::graphStatus ParseHcPreSinkhorn(gert::TilingParseContext*) { return ge::GRAPH_SUCCESS; }

}  // namespace

IMPL_OP_OPTILING(HcPreSinkhorn).Tiling(TilingHcPreSinkhorn).TilingParse<HcPreSinkhornCompileInfo>(ParseHcPreSinkhorn);

}  // namespace custom_ops
