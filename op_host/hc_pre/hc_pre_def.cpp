// inv_rms, projection by hc_fn, Sinkhorn and the weighted sum of the streams in one launch
#include "register/op_def_registry.h"

namespace ops {

class HcPre : public OpDef {
public:
    explicit HcPre(const char* name) : OpDef(name) {
        LikeX(this->Input("x"));          // [T, hc_mult, d] or [b, s, hc_mult, d]
        Float(this->Input("hc_fn"));      // [(2 + hc_mult) * hc_mult, hc_mult * d]
        Float(this->Input("hc_scale"));   // [3]: pre, post, comb
        Float(this->Input("hc_base"));    // [(2 + hc_mult) * hc_mult]
        LikeX(this->Output("y"));         // [T, d] or [b, s, d]
        Float(this->Output("post"));      // [T, hc_mult] or [b, s, hc_mult]
        Float(this->Output("comb_frag"));  // [T, hc_mult, hc_mult] or [b, s, hc_mult, hc_mult]
        this->Attr("hc_mult").AttrType(OPTIONAL).Int(4);
        this->Attr("hc_sinkhorn_iters").AttrType(OPTIONAL).Int(20);
        this->Attr("hc_eps").AttrType(OPTIONAL).Float(1e-6f);
        this->Attr("norm_eps").AttrType(OPTIONAL).Float(1e-6f);

        OpAICoreConfig config;
        config.DynamicCompileStaticFlag(true)
            .DynamicFormatFlag(true)
            .DynamicRankSupportFlag(true)
            .DynamicShapeSupportFlag(true)
            .NeedCheckSupportFlag(false)
            .PrecisionReduceFlag(false)
            .ExtendCfgInfo("opFile.value", "hc_pre");
        this->AICore().AddConfig("ascend910b", config);
        this->AICore().AddConfig("ascend910_93", config);
        this->AICore().AddConfig("ascend950", config);
    }

private:
    // The three dtype columns: x in bfloat16, float16, float32.
    static void Float(OpParamDef& parameter) { Columns(parameter, ge::DT_FLOAT, ge::DT_FLOAT); }
    static void LikeX(OpParamDef& parameter) { Columns(parameter, ge::DT_BF16, ge::DT_FLOAT16); }
    static void Columns(OpParamDef& parameter, ge::DataType first, ge::DataType second) {
        parameter.ParamType(REQUIRED)
            .DataType({first, second, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    }
};
OP_ADD(HcPre);

}  // namespace ops
