// y = x, copied by one core while the others wait in SyncAll: the smallest op that needs batch mode.
#include "register/op_def_registry.h"
#include "register/op_impl_registry.h"

namespace ops {
class Meet : public OpDef {
public:
    explicit Meet(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).UnknownShapeFormat({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).UnknownShapeFormat({ge::FORMAT_ND});
        this->Attr("batch_mode").AttrType(REQUIRED).Bool();
        this->Attr("soft").AttrType(REQUIRED).Bool();
        for (const char* soc : {"ascend910b", "ascend910_93", "ascend950"}) this->AICore().AddConfig(soc);
    }
};
OP_ADD(Meet);
}  // namespace ops

namespace {
ge::graphStatus InferShape(gert::InferShapeContext* context) {
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return ge::GRAPH_SUCCESS;
}
ge::graphStatus InferDataType(gert::InferDataTypeContext* context) {
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return ge::GRAPH_SUCCESS;
}
IMPL_OP_INFERSHAPE(Meet).InferShape(InferShape).InferDataType(InferDataType);

ge::graphStatus Tile(gert::TilingContext* context) {
    const bool batchMode = *context->GetAttrs()->GetBool(0), soft = *context->GetAttrs()->GetBool(1);
    context->SetBlockDim(4);
    context->SetTilingKey(soft);
    if (batchMode) context->SetScheduleMode(1);
    context->GetWorkspaceSizes(1)[0] = 16 * 1024 * 1024 + 4 * 32;
    return ge::GRAPH_SUCCESS;
}
struct CompileInfo {};
ge::graphStatus Parse(gert::TilingParseContext*) { return ge::GRAPH_SUCCESS; }
IMPL_OP_OPTILING(Meet).Tiling(Tile).TilingParse<CompileInfo>(Parse);
}  // namespace
