// One instruction of the cube each, whose fields the test gives: as they stand in the test it is silent, with one of them changed it is
// refused. `misplaced`: the number of the operand that lies in another memory.
#include "cube_memories.h"

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
