#include "register/op_def_registry.h"

namespace ops {
class ScaleBias : public OpDef {
public:
    explicit ScaleBias(const char* name) : OpDef(name) {
        const std::vector<ge::DataType> types{ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_BF16};
        const std::vector<ge::Format> formats{ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND};
        this->Input("x").ParamType(REQUIRED).DataType(types).Format(formats).UnknownShapeFormat(formats);
        this->Input("bias").ParamType(OPTIONAL).DataType(types).Format(formats).UnknownShapeFormat(formats);
        this->Output("y").ParamType(REQUIRED).DataType(types).Format(formats).UnknownShapeFormat(formats);
        this->Attr("scale").AttrType(REQUIRED).Float();
        this->Attr("row_limit").AttrType(OPTIONAL).Int(1024);
        OpAICoreConfig config;
        config.DynamicCompileStaticFlag(true).DynamicShapeSupportFlag(true).ExtendCfgInfo("opFile.value", "scale_bias");
        for (const char* soc : {"ascend910b", "ascend910_93", "ascend950"}) this->AICore().AddConfig(soc, config);
    }
};
OP_ADD(ScaleBias);
}  // namespace ops
