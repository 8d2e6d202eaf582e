// Copies between GM and UB, one at a time, for the figures of the timeline.
#include "kernel_operator.h"

using namespace AscendC;

class Mover {
public:
    __aicore__ inline Mover(GM_ADDR x, uint32_t bytes) : bytes_(bytes) {
        x_.SetGlobalBuffer((__gm__ uint8_t*)x);
        pipe_.InitBuffer(buffer_, bytes);
    }
    __aicore__ inline void Read(uint64_t offset) {
        DataCopy(buffer_.Get<uint8_t>(), x_[offset], bytes_);
        PipeBarrier<PIPE_MTE2>();
    }
    __aicore__ inline void Write(uint64_t offset) {
        DataCopy(x_[offset], buffer_.Get<uint8_t>(), bytes_);
        PipeBarrier<PIPE_MTE3>();
    }
    __aicore__ inline void Fill() {
        Duplicate(buffer_.Get<int32_t>(), 0, bytes_ / sizeof(int32_t));
        SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
        WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    }
    __aicore__ inline void WriteThenRead() {
        SetFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
        WaitFlag<HardEvent::MTE3_MTE2>(EVENT_ID0);
    }

private:
    TPipe pipe_;
    TBuf<> buffer_;
    GlobalTensor<uint8_t> x_;
    const uint32_t bytes_;
};

// Every core reads `tiles` tiles, `passes` times; its first one is `first` tiles after that of the core before.
extern "C" __global__ __aicore__ void reads(GM_ADDR x, uint32_t bytes, uint32_t tiles, uint32_t passes, uint32_t first) {
    Mover mover(x, bytes);
    for (uint32_t pass = 0; pass < passes; ++pass)
        for (uint32_t tile = 0; tile < tiles; ++tile) mover.Read(uint64_t(GetBlockIdx() * first + tile) * bytes);
}

extern "C" __global__ __aicore__ void writes(GM_ADDR x, uint32_t bytes, uint32_t passes, bool readsBack) {
    Mover mover(x, bytes);
    mover.Fill();
    for (uint32_t pass = 0; pass < passes; ++pass) mover.Write(uint64_t(GetBlockIdx()) * bytes);
    mover.WriteThenRead();
    if (readsBack) mover.Read(uint64_t(GetBlockIdx()) * bytes);
}
