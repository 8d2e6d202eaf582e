// What the kernels about single instructions of the cube share.
#pragma once

#include "rule_kernel.h"

constexpr uint32_t kSide = 16, kMatrix = kSide * kSide;
constexpr uint32_t kMatrixBytes = kMatrix * sizeof(float);

// A 16 x 16 float matrix in each memory of a cube core.
class Memories {
public:
    __aicore__ inline Memories() {
        pipe_.InitBuffer(l1_, 2 * kMatrixBytes);
        pipe_.InitBuffer(a_, kMatrixBytes);
        pipe_.InitBuffer(b_, kMatrixBytes);
        pipe_.InitBuffer(c_, kMatrixBytes);
        l1 = l1_.Get<float>(), a = a_.Get<float>(), b = b_.Get<float>(), c = c_.Get<float>();
    }
    __aicore__ inline void ToL1(GM_ADDR x) {
        DataCopy(l1, Gm(x), Nd2NzParams(1, kSide, kSide, 0, kSide, kSide, 1, 0));
        Order<HardEvent::MTE2_MTE1>();
    }
    __aicore__ inline void ToL0(GM_ADDR x) {
        ToL1(x);
        LoadData(a, l1, LoadData2DParams(0, 2, 1, 0, 0, false, 0));
        LoadData(b, l1, LoadData2DParams(0, 2, 1, 0, 0, false, 0));
        Order<HardEvent::MTE1_M>();
    }
    __aicore__ inline void ToL0C(GM_ADDR x) {
        ToL0(x);
        Mmad(c, a, b, MmadParams(kSide, kSide, kSide, 0, false, true));
        Order<HardEvent::M_FIX>();
    }
    template <HardEvent event>
    static __aicore__ inline void Order() {
        SetFlag<event>(EVENT_ID0);
        WaitFlag<event>(EVENT_ID0);
    }
    LocalTensor<float> l1, a, b, c;

private:
    TPipe pipe_;
    TBuf<TPosition::A1> l1_;
    TBuf<TPosition::A2> a_;
    TBuf<TPosition::B2> b_;
    TBuf<TPosition::CO1> c_;
};
