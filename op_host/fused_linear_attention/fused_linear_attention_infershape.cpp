#include "register/op_impl_registry.h"

namespace {

constexpr size_t kQkv = 0, kConvState = 5, kRecurrentState = 6;  // inputs
constexpr size_t kValueHeads = 2, kValueDim = 4;                 // attributes

// attn_out [B, L, Hv, dv] of qkv [B, L, D]; the states are written in place.
ge::graphStatus InferShapeFusedLinearAttention(gert::InferShapeContext* context) {
    const gert::Shape* qkv = context->GetInputShape(kQkv);
    gert::Shape* out = context->GetOutputShape(0);
    const auto* attrs = context->GetAttrs();
    const int64_t* heads = attrs == nullptr ? nullptr : attrs->GetInt(kValueHeads);
    const int64_t* dim = attrs == nullptr ? nullptr : attrs->GetInt(kValueDim);
    if (qkv == nullptr || out == nullptr || heads == nullptr || dim == nullptr) return ge::GRAPH_FAILED;
    if (qkv->GetDimNum() == 1 && qkv->GetDim(0) == -2) {
        *out = *qkv;
    } else {
        if (qkv->GetDimNum() != 3) return ge::GRAPH_FAILED;
        out->SetDimNum(4);
        out->SetDim(0, qkv->GetDim(0));
        out->SetDim(1, qkv->GetDim(1));
        out->SetDim(2, *heads);
        out->SetDim(3, *dim);
    }
    size_t index = 1;  // outputs that are left out have none
    for (const size_t state : {kConvState, kRecurrentState}) {
        const gert::Shape* given = context->GetOptionalInputShape(state);
        if (given == nullptr) continue;
        if (gert::Shape* kept = context->GetOutputShape(index++)) *kept = *given;
    }
    return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDataTypeFusedLinearAttention(gert::InferDataTypeContext* context) {
    ge::graphStatus status = context->SetOutputDataType(0, context->GetInputDataType(kQkv));
    size_t index = 1;
    for (const size_t state : {kConvState, kRecurrentState}) {
        const ge::DataType type = context->GetOptionalInputDataType(state);
        if (type == ge::DT_UNDEFINED) continue;
        if (context->SetOutputDataType(index++, type) != ge::GRAPH_SUCCESS) status = ge::GRAPH_FAILED;
    }
    return status;
}

}  // namespace

IMPL_OP_INFERSHAPE(FusedLinearAttention).InferShape(InferShapeFusedLinearAttention).InferDataType(InferDataTypeFusedLinearAttention);
