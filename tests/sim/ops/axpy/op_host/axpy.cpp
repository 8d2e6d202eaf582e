#include "../op_kernel/axpy_tiling_data.h"
#include "register/op_def_registry.h"
#include "register/op_impl_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace optiling {
static ge::graphStatus TileAxpy(gert::TilingContext* context) {
    const uint64_t total = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    const uint64_t width = context->GetInputDesc(0)->GetDataType() == ge::DT_FLOAT ? 4 : 2;
    platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
    const uint64_t cores = platform.GetCoreNumAiv();
    const uint64_t elements = 1024 / width;
    const uint64_t tiles = (total + elements - 1) / elements;
    const uint64_t tilesPerCore = (tiles + cores - 1) / cores;
    AxpyTilingData* data = context->GetTilingData<AxpyTilingData>();
    if (data == nullptr || tiles == 0) return ge::GRAPH_FAILED;
    *data = {};
    data->total = total;
    data->tile = {uint32_t(elements), uint32_t(tilesPerCore)};
    data->alpha = *context->GetAttrs()->GetFloat(0);
    data->spare[3] = -7;
    context->SetBlockDim(uint32_t((tiles + tilesPerCore - 1) / tilesPerCore));
    context->SetTilingKey(0);
    context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize();
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferAxpyShape(gert::InferShapeContext* context) {
    const gert::Shape* x = context->GetInputShape(0);
    const gert::Shape* y = context->GetInputShape(1);
    if (!(*x == *y)) return GRAPH_FAILED;
    *context->GetOutputShape(0) = *x;
    return GRAPH_SUCCESS;
}
static graphStatus InferAxpyType(gert::InferDataTypeContext* context) {
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class Axpy : public OpDef {
public:
    explicit Axpy(const char* name) : OpDef(name) {
        for (const char* input : {"x", "y"})
            this->Input(input).ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_FLOAT16})
                .Format({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Output("z").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_FLOAT16})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Attr("alpha").AttrType(OPTIONAL).Float(2.0);
        this->SetInferShape(ge::InferAxpyShape).SetInferDataType(ge::InferAxpyType);
        this->AICore().SetTiling(optiling::TileAxpy);
        this->AICore().AddConfig("ascend910b").AddConfig("ascend950");
    }
};
OP_ADD(Axpy);
}  // namespace ops
