// What the OpDefs of all operators share.
#pragma once

#include <vector>

#include "register/op_def_registry.h"

namespace ops {

// A required parameter of format ND with these dtype columns.
inline void Columns(OpParamDef& parameter, const std::vector<ge::DataType>& types) {
    const std::vector<ge::Format> formats(types.size(), ge::FORMAT_ND);
    parameter.ParamType(REQUIRED).DataType(types).Format(formats).UnknownShapeFormat(formats);
}

// Three columns: x in bfloat16, float16, float32.
inline void LikeX(OpParamDef& parameter) { Columns(parameter, {ge::DT_BF16, ge::DT_FLOAT16, ge::DT_FLOAT}); }
inline void Float(OpParamDef& parameter) { Columns(parameter, {ge::DT_FLOAT, ge::DT_FLOAT, ge::DT_FLOAT}); }

// Any shape, on all three SoCs, by the kernel of this file name.
inline void OnAllSocs(OpDef& op, const char* kernel) {
    OpAICoreConfig config;
    config.DynamicCompileStaticFlag(true)
        .DynamicFormatFlag(true)
        .DynamicRankSupportFlag(true)
        .DynamicShapeSupportFlag(true)
        .NeedCheckSupportFlag(false)
        .PrecisionReduceFlag(false)
        .ExtendCfgInfo("opFile.value", kernel);
    for (const char* soc : {"ascend910b", "ascend910_93", "ascend950"}) op.AICore().AddConfig(soc, config);
}

}  // namespace ops
