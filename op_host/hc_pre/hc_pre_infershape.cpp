#include "../common/sinkhorn_rows_infershape.h"

namespace {

constexpr size_t kX = 0;

ge::graphStatus InferShapeHcPre(gert::InferShapeContext* context) { return custom_ops::InferSinkhornRowsShape(context, kX); }
ge::graphStatus InferDataTypeHcPre(gert::InferDataTypeContext* context) { return custom_ops::InferSinkhornRowsDataType(context, kX); }

}  // namespace

IMPL_OP_INFERSHAPE(HcPre).InferShape(InferShapeHcPre).InferDataType(InferDataTypeHcPre);
