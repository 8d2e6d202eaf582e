// What both kernels of hc_post share: a core's rows and columns, the tiles they are read in, the copies, post and comb in float32.
// `Kernel`, which derives from this, adds InitWork, WeightsReady and Compute.
#pragma once

#include "../common/tiles.h"
#include "hc_post_tiling_data.h"

namespace hc {

// T: x, residual and the result; W: post and comb.
template <typename Kernel, typename T, typename W>
class HcPostRows {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR residual, GM_ADDR post, GM_ADDR comb, GM_ADDR y, const HcPostTilingData* tiling,
                                AscendC::TPipe* pipe) {
        tiling_ = *tiling;
        n_ = tiling_.hcMult;
        if (tiling_.tokens == 0) return;
        share_.Init(tiling_, AscendC::GetBlockIdx());

        const uint64_t row = share_.firstRow;
        x_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(x) + row * tiling_.hidden + share_.firstColumn);
        residual_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(residual) + row * n_ * tiling_.hidden + share_.firstColumn);
        y_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(y) + row * n_ * tiling_.hidden + share_.firstColumn);
        post_.SetGlobalBuffer(reinterpret_cast<__gm__ W*>(post) + row * n_);
        comb_.SetGlobalBuffer(reinterpret_cast<__gm__ W*>(comb) + row * n_ * n_);

        pipe->InitBuffer(weightQue_, 2, tiling_.weightBytes);
        pipe->InitBuffer(inQue_, 2, tiling_.inBytes);
        pipe->InitBuffer(outQue_, 2, tiling_.outBytes);
        pipe->InitBuffer(valueBuf_, tiling_.valueBytes);
        post32_ = valueBuf_.template Get<float>();
        comb32_ = post32_[tiling_.combOffset];
        Self().InitWork(pipe);
    }

    __aicore__ inline void Process() {
        if (tiling_.tokens == 0) return;
        CopyInWeights(0);
        Tile tile, ahead;
        tile.First(tiling_, share_);
        ahead.First(tiling_, share_);
        bool more = true;  // whether `ahead`, the next tile to load, exists
        for (uint32_t i = 0; i < kAhead && more; ++i) {
            CopyIn(ahead);
            more = ahead.Next(tiling_, share_);
        }
        for (uint32_t batch = 0; batch < share_.rows; batch += tiling_.batchRows) {
            const uint32_t rows = Min(tiling_.batchRows, share_.rows - batch);
            if (batch + rows < share_.rows) CopyInWeights(batch + rows);
            ReadWeights(rows);
            for (bool rest = true; rest && tile.row < batch + rows; rest = tile.Next(tiling_, share_)) {
                Self().Compute(tile, tile.row - batch);
                if (more) {
                    CopyIn(ahead);
                    more = ahead.Next(tiling_, share_);
                }
                CopyOut(tile);
            }
        }
    }

private:
    static constexpr uint32_t kAhead = 2;  // tiles in flight: both buffers

    __aicore__ inline Kernel& Self() { return *static_cast<Kernel*>(this); }

    __aicore__ inline void CopyInWeights(uint32_t batch) {
        const uint32_t rows = Min(tiling_.batchRows, share_.rows - batch);
        AscendC::LocalTensor<W> weights = weightQue_.template AllocTensor<W>();
        CopyFlatIn(weights, post_[static_cast<uint64_t>(batch) * n_], rows * n_);
        CopyFlatIn(weights[tiling_.combOffset], comb_[static_cast<uint64_t>(batch) * n_ * n_], rows * n_ * n_);
        weightQue_.EnQue(weights);
    }

    // post32_, comb32_ = the next batch's weights
    __aicore__ inline void ReadWeights(uint32_t rows) {
        AscendC::LocalTensor<W> weights = weightQue_.template DeQue<W>();
        ToFloat(post32_, weights, rows * n_);
        ToFloat(comb32_, weights[tiling_.combOffset], rows * n_ * n_);
        weightQue_.FreeTensor(weights);
        Self().WeightsReady();
    }
    static __aicore__ inline void ToFloat(const AscendC::LocalTensor<float>& wide, const AscendC::LocalTensor<W>& narrow, uint32_t count) {
        if constexpr (sizeof(W) == 4) {
            AscendC::DataCopy(wide, narrow, AlignUp(count, kBlockBytes / sizeof(float)));
        } else {
            AscendC::Cast(wide, narrow, AscendC::RoundMode::CAST_NONE, count);
        }
    }

    __aicore__ inline void CopyIn(const Tile& tile) {
        AscendC::LocalTensor<T> in = inQue_.template AllocTensor<T>();
        const uint64_t row = tile.row;
        CopyRowsIn(in, x_[row * tiling_.hidden + tile.column], tile.rows, tile.columns, tiling_.hidden);
        CopyRowsIn(in[tiling_.residualOffset], residual_[row * n_ * tiling_.hidden + tile.column], tile.rows * n_, tile.columns,
                   tiling_.hidden);
        inQue_.EnQue(in);
    }

    __aicore__ inline void CopyOut(const Tile& tile) {
        AscendC::LocalTensor<T> y = outQue_.template DeQue<T>();
        CopyRowsOut(y_[static_cast<uint64_t>(tile.row) * n_ * tiling_.hidden + tile.column], y, tile.rows * n_, tile.columns,
                    tiling_.hidden);
        outQue_.FreeTensor(y);
    }

    CoreShare share_;
    AscendC::GlobalTensor<T> x_, residual_, y_;
    AscendC::GlobalTensor<W> post_, comb_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> weightQue_;  // one batch is enqueued while the one before is read
    AscendC::TBuf<AscendC::TPosition::VECCALC> valueBuf_;

protected:
    HcPostTilingData tiling_;
    uint32_t n_ = 0;
    AscendC::TQue<AscendC::TPosition::VECIN, kAhead> inQue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQue_;
    AscendC::LocalTensor<float> post32_;  // [batchRows, n]
    AscendC::LocalTensor<float> comb32_;  // [batchRows, n, n]
};

}  // namespace hc
