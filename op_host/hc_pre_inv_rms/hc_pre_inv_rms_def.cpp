// y = 1 / sqrt(mean(x * x over hc_mult and d) + epsilon)
#include "../common/op_def_parts.h"

namespace ops {

class HcPreInvRms : public OpDef {
public:
    explicit HcPreInvRms(const char* name) : OpDef(name) {
        LikeX(this->Input("x"));   // [T, hc_mult, d] or [b, s, hc_mult, d]
        Float(this->Output("y"));  // [T, 1] or [b, s, 1]
        this->Attr("epsilon").AttrType(OPTIONAL).Float(1e-6f);

        OnAllSocs(*this, "hc_pre_inv_rms");
    }
};
OP_ADD(HcPreInvRms);

}  // namespace ops
