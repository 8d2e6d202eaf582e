// y[t] = 1 / sqrt(mean over hc_mult * d of x[t]^2 + epsilon), for the 950.
//
// Order of the sum: four registers take turns along the row, (r0 + r1) + (r2 + r3), then their lanes pairwise; pieces of a row
// that does not fit in UB are added in order.
// float32 throughout: a square below 1.2e-38 counts as 0, which only epsilon = 0 lets through to y.
#pragma once

#include "../common/rows_regbase.h"
#include "hc_pre_inv_rms_rows.h"

namespace hc {

template <typename T>
class HcPreInvRmsRegbase : public HcPreInvRmsRows<HcPreInvRmsRegbase<T>, T> {
    using Rows = HcPreInvRmsRows<HcPreInvRmsRegbase<T>, T>;
    friend Rows;
    using Rows::sumBuf_;
    using Rows::tiling_;
    using Rows::xQue_;
    using Rows::yQue_;

    __aicore__ inline void InitWork(AscendC::TPipe*) {}  // everything else stays in registers

    __aicore__ inline void Start(uint32_t rows) { AscendC::Duplicate(sumBuf_.template Get<float>(), 0.0f, static_cast<int32_t>(rows)); }

    // sums[row : row + rows] += sum(x^2)
    __aicore__ inline void Compute(uint32_t row, uint32_t rows, uint32_t piece) {
        AscendC::LocalTensor<T> x = xQue_.template DeQue<T>();
        const uint32_t columns = this->Columns(piece);
        SumSquares(Pointer(sumBuf_.template Get<float>()) + row, Pointer(x), static_cast<uint16_t>(rows), columns, RowPitch<T>(columns));
        xQue_.FreeTensor(x);
    }

    static __aicore__ inline void AddSquare(FloatReg& sum, __ubuf__ T* x, reg::MaskReg& mask) {
        FloatReg value;
        LoadFloats<T>(value, x, mask);
        reg::MulAddDst(sum, value, value, mask);
    }

    static __aicore__ inline void SumSquares(__ubuf__ float* sums, __ubuf__ T* x, uint16_t rows, uint32_t columns, uint32_t pitch) {
        const uint16_t quads = static_cast<uint16_t>(columns / (4 * kLanes));
        const uint32_t rest = columns - quads * 4 * kLanes;
        const uint16_t restVectors = static_cast<uint16_t>(CeilDiv(rest, kLanes));
        __VEC_SCOPE__ {
            FloatReg sum0, sum1, sum2, sum3, value, before;
            reg::MaskReg full = reg::CreateMask<float, reg::MaskPattern::ALL>();
            reg::MaskReg first = reg::CreateMask<float, reg::MaskPattern::VL1>();
            for (uint16_t row = 0; row < rows; ++row) {
                __ubuf__ T* line = x + row * pitch;
                reg::Duplicate(sum0, 0.0f);
                reg::Duplicate(sum1, 0.0f);
                reg::Duplicate(sum2, 0.0f);
                reg::Duplicate(sum3, 0.0f);
                for (uint16_t quad = 0; quad < quads; ++quad) {
                    AddSquare(sum0, line + quad * 4 * kLanes, full);
                    AddSquare(sum1, line + (quad * 4 + 1) * kLanes, full);
                    AddSquare(sum2, line + (quad * 4 + 2) * kLanes, full);
                    AddSquare(sum3, line + (quad * 4 + 3) * kLanes, full);
                }
                uint32_t lanes = rest;
                for (uint16_t vector = 0; vector < restVectors; ++vector) {
                    reg::MaskReg mask = reg::UpdateMask<float>(lanes);
                    LoadFloats<T>(value, line + (quads * 4 + vector) * kLanes, mask);
                    reg::Mul(value, value, value, mask);  // 0 in the lanes behind the row
                    reg::Add(sum0, sum0, value, full);
                }
                reg::Add(sum0, sum0, sum1, full);
                reg::Add(sum2, sum2, sum3, full);
                reg::Add(sum0, sum0, sum2, full);
                reg::ReduceSum(sum0, sum0, full);
                LoadScalar(before, sums + row);
                reg::Add(sum0, sum0, before, first);
                reg::DataCopy<float, reg::StoreDist::DIST_FIRST_ELEMENT_B32>(sums + row, sum0, first);
            }
        }
    }

    // y = 1 / sqrt(sum / R + epsilon)
    __aicore__ inline void Finish(uint32_t rows) {
        AscendC::LocalTensor<float> y = yQue_.template AllocTensor<float>();
        InvRms(Pointer(y), Pointer(sumBuf_.template Get<float>()), rows, tiling_.inverseCount, tiling_.epsilon);
        yQue_.EnQue(y);
    }

    static __aicore__ inline void InvRms(__ubuf__ float* y, __ubuf__ float* sums, uint32_t rows, float inverseCount, float epsilon) {
        const uint16_t vectors = static_cast<uint16_t>(CeilDiv(rows, kLanes));
        __VEC_SCOPE__ {
            FloatReg value, one;
            reg::Duplicate(one, 1.0f);
            uint32_t lanes = rows;
            for (uint16_t vector = 0; vector < vectors; ++vector) {
                reg::MaskReg mask = reg::UpdateMask<float>(lanes);
                reg::DataCopy(value, sums + vector * kLanes);
                reg::Muls(value, value, inverseCount, mask);
                reg::Adds(value, value, epsilon, mask);
                reg::Sqrt(value, value, mask);
                reg::Div(value, one, value, mask);
                reg::DataCopy(y + vector * kLanes, value, mask);
            }
        }
    }
};

}  // namespace hc
