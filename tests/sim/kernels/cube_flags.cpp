// y [2 * blocks, 64]: every vector core writes its row and then reads the row of another, after a flag of modes 0 or 1.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kRow = 64;
constexpr uint16_t kWritten = 5, kDone = 6;

template <uint8_t mode>
__aicore__ inline void Exchange(GM_ADDR x, GM_ADDR y, uint32_t other) {
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float*)x);
    out.SetGlobalBuffer((__gm__ float*)y);
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, kRow * sizeof(float));
    LocalTensor<float> row = buffer.Get<float>();
    DataCopy(row, in[GetBlockIdx() * kRow], kRow);
    SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    DataCopy(out[GetBlockIdx() * kRow], row, kRow);
    CrossCoreSetFlag<mode, PIPE_MTE3>(kWritten);
    CrossCoreWaitFlag(kWritten);
    DataCopy(row, out[other * kRow], kRow);
    CrossCoreSetFlag<mode, PIPE_MTE2>(kDone);
    CrossCoreWaitFlag(kDone);
    SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
    DataCopy(out[GetBlockIdx() * kRow], row, kRow);
}

// Mode 1: with the other vector core of the block; mode 0: with the next vector core of the launch.
extern "C" __global__ __aicore__ void exchange(GM_ADDR x, GM_ADDR y, bool ofBlock) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    if ASCEND_IS_AIC return;
    if (ofBlock) Exchange<1>(x, y, GetBlockIdx() ^ 1);
    else Exchange<0>(x, y, (GetBlockIdx() + 1) % (2 * GetBlockNum()));
}
