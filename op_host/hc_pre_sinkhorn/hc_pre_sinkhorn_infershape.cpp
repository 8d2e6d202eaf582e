#include "register/op_impl_registry.h"

namespace {

constexpr size_t kX = 4;                       // input
constexpr size_t kY = 0, kPost = 1, kComb = 2;  // outputs

// x [..., n, d] -> y [..., d], post [..., n], comb_frag [..., n, n]
ge::graphStatus InferShapeHcPreSinkhorn(gert::InferShapeContext* context) {
    const gert::Shape* x = context->GetInputShape(kX);
    gert::Shape* y = context->GetOutputShape(kY);
    gert::Shape* post = context->GetOutputShape(kPost);
    gert::Shape* comb = context->GetOutputShape(kComb);
    if (x == nullptr || y == nullptr || post == nullptr || comb == nullptr) return ge::GRAPH_FAILED;
    if (x->GetDimNum() == 1 && x->GetDim(0) == -2) {  // rank not known yet
        *y = *post = *comb = *x;
        return ge::GRAPH_SUCCESS;
    }
    const size_t rank = x->GetDimNum();
    if (rank != 3 && rank != 4) return ge::GRAPH_FAILED;
    const int64_t streams = x->GetDim(rank - 2), hidden = x->GetDim(rank - 1);
    *y = *post = *comb = *x;
    y->SetDimNum(rank - 1);
    y->SetDim(rank - 2, hidden);
    post->SetDimNum(rank - 1);
    comb->SetDim(rank - 1, streams);
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataTypeHcPreSinkhorn(gert::InferDataTypeContext* context) {
    const bool set = context->SetOutputDataType(kY, context->GetInputDataType(kX)) == ge::GRAPH_SUCCESS &&
                     context->SetOutputDataType(kPost, ge::DT_FLOAT) == ge::GRAPH_SUCCESS &&
                     context->SetOutputDataType(kComb, ge::DT_FLOAT) == ge::GRAPH_SUCCESS;
    return set ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

}  // namespace

IMPL_OP_INFERSHAPE(HcPreSinkhorn).InferShape(InferShapeHcPreSinkhorn).InferDataType(InferDataTypeHcPreSinkhorn);
