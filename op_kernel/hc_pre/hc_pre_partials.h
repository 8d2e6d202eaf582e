// mixes and rsqrt from the partial sums that the projection left in the workspace: [parts][T][partialPitch] floats.
//
//   raw   = sum over parts, times the inverse scales of hc_fn's rows if they were scaled
//   rsqrt = 1 / sqrt(squares / K + norm_eps)
#pragma once

#if defined(__DAV_C310__)
#include "../common/sinkhorn_weights_regbase.h"
#else
#include "../common/sinkhorn_planes.h"
#endif
#include "hc_pre_tiling_data.h"

namespace hc {

class PartialSums {
public:
    __aicore__ inline void Init(GM_ADDR partials, GM_ADDR scales, const HcPreTilingData& plan, bool fromCube) {
        partials_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(partials));
        scales_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(scales));
        mix_ = plan.mix;
        scaleFloats_ = plan.rows.mixScales;
        scalesOffset_ = plan.rows.mixBytes / sizeof(float) - scaleFloats_;
        tokens_ = plan.rows.tokens;
        parts_ = plan.parts;
        pitch_ = plan.partialPitch;
        squareColumn_ = plan.squareColumn;
        chunkTokens_ = plan.rows.chunkTokens;
        rsqrtOffset_ = plan.rows.rsqrtOffset / sizeof(float);
        inverseCount_ = plan.inverseCount;
        normEps_ = plan.normEps;
        fromCube_ = fromCube;
    }

    __aicore__ inline void CopyIn(const AscendC::LocalTensor<float>& mixes, uint64_t row, uint32_t rows, bool) {
        row_ = row;
        const uint32_t rowBytes = pitch_ * sizeof(float);  // a multiple of 32
        AscendC::DataCopyExtParams params(static_cast<uint16_t>(parts_), rows * rowBytes, (tokens_ - rows) * rowBytes, 0, 0);
        AscendC::DataCopyPad(mixes, partials_[row * pitch_], params, AscendC::DataCopyPadExtParams<float>());
        if (scaleFloats_ != 0) CopyFlatIn(mixes[scalesOffset_], scales_, scaleFloats_);
    }

#if defined(__DAV_C310__)
    // lane: 0 .. 63
    __aicore__ inline void Prepare(const AscendC::LocalTensor<float>& mixes, uint32_t rows, __ubuf__ uint32_t* lane) {
        if (parts_ > 1) AddParts(Pointer(mixes), rows * pitch_, static_cast<uint16_t>(parts_));
        ScaleColumns(mixes, rows);
        for (uint32_t first = 0; first < rows; first += kLanes)
            InvRms(Pointer(mixes) + rsqrtOffset_ + first, Pointer(mixes), lane, first, Min(kLanes, rows - first),
                   static_cast<uint32_t>(row_));
    }

private:
    static constexpr uint32_t kGroup = 16;  // tokens that the cube has multiplied with each other

    // Parts in ascending order.
    static __aicore__ inline void AddParts(__ubuf__ float* mixes, uint32_t floats, uint16_t parts) {
        const uint16_t vectors = static_cast<uint16_t>(CeilDiv(floats, kLanes)), others = parts - 1;
        __VEC_SCOPE__ {
            FloatReg sum, value;
            uint32_t lanes = floats;
            for (uint16_t vector = 0; vector < vectors; ++vector) {
                reg::MaskReg mask = reg::UpdateMask<float>(lanes);
                reg::DataCopy(sum, mixes + vector * kLanes);
                for (uint16_t part = 0; part < others; ++part) {
                    reg::DataCopy(value, mixes + (part + 1) * floats + vector * kLanes);
                    reg::Add(sum, sum, value, mask);
                }
                reg::DataCopy(mixes + vector * kLanes, sum, mask);
            }
        }
    }

    // The square sum of token t: column squareColumn, or of the cube's products that with t % 16.
    __aicore__ inline void InvRms(__ubuf__ float* rsqrt, __ubuf__ float* mixes, __ubuf__ uint32_t* lane, uint32_t first, uint32_t tokens,
                                  uint32_t row) {
        const uint32_t pitch = pitch_, column = squareColumn_, groupMask = fromCube_ ? kGroup - 1 : 0;
        const float inverseCount = inverseCount_, normEps = normEps_;
        __VEC_SCOPE__ {
            FloatReg value, one;
            IndexReg index, inGroup, bits;
            uint32_t lanes = tokens;
            reg::MaskReg mask = reg::UpdateMask<float>(lanes);
            reg::DataCopy(inGroup, lane);
            reg::Adds(inGroup, inGroup, row + first, mask);
            reg::Duplicate(bits, groupMask, mask);
            reg::And(inGroup, inGroup, bits, mask);
            RowIndex(index, lane, first, pitch, mask);
            reg::Adds(index, index, column, mask);
            reg::Add(index, index, inGroup, mask);
            reg::DataCopyGather(value, mixes, index, mask);
            reg::Duplicate(one, 1.0f);
            reg::Muls(value, value, inverseCount, mask);
            reg::Adds(value, value, normEps, mask);
            reg::Sqrt(value, value, mask);
            reg::Div(value, one, value, mask);
            reg::DataCopy(rsqrt, value, mask);
        }
    }
#else
    __aicore__ inline void Prepare(const AscendC::LocalTensor<float>& mixes, uint32_t rows, uint32_t slots,
                                   const AscendC::LocalTensor<float>& one) {
        SumPieces(mixes, rows * pitch_, parts_, 1, 0);  // halves added until one is left
        ScaleColumns(mixes, rows);
        if (rows < slots) AscendC::Duplicate(mixes[rows * pitch_], 0.0f, static_cast<int32_t>((slots - rows) * pitch_));
        const AscendC::LocalTensor<float> rsqrt = mixes[rsqrtOffset_];
        const int32_t all = static_cast<int32_t>(slots);
        AscendC::Duplicate(rsqrt, 0.0f, all);
        FenceVector();
        if (fromCube_) {
            PickSquares(rsqrt, mixes, rows);
        } else {
            RowsToPlanes(rsqrt, {slots / chunkTokens_, 1, chunkTokens_}, mixes, squareColumn_, pitch_);
        }
        FenceVector();
        AscendC::Muls(rsqrt, rsqrt, inverseCount_, all);
        FenceVector();
        AscendC::Adds(rsqrt, rsqrt, normEps_, all);
        FenceVector();
        AscendC::Sqrt(rsqrt, rsqrt, all);
        FenceVector();
        for (uint32_t at = 0; at < slots; at += kLanes)
            AscendC::Div(rsqrt[at], one, rsqrt[at], static_cast<uint64_t>(Min(kLanes, slots - at)), static_cast<uint8_t>(1),
                         AscendC::BinaryRepeatParams(1, 0, 1, 8, 0, 8));
        FenceVector();
    }

private:
    // The cube has multiplied 16 rows with each other: of token t the product with itself is in column t % 16. A reduction over one
    // active lane picks it; the others may be nan or infinite by another token's doing.
    __aicore__ inline void PickSquares(const AscendC::LocalTensor<float>& squares, const AscendC::LocalTensor<float>& mixes,
                                       uint32_t rows) {
        constexpr uint32_t kGroup = 16;
        const uint32_t stride = kGroup * pitch_ / kBlockFloats, step = stride <= kMaxStride ? kMaxRepeats : 1;
        for (uint32_t first = 0; first < Min(kGroup, rows); ++first) {
            const uint32_t lane = static_cast<uint32_t>((row_ + first) % kGroup), count = CeilDiv(rows - first, kGroup);
            uint64_t mask[2] = {1ull << lane, 0};
            for (uint32_t i = 0; i < count; i += step)
                AscendC::WholeReduceSum(squares[first + i * kGroup], mixes[(first + i * kGroup) * pitch_ + squareColumn_], mask,
                                        static_cast<int32_t>(Min(step, count - i)), static_cast<int32_t>(kGroup), 1,
                                        static_cast<int32_t>(step == 1 ? 0 : stride));
        }
    }
#endif

    // mixes[r][m] *= scales[m]
    __aicore__ inline void ScaleColumns(const AscendC::LocalTensor<float>& mixes, uint32_t rows) {
        if (scaleFloats_ == 0) return;
        constexpr uint32_t kColumns = 64, kRepeats = 255;
        const uint32_t stride = pitch_ / 8, step = stride <= kRepeats ? kRepeats : 1;
        for (uint32_t m = 0; m < mix_; m += kColumns)
            for (uint32_t row = 0; row < rows; row += step) {
                const AscendC::LocalTensor<float> data = mixes[row * pitch_ + m];
                AscendC::Mul(data, data, mixes[scalesOffset_ + m], static_cast<uint64_t>(Min(kColumns, mix_ - m)),
                             static_cast<uint8_t>(Min(step, rows - row)),
                             AscendC::BinaryRepeatParams(1, 1, 1, static_cast<uint8_t>(step == 1 ? 0 : stride),
                                                         static_cast<uint8_t>(step == 1 ? 0 : stride), 0));
            }
        AscendC::PipeBarrier<PIPE_V>();
    }

    AscendC::GlobalTensor<float> partials_, scales_;
    uint64_t row_ = 0;
    uint32_t mix_ = 0, scaleFloats_ = 0, scalesOffset_ = 0;
    uint32_t tokens_ = 0, parts_ = 0, pitch_ = 0, squareColumn_ = 0, chunkTokens_ = 0, rsqrtOffset_ = 0;
    float inverseCount_ = 0, normEps_ = 0;
    bool fromCube_ = false;
};

}  // namespace hc
