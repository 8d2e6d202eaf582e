// SinkhornRows for the 910B family: weights of a batch of tokens as planes (sinkhorn_planes.h), then x tile by tile.
#pragma once

#include "sinkhorn_planes.h"
#include "sinkhorn_rows.h"

namespace hc {

template <typename T, typename Source>
class SinkhornRowsMembase : public SinkhornRows<SinkhornRowsMembase<T, Source>, T, Source> {
    using Rows = SinkhornRows<SinkhornRowsMembase<T, Source>, T, Source>;
    friend Rows;
    using Rows::comb_;
    using Rows::combQue_;
    using Rows::constantBuf_;
    using Rows::mix_;
    using Rows::mixQue_;
    using Rows::n_;
    using Rows::planeBuf_;
    using Rows::plan_;
    using Rows::post_;
    using Rows::postQue_;
    using Rows::preBuf_;
    using Rows::Row;
    using Rows::share_;
    using Rows::source_;
    using Rows::WaitForConstants;
    using Rows::writesWeights_;
    using Rows::xQue_;
    using Rows::yQue_;

    static constexpr bool kNarrow = sizeof(T) == 2;  // x needs a float32 copy

    __aicore__ inline void InitWork(AscendC::TPipe* pipe) {
        basePitch_ = AlignUp(mix_, kBlockFloats);
        pipe->InitBuffer(workBuf_, plan_.workBytes);
        InitViews();
        AscendC::Duplicate(one_, 1.0f, static_cast<int32_t>(kBlockFloats));
    }

    __aicore__ inline void InitViews() {
        const AscendC::LocalTensor<float> constants = constantBuf_.template Get<float>();
        baseValues_ = constants;
        scaleValues_ = baseValues_[basePitch_];
        baseBlocks_ = scaleValues_[kBlockFloats];
        scaleBlocks_ = baseBlocks_[basePitch_ * kBlockFloats];
        one_ = scaleBlocks_[kBlockFloats * kBlockFloats];
        pre_ = preBuf_.template Get<float>();
        work_ = workBuf_.Get<float>();
        const uint32_t slots = AlignUp(plan_.batchRows, plan_.chunkTokens);
        head_ = work_;
        blocks_ = work_[2 * n_ * slots];
        matrix_ = planeBuf_.template Get<float>();
        sinkhorn_.Init(matrix_, matrix_[n_ * n_ * slots], n_);
    }

    // hc_base and hc_scale with a block per value.
    __aicore__ inline void UseConstants() {
        AscendC::Brcb(baseBlocks_, baseValues_, static_cast<uint8_t>(basePitch_ / 8), AscendC::BrcbRepeatParams(1, 8));
        AscendC::Brcb(scaleBlocks_, scaleValues_, 1, AscendC::BrcbRepeatParams(1, 8));
    }

    // Spreads the passes over comb evenly before, between and after the batch's x tiles: alone, a chain of small dependent
    // instructions leaves the vector unit, and with it MTE2, waiting.
    __aicore__ inline void AdvanceWeights(uint32_t rows) {
        const uint32_t tiles = CeilDiv(rows, plan_.rowFactor) * CeilDiv(share_.columns, plan_.dFactor);
        sinkhorn_.Run(CeilDiv(sinkhorn_.Passes(), tiles + 1));
    }

    // pre and post of a batch, and the logits of comb.
    __aicore__ inline void StartWeights(uint32_t batch, uint32_t rows) {
        const uint32_t width = plan_.chunkTokens, chunks = CeilDiv(rows, width);
        const PlaneShape head{chunks, 2 * n_, width}, matrix{chunks, n_ * n_, width};
        AscendC::LocalTensor<float> mixes = mixQue_.template DeQue<float>();
        const AscendC::LocalTensor<float> rsqrt = mixes[plan_.rsqrtOffset / sizeof(float)];

        source_.Prepare(mixes, rows, chunks * width, one_);  // ends fenced; work_ was the float32 copy of an x tile until then

        WaitForConstants();
        RowsToPlanes(head_, head, mixes, 0, plan_.mixPitch);
        if (writesWeights_) RowsToPlanes(matrix_, matrix, mixes, 2 * n_, plan_.mixPitch);
        FenceVector();
        MulPlanesByTokens(head_, head, rsqrt);
        if (writesWeights_) MulPlanesByTokens(matrix_, matrix, rsqrt);
        mixQue_.FreeTensor(mixes);
        FenceVector();

        ComputeHeads(head);
        if (!writesWeights_) return;
        AscendC::LocalTensor<float> post = postQue_.template AllocTensor<float>();
        PlanesToRows(post, head_, head, n_, n_, blocks_);
        postQue_.EnQue(post);
        CopyOutPost(batch, rows);
        ScalePlanes(matrix_, matrix, 0, n_ * n_, scaleBlocks_[2 * kBlockFloats], baseBlocks_[2 * n_ * kBlockFloats]);
        sinkhorn_.Start(matrix, plan_.sinkhornIters, plan_.hcEps);
    }

    // pre as one block per token and stream, in pre_; post in head_.
    __aicore__ inline void ComputeHeads(const PlaneShape& head) {
        ScalePlanes(head_, head, 0, n_, scaleBlocks_, baseBlocks_);
        ScalePlanes(head_, head, n_, n_, scaleBlocks_[kBlockFloats], baseBlocks_[n_ * kBlockFloats]);
        // sigmoid(v) = 1 / (1 + exp(-v)); exp(-v) = inf gives 0
        const uint32_t all = head.Floats();
        AscendC::Muls(head_, head_, -1.0f, static_cast<int32_t>(all));
        FenceVector();
        AscendC::Exp(head_, head_, static_cast<int32_t>(all));
        FenceVector();
        AscendC::Adds(head_, head_, 1.0f, static_cast<int32_t>(all));
        FenceVector();
        for (uint32_t at = 0; at < all; at += kLanes * kMaxRepeats) {
            const uint32_t lanes = Min(all - at, kLanes * kMaxRepeats), repeats = lanes / kLanes, tail = lanes % kLanes;
            if (repeats != 0)
                AscendC::Div(head_[at], one_, head_[at], static_cast<uint64_t>(kLanes), static_cast<uint8_t>(repeats),
                             AscendC::BinaryRepeatParams(1, 0, 1, 8, 0, 8));
            const uint32_t rest = at + repeats * kLanes;
            if (tail != 0)
                AscendC::Div(head_[rest], one_, head_[rest], static_cast<uint64_t>(tail), static_cast<uint8_t>(1),
                             AscendC::BinaryRepeatParams(1, 0, 1, 8, 0, 8));
        }
        FenceVector();
        const uint32_t part = n_ * head.width;
        for (uint32_t chunk = 0; chunk < head.chunks; ++chunk) {
            const AscendC::LocalTensor<float> pre = head_[head.Chunk(chunk)], post = pre[part];
            AscendC::Adds(pre, pre, plan_.hcEps, static_cast<int32_t>(part));
            AscendC::Muls(post, post, 2.0f, static_cast<int32_t>(part));
        }
        FenceVector();
        for (uint32_t chunk = 0; chunk < head.chunks; ++chunk)
            for (uint32_t i = 0; i < n_; ++i)  // block (t, i) = pre[i][t]
                AscendC::Brcb(pre_[(chunk * head.width * n_ + i) * kBlockFloats], head_[head.Chunk(chunk) + i * head.width],
                              static_cast<uint8_t>(head.width / kBlockFloats),
                              AscendC::BrcbRepeatParams(static_cast<uint16_t>(n_), static_cast<uint16_t>(8 * n_)));
        FenceVector();
    }

    __aicore__ inline void FinishWeights(uint32_t batch, uint32_t rows) {
        sinkhorn_.Run(sinkhorn_.Passes());
        FenceVector();  // blocks_ was the float32 copy of an x tile until now
        AscendC::LocalTensor<float> comb = combQue_.template AllocTensor<float>();
        PlanesToRows(comb, matrix_, {CeilDiv(rows, plan_.chunkTokens), n_ * n_, plan_.chunkTokens}, 0, n_ * n_, blocks_);
        combQue_.EnQue(comb);
        comb = combQue_.template DeQue<float>();
        CopyOutLanes(comb_[Row(batch) * n_ * n_], comb, rows, n_ * n_);
        combQue_.FreeTensor(comb);
    }

    __aicore__ inline void CopyOutPost(uint32_t batch, uint32_t rows) {
        AscendC::LocalTensor<float> post = postQue_.template DeQue<float>();
        CopyOutLanes(post_[Row(batch) * n_], post, rows, n_);
        postQue_.FreeTensor(post);
    }
    // Rows of `lanes` floats, dense in UB when OutFloats(lanes) == lanes.
    __aicore__ inline void CopyOutLanes(const AscendC::GlobalTensor<float>& global, const AscendC::LocalTensor<float>& local,
                                        uint32_t rows, uint32_t lanes) {
        if (OutFloats(lanes) == lanes) {
            CopyFlatOut(global, local, rows * lanes);
        } else {
            CopyRowsOut(global, local, rows, lanes, lanes);
        }
    }

    __aicore__ inline void ComputeY(const Tile& tile, uint32_t batch) {
        AscendC::LocalTensor<T> x = xQue_.template DeQue<T>();
        const uint32_t pitch = RowPitch<T>(tile.columns), rowPitch = n_ * pitch, lines = tile.rows * n_;
        AscendC::LocalTensor<float> wide;
        FenceVector();  // work_ holds planes or the previous tile
        if constexpr (kNarrow) {
            wide = work_;
            AscendC::Cast(wide, x, AscendC::RoundMode::CAST_NONE, lines * pitch);
            xQue_.FreeTensor(x);
            FenceVector();
        } else {
            wide = x;
        }
        MulRowsByBlock(wide, pre_[(tile.row - batch) * n_ * kBlockFloats], pitch, lines, pitch);
        FenceVector();
        SumPieces(wide, pitch, n_, tile.rows, rowPitch);

        AscendC::LocalTensor<T> y = yQue_.template AllocTensor<T>();
        if constexpr (kNarrow) {
            for (uint32_t row = 0; row < tile.rows; ++row)
                AscendC::Cast(y[row * pitch], wide[row * rowPitch], AscendC::RoundMode::CAST_RINT, pitch);
        } else {
            AscendC::DataCopy(y, wide, AscendC::DataCopyParams(static_cast<uint16_t>(tile.rows), static_cast<uint16_t>(pitch / kBlockFloats),
                                                               static_cast<uint16_t>((n_ - 1) * pitch / kBlockFloats), 0));
            xQue_.FreeTensor(x);
        }
        yQue_.EnQue(y);
    }

    uint32_t basePitch_ = 0;
    AscendC::TBuf<AscendC::TPosition::VECCALC> workBuf_;
    AscendC::LocalTensor<float> baseValues_, scaleValues_, baseBlocks_, scaleBlocks_, one_;
    AscendC::LocalTensor<float> pre_, work_, head_, matrix_, blocks_;
    SinkhornPlanes sinkhorn_;
};

}  // namespace hc
