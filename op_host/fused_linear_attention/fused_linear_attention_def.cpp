// Gated delta rule, kda and short convolution over the projection of a layer, with carried state
#include "../common/op_def_parts.h"

namespace ops {

class FusedLinearAttention : public OpDef {
public:
    explicit FusedLinearAttention(const char* name) : OpDef(name) {
        LikeQkv(this->Input("qkv"));                            // [B, L, D]
        LikeGate(this->Input("gate"));                          // [B, L, Hv], kda [B, L, Hv, dk]
        LikeGate(this->Input("beta"));                          // [B, L, Hv]
        LikeQkv(this->Input("conv_weight"));                    // [C, 1, K]
        LikeQkv(this->Input("conv_bias"), OPTIONAL);            // [C]
        LikeQkv(this->Input("conv_state"), OPTIONAL);           // [slots, C, K - 1]
        Always(this->Input("recurrent_state"), ge::DT_FLOAT);   // [slots, Hv, dk, dv]
        Always(this->Input("gate_coef"), ge::DT_FLOAT);         // [Hv]
        Always(this->Input("gate_bias"), ge::DT_FLOAT);         // [Hv], kda [Hv, dk]
        Always(this->Input("cu_seqlens"), ge::DT_INT32);        // [N + 1]
        Always(this->Input("state_indices"), ge::DT_INT32);     // [N]
        Always(this->Input("has_initial_state"), ge::DT_BOOL);  // [N]
        LikeQkv(this->Output("attn_out"));                      // [B, L, Hv, dv]
        LikeQkv(this->Output("conv_state"), OPTIONAL);          // in place
        Always(this->Output("recurrent_state"), ge::DT_FLOAT);  // in place
        this->Attr("attn_type").AttrType(REQUIRED).String();
        this->Attr("num_k_heads").AttrType(REQUIRED).Int();
        this->Attr("num_v_heads").AttrType(REQUIRED).Int();
        this->Attr("head_k_dim").AttrType(REQUIRED).Int();
        this->Attr("head_v_dim").AttrType(REQUIRED).Int();
        this->Attr("use_qk_l2norm").AttrType(OPTIONAL).Bool(true);
        this->Attr("gate_fold").AttrType(OPTIONAL).Bool(false);

        OnAllSocs(*this, "fused_linear_attention");
    }

private:
    // The five dtype columns: gate and beta have the dtype of qkv or are float32.
    static void LikeQkv(OpParamDef& parameter, Option option = REQUIRED) {
        Columns(parameter, {ge::DT_BF16, ge::DT_BF16, ge::DT_FLOAT16, ge::DT_FLOAT16, ge::DT_FLOAT});
        parameter.ParamType(option);
    }
    static void LikeGate(OpParamDef& parameter) {
        Columns(parameter, {ge::DT_BF16, ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_FLOAT});
    }
    static void Always(OpParamDef& parameter, ge::DataType type) {
        Columns(parameter, {type, type, type, type, type});
        parameter.ParamType(OPTIONAL);
    }
};
OP_ADD(FusedLinearAttention);

}  // namespace ops
