// What both kernels of hc_pre_sinkhorn share: the buffers, the order of batches and x tiles, the copies of x and y. `Kernel`, which
// derives from this, adds InitWork, CopyInMixes, StartWeights, AdvanceWeights, FinishWeights and ComputeY.
#pragma once

#include "../common/tiles.h"
#include "hc_pre_sinkhorn_tiling_data.h"

namespace hc {

template <typename Kernel, typename T>
class HcPreSinkhornRows {
public:
    __aicore__ inline void Init(GM_ADDR mixes, GM_ADDR rsqrt, GM_ADDR scale, GM_ADDR base, GM_ADDR x, GM_ADDR y, GM_ADDR post,
                                GM_ADDR comb, const HcPreSinkhornTilingData* tiling, AscendC::TPipe* pipe) {
        tiling_ = *tiling;
        n_ = tiling_.hcMult;
        mix_ = (2 + n_) * n_;
        if (tiling_.tokens == 0) return;
        share_.Init(tiling_, AscendC::GetBlockIdx());
        writesWeights_ = share_.part == 0;

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
        if (tiling_.planeBytes != 0) pipe->InitBuffer(planeBuf_, tiling_.planeBytes);
        Self().InitWork(pipe);
    }

    __aicore__ inline void Process() {
        if (tiling_.tokens == 0) return;
        Self().CopyInMixes(0);
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
            Self().StartWeights(batch, rows);
            if (batch + rows < share_.rows) Self().CopyInMixes(batch + rows);
            Self().AdvanceWeights(rows);
            for (bool rest = true; rest && tile.row < batch + rows; rest = tile.Next(tiling_, share_)) {
                Self().ComputeY(tile, batch);
                if (more) {
                    CopyInX(ahead);
                    more = ahead.Next(tiling_, share_);
                }
                CopyOutY(tile);
                Self().AdvanceWeights(rows);  // while the next tiles arrive
            }
            if (writesWeights_) Self().FinishWeights(batch, rows);
        }
    }

private:
    __aicore__ inline Kernel& Self() { return *static_cast<Kernel*>(this); }

    __aicore__ inline void CopyInX(const Tile& tile) {
        AscendC::LocalTensor<T> x = xQue_.template AllocTensor<T>();
        CopyRowsIn(x, x_[static_cast<uint64_t>(tile.row) * n_ * tiling_.hidden + tile.column], tile.rows * n_, tile.columns,
                   tiling_.hidden);
        xQue_.EnQue(x);
    }

    __aicore__ inline void CopyOutY(const Tile& tile) {
        AscendC::LocalTensor<T> y = yQue_.template DeQue<T>();
        CopyRowsOut(y_[static_cast<uint64_t>(tile.row) * tiling_.hidden + tile.column], y, tile.rows, tile.columns, tiling_.hidden);
        yQue_.FreeTensor(y);
    }

    static constexpr uint32_t kAhead = 2;  // x tiles in flight: both buffers
    AscendC::GlobalTensor<T> x_, y_;

protected:
    HcPreSinkhornTilingData tiling_;
    CoreShare share_;
    bool writesWeights_ = false;  // of the cores that share rows, the first writes post and comb_frag
    uint32_t n_ = 0, mix_ = 0;
    AscendC::GlobalTensor<float> mixes_, rsqrt_, scale_, base_, post_, comb_;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> mixQue_;
    AscendC::TQue<AscendC::TPosition::VECIN, kAhead> xQue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> yQue_, postQue_, combQue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> preBuf_, constantBuf_, planeBuf_;
};

}  // namespace hc
