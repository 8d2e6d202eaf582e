// As cube_fields.cpp, for instructions that only the 950 has.
#include "rule_kernel.h"

constexpr uint32_t kSide = 16, kMatrix = kSide * kSide;

extern "C" __global__ __aicore__ void load_rectangle(GM_ADDR x, GM_ADDR y, int64_t mStep, int64_t kStep, int64_t mStartPosition,
                                                     int64_t ifTranspose) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    TPipe pipe;
    TBuf<TPosition::A1> l1;
    TBuf<TPosition::A2> l0a;
    pipe.InitBuffer(l1, kMatrix * sizeof(float));
    pipe.InitBuffer(l0a, kMatrix * sizeof(float));
    DataCopy(l1.Get<float>(), Gm(x), Nd2NzParams(1, kSide, kSide, 0, kSide, kSide, 1, 0));
    PipeBarrier<PIPE_ALL>();
    LoadData(l0a.Get<float>(), l1.Get<float>(), LoadData2DParamsV2(mStartPosition, 0, mStep, kStep, 1, 1, ifTranspose != 0, 0));
}

extern "C" __global__ __aicore__ void fixpipe_to_one_core(GM_ADDR x, GM_ADDR y, int64_t dualDstCtl) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    TPipe pipe;
    TBuf<TPosition::A1> l1;
    TBuf<TPosition::A2> l0a;
    TBuf<TPosition::B2> l0b;
    TBuf<TPosition::CO1> l0c;
    pipe.InitBuffer(l1, kMatrix * sizeof(float));
    pipe.InitBuffer(l0a, kMatrix * sizeof(float));
    pipe.InitBuffer(l0b, kMatrix * sizeof(float));
    pipe.InitBuffer(l0c, kMatrix * sizeof(float));
    DataCopy(l1.Get<float>(), Gm(x), Nd2NzParams(1, kSide, kSide, 0, kSide, kSide, 1, 0));
    PipeBarrier<PIPE_ALL>();
    LoadData(l0a.Get<float>(), l1.Get<float>(), LoadData2DParams(0, 2, 1, 0, 0, false, 0));
    LoadData(l0b.Get<float>(), l1.Get<float>(), LoadData2DParams(0, 2, 1, 0, 0, false, 0));
    PipeBarrier<PIPE_ALL>();
    Mmad(l0c.Get<float>(), l0a.Get<float>(), l0b.Get<float>(), MmadParams(kSide, kSide, kSide, 0, false, true));
    PipeBarrier<PIPE_ALL>();
    FixpipeParamsC310<> params;
    params.nSize = params.mSize = params.srcStride = params.dstStride = kSide;
    params.dualDstCtl = dualDstCtl;
    Fixpipe(Gm(y), l0c.Get<float>(), params);
}
