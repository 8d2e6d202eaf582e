#include "../common/sinkhorn_rows_infershape.h"

namespace {

constexpr size_t kX = 4;

ge::graphStatus InferShapeHcPreSinkhorn(gert::InferShapeContext* context) { return custom_ops::InferSinkhornRowsShape(context, kX); }
ge::graphStatus InferDataTypeHcPreSinkhorn(gert::InferDataTypeContext* context) { return custom_ops::InferSinkhornRowsDataType(context, kX); }

}  // namespace

IMPL_OP_INFERSHAPE(HcPreSinkhorn).InferShape(InferShapeHcPreSinkhorn).InferDataType(InferDataTypeHcPreSinkhorn);
