#include "register/op_impl_registry.h"

namespace {

constexpr size_t kResidual = 1;  // input

// y is like residual, [T, hc_mult, d] or [b, s, hc_mult, d]
ge::graphStatus InferShapeHcPost(gert::InferShapeContext* context) {
    const gert::Shape* residual = context->GetInputShape(kResidual);
    gert::Shape* y = context->GetOutputShape(0);
    if (residual == nullptr || y == nullptr) return ge::GRAPH_FAILED;
    const bool rankUnknown = residual->GetDimNum() == 1 && residual->GetDim(0) == -2;
    if (!rankUnknown && residual->GetDimNum() != 3 && residual->GetDimNum() != 4) return ge::GRAPH_FAILED;
    *y = *residual;
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataTypeHcPost(gert::InferDataTypeContext* context) {
    return context->SetOutputDataType(0, context->GetInputDataType(kResidual));
}

}  // namespace

IMPL_OP_INFERSHAPE(HcPost).InferShape(InferShapeHcPost).InferDataType(InferDataTypeHcPost);
