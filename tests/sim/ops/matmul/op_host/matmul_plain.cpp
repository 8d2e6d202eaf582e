// c = a x b^T on cube cores, in the type of a and b, with float sums: a plain tiling struct with a TCubeTiling.
#include "../op_kernel/matmul_plain_tiling_data.h"
#include "register/op_def_registry.h"
#include "register/op_impl_registry.h"
#include "tiling/tiling_api.h"

namespace optiling {
static ge::graphStatus TileMatmulPlain(gert::TilingContext* context) {
    using matmul_tiling::CubeFormat, matmul_tiling::DataType;
    const gert::Shape& a = context->GetInputShape(0)->GetStorageShape();
    const gert::Shape& b = context->GetInputShape(1)->GetStorageShape();
    platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
    matmul_tiling::MultiCoreMatmulTiling cube(platform);
    cube.SetDim(platform.GetCoreNumAic());
    const ge::DataType given = context->GetInputDesc(0)->GetDataType();
    const DataType type = given == ge::DT_FLOAT ? DataType::DT_FLOAT : given == ge::DT_FLOAT16 ? DataType::DT_FLOAT16 : DataType::DT_BF16;
    cube.SetAType(matmul_tiling::TPosition::GM, CubeFormat::ND, type);
    cube.SetBType(matmul_tiling::TPosition::GM, CubeFormat::ND, type, true);
    cube.SetCType(matmul_tiling::TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT);
    cube.SetShape(a.GetDim(0), b.GetDim(0), a.GetDim(1));
    MatmulPlainTilingData* data = context->GetTilingData<MatmulPlainTilingData>();
    if (data == nullptr || cube.GetTiling(data->cube) == -1) return ge::GRAPH_FAILED;
    int32_t cores = 0, mCores = 0, nCores = 0;
    cube.GetCoreNum(cores, mCores, nCores);
    data->mCores = uint32_t(mCores);
    context->SetBlockDim(uint32_t(cores));
    context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize();
    return ge::GRAPH_SUCCESS;
}
static ge::graphStatus InferPlain(gert::InferShapeContext* context) {
    gert::Shape* c = context->GetOutputShape(0);
    c->SetDimNum(2);
    for (size_t i = 0; i < 2; ++i) c->SetDim(i, context->GetInputShape(i)->GetDim(0));
    return ge::GRAPH_SUCCESS;
}
static ge::graphStatus InferPlainType(gert::InferDataTypeContext* context) {
    context->SetOutputDataType(0, ge::DT_FLOAT);
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class MatmulPlain : public OpDef {
public:
    explicit MatmulPlain(const char* name) : OpDef(name) {
        for (const char* input : {"a", "b"})
            this->Input(input).ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_BF16}).FormatList({ge::FORMAT_ND});
        this->Output("c").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_FLOAT, ge::DT_FLOAT}).FormatList({ge::FORMAT_ND});
        this->SetInferShape(optiling::InferPlain).SetInferDataType(optiling::InferPlainType);
        this->AICore().SetTiling(optiling::TileMatmulPlain);
        this->AICore().AddConfig("ascend910b").AddConfig("ascend910_93").AddConfig("ascend950");
    }
};
OP_ADD(MatmulPlain);
}  // namespace ops
