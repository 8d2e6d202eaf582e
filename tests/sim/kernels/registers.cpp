// Vector functions of the 950 whose results tests/sim/test_registers.py compares with NumPy.
#include "kernel_operator.h"

using namespace AscendC;
using namespace AscendC::MicroAPI;

constexpr uint32_t kUbFloats = 4096;

inline GlobalTensor<float> Gm(GM_ADDR address) {
    GlobalTensor<float> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(address));
    return tensor;
}

// x: GM -> UB, `compute`, y: UB -> GM
template <typename Compute>
inline void Run(GM_ADDR x, GM_ADDR y, uint32_t inputs, uint32_t outputs, Compute compute) {
    TPipe pipe;
    TBuf<> inBuf, outBuf;
    pipe.InitBuffer(inBuf, inputs * sizeof(float));
    pipe.InitBuffer(outBuf, kUbFloats * sizeof(float));
    LocalTensor<float> in = inBuf.Get<float>(), out = outBuf.Get<float>();
    DataCopy(in, Gm(x), inputs);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    compute((__ubuf__ float*)in.GetPhyAddr(), (__ubuf__ float*)out.GetPhyAddr());
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(Gm(y), out, outputs);
}

// y[r] = 1 / sqrt(mean(x[r]^2) + 1e-6). Rows are `pitch` floats apart; the last load of a row reaches into the next one,
// and past the end of the buffer in the last row.
__simd_vf__ inline void InvRms(__ubuf__ float* x, __ubuf__ float* y, uint16_t rows, uint32_t columns, uint32_t pitch) {
    MaskReg all = CreateMask<float, MaskPattern::ALL>(), one = CreateMask<float, MaskPattern::VL1>();
    const uint16_t loops = (columns + 63) / 64;
    for (uint16_t r = 0; r < rows; ++r) {
        RegTensor<float> value, sum, divisor, numerator;
        Duplicate(sum, 0.0f, all);
        uint32_t left = columns;
        for (uint16_t i = 0; i < loops; ++i) {
            MaskReg tail = UpdateMask<float>(left);
            DataCopy(value, x + r * pitch + i * 64);
            Mul(value, value, value, tail);
            Add(sum, sum, value, all);
        }
        ReduceSum(sum, sum, all);
        Duplicate(divisor, float(columns), one);
        Div(sum, sum, divisor, one);
        Adds(sum, sum, 1e-6f, one);
        Sqrt(sum, sum, one);
        Duplicate(numerator, 1.0f, one);
        Div(sum, numerator, sum, one);
        DataCopy<float, StoreDist::DIST_FIRST_ELEMENT_B32>(y + r, sum, one);
    }
}
extern "C" __global__ __aicore__ void inv_rms(GM_ADDR x, GM_ADDR y, uint32_t rows, uint32_t columns, uint32_t pitch) {
    Run(x, y, rows * pitch, (rows + 7) / 8 * 8, [=](__ubuf__ float* in, __ubuf__ float* out) {
        __VEC_SCOPE__ {   // DataCopy takes whole blocks
            RegTensor<float> zero;
            MaskReg all = CreateMask<float>();
            Duplicate(zero, 0.0f);
            DataCopy(out, zero, all);
        }
        VF_CALL<InvRms>(in, out, uint16_t(rows), columns, pitch);
    });
}

// Blocks of 64 results of one function each.
extern "C" __global__ __aicore__ void functions(GM_ADDR x, GM_ADDR y) {
    Run(x, y, 128, 8 * 64, [=](__ubuf__ float* in, __ubuf__ float* out) {
        __VEC_SCOPE__ {
            static constexpr CastTrait down = {RegLayout::ZERO, SatMode::NO_SAT, MaskMergeMode::ZEROING, RoundMode::CAST_RINT};
            static constexpr CastTrait up = {RegLayout::ZERO, SatMode::UNKNOWN, MaskMergeMode::ZEROING, RoundMode::UNKNOWN};
            RegTensor<float> a, b, result;
            RegTensor<bfloat16_t> narrow;
            MaskReg all = CreateMask<float>(), some = CreateMask<float, MaskPattern::M3>(), greater;
            DataCopy(a, in);
            DataCopy(b, in + 64);
            Exp(result, a, all);
            DataCopy(out, result, all);
            Abs(result, a, all);
            Ln(result, result, all);
            DataCopy(out + 64, result, all);
            Duplicate(result, 0.5f);
            MulAddDst(result, a, b, all);
            DataCopy(out + 128, result, all);
            Cast<bfloat16_t, float, down>(narrow, a, all);
            Cast<float, bfloat16_t, up>(result, narrow, all);
            DataCopy(out + 192, result, all);
            Add(result, a, b, some);
            DataCopy(out + 256, result, all);
            Compare<float, CMPMODE::GT>(greater, a, b, all);
            Select(result, a, b, greater);
            DataCopy(out + 320, result, all);
            ReduceMax(result, a, all);
            DataCopy(out + 384, result, all);
            DeInterleave(a, b, a, b);
            Sub(result, a, b, all);
            DataCopy(out + 448, result, all);
        }
    });
}

// Blocks of 32 bytes: every third one, then those whose offsets in bytes stand in front of them, each with all lanes and with the first
// `lanes`, whose other blocks lie past the buffer.
extern "C" __global__ __aicore__ void blocks(GM_ADDR x, GM_ADDR y, uint32_t floats, uint32_t lanes) {
    Run(x, y, floats, 4 * 64, [=](__ubuf__ float* in, __ubuf__ float* out) {
        __VEC_SCOPE__ {
            RegTensor<float> value;
            RegTensor<uint32_t> offsets;
            uint32_t left = lanes;
            MaskReg all = CreateMask<float>(), some = UpdateMask<float>(left);
            DataCopy<float, DataCopyMode::DATA_BLOCK_COPY>(value, in + 16, 3, all);
            DataCopy(out, value, all);
            DataCopy<float, DataCopyMode::DATA_BLOCK_COPY>(value, in + floats - 16, 1, some);
            DataCopy(out + 64, value, all);
            DataCopy(offsets, (__ubuf__ uint32_t*)in);
            DataCopyGatherB(value, in, offsets, all);
            DataCopy(out + 128, value, all);
            DataCopy(offsets, (__ubuf__ uint32_t*)in + 8);
            DataCopyGatherB(value, in, offsets, some);
            DataCopy(out + 192, value, all);
        }
    });
}

// Uses `used` lanes of a row that has 10 floats, in a buffer of 16.
extern "C" __global__ __aicore__ void tail(GM_ADDR x, GM_ADDR y, uint32_t used) {
    TPipe pipe;
    TBuf<> inBuf, outBuf;
    pipe.InitBuffer(inBuf, 16 * sizeof(float));
    pipe.InitBuffer(outBuf, 64 * sizeof(float));
    LocalTensor<float> in = inBuf.Get<float>(), out = outBuf.Get<float>();
    DataCopyPad(in, Gm(x), DataCopyExtParams{1, 40, 0, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0});
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    __ubuf__ float* from = (__ubuf__ float*)in.GetPhyAddr();
    __ubuf__ float* to = (__ubuf__ float*)out.GetPhyAddr();
    __VEC_SCOPE__ {
        RegTensor<float> value;
        MaskReg all = CreateMask<float>();
        MaskReg mask = UpdateMask<float>(used);
        DataCopy(value, from);
        Muls(value, value, 2.0f, all);
        DataCopy(to, value, mask);
    }
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopyPad(Gm(y), out, DataCopyExtParams{1, 40, 0, 0, 0});
}
