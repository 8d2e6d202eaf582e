// inv_rms, projection by hc_fn, Sinkhorn and the weighted sum of the streams in one launch
#include "../common/op_def_parts.h"

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

        OnAllSocs(*this, "hc_pre");
    }
};
OP_ADD(HcPre);

}  // namespace ops
