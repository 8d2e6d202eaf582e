#include "kernel_operator.h"

using namespace AscendC;

// Block 0 copies x, the others wait for it. Key 1: through GM, which needs neither the scheduler nor batch mode.
extern "C" __global__ __aicore__ void meet(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
    TPipe pipe;
    TBuf<> buf, counts;
    pipe.InitBuffer(buf, 256);
    pipe.InitBuffer(counts, 4 * 32);
    LocalTensor<float> local = buf.Get<float>();
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x));
    out.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y));
    if (GetBlockIdx() == 0) {
        DataCopy(local, in, 64);
        SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
        WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
        DataCopy(out, local, 64);
    }
    if (TILING_KEY_IS(0)) {
        SyncAll();
    } else if (TILING_KEY_IS(1)) {
        GlobalTensor<int32_t> shared;
        shared.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(GetUserWorkspace(workspace)));
        LocalTensor<int32_t> zeros = counts.Get<int32_t>();
        Duplicate(zeros, 0, 4 * 8);
        SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
        WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
        DataCopy(shared[GetBlockIdx() * 8], zeros, 8);
        SetFlag<HardEvent::MTE3_S>(EVENT_ID0);
        WaitFlag<HardEvent::MTE3_S>(EVENT_ID0);
        SyncAll(shared, zeros);
    }
}
