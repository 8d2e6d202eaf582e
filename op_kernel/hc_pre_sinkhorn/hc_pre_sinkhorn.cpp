#include "kernel_operator.h"
#if defined(__DAV_C310__)
#include "../common/sinkhorn_rows_regbase.h"
#else
#include "../common/sinkhorn_rows_membase.h"
#endif
#include "hc_pre_sinkhorn_mixes.h"
#include "hc_pre_sinkhorn_tiling_data.h"

extern "C" __global__ __aicore__ void hc_pre_sinkhorn(GM_ADDR mixes, GM_ADDR rsqrt, GM_ADDR hcScale, GM_ADDR hcBase, GM_ADDR x,
                                                      GM_ADDR y, GM_ADDR post, GM_ADDR combFrag, GM_ADDR workspace,
                                                      GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(HcPreSinkhornTilingData);
    GET_TILING_DATA(plan, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    (void)workspace;
    AscendC::TPipe pipe;
    if (TILING_KEY_IS(0)) {
        if (plan.tokens == 0) return;
#if defined(__DAV_C310__)
        hc::SinkhornRowsRegbase<DTYPE_X, hc::GivenMixes> op;
#else
        hc::SinkhornRowsMembase<DTYPE_X, hc::GivenMixes> op;
#endif
        hc::GivenMixes source;
        source.Init(mixes, rsqrt, plan);
        hc::CoreShare share;
        share.Init(plan, AscendC::GetBlockIdx());
        op.Init({hcScale, hcBase, x, y, post, combFrag}, source, plan, &pipe);
        op.Process(share);
    }
}
