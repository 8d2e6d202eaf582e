// c = leaky_relu(a x b + bias): tiling class with a TCubeTiling, for a kernel of both kinds of core.
#include "matmul_leaky_tiling.h"

#include "register/op_def_registry.h"
#include "register/op_impl_registry.h"

namespace optiling {
static ge::graphStatus TileMatmulLeaky(gert::TilingContext* context) {
    using namespace matmul_tiling;
    const gert::Shape& a = context->GetInputShape(0)->GetStorageShape();
    const gert::Shape& b = context->GetInputShape(1)->GetStorageShape();
    platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
    MultiCoreMatmulTiling cube(platform);
    cube.SetDim(platform.GetCoreNumAiv());
    cube.SetAType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16);
    cube.SetBType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16);
    cube.SetCType(TPosition::VECIN, CubeFormat::ND, DataType::DT_FLOAT);
    cube.SetBiasType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT);
    cube.SetShape(a.GetDim(0), b.GetDim(1), a.GetDim(1));
    cube.SetOrgShape(a.GetDim(0), b.GetDim(1), a.GetDim(1));
    cube.EnableBias(true);
    cube.SetBufferSpace(-1, -1, -1);
    const int64_t fixed = *context->GetAttrs()->GetInt(1);
    if (fixed > 0) cube.SetFixSplit(fixed, fixed, -1);
    MatmulLeakyTiling tiling;
    if (cube.GetTiling(tiling.cubeTilingData) == -1) return ge::GRAPH_FAILED;
    tiling.set_slope(*context->GetAttrs()->GetFloat(0));
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    int32_t cores = 0, mCores = 0, nCores = 0;
    cube.GetCoreNum(cores, mCores, nCores);
    context->SetBlockDim(platform.CalcTschBlockDim(cores, platform.GetCoreNumAic(), platform.GetCoreNumAiv()));
    context->GetWorkspaceSizes(1)[0] = *context->GetAttrs()->GetInt(2) != 0 ? 64 : platform.GetLibApiWorkSpaceSize();
    return ge::GRAPH_SUCCESS;
}
static ge::graphStatus Infer(gert::InferShapeContext* context) {
    gert::Shape* c = context->GetOutputShape(0);
    c->SetDimNum(2);
    c->SetDim(0, context->GetInputShape(0)->GetDim(0));
    c->SetDim(1, context->GetInputShape(1)->GetDim(1));
    return ge::GRAPH_SUCCESS;
}
static ge::graphStatus InferType(gert::InferDataTypeContext* context) {
    context->SetOutputDataType(0, ge::DT_FLOAT);
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class MatmulLeaky : public OpDef {
public:
    explicit MatmulLeaky(const char* name) : OpDef(name) {
        for (const char* input : {"a", "b"}) this->Input(input).ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
        this->Input("bias").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("c").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Attr("slope").AttrType(OPTIONAL).Float(0.1);
        this->Attr("fixed_base").AttrType(OPTIONAL).Int(0);
        this->Attr("small_workspace").AttrType(OPTIONAL).Int(0);
        this->SetInferShape(optiling::Infer).SetInferDataType(optiling::InferType);
        this->AICore().SetTiling(optiling::TileMatmulLeaky);
        this->AICore().AddConfig("ascend910b").AddConfig("ascend910_93").AddConfig("ascend950");
    }
};
OP_ADD(MatmulLeaky);
}  // namespace ops
