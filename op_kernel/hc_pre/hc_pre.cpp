// x -> partial sums of its products with hc_fn and of its squares (workspace) -> mixes and rsqrt -> y, post, comb_frag.
#include "hc_pre_stages.h"

extern "C" __global__ __aicore__ void hc_pre(GM_ADDR x, GM_ADDR hcFn, GM_ADDR hcScale, GM_ADDR hcBase, GM_ADDR y, GM_ADDR post,
                                             GM_ADDR combFrag, GM_ADDR workspace, GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(HcPreTilingData);
    GET_TILING_DATA(plan, tiling);
    KERNEL_TASK_TYPE(0, KERNEL_TYPE_MIX_AIV_1_0);  // SyncAll needs the inter-core scheduler
    KERNEL_TASK_TYPE(1, KERNEL_TYPE_MIX_AIC_1_2);
    KERNEL_TASK_TYPE(2, KERNEL_TYPE_MIX_AIC_1_2);
    KERNEL_TASK_TYPE(3, KERNEL_TYPE_MIX_AIC_1_2);
    if (plan.rows.tokens == 0) return;
    AscendC::TPipe pipe;
    GM_ADDR user = AscendC::GetUserWorkspace(workspace);
    const hc::RowTensors tensors{hcScale, hcBase, x, y, post, combFrag};
    if (TILING_KEY_IS(0)) {
        hc::Decode<DTYPE_X>(tensors, hcFn, user, plan, &pipe);
    } else if (TILING_KEY_IS(1)) {
        hc::Grid<DTYPE_X>(tensors, hcFn, user, plan, &pipe);
    } else if (TILING_KEY_IS(2)) {
        hc::Stream<DTYPE_X>(tensors, hcFn, user, plan, &pipe);
    } else if (TILING_KEY_IS(3)) {
        hc::Widen<DTYPE_X>(tensors, hcFn, user, plan, &pipe);
    }
}
