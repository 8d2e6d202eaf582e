// y = x * scale + bias, row by row in float; macro-declared tiling, one tiling key per kind of x.
#include "kernel_operator.h"

using namespace AscendC;

namespace {
constexpr uint32_t kRowBytes = 4096 * sizeof(float);

template <typename T>
__aicore__ inline void Load(LocalTensor<float> dst, LocalTensor<T> staged, GlobalTensor<T> src, uint32_t width) {
    const DataCopyExtParams params{1, uint32_t(width * sizeof(T)), 0, 0, 0};
    const DataCopyPadExtParams<T> pad{false, 0, 0, 0};
    if constexpr (std::is_same_v<T, float>) {
        DataCopyPad(dst, src, params, pad);
        SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
        WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    } else {
        DataCopyPad(staged, src, params, pad);
        SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
        WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
        Cast(dst, staged, RoundMode::CAST_NONE, width);
        PipeBarrier<PIPE_V>();
    }
}

template <typename T>
__aicore__ inline void Run(GM_ADDR x, GM_ADDR bias, GM_ADDR y, const ScaleBiasTiling& tiling) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> xBuf, biasBuf, stagedBuf;
    pipe.InitBuffer(xBuf, kRowBytes);
    pipe.InitBuffer(biasBuf, kRowBytes);
    pipe.InitBuffer(stagedBuf, kRowBytes);
    LocalTensor<float> row = xBuf.Get<float>(), shift = biasBuf.Get<float>();
    LocalTensor<T> staged = stagedBuf.Get<T>();
    GlobalTensor<T> xGm, yGm, biasGm;
    xGm.SetGlobalBuffer((__gm__ T*)x);
    yGm.SetGlobalBuffer((__gm__ T*)y);
    const uint32_t width = uint32_t(tiling.width);
    if (tiling.hasBias) {
        biasGm.SetGlobalBuffer((__gm__ T*)bias);
        Load(shift, staged, biasGm, width);
    }
    const uint32_t first = GetBlockIdx() * tiling.row.rowsPerCore;
    for (uint32_t r = first; r < first + tiling.row.rowsPerCore && r < tiling.row.rows; ++r) {
        PipeBarrier<PIPE_ALL>();  // the row's buffers are free again
        Load(row, staged, xGm[uint64_t(r) * width], width);
        Muls(row, row, tiling.scale, width);
        if (tiling.hasBias) {
            PipeBarrier<PIPE_V>();
            Add(row, row, shift, width);
        }
        PipeBarrier<PIPE_V>();
        if constexpr (!std::is_same_v<T, float>) Cast(staged, row, RoundMode::CAST_RINT, width);
        SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
        WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
        const DataCopyExtParams params{1, uint32_t(width * sizeof(T)), 0, 0, 0};
        if constexpr (std::is_same_v<T, float>) DataCopyPad(yGm[uint64_t(r) * width], row, params);
        else DataCopyPad(yGm[uint64_t(r) * width], staged, params);
    }
    PipeBarrier<PIPE_ALL>();
}
}  // namespace

extern "C" __global__ __aicore__ void scale_bias(GM_ADDR x, GM_ADDR bias, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA(data, tiling);
    if (TILING_KEY_IS(1)) {
#if ORIG_DTYPE_X == DT_FLOAT
        Run<DTYPE_X>(x, bias, y, data);
#endif
    } else if (TILING_KEY_IS(2)) {
#if ORIG_DTYPE_X != DT_FLOAT
        Run<DTYPE_X>(x, bias, y, data);
#endif
    }
}
