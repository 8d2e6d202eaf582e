// hc_pre_sinkhorn for the 910B family: weights of a batch of tokens as planes (hc_pre_sinkhorn_planes.h), then x tile by tile.
//
//   v[m]      = mixes[m] * rsqrt * scale[group of m] + base[m]        groups: n of pre, n of post, n * n of comb
//   pre       = sigmoid(v) + eps,  post = 2 * sigmoid(v)
//   comb      = softmax over j, + eps; columns; then iters - 1 times rows, columns (each divided by its sum + eps)
//   y         = sum over i of pre[i] * x[i], in float32, rounded once to nearest even
#pragma once

#include "hc_pre_sinkhorn_common.h"
#include "hc_pre_sinkhorn_planes.h"

namespace hc {

template <typename T>
class HcPreSinkhornMembase {
public:
    __aicore__ inline void Init(GM_ADDR mixes, GM_ADDR rsqrt, GM_ADDR scale, GM_ADDR base, GM_ADDR x, GM_ADDR y, GM_ADDR post,
                                GM_ADDR comb, const HcPreSinkhornTilingData* tiling, AscendC::TPipe* pipe) {
        tiling_ = *tiling;
        n_ = tiling_.hcMult;
        mix_ = (2 + n_) * n_;
        mixPitch_ = AlignUp(mix_, kBlockFloats);
        if (tiling_.tokens == 0) return;
        share_.Init(tiling_, AscendC::GetBlockIdx());

        const uint64_t row = share_.firstRow;
        mixes_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(mixes) + row * mix_);
        rsqrt_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(rsqrt) + row);
        scale_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(scale));
        base_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(base));
        x_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(x) + row * n_ * tiling_.hidden + share_.firstColumn);
        y_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(y) + row * tiling_.hidden + share_.firstColumn);
        post_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(post) + row * n_);
        comb_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(comb) + row * n_ * n_);

        pipe->InitBuffer(mixQue_, 1, tiling_.mixBytes);
        pipe->InitBuffer(xQue_, 2, tiling_.xBytes);
        pipe->InitBuffer(yQue_, 2, tiling_.yBytes);
        pipe->InitBuffer(postQue_, 1, tiling_.postBytes);
        pipe->InitBuffer(combQue_, 1, tiling_.combBytes);
        pipe->InitBuffer(preBuf_, tiling_.preBytes);
        pipe->InitBuffer(constantBuf_, tiling_.constantBytes);
        pipe->InitBuffer(planeBuf_, tiling_.planeBytes);
        pipe->InitBuffer(workBuf_, tiling_.workBytes);
        InitViews();
        LoadConstants(pipe);
    }

    __aicore__ inline void Process() {
        if (tiling_.tokens == 0) return;
        CopyInMixes(0);
        Tile tile, ahead;
        tile.First(tiling_, share_);
        ahead.First(tiling_, share_);
        bool more = true;  // whether `ahead`, the next tile to load, exists
        for (uint32_t i = 0; i < kAhead && more; ++i) {  // these arrive while the weights are computed
            CopyInX(ahead);
            more = ahead.Next(tiling_, share_);
        }
        for (uint32_t batch = 0; batch < share_.rows; batch += tiling_.batchRows) {
            const uint32_t rows = Min(tiling_.batchRows, share_.rows - batch);
            StartWeights(batch, rows);
            if (batch + rows < share_.rows) CopyInMixes(batch + rows);
            const uint32_t passes = PassesPerTile(rows);
            sinkhorn_.Run(passes);
            for (bool rest = true; rest && tile.row < batch + rows; rest = tile.Next(tiling_, share_)) {
                ComputeY(tile, batch);
                if (more) {
                    CopyInX(ahead);
                    more = ahead.Next(tiling_, share_);
                }
                CopyOutY(tile);
                sinkhorn_.Run(passes);  // while the next tiles arrive
            }
            if (share_.writesWeights) FinishComb(batch, rows);
        }
    }

private:
    static constexpr uint32_t kAhead = 2;  // x tiles in flight: both buffers
    static constexpr bool kNarrow = sizeof(T) == 2;  // x needs a float32 copy

    __aicore__ inline void InitViews() {
        const AscendC::LocalTensor<float> constants = constantBuf_.Get<float>();
        baseValues_ = constants;
        scaleValues_ = baseValues_[mixPitch_];
        baseBlocks_ = scaleValues_[kBlockFloats];
        scaleBlocks_ = baseBlocks_[mixPitch_ * kBlockFloats];
        one_ = scaleBlocks_[kBlockFloats * kBlockFloats];
        pre_ = preBuf_.Get<float>();
        work_ = workBuf_.Get<float>();
        const uint32_t slots = AlignUp(tiling_.batchRows, tiling_.chunkTokens);
        head_ = work_;
        blocks_ = work_[2 * n_ * slots];
        matrix_ = planeBuf_.Get<float>();
        sinkhorn_.Init(matrix_, matrix_[n_ * n_ * slots], n_);
    }

    // hc_base and hc_scale, as they are and with a block per value; a block of ones.
    __aicore__ inline void LoadConstants(AscendC::TPipe* pipe) {
        CopyFlatIn(baseValues_, base_, mix_);
        CopyFlatIn(scaleValues_, scale_, 3);
        const auto loaded = pipe->FetchEventID(AscendC::HardEvent::MTE2_V);
        AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(loaded);  // baseValues_, scaleValues_ are there before V reads them
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(loaded);
        AscendC::Brcb(baseBlocks_, baseValues_, static_cast<uint8_t>(mixPitch_ / 8), AscendC::BrcbRepeatParams(1, 8));
        AscendC::Brcb(scaleBlocks_, scaleValues_, 1, AscendC::BrcbRepeatParams(1, 8));
        AscendC::Duplicate(one_, 1.0f, static_cast<int32_t>(kBlockFloats));
    }

    __aicore__ inline void CopyInMixes(uint32_t row) {
        const uint32_t rows = Min(tiling_.batchRows, share_.rows - row);
        AscendC::LocalTensor<float> mixes = mixQue_.template AllocTensor<float>();
        CopyRowsIn(mixes, mixes_[static_cast<uint64_t>(row) * mix_], rows, mix_, mix_);
        CopyFlatIn(mixes[tiling_.rsqrtOffset / sizeof(float)], rsqrt_[row], rows);
        mixQue_.EnQue(mixes);
    }

    // Spreads the passes over comb evenly before, between and after the batch's x tiles: alone, a chain of small dependent
    // instructions leaves the vector unit, and with it MTE2, waiting.
    __aicore__ inline uint32_t PassesPerTile(uint32_t rows) const {
        const uint32_t tiles = CeilDiv(rows, tiling_.rowFactor) * CeilDiv(share_.columns, tiling_.dFactor);
        return CeilDiv(sinkhorn_.Passes(), tiles + 1);
    }

    // pre and post of a batch, and the logits of comb.
    __aicore__ inline void StartWeights(uint32_t batch, uint32_t rows) {
        const uint32_t width = tiling_.chunkTokens, chunks = CeilDiv(rows, width);
        const PlaneShape head{chunks, 2 * n_, width}, matrix{chunks, n_ * n_, width};
        AscendC::LocalTensor<float> mixes = mixQue_.template DeQue<float>();
        const AscendC::LocalTensor<float> rsqrt = mixes[tiling_.rsqrtOffset / sizeof(float)];

        // Tokens that fill up the last chunk get zeros.
        const uint32_t slots = chunks * width, rows8 = AlignUp(rows, kBlockFloats);
        if (rows < slots) AscendC::Duplicate(mixes[rows * mixPitch_], 0.0f, static_cast<int32_t>((slots - rows) * mixPitch_));
        if (rows8 < slots) AscendC::Duplicate(rsqrt[rows8], 0.0f, static_cast<int32_t>(slots - rows8));
        FenceVector();  // also: work_ was the float32 copy of an x tile until now

        RowsToPlanes(head_, head, mixes, 0, mixPitch_);
        if (share_.writesWeights) RowsToPlanes(matrix_, matrix, mixes, 2 * n_, mixPitch_);
        FenceVector();
        MulPlanesByTokens(head_, head, rsqrt);
        if (share_.writesWeights) MulPlanesByTokens(matrix_, matrix, rsqrt);
        mixQue_.FreeTensor(mixes);
        FenceVector();

        ComputeHeads(head);
        if (!share_.writesWeights) return;
        AscendC::LocalTensor<float> post = postQue_.template AllocTensor<float>();
        PlanesToRows(post, head_, head, n_, n_, blocks_);
        postQue_.EnQue(post);
        CopyOutPost(batch, rows);
        ScalePlanes(matrix_, matrix, 0, n_ * n_, scaleBlocks_[2 * kBlockFloats], baseBlocks_[2 * n_ * kBlockFloats]);
        sinkhorn_.Start(matrix, tiling_.sinkhornIters, tiling_.hcEps);
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
            AscendC::Adds(pre, pre, tiling_.hcEps, static_cast<int32_t>(part));
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

    __aicore__ inline void FinishComb(uint32_t batch, uint32_t rows) {
        sinkhorn_.Run(sinkhorn_.Passes());
        FenceVector();  // blocks_ was the float32 copy of an x tile until now
        AscendC::LocalTensor<float> comb = combQue_.template AllocTensor<float>();
        PlanesToRows(comb, matrix_, {CeilDiv(rows, tiling_.chunkTokens), n_ * n_, tiling_.chunkTokens}, 0, n_ * n_, blocks_);
        combQue_.EnQue(comb);
        comb = combQue_.template DeQue<float>();
        CopyOutLanes(comb_[static_cast<uint64_t>(batch) * n_ * n_], comb, rows, n_ * n_);
        combQue_.FreeTensor(comb);
    }

    __aicore__ inline void CopyOutPost(uint32_t batch, uint32_t rows) {
        AscendC::LocalTensor<float> post = postQue_.template DeQue<float>();
        CopyOutLanes(post_[static_cast<uint64_t>(batch) * n_], post, rows, n_);
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

    __aicore__ inline void CopyInX(const Tile& tile) {
        AscendC::LocalTensor<T> x = xQue_.template AllocTensor<T>();
        CopyRowsIn(x, x_[static_cast<uint64_t>(tile.row) * n_ * tiling_.hidden + tile.column], tile.rows * n_, tile.columns,
                   tiling_.hidden);
        xQue_.EnQue(x);
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

    __aicore__ inline void CopyOutY(const Tile& tile) {
        AscendC::LocalTensor<T> y = yQue_.template DeQue<T>();
        CopyRowsOut(y_[static_cast<uint64_t>(tile.row) * tiling_.hidden + tile.column], y, tile.rows, tile.columns, tiling_.hidden);
        yQue_.FreeTensor(y);
    }

    HcPreSinkhornTilingData tiling_;
    CoreShare share_;
    uint32_t n_ = 0, mix_ = 0, mixPitch_ = 0;
    AscendC::GlobalTensor<float> mixes_, rsqrt_, scale_, base_, post_, comb_;
    AscendC::GlobalTensor<T> x_, y_;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> mixQue_;
    AscendC::TQue<AscendC::TPosition::VECIN, kAhead> xQue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> yQue_, postQue_, combQue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> preBuf_, constantBuf_, planeBuf_, workBuf_;
    AscendC::LocalTensor<float> baseValues_, scaleValues_, baseBlocks_, scaleBlocks_, one_;
    AscendC::LocalTensor<float> pre_, work_, head_, matrix_, blocks_;
    SinkhornPlanes sinkhorn_;
};

}  // namespace hc
