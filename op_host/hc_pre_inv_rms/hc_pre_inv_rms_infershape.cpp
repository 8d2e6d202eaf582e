#include "register/op_impl_registry.h"

namespace {

// [T, hc_mult, d] -> [T, 1]; [b, s, hc_mult, d] -> [b, s, 1]
ge::graphStatus InferShapeHcPreInvRms(gert::InferShapeContext* context) {
    const gert::Shape* x = context->GetInputShape(0);
    gert::Shape* y = context->GetOutputShape(0);
    if (x == nullptr || y == nullptr) return ge::GRAPH_FAILED;
    if (x->GetDimNum() == 1 && x->GetDim(0) == -2) {  // rank not known yet
        *y = *x;
        return ge::GRAPH_SUCCESS;
    }
    const size_t rank = x->GetDimNum();
    if (rank != 3 && rank != 4) return ge::GRAPH_FAILED;
    y->SetDimNum(rank - 1);
    for (size_t i = 0; i + 2 < rank; ++i) y->SetDim(i, x->GetDim(i));
    y->SetDim(rank - 2, 1);
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataTypeHcPreInvRms(gert::InferDataTypeContext* context) {
    return context->SetOutputDataType(0, ge::DT_FLOAT);
}

}  // namespace

IMPL_OP_INFERSHAPE(HcPreInvRms).InferShape(InferShapeHcPreInvRms).InferDataType(InferDataTypeHcPreInvRms);
