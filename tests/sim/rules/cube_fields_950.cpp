// As cube_fields.cpp, for instructions that only the 950 has.
#include "cube_memories.h"

extern "C" __global__ __aicore__ void load_rectangle(GM_ADDR x, GM_ADDR y, int64_t mStep, int64_t kStep, int64_t mStartPosition,
                                                     int64_t ifTranspose) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    TPipe pipe;
    TBuf<TPosition::A1> l1;  // ends with the matrix
    TBuf<TPosition::A2> l0a;
    pipe.InitBuffer(l1, kMatrixBytes);
    pipe.InitBuffer(l0a, kMatrixBytes);
    DataCopy(l1.Get<float>(), Gm(x), Nd2NzParams(1, kSide, kSide, 0, kSide, kSide, 1, 0));
    PipeBarrier<PIPE_ALL>();
    LoadData(l0a.Get<float>(), l1.Get<float>(), LoadData2DParamsV2(mStartPosition, 0, mStep, kStep, 1, 1, ifTranspose != 0, 0));
}

extern "C" __global__ __aicore__ void fixpipe_to_one_core(GM_ADDR x, GM_ADDR y, int64_t dualDstCtl) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Memories in;
    in.ToL0C(x);
    FixpipeParamsC310<> params;
    params.nSize = params.mSize = params.srcStride = params.dstStride = kSide;
    params.dualDstCtl = dualDstCtl;
    Fixpipe(Gm(y), in.c, params);
}
