// mixes -> pre, post, comb (Sinkhorn); y = sum over streams of pre * x
#include "../common/op_def_parts.h"

namespace ops {

class HcPreSinkhorn : public OpDef {
public:
    explicit HcPreSinkhorn(const char* name) : OpDef(name) {
        Float(this->Input("mixes"));     // [T, (2 + hc_mult) * hc_mult] or [b, s, ...]: before the multiplication by rsqrt
        Float(this->Input("rsqrt"));     // [T], [T, 1], [b, s] or [b, s, 1]
        Float(this->Input("hc_scale"));  // [3]: pre, post, comb
        Float(this->Input("hc_base"));   // [(2 + hc_mult) * hc_mult]
        LikeX(this->Input("x"));         // [T, hc_mult, d] or [b, s, hc_mult, d]
        LikeX(this->Output("y"));        // [T, d] or [b, s, d]
        Float(this->Output("post"));     // [T, hc_mult] or [b, s, hc_mult]
        Float(this->Output("comb_frag"));  // [T, hc_mult, hc_mult] or [b, s, hc_mult, hc_mult]
        this->Attr("hc_mult").AttrType(OPTIONAL).Int(4);
        this->Attr("hc_sinkhorn_iters").AttrType(OPTIONAL).Int(20);
        this->Attr("hc_eps").AttrType(OPTIONAL).Float(1e-6f);

        OnAllSocs(*this, "hc_pre_sinkhorn");
    }
};
OP_ADD(HcPreSinkhorn);

}  // namespace ops
