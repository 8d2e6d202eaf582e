#include "kernel_operator.h"
#if defined(__DAV_C310__)
#include "hc_pre_inv_rms_regbase.h"
#else
#include "hc_pre_inv_rms_membase.h"
#endif

extern "C" __global__ __aicore__ void hc_pre_inv_rms(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(HcPreInvRmsTilingData);
    GET_TILING_DATA(tilingData, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    (void)workspace;
    AscendC::TPipe pipe;
    if (TILING_KEY_IS(0)) {
#if defined(__DAV_C310__)
        hc::HcPreInvRmsRegbase<DTYPE_X> op;
#else
        hc::HcPreInvRmsMembase<DTYPE_X> op;
#endif
        op.Init(x, y, &tilingData, &pipe);
        op.Process();
    }
}
