// One instruction of the cube each, whose fields the test gives: as they stand in the test it is silent, with one of them changed it is
// refused. `misplaced`: the number of the operand that lies in another memory.
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

extern "C" __global__ __aicore__ void nd2nz(GM_ADDR x, GM_ADDR y, int64_t ndNum, int64_t nValue, int64_t dValue, int64_t srcNdMatrixStride,
                                            int64_t srcDValue, int64_t dstNzC0Stride, int64_t dstNzNStride, int64_t dstNzMatrixStride,
                                            int64_t misplaced) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Memories in;
    DataCopy(misplaced == 1 ? in.a : in.l1, Gm(x),
             Nd2NzParams(ndNum, nValue, dValue, srcNdMatrixStride, srcDValue, dstNzC0Stride, dstNzNStride, dstNzMatrixStride));
}

extern "C" __global__ __aicore__ void load(GM_ADDR x, GM_ADDR y, int64_t startIndex, int64_t repeatTimes, int64_t srcStride, int64_t dstGap,
                                           int64_t ifTranspose, int64_t addrMode, int64_t misplaced) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Memories in;
    in.ToL1(x);
    LoadData(misplaced == 1 ? in.l1[kMatrix] : in.a, misplaced == 2 ? in.b : in.l1,
             LoadData2DParams(startIndex, repeatTimes, srcStride, 0, dstGap, ifTranspose != 0, addrMode));
}

extern "C" __global__ __aicore__ void load_transposed(GM_ADDR x, GM_ADDR y, int64_t startIndex, int64_t repeatTimes, int64_t srcStride,
                                                      int64_t dstGap, int64_t dstFracGap, int64_t addrMode, int64_t misplaced) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Memories in;
    in.ToL1(x);
    LoadData2dTransposeParams params(startIndex, repeatTimes, srcStride, dstGap, dstFracGap);
    params.addrMode = addrMode;
    LoadDataWithTranspose(misplaced == 1 ? in.c : in.b, misplaced == 2 ? in.a : in.l1, params);
}

extern "C" __global__ __aicore__ void mmad(GM_ADDR x, GM_ADDR y, int64_t m, int64_t n, int64_t k, int64_t unitFlag, int64_t fmOffset,
                                           int64_t enSsparse, int64_t cmatrixSource, int64_t halfResult, int64_t misplaced) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Memories in;
    in.ToL0(x);
    MmadParams params(m, n, k, unitFlag, cmatrixSource != 0, cmatrixSource == 0);
    params.fmOffset = fmOffset;
    params.enSsparse = enSsparse != 0;
    if (halfResult != 0) Mmad(in.c.ReinterpretCast<half>(), in.a, in.b, params);
    else Mmad(misplaced == 1 ? in.l1 : in.c, misplaced == 2 ? in.b : in.a, misplaced == 3 ? in.a : in.b, params);
}

extern "C" __global__ __aicore__ void fixpipe(GM_ADDR x, GM_ADDR y, int64_t nSize, int64_t mSize, int64_t srcStride, int64_t dstStride,
                                              int64_t ndNum, int64_t unitFlag, int64_t toHalf, int64_t isChannelSplit, int64_t rowsIntoL1,
                                              int64_t misplaced) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Memories in;
    in.ToL0C(x);
    FixpipeParamsV220 params(nSize, mSize, srcStride, dstStride, false);
    params.ndNum = ndNum;
    params.unitFlag = unitFlag;
    params.isChannelSplit = isChannelSplit != 0;
    params.quantPre = toHalf != 0 ? F322F16 : NoQuant;
    if (rowsIntoL1 != 0) Fixpipe<float, float, CFG_ROW_MAJOR>(in.l1[kMatrix], in.c, params);
    else if (misplaced == 1) Fixpipe<float, float, CFG_NZ>(in.a, in.c, params);
    else Fixpipe(Gm(y), misplaced == 2 ? in.a : in.c, params);
}

// A flag set and awaited in `mode`, 0: all cores of a kind.
extern "C" __global__ __aicore__ void flag_of_cube_cores(GM_ADDR x, GM_ADDR y, int64_t mode, int64_t flagId, int64_t awaited,
                                                         int64_t eventId, int64_t syncAllOfVectorCores) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    if (mode == 1) CrossCoreSetFlag<1, PIPE_FIX>(flagId);
    else if (mode == 2) CrossCoreSetFlag<2, PIPE_FIX>(flagId);
    else CrossCoreSetFlag<0, PIPE_FIX>(flagId);
    CrossCoreWaitFlag(awaited);
    SetFlag<HardEvent::MTE1_M>(eventId);
    WaitFlag<HardEvent::MTE1_M>(eventId);
    if (syncAllOfVectorCores != 0) SyncAll<true>();
    else SyncAll<false>();
}
