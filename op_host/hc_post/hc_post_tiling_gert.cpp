// From the tiling context to TileHcPost and back; here the shapes are checked against each other.
#include "../common/gert_support.h"
#include "hc_post_tiling.h"
#include "register/op_impl_registry.h"

namespace custom_ops {
namespace {

struct HcPostCompileInfo {};

enum Input : size_t { kX, kResidual, kPost, kComb, kInputs };

// The sentence that names what does not fit, or "".
std::string Misfit(const gert::Shape& x, const gert::Shape& residual, const gert::Shape& post, const gert::Shape& comb) {
    const size_t rank = residual.GetDimNum();
    if (rank != 3 && rank != 4) return "residual must be [T, hc_mult, d] or [b, s, hc_mult, d], got " + Text(residual);
    const std::string given = " for residual " + Text(residual) + ", got ";
    const int64_t streams = residual.GetDim(rank - 2), hidden = residual.GetDim(rank - 1);
    const auto last = [](const gert::Shape& shape, size_t back) { return shape.GetDim(shape.GetDimNum() - back); };
    if (x.GetDimNum() + 1 != rank || !SameLeading(x, 1, residual, 2) || last(x, 1) != hidden)
        return "x must have the leading dimensions and the d of residual" + given + Text(x);
    if (post.GetDimNum() + 1 != rank || !SameLeading(post, 1, residual, 2) || last(post, 1) != streams)
        return "post must hold one value per token and stream" + given + Text(post);
    if (comb.GetDimNum() != rank || !SameLeading(comb, 2, residual, 2) || last(comb, 1) != streams || last(comb, 2) != streams)
        return "comb must hold hc_mult x hc_mult values per token" + given + Text(comb);
    return "";
}

ge::graphStatus TilingHcPost(gert::TilingContext* context) {
    const gert::StorageShape* shapes[kInputs];
    for (size_t i = 0; i < kInputs; ++i)
        if ((shapes[i] = context->GetInputShape(i)) == nullptr) return Refuse("hc_post: an input is missing");
    const auto *xDesc = context->GetInputDesc(kX), *postDesc = context->GetInputDesc(kPost);
    if (xDesc == nullptr || postDesc == nullptr) return Refuse("hc_post: the type of an input is missing");

    const gert::Shape& residual = shapes[kResidual]->GetStorageShape();
    const std::string misfit = Misfit(shapes[kX]->GetStorageShape(), residual, shapes[kPost]->GetStorageShape(),
                                      shapes[kComb]->GetStorageShape());
    if (!misfit.empty()) return Refuse("hc_post: " + misfit);

    HcPostShape shape{};
    shape.tokens = static_cast<uint64_t>(LeadingSize(residual, 2));
    shape.hcMult = residual.GetDim(residual.GetDimNum() - 2);
    shape.hidden = static_cast<uint64_t>(residual.GetDim(residual.GetDimNum() - 1));
    shape.elementBytes = xDesc->GetDataType() == ge::DT_FLOAT ? 4 : 2;
    shape.weightBytes = postDesc->GetDataType() == ge::DT_FLOAT ? 4 : 2;
    const Result<HcPostTilingData> plan = TileHcPost(shape, ChipOf(context));
    if (!plan) return Refuse(plan.Message());
    return Accept(context, "hc_post", *plan, plan->usedCores);
}

ge::graphStatus ParseHcPost(gert::TilingParseContext*) { return ge::GRAPH_SUCCESS; }

}  // namespace

IMPL_OP_OPTILING(HcPost).Tiling(TilingHcPost).TilingParse<HcPostCompileInfo>(ParseHcPost);

}  // namespace custom_ops
