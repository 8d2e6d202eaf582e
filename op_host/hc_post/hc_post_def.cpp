// y[j] = post[j] * x + sum over i of comb[i, j] * residual[i]
#include "../common/op_def_parts.h"

namespace ops {

class HcPost : public OpDef {
public:
    explicit HcPost(const char* name) : OpDef(name) {
        LikeX(this->Input("x"));            // [T, d] or [b, s, d]: what the block computed
        LikeX(this->Input("residual"));     // [T, hc_mult, d] or [b, s, hc_mult, d]
        LikePost(this->Input("post"));      // [T, hc_mult] or [b, s, hc_mult]
        LikePost(this->Input("comb"));      // [T, hc_mult, hc_mult] or [b, s, hc_mult, hc_mult]: row i is the source stream
        LikeX(this->Output("y"));           // like residual

        OnAllSocs(*this, "hc_post");
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
};
OP_ADD(HcPost);

}  // namespace ops
