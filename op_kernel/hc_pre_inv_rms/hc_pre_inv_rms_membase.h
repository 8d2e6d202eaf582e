// y[t] = 1 / sqrt(mean over hc_mult * d of x[t]^2 + epsilon), for the 910B family.
//
// Order of the sum: squares of a row are added onto workColumns lanes column piece after column piece, then the lanes by
// halves down to 64 and pairwise from there.
// float32 throughout: a square below 1.2e-38 counts as 0, which only epsilon = 0 lets through to y.
#pragma once

#include "../common/rows_membase.h"
#include "hc_pre_inv_rms_rows.h"

namespace hc {

template <typename T>
class HcPreInvRmsMembase : public HcPreInvRmsRows<HcPreInvRmsMembase<T>, T> {
    using Rows = HcPreInvRmsRows<HcPreInvRmsMembase<T>, T>;
    friend Rows;
    using Rows::sumBuf_;
    using Rows::tiling_;
    using Rows::xQue_;
    using Rows::yQue_;

    static constexpr bool kNarrow = sizeof(T) == 2;  // x needs a float32 copy

    __aicore__ inline void InitWork(AscendC::TPipe* pipe) {
        pipe->InitBuffer(workBuf_, tiling_.workBytes);
        sums_ = sumBuf_.template Get<float>();
        ones_ = sums_[tiling_.outBytes / sizeof(float)];
        squares_ = workBuf_.Get<float>();
        if constexpr (kNarrow) wide_ = squares_[tiling_.workBytes / (2 * sizeof(float))];
    }

    __aicore__ inline void Start(uint32_t) {}  // the first pass over a row overwrites its squares

    // sums[row : row + rows] = sum(x^2); with several pieces to a row the lanes are summed after the last.
    __aicore__ inline void Compute(uint32_t row, uint32_t rows, uint32_t piece) {
        AscendC::LocalTensor<T> x = xQue_.template DeQue<T>();
        const uint32_t pitch = RowPitch<T>(this->Columns(piece));
        const bool last = piece + 1 == tiling_.columnLoop;
        for (uint32_t group = 0; group < rows; group += tiling_.workRows) {
            const uint32_t groupRows = Min(tiling_.workRows, rows - group);
            const uint32_t width = Min(tiling_.workColumns, pitch);  // of the first pass, the widest
            for (uint32_t column = 0; column < pitch; column += width)
                AddSquares(x[group * pitch + column], groupRows * Min(width, pitch - column), piece == 0 && column == 0);
            if (last) {
                const uint32_t lanes = tiling_.columnLoop == 1 ? width : tiling_.workColumns;
                SumLanes(sums_[row + group], squares_, lanes, groupRows, lanes);
            }
        }
        xQue_.FreeTensor(x);
    }

    __aicore__ inline void AddSquares(const AscendC::LocalTensor<T>& x, uint32_t count, bool first) {
        AscendC::LocalTensor<float> wide;
        if constexpr (kNarrow) {
            wide = wide_;
            AscendC::Cast(wide, x, AscendC::RoundMode::CAST_NONE, count);
            FenceVector();
        } else {
            wide = x;
        }
        if (first) {
            AscendC::Mul(squares_, wide, wide, static_cast<int32_t>(count));
        } else {
            AscendC::MulAddDst(squares_, wide, wide, static_cast<int32_t>(count));
        }
        FenceVector();
    }

    // y = 1 / sqrt(sum / R + epsilon)
    __aicore__ inline void Finish(uint32_t rows) {
        const int32_t count = static_cast<int32_t>(rows);
        AscendC::LocalTensor<float> y = yQue_.template AllocTensor<float>();
        AscendC::Duplicate(ones_, 1.0f, count);
        AscendC::Muls(sums_, sums_, tiling_.inverseCount, count);
        FenceVector();
        AscendC::Adds(sums_, sums_, tiling_.epsilon, count);
        FenceVector();
        AscendC::Sqrt(sums_, sums_, count);
        FenceVector();
        AscendC::Div(y, ones_, sums_, count);
        FenceVector();
        yQue_.EnQue(y);
    }

    AscendC::TBuf<AscendC::TPosition::VECCALC> workBuf_;
    AscendC::LocalTensor<float> sums_, ones_, squares_, wide_;
};

}  // namespace hc
