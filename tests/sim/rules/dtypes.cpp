// Types and round modes a chip does not have.
#include "rule_kernel.h"

// 910B has no bfloat16 arithmetic: widen to float first.
extern "C" __global__ __aicore__ void bfloat16_add_on_membase(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf, wide;
    pipe.InitBuffer(buf, kBytes);
    pipe.InitBuffer(wide, kBytes);
    LocalTensor<bfloat16_t> in = buf.Get<bfloat16_t>();
    GlobalTensor<bfloat16_t> source, destination;
    source.SetGlobalBuffer(reinterpret_cast<__gm__ bfloat16_t*>(x));
    destination.SetGlobalBuffer(reinterpret_cast<__gm__ bfloat16_t*>(y));
    DataCopy(in, source, kLanes);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    if (repaired) {
        LocalTensor<float> sum = wide.Get<float>();
        Cast(sum, in, RoundMode::CAST_NONE, kLanes);
        PipeBarrier<PIPE_V>();
        Add(sum, sum, sum, kLanes);
        PipeBarrier<PIPE_V>();
        Cast(in, sum, RoundMode::CAST_RINT, kLanes);
    } else {
        Add(in, in, in, kLanes);
    }
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(destination, in, kLanes);
}

// float -> bfloat16 always rounds: CAST_NONE is not one of its modes.
extern "C" __global__ __aicore__ void cast_to_bfloat16_without_rounding(GM_ADDR x, GM_ADDR y, bool repaired) {
    TPipe pipe;
    TBuf<> buf, narrow;
    pipe.InitBuffer(buf, kBytes);
    pipe.InitBuffer(narrow, kBytes);
    LocalTensor<float> in = buf.Get<float>();
    Load(in, x);
    LocalTensor<bfloat16_t> out = narrow.Get<bfloat16_t>();
    Cast(out, in, repaired ? RoundMode::CAST_RINT : RoundMode::CAST_NONE, kLanes);
    GlobalTensor<bfloat16_t> destination;
    destination.SetGlobalBuffer(reinterpret_cast<__gm__ bfloat16_t*>(y));
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(destination, out, kLanes);
}
