// hc_fn for the cube. With 16-bit x each float32 becomes the sum of three numbers of that type, so that products with x are exact. With
// float32 x it is one term, and an operand as it is unless its rows are too long for that (kWidestPitch).
//
//   hi = truncated(v), mid = truncated(v - hi), lo = truncated(v - hi - mid);   terms [termColumns / C0][lo, mid, hi][mix][C0]
//
// C0 = 32 bytes of elements: a tile of columns is one piece, in the order that it needs in L1.
// bfloat16: v = fn, and the sum is v. float16: v = fn * scale, scale[m] = 2^14 / 2^floor(log2(max of |fn[m]|)), so that nothing
// overflows; what is lost is below 2^-38 of the row's maximum.
#pragma once

#include "hc_pre_shares.h"

namespace hc {

template <typename T>
constexpr uint32_t kTermsOf = sizeof(T) == sizeof(float) ? 1 : 3;  // matrices of x's type that make up hc_fn

template <typename T>
class SplitTerms {
    static constexpr uint32_t kTerms = kTermsOf<T>;

public:
    // maxima: [slices][mixes], then scales: [mixes], in rows of AlignUp(mix, 8) floats.
    __aicore__ inline void Init(GM_ADDR fn, GM_ADDR terms, GM_ADDR maxima, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
        fn_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(fn));
        terms_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(terms));
        maxima_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(maxima));
        plan_ = plan;
        pipe_ = pipe;
        mixPitch_ = RowPitch<float>(plan_.mix);
        pipe->InitBuffer(fnQue_, 2, plan_.fnBytes);
        pipe->InitBuffer(termQue_, 2 * kTerms, plan_.outBytes);
        if constexpr (kTerms > 1) pipe->InitBuffer(wideBuf_, plan_.wideBytes);
        if (plan_.scaled == 0) return;
        pipe->InitBuffer(scaleBuf_, plan_.sumBytes);
        lanes_ = scaleBuf_.Get<float>();
        blocks_ = lanes_[mixPitch_ * kLanesOfFloat];
        scales_ = blocks_[mixPitch_ * kBlockFloats];
    }

    // maxima[core][m] = max of |fn[m]| over this core's slice
    __aicore__ inline void FindMaxima(uint32_t core) {
        const Span slice(plan_.slices, core, plan_.rowElements);
        if (slice.count == 0) return;
        AscendC::Duplicate(lanes_, 0.0f, static_cast<int32_t>(plan_.mix * kLanesOfFloat));
        CopyIn(slice, 0);
        for (uint32_t column = 0; column < slice.count; column += plan_.tileColumns) {
            CopyIn(slice, column + plan_.tileColumns);
            const uint32_t columns = Min(plan_.tileColumns, slice.count - column);
            AscendC::LocalTensor<float> fn = fnQue_.template DeQue<float>();
            for (uint32_t lane = 0; lane < columns; lane += kLanesOfFloat) Magnitude(fn[lane], columns, lane);
            AscendC::PipeBarrier<PIPE_V>();
            for (uint32_t lane = 0; lane < columns; lane += kLanesOfFloat) {
                Larger(fn[lane], columns, lane);
                AscendC::PipeBarrier<PIPE_V>();
            }
            fnQue_.FreeTensor(fn);
        }
        AscendC::LocalTensor<float> largest = wideBuf_.template Get<float>();
        for (uint32_t m = 0; m < plan_.mix; m += kRepeats)
            AscendC::WholeReduceMax(largest[m], lanes_[m * kLanesOfFloat], static_cast<int32_t>(kLanesOfFloat),
                                    static_cast<int32_t>(Min(kRepeats, plan_.mix - m)), 1, 1, 8, AscendC::ReduceOrder::ORDER_ONLY_VALUE);
        const auto found = pipe_->FetchEventID(AscendC::HardEvent::V_MTE3);
        AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(found);  // largest is there before MTE3 reads it; SyncAll follows
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(found);
        CopyFlatOut(maxima_[core * mixPitch_], largest, plan_.mix);
    }

    // After SyncAll: the scales of all rows, and from core 0 their inverses for the end.
    __aicore__ inline void FindScales(uint32_t core) {
        const uint32_t count = plan_.slices.count;
        const int32_t rows = static_cast<int32_t>(mixPitch_);
        CopyRowsIn(lanes_, maxima_, count, plan_.mix, mixPitch_);
        const auto loaded = pipe_->FetchEventID(AscendC::HardEvent::MTE2_V);
        AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(loaded);  // the maxima are there before V reads them
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(loaded);
        for (uint32_t i = 1; i < count; ++i) {
            AscendC::Max(lanes_, lanes_, lanes_[i * mixPitch_], rows);
            AscendC::PipeBarrier<PIPE_V>();
        }
        // 2^floor(log2(v)): the exponent alone
        const AscendC::LocalTensor<uint32_t> bits = lanes_.template ReinterpretCast<uint32_t>();
        AscendC::ShiftRight(bits, bits, 23u, rows);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::ShiftLeft(bits, bits, 23u, rows);
        AscendC::Duplicate(scales_, 16384.0f, rows);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Maxs(lanes_, lanes_, kSmallest, rows);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Div(scales_, scales_, lanes_, rows);
        AscendC::LocalTensor<float> inverse = wideBuf_.template Get<float>();
        AscendC::Muls(inverse, lanes_, 1.0f / 16384.0f, rows);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Brcb(blocks_, scales_, static_cast<uint8_t>(mixPitch_ / kBlockFloats), AscendC::BrcbRepeatParams(1, 8));
        AscendC::PipeBarrier<PIPE_V>();
        if (core != 0) return;
        const auto found = pipe_->FetchEventID(AscendC::HardEvent::V_MTE3);
        AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(found);  // inverse is there before MTE3 reads it
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(found);
        CopyFlatOut(maxima_[count * mixPitch_], inverse, mixPitch_);
        const auto stored = pipe_->FetchEventID(AscendC::HardEvent::MTE3_V);
        AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(stored);  // before wideBuf_ gets a term
        AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(stored);
    }

    // The terms of a slice of the columns.
    __aicore__ inline void Process(const Span& slice) {
        CopyIn(slice, 0);
        for (uint32_t column = 0; column < slice.count; column += plan_.tileColumns) {
            CopyIn(slice, column + plan_.tileColumns);
            Split(slice.first + column, Min(plan_.tileColumns, slice.count - column));
        }
    }

private:
    static constexpr uint32_t kLanesOfFloat = 64, kRepeats = 255, kBlockFloats = 8;
    static constexpr uint32_t kC0 = kBlockBytes / sizeof(T);
    static constexpr float kSmallest = 1.0f / (1ull << 60);  // rows of zeros, or of less: their scale stays finite

    __aicore__ inline void CopyIn(const Span& slice, uint32_t column) {
        if (column >= slice.count) return;
        AscendC::LocalTensor<float> fn = fnQue_.template AllocTensor<float>();
        CopyRowsIn(fn, fn_[slice.first + column], plan_.mix, Min(plan_.tileColumns, slice.count - column), plan_.rowElements);
        fnQue_.EnQue(fn);
    }

    __aicore__ inline void Split(uint32_t k, uint32_t columns) {
        AscendC::LocalTensor<float> rest = fnQue_.template DeQue<float>();
        if (plan_.scaled != 0) {
            for (uint32_t lane = 0; lane < columns; lane += kLanesOfFloat) Scale(rest[lane], columns, lane);
            AscendC::PipeBarrier<PIPE_V>();
        }
        const uint32_t groups = CeilDiv(columns, kC0), groupElements = plan_.mix * kC0;
        for (uint32_t i = 0; i < kTerms; ++i) {
            AscendC::LocalTensor<T> term = termQue_.template AllocTensor<T>();
            if (columns % kC0 != 0) ZeroGroup(term[(groups - 1) * groupElements]);
            for (uint32_t lane = 0; lane < columns; lane += kLanesOfFloat) Narrow(term[lane * plan_.mix], rest[lane], columns, lane);
            AscendC::PipeBarrier<PIPE_V>();
            if constexpr (kTerms > 1)
                if (i + 1 < kTerms) Subtract(rest, term, columns);
            termQue_.EnQue(term);
            term = termQue_.template DeQue<T>();
            CopyRowsOut(terms_[static_cast<uint64_t>(k) * kTerms * plan_.mix + (kTerms - 1 - i) * groupElements], term, groups,
                        groupElements, kTerms * groupElements);
            termQue_.FreeTensor(term);
        }
        fnQue_.FreeTensor(rest);
    }

    // Columns past the last of K.
    __aicore__ inline void ZeroGroup(const AscendC::LocalTensor<T>& group) {
        AscendC::Duplicate(group.template ReinterpretCast<uint32_t>(), 0u, static_cast<int32_t>(plan_.mix * kBlockFloats));
        AscendC::PipeBarrier<PIPE_V>();
    }
    // rest -= term
    __aicore__ inline void Subtract(const AscendC::LocalTensor<float>& rest, const AscendC::LocalTensor<T>& term, uint32_t columns) {
        const AscendC::LocalTensor<float> wide = wideBuf_.template Get<float>();
        for (uint32_t lane = 0; lane < columns; lane += kLanesOfFloat) Widen(wide[lane], term[lane * plan_.mix], columns, lane);
        AscendC::PipeBarrier<PIPE_V>();
        for (uint32_t lane = 0; lane < columns; lane += kLanesOfFloat) Subtract(rest[lane], wide[lane], columns, lane);
        AscendC::PipeBarrier<PIPE_V>();
    }

    // Up to 64 columns of all rows, a row to a repeat.
    static __aicore__ inline uint8_t FloatStride(uint32_t columns) {
        return static_cast<uint8_t>(RowPitch<float>(columns) * sizeof(float) / kBlockBytes);
    }
    __aicore__ inline void Narrow(const AscendC::LocalTensor<T>& term, const AscendC::LocalTensor<float>& value, uint32_t columns,
                                  uint32_t lane) {
        const uint64_t lanes = Min(kLanesOfFloat, columns - lane);
        const uint16_t groupStride = static_cast<uint16_t>(plan_.mix);
        for (uint32_t m = 0; m < plan_.mix; m += kRepeats) {
            const AscendC::LocalTensor<T> to = term[m * kC0];
            const AscendC::LocalTensor<float> from = value[m * RowPitch<float>(columns)];
            const uint8_t rows = static_cast<uint8_t>(Min(kRepeats, plan_.mix - m));
            if constexpr (kTerms > 1)
                AscendC::Cast(to, from, AscendC::RoundMode::CAST_TRUNC, lanes, rows,
                              AscendC::UnaryRepeatParams(groupStride, 1, 1, FloatStride(columns)));
            else
                AscendC::Copy(to, from, lanes, rows, AscendC::CopyRepeatParams(groupStride, 1, 1, FloatStride(columns)));
        }
    }
    __aicore__ inline void Widen(const AscendC::LocalTensor<float>& value, const AscendC::LocalTensor<T>& term, uint32_t columns,
                                 uint32_t lane) {
        for (uint32_t m = 0; m < plan_.mix; m += kRepeats)
            AscendC::Cast(value[m * RowPitch<float>(columns)], term[m * kC0], AscendC::RoundMode::CAST_NONE,
                          static_cast<uint64_t>(Min(kLanesOfFloat, columns - lane)), static_cast<uint8_t>(Min(kRepeats, plan_.mix - m)),
                          AscendC::UnaryRepeatParams(1, static_cast<uint16_t>(plan_.mix), FloatStride(columns), 1));
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

    __aicore__ inline void Magnitude(const AscendC::LocalTensor<float>& value, uint32_t columns, uint32_t lane) {
        const uint8_t stride = FloatStride(columns);
        for (uint32_t m = 0; m < plan_.mix; m += kRepeats) {
            const uint32_t at = m * RowPitch<float>(columns);
            AscendC::Abs(value[at], value[at], static_cast<uint64_t>(Min(kLanesOfFloat, columns - lane)),
                         static_cast<uint8_t>(Min(kRepeats, plan_.mix - m)), AscendC::UnaryRepeatParams(1, 1, stride, stride));
        }
    }
    __aicore__ inline void Larger(const AscendC::LocalTensor<float>& value, uint32_t columns, uint32_t lane) {
        for (uint32_t m = 0; m < plan_.mix; m += kRepeats)
            AscendC::Max(lanes_[m * kLanesOfFloat], lanes_[m * kLanesOfFloat], value[m * RowPitch<float>(columns)],
                         static_cast<uint64_t>(Min(kLanesOfFloat, columns - lane)), static_cast<uint8_t>(Min(kRepeats, plan_.mix - m)),
                         AscendC::BinaryRepeatParams(1, 1, 1, 8, 8, FloatStride(columns)));
    }
    __aicore__ inline void Scale(const AscendC::LocalTensor<float>& value, uint32_t columns, uint32_t lane) {
        const uint8_t stride = FloatStride(columns);
        for (uint32_t m = 0; m < plan_.mix; m += kRepeats) {
            const uint32_t at = m * RowPitch<float>(columns);
            AscendC::Mul(value[at], value[at], blocks_[m * kBlockFloats], static_cast<uint64_t>(Min(kLanesOfFloat, columns - lane)),
                         static_cast<uint8_t>(Min(kRepeats, plan_.mix - m)), AscendC::BinaryRepeatParams(1, 1, 0, stride, stride, 1));
        }
    }

    HcPreTilingData plan_;
    AscendC::TPipe* pipe_ = nullptr;
    uint32_t mixPitch_ = 0;
    AscendC::GlobalTensor<float> fn_, maxima_;
    AscendC::GlobalTensor<T> terms_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> fnQue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> termQue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> wideBuf_, scaleBuf_;
    AscendC::LocalTensor<float> lanes_, blocks_, scales_;
};

}  // namespace hc
