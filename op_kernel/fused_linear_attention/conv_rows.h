// The convolution and the functions around it, in instructions that both families have: rows are tokens, lanes are channels.
#pragma once

#include "../common/rows_membase.h"
#include "conv_copy.h"

namespace hc {

// y *= 1 / (1 + exp(-y)); ends fenced
__aicore__ inline void SigmoidTimes(const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& scratch, uint32_t count) {
    const int32_t n = static_cast<int32_t>(count);
    AscendC::Muls(scratch, y, -1.0f, n);
    FenceVector();
    AscendC::Exp(scratch, scratch, n);
    FenceVector();
    AscendC::Adds(scratch, scratch, 1.0f, n);
    FenceVector();
    AscendC::Div(y, y, scratch, n);
    FenceVector();
}

// y = 1 / (1 + exp(-y)); ends fenced
__aicore__ inline void Sigmoid(const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& scratch, uint32_t count) {
    const int32_t n = static_cast<int32_t>(count);
    AscendC::Muls(y, y, -1.0f, n);
    AscendC::Duplicate(scratch, 1.0f, n);
    FenceVector();
    AscendC::Exp(y, y, n);
    FenceVector();
    AscendC::Adds(y, y, 1.0f, n);
    FenceVector();
    AscendC::Div(y, scratch, y, n);
    FenceVector();
}

// y = max(y, 0) + log(1 + e), e = exp(-|y|). 1 + e is rounded to w: log(1 + e) = log(w) + (e - (w - 1)) / w. Three rows of scratch,
// `pitch` apart; ends fenced.
__aicore__ inline void Softplus(const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& scratch, uint32_t pitch,
                                uint32_t count) {
    const int32_t n = static_cast<int32_t>(count);
    const AscendC::LocalTensor<float> e = scratch, w = scratch[pitch], part = scratch[2 * pitch];
    AscendC::Abs(e, y, n);
    FenceVector();
    AscendC::Maxs(y, y, 0.0f, n);
    AscendC::Muls(e, e, -1.0f, n);
    FenceVector();
    AscendC::Exp(e, e, n);
    FenceVector();
    AscendC::Adds(w, e, 1.0f, n);
    FenceVector();
    AscendC::Adds(part, w, -1.0f, n);
    FenceVector();
    AscendC::Sub(e, e, part, n);
    FenceVector();
    AscendC::Ln(part, w, n);
    AscendC::Div(e, e, w, n);
    FenceVector();
    AscendC::Add(y, y, part, n);
    FenceVector();
    AscendC::Add(y, y, e, n);
    FenceVector();
}

// Offsets of bytes for Gather: i * step
__aicore__ inline void EvenOffsets(const AscendC::LocalTensor<uint32_t>& offsets, uint32_t step, uint32_t count) {
    const AscendC::LocalTensor<int32_t> numbers = offsets.ReinterpretCast<int32_t>();
    AscendC::CreateVecIndex(numbers, 0, count);
    FenceVector();
    AscendC::Muls(numbers, numbers, static_cast<int32_t>(step), static_cast<int32_t>(count));
    FenceVector();
}

// Element i = c * rows + r of a transposed matrix is element (r, c) of one whose rows are `rowStep` bytes apart: offsets
// r * rowStep + c * step = i * rowStep + (i / rows) * (step - rows * rowStep). i / rows by a float that is half a step off a tie.
__aicore__ inline void TransposedOffsets(const AscendC::LocalTensor<uint32_t>& offsets, const AscendC::LocalTensor<float>& scratch,
                                         uint32_t rows, uint32_t rowStep, uint32_t step, uint32_t count) {
    const AscendC::LocalTensor<int32_t> numbers = offsets.ReinterpretCast<int32_t>(), columns = scratch.ReinterpretCast<int32_t>();
    const int32_t n = static_cast<int32_t>(count);
    AscendC::CreateVecIndex(scratch, 0.5f, count);
    AscendC::CreateVecIndex(numbers, 0, count);
    FenceVector();
    AscendC::Muls(scratch, scratch, 1.0f / static_cast<float>(rows), n);
    AscendC::Muls(numbers, numbers, static_cast<int32_t>(rowStep), n);
    FenceVector();
    AscendC::Cast(columns, scratch, AscendC::RoundMode::CAST_FLOOR, count);
    FenceVector();
    AscendC::Muls(columns, columns, static_cast<int32_t>(step) - static_cast<int32_t>(rows * rowStep), n);
    FenceVector();
    AscendC::Add(numbers, numbers, columns, n);
    FenceVector();
}

// y[t] = sum over j of weights[j] * window[t + j], and weights[taps] with a bias; all rows `pitch` apart. Ends fenced.
__aicore__ inline void ConvolveRows(const AscendC::LocalTensor<float>& y, const AscendC::LocalTensor<float>& window,
                                    const AscendC::LocalTensor<float>& weights, uint32_t pitch, uint32_t taps, uint32_t tokens,
                                    bool hasBias) {
    const int32_t count = static_cast<int32_t>(pitch);
    for (uint32_t tap = 0; tap < taps; ++tap) {
        const AscendC::LocalTensor<float> weight = weights[tap * pitch];
        for (uint32_t t = 0; t < tokens; ++t) {
            if (tap == 0) AscendC::Mul(y[t * pitch], window[t * pitch], weight, count);
            else AscendC::MulAddDst(y[t * pitch], window[(t + tap) * pitch], weight, count);
        }
        FenceVector();
    }
    if (!hasBias) return;
    for (uint32_t t = 0; t < tokens; ++t) AscendC::Add(y[t * pitch], y[t * pitch], weights[taps * pitch], count);
    FenceVector();
}

}  // namespace hc
