// Shapes and types that hc_pre_sinkhorn and hc_pre give from those of x.
#pragma once

#include "register/op_impl_registry.h"

namespace custom_ops {

enum SinkhornOutput : size_t { kOutY, kOutPost, kOutComb };

// x [..., n, d] -> y [..., d], post [..., n], comb_frag [..., n, n]
inline ge::graphStatus InferSinkhornRowsShape(gert::InferShapeContext* context, size_t xInput) {
    const gert::Shape* x = context->GetInputShape(xInput);
    gert::Shape* y = context->GetOutputShape(kOutY);
    gert::Shape* post = context->GetOutputShape(kOutPost);
    gert::Shape* comb = context->GetOutputShape(kOutComb);
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

inline ge::graphStatus InferSinkhornRowsDataType(gert::InferDataTypeContext* context, size_t xInput) {
    const bool set = context->SetOutputDataType(kOutY, context->GetInputDataType(xInput)) == ge::GRAPH_SUCCESS &&
                     context->SetOutputDataType(kOutPost, ge::DT_FLOAT) == ge::GRAPH_SUCCESS &&
                     context->SetOutputDataType(kOutComb, ge::DT_FLOAT) == ge::GRAPH_SUCCESS;
    return set ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

}  // namespace custom_ops
