// y[j] = post[j] * x + sum over i of comb[i, j] * residual[i]
#include "register/op_def_registry.h"

namespace ops {

class HcPost : public OpDef {
public:
    explicit HcPost(const char* name) : OpDef(name) {
        LikeX(this->Input("x"));            // [T, d] or [b, s, d]: what the block computed
        LikeX(this->Input("residual"));     // [T, hc_mult, d] or [b, s, hc_mult, d]
        LikePost(this->Input("post"));      // [T, hc_mult] or [b, s, hc_mult]
        LikePost(this->Input("comb"));      // [T, hc_mult, hc_mult] or [b, s, hc_mult, hc_mult]: row i is the source stream
        LikeX(this->Output("y"));           // like residual

        OpAICoreConfig config;
        config.DynamicCompileStaticFlag(true)
            .DynamicFormatFlag(true)
            .DynamicRankSupportFlag(true)
            .DynamicShapeSupportFlag(true)
            .NeedCheckSupportFlag(false)
            .PrecisionReduceFlag(false)
            .ExtendCfgInfo("opFile.value", "hc_post");
        this->AICore().AddConfig("ascend910b", config);
        this->AICore().AddConfig("ascend910_93", config);
        this->AICore().AddConfig("ascend950", config);
    }

private:
    // The nine dtype columns: x in bfloat16, float16, float32, each with post and comb in float32, bfloat16, float16.
    static void LikeX(OpParamDef& parameter) {
        Columns(parameter, {ge::DT_BF16, ge::DT_BF16, ge::DT_BF16, ge::DT_FLOAT16, ge::DT_FLOAT16, ge::DT_FLOAT16, ge::DT_FLOAT,
                            ge::DT_FLOAT, ge::DT_FLOAT});
    }
    static void LikePost(OpParamDef& parameter) {
        Columns(parameter, {ge::DT_FLOAT, ge::DT_BF16, ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_BF16, ge::DT_FLOAT16, ge::DT_FLOAT,
                            ge::DT_BF16, ge::DT_FLOAT16});
    }
    static void Columns(OpParamDef& parameter, const std::vector<ge::DataType>& types) {
        const std::vector<ge::Format> formats(types.size(), ge::FORMAT_ND);
        parameter.ParamType(REQUIRED).DataType(types).Format(formats).UnknownShapeFormat(formats);
    }
};
OP_ADD(HcPost);

}  // namespace ops
