#include "kernel_operator.h"
#if defined(__DAV_C310__)
#include "hc_pre_sinkhorn_regbase.h"
#else
#include "hc_pre_sinkhorn_membase.h"
#endif

extern "C" __global__ __aicore__ void hc_pre_sinkhorn(GM_ADDR mixes, GM_ADDR rsqrt, GM_ADDR hcScale, GM_ADDR hcBase, GM_ADDR x,
                                                      GM_ADDR y, GM_ADDR post, GM_ADDR combFrag, GM_ADDR workspace,
                                                      GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(HcPreSinkhornTilingData);
    GET_TILING_DATA(tilingData, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    (void)workspace;
    AscendC::TPipe pipe;
    if (TILING_KEY_IS(0)) {
#if defined(__DAV_C310__)
        hc::HcPreSinkhornRegbase<DTYPE_X> op;
#else
        hc::HcPreSinkhornMembase<DTYPE_X> op;
#endif
        op.Init(mixes, rsqrt, hcScale, hcBase, x, y, post, combFrag, &tilingData, &pipe);
        op.Process();
    }
}
