// Three ops for tests/sim/test_opapi.py; their kernels are in kernels.cpp.
#include <array>

#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/tiling_api.h"
#include "toolchain/slog.h"

namespace optiling {

BEGIN_TILING_DATA_DEF(SplitTiling)
TILING_DATA_FIELD_DEF(uint8_t, tag);
TILING_DATA_FIELD_DEF(int64_t, perCore);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(SplitTilingOp, SplitTiling)

BEGIN_TILING_DATA_DEF(BiasedTiling)
TILING_DATA_FIELD_DEF(uint32_t, total);
TILING_DATA_FIELD_DEF(float, alpha);
TILING_DATA_FIELD_DEF(uint8_t, hasBias);
TILING_DATA_FIELD_DEF_ARR(uint16_t, 3, axes);
TILING_DATA_FIELD_DEF_STRUCT(SplitTiling, split);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Biased, BiasedTiling)
REGISTER_TILING_DATA_CLASS(Biased_7, SplitTiling)

static ge::graphStatus TileBiased(gert::TilingContext* context) {
    const int64_t total = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
    if (total > LIMIT) {
        dlog_error(OP, "x has %ld elements, at most %d", static_cast<long>(total), LIMIT);
        return ge::GRAPH_FAILED;
    }
    BiasedTiling tiling;
    tiling.set_total(static_cast<uint32_t>(total));
    tiling.set_alpha(*context->GetAttrs()->GetFloat(0));
    tiling.set_hasBias(context->GetOptionalInputShape(1) != nullptr);
    const auto* axes = context->GetAttrs()->GetListInt(1);
    const uint16_t values[3] = {static_cast<uint16_t>(axes->GetSize()),
                                static_cast<uint16_t>(axes->GetSize() != 0 ? axes->GetData()[0] : 0), 7};
    tiling.set_axes(values);
    tiling.split.set_tag(5);
    tiling.split.set_perCore(-12345678901234);
    const platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
    context->SetBlockDim(1);
    context->GetWorkspaceSizes(1)[0] = platform.GetLibApiWorkSpaceSize() + 64;
    tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
    return ge::GRAPH_SUCCESS;
}

// x *= factor[0] * vector cores: a value known to the host and a compile info.
struct ScaledCompileInfo {
    uint32_t cores = 0;
};
struct ScaledTilingData {
    uint32_t total;
    float factor;
};
static ge::graphStatus ParseScaled(gert::TilingParseContext* context) {
    context->GetCompiledInfo<ScaledCompileInfo>()->cores =
        platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv();
    return ge::GRAPH_SUCCESS;
}
static ge::graphStatus TileScaled(gert::TilingContext* context) {
    auto* tiling = context->GetTilingData<ScaledTilingData>();
    tiling->total = static_cast<uint32_t>(context->GetInputShape(0)->GetStorageShape().GetShapeSize());
    tiling->factor = context->GetRequiredInputTensor(1)->GetData<float>()[0] *
                     static_cast<float>(context->GetCompileInfo<ScaledCompileInfo>()->cores);
    context->SetBlockDim(1);
    return context->GetInputTensor(0)->GetData<float>() == nullptr ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;  // not value-depend
}
static ge::graphStatus ShapeScaled(gert::InferShapeContext* context) {
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return ge::GRAPH_SUCCESS;
}
IMPL_OP_OPTILING(Scaled).Tiling(TileScaled).TilingParse<ScaledCompileInfo>(ParseScaled);
IMPL_OP_INFERSHAPE(Scaled).InferShape(ShapeScaled).InputsDataDependency({1});

// y += sum of the list's elements, plus the last element that the strided tensor reaches.
static ge::graphStatus TileGathered(gert::TilingContext* context) {
    const auto* list = context->GetIrInputInstanceInfo(0);
    auto* lengths = context->GetTilingData<std::array<int64_t, 4>>();
    *lengths = {static_cast<int64_t>(list->GetInstanceNum()), context->GetDynamicInputShape(0, 1)->GetStorageShape().GetDim(0),
                context->GetInputShape(list->GetInstanceNum())->GetStorageShape().GetDim(0), 0};
    context->SetBlockDim(1);
    return ge::GRAPH_SUCCESS;
}

}  // namespace optiling

namespace ops {

static ge::graphStatus ShapeBiased(gert::InferShapeContext* context) {
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return ge::GRAPH_SUCCESS;
}
static ge::graphStatus TypeBiased(gert::InferDataTypeContext* context) {
    return context->SetOutputDataType(0, context->GetInputDataType(0));
}

class Biased : public OpDef {
public:
    explicit Biased(const char* name) : OpDef(name) {
        const std::vector<ge::Format> nd(3, ge::FORMAT_ND);
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_BF16}).Format(nd);
        this->Input("bias").ParamType(OPTIONAL).DataType({ge::DT_FLOAT, ge::DT_FLOAT, ge::DT_FLOAT}).Format(nd);
        this->Output("y").ParamType(REQUIRED).Follow("x");
        this->Attr("alpha").AttrType(OPTIONAL).Float(1e-6);
        this->Attr("axes").AttrType(OPTIONAL).ListInt({4, 5});
        this->SetInferShape(ShapeBiased).SetInferDataType(TypeBiased);
        this->AICore().SetTiling(optiling::TileBiased).AddConfig("ascend910b").AddConfig("ascend910_93");
        OpAICoreConfig regbase;
        regbase.DynamicCompileStaticFlag(true).ExtendCfgInfo("opFile.value", "biased_apt");
        regbase.Input("x").DataType({ge::DT_FLOAT, ge::DT_INT32}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
        regbase.Input("bias").ParamType(OPTIONAL).DataType({ge::DT_FLOAT, ge::DT_FLOAT}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
        this->AICore().AddConfig("ascend950", regbase);
    }
};
OP_ADD(Biased);

class Scaled : public OpDef {
public:
    explicit Scaled(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataTypeList({ge::DT_FLOAT, ge::DT_FLOAT16}).FormatList({ge::FORMAT_ND});
        this->Input("factor").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("x").ParamType(REQUIRED).Follow("x");
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(Scaled);

class Gathered : public OpDef {
public:
    explicit Gathered(const char* name) : OpDef(name) {
        this->Input("list").ParamType(DYNAMIC).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Input("strided").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).IgnoreContiguous();
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND}).InitValue(100);
        this->AICore().SetTiling(optiling::TileGathered).AddConfig("ascend910b");
    }
};
OP_ADD(Gathered);

}  // namespace ops
