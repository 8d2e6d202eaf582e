// mixes and rsqrt from the partial sums that the projection left in the workspace: [parts][T][partialPitch] floats.
//
//   raw   = sum over parts                      halves added until one is left
//   rsqrt = 1 / sqrt(squares / K + norm_eps)
#pragma once

#include "../common/sinkhorn_planes.h"
#include "hc_pre_tiling_data.h"

namespace hc {

class PartialSums {
public:
    __aicore__ inline void Init(GM_ADDR partials, const HcPreTilingData& plan, bool fromCube) {
        partials_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(partials));
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
    }

    __aicore__ inline void Prepare(const AscendC::LocalTensor<float>& mixes, uint32_t rows, uint32_t slots,
                                   const AscendC::LocalTensor<float>& one) {
        SumPieces(mixes, rows * pitch_, parts_, 1, 0);
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
    __aicore__ inline void PickSquares(const AscendC::LocalTensor<float>& squares, const AscendC::LocalTensor<float>& mixes, uint32_t rows) {
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

    AscendC::GlobalTensor<float> partials_;
    uint64_t row_ = 0;
    uint32_t tokens_ = 0, parts_ = 0, pitch_ = 0, squareColumn_ = 0, chunkTokens_ = 0, rsqrtOffset_ = 0;
    float inverseCount_ = 0, normEps_ = 0;
    bool fromCube_ = false;
};

}  // namespace hc
