#include "kernel_operator.h"
#if defined(__DAV_C310__)
#include "hc_post_regbase.h"
#else
#include "hc_post_membase.h"
#endif

extern "C" __global__ __aicore__ void hc_post(GM_ADDR x, GM_ADDR residual, GM_ADDR post, GM_ADDR comb, GM_ADDR y, GM_ADDR workspace,
                                              GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(HcPostTilingData);
    GET_TILING_DATA(tilingData, tiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    (void)workspace;
    AscendC::TPipe pipe;
    if (TILING_KEY_IS(0)) {
#if defined(__DAV_C310__)
        hc::HcPostRegbase<DTYPE_X, DTYPE_POST> op;
#else
        hc::HcPostMembase<DTYPE_X, DTYPE_POST> op;
#endif
        op.Init(x, residual, post, comb, y, &tilingData, &pipe);
        op.Process();
    }
}
