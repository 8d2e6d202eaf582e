// hc_fn for the cube: each float32 as the sum of three bfloat16 numbers, 8 bits of its mantissa each, so that products with a bfloat16
// x are exact.
//
//   hi = truncated(v), mid = truncated(v - hi), lo = truncated(v - hi - mid);   terms [3][mix][termPitch] = lo, mid, hi
#pragma once

#include "hc_pre_shares.h"

namespace hc {

constexpr uint32_t kTerms = 3;

class SplitTerms {
public:
    __aicore__ inline void Init(GM_ADDR fn, GM_ADDR terms, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
        fn_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(fn));
        terms_.SetGlobalBuffer(reinterpret_cast<__gm__ bfloat16_t*>(terms));
        plan_ = plan;
        pipe->InitBuffer(fnQue_, 2, plan_.fnBytes);
        pipe->InitBuffer(termQue_, 2 * kTerms, plan_.outBytes);
        pipe->InitBuffer(wideBuf_, plan_.wideBytes);
    }

    __aicore__ inline void Process(uint32_t core) {
        const Span slice(plan_.slices, core, plan_.rowElements);
        CopyIn(slice, 0);
        for (uint32_t column = 0; column < slice.count; column += plan_.tileColumns) {
            CopyIn(slice, column + plan_.tileColumns);
            Split(slice.first + column, Min(plan_.tileColumns, slice.count - column));
        }
    }

private:
    static constexpr uint32_t kLanesOfFloat = 64, kRepeats = 255;

    __aicore__ inline void CopyIn(const Span& slice, uint32_t column) {
        if (column >= slice.count) return;
        AscendC::LocalTensor<float> fn = fnQue_.AllocTensor<float>();
        CopyRowsIn(fn, fn_[slice.first + column], plan_.mix, Min(plan_.tileColumns, slice.count - column), plan_.rowElements);
        fnQue_.EnQue(fn);
    }

    __aicore__ inline void Split(uint32_t k, uint32_t columns) {
        AscendC::LocalTensor<float> rest = fnQue_.DeQue<float>(), wide = wideBuf_.Get<float>();
        for (uint32_t i = 0; i < kTerms; ++i) {
            AscendC::LocalTensor<bfloat16_t> term = termQue_.AllocTensor<bfloat16_t>();
            for (uint32_t lane = 0; lane < columns; lane += kLanesOfFloat) Narrow(term[lane], rest[lane], columns, lane);
            AscendC::PipeBarrier<PIPE_V>();
            if (i + 1 < kTerms) {
                for (uint32_t lane = 0; lane < columns; lane += kLanesOfFloat) Widen(wide[lane], term[lane], columns, lane);
                AscendC::PipeBarrier<PIPE_V>();
                for (uint32_t lane = 0; lane < columns; lane += kLanesOfFloat) Subtract(rest[lane], wide[lane], columns, lane);
                AscendC::PipeBarrier<PIPE_V>();
            }
            termQue_.EnQue(term);
            term = termQue_.DeQue<bfloat16_t>();
            CopyRowsOut(terms_[static_cast<uint64_t>(kTerms - 1 - i) * plan_.mix * plan_.termPitch + k], term, plan_.mix, columns,
                        plan_.termPitch);
            termQue_.FreeTensor(term);
        }
        fnQue_.FreeTensor(rest);
    }

    // Up to 64 columns of all rows, a row to a repeat.
    static __aicore__ inline uint8_t TermStride(uint32_t columns) { return static_cast<uint8_t>(RowPitch<bfloat16_t>(columns) * 2 / kBlockBytes); }
    static __aicore__ inline uint8_t FloatStride(uint32_t columns) { return static_cast<uint8_t>(RowPitch<float>(columns) * 4 / kBlockBytes); }
    __aicore__ inline void Narrow(const AscendC::LocalTensor<bfloat16_t>& term, const AscendC::LocalTensor<float>& value, uint32_t columns,
                                  uint32_t lane) {
        for (uint32_t m = 0; m < plan_.mix; m += kRepeats)
            AscendC::Cast(term[m * RowPitch<bfloat16_t>(columns)], value[m * RowPitch<float>(columns)], AscendC::RoundMode::CAST_TRUNC,
                          static_cast<uint64_t>(Min(kLanesOfFloat, columns - lane)), static_cast<uint8_t>(Min(kRepeats, plan_.mix - m)),
                          AscendC::UnaryRepeatParams(1, 1, TermStride(columns), FloatStride(columns)));
    }
    __aicore__ inline void Widen(const AscendC::LocalTensor<float>& value, const AscendC::LocalTensor<bfloat16_t>& term, uint32_t columns,
                                 uint32_t lane) {
        for (uint32_t m = 0; m < plan_.mix; m += kRepeats)
            AscendC::Cast(value[m * RowPitch<float>(columns)], term[m * RowPitch<bfloat16_t>(columns)], AscendC::RoundMode::CAST_NONE,
                          static_cast<uint64_t>(Min(kLanesOfFloat, columns - lane)), static_cast<uint8_t>(Min(kRepeats, plan_.mix - m)),
                          AscendC::UnaryRepeatParams(1, 1, FloatStride(columns), TermStride(columns)));
    }
    __aicore__ inline void Subtract(const AscendC::LocalTensor<float>& value, const AscendC::LocalTensor<float>& other, uint32_t columns,
                                    uint32_t lane) {
        const uint8_t stride = FloatStride(columns);
        for (uint32_t m = 0; m < plan_.mix; m += kRepeats) {
            const uint32_t at = m * RowPitch<float>(columns);
            AscendC::Sub(value[at], value[at], other[at], static_cast<uint64_t>(Min(kLanesOfFloat, columns - lane)),
                         static_cast<uint8_t>(Min(kRepeats, plan_.mix - m)), AscendC::BinaryRepeatParams(1, 1, 1, stride, stride, stride));
        }
    }

    HcPreTilingData plan_;
    AscendC::GlobalTensor<float> fn_;
    AscendC::GlobalTensor<bfloat16_t> terms_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> fnQue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> termQue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> wideBuf_;
};

}  // namespace hc
