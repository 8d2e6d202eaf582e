// From mixes to y, post and comb_frag, for hc_pre_sinkhorn and hc_pre: the buffers, the order of batches and x tiles, the copies.
//
//   v[m]      = mixes[m] * rsqrt * scale[group of m] + base[m]        groups: n of pre, n of post, n * n of comb
//   pre       = sigmoid(v) + eps,  post = 2 * sigmoid(v)
//   comb      = softmax over j, + eps; columns; then iters - 1 times rows, columns (each divided by its sum + eps)
//   y         = sum over i of pre[i] * x[i], in float32, rounded once to nearest even
//
// `Kernel`, which derives from this, adds InitWork, UseConstants, StartWeights, AdvanceWeights, FinishWeights and ComputeY. `Source`
// says where mixes come from:
//   CopyIn(mixes, row, rows, last)   MTE2: what the mixes of tokens [row, row + rows) are made of; last: of this share
//   Prepare(mixes, rows, lane)       V: leaves mixes at plan.mixPitch and rsqrt at plan.rsqrtOffset; lane: 0 .. 63
//   Prepare(mixes, rows, slots, one) the same on membase, with zeros up to slots, fenced; one: a block of ones
#pragma once

#include "sinkhorn_rows_plan.h"
#include "tiles.h"

namespace hc {

// Whole tensors in GM.
struct RowTensors {
    GM_ADDR scale;
    GM_ADDR base;
    GM_ADDR x;
    GM_ADDR y;
    GM_ADDR post;
    GM_ADDR comb;
};

template <typename Kernel, typename T, typename Source>
class SinkhornRows {
public:
    __aicore__ inline void Init(const RowTensors& tensors, const Source& source, const SinkhornRowsPlan& plan, AscendC::TPipe* pipe) {
        source_ = source;
        plan_ = plan;
        pipe_ = pipe;
        n_ = plan_.hcMult;
        mix_ = (2 + n_) * n_;
        scale_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(tensors.scale));
        base_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(tensors.base));
        x_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.x));
        y_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(tensors.y));
        post_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(tensors.post));
        comb_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(tensors.comb));

        pipe->InitBuffer(mixQue_, 1, plan_.mixBytes);
        pipe->InitBuffer(xQue_, 2, plan_.xBytes);
        pipe->InitBuffer(yQue_, 2, plan_.yBytes);
        pipe->InitBuffer(postQue_, 1, plan_.postBytes);
        pipe->InitBuffer(combQue_, 1, plan_.combBytes);
        pipe->InitBuffer(preBuf_, plan_.preBytes);
        pipe->InitBuffer(constantBuf_, plan_.constantBytes);
        if (plan_.planeBytes != 0) pipe->InitBuffer(planeBuf_, plan_.planeBytes);
        Self().InitWork(pipe);
    }

    // Loads what is constant and the first x tiles of a share whose mixes are not there yet. Process follows.
    __aicore__ inline void Prefetch(const CoreShare& share) {
        share_ = share;
        if (share_.rows == 0) return;
        if (!hasConstants_) CopyInConstants();
        ahead_.First(plan_, share_);
        more_ = prefetched_ = true;
        for (uint32_t i = 0; i < kAhead && more_; ++i) {
            CopyInX(ahead_);
            more_ = ahead_.Next(plan_, share_);
        }
    }

    // The rows and columns of one share; share.rows may be 0.
    __aicore__ inline void Process(const CoreShare& share) {
        share_ = share;
        if (share_.rows == 0) return;
        writesWeights_ = share_.part == 0;
        CopyInMixes(0);
        if (!prefetched_) Prefetch(share);  // these arrive while the mixes are made and the weights computed
        prefetched_ = false;
        Tile tile;
        tile.First(plan_, share_);
        for (uint32_t batch = 0; batch < share_.rows; batch += plan_.batchRows) {
            const uint32_t rows = Min(plan_.batchRows, share_.rows - batch);
            Self().StartWeights(batch, rows);
            if (batch + rows < share_.rows) CopyInMixes(batch + rows);
            Self().AdvanceWeights(rows);
            for (bool rest = true; rest && tile.row < batch + rows; rest = tile.Next(plan_, share_)) {
                Self().ComputeY(tile, batch);
                if (more_) {
                    CopyInX(ahead_);
                    more_ = ahead_.Next(plan_, share_);
                }
                CopyOutY(tile);
                Self().AdvanceWeights(rows);  // while the next tiles arrive
            }
            if (writesWeights_) Self().FinishWeights(batch, rows);
        }
    }

private:
    __aicore__ inline Kernel& Self() { return *static_cast<Kernel*>(this); }

    // hc_base and hc_scale, once.
    __aicore__ inline void CopyInConstants() {
        const AscendC::LocalTensor<float> constants = constantBuf_.template Get<float>();
        CopyFlatIn(constants, base_, mix_);
        CopyFlatIn(constants[AlignUp(mix_, kBlockBytes / sizeof(float))], scale_, 3);
        loaded_ = pipe_->AllocEventID<AscendC::HardEvent::MTE2_V>();
        AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(loaded_);  // they are there before V reads them: WaitForConstants
        hasConstants_ = awaited_ = true;
    }

    __aicore__ inline void CopyInMixes(uint32_t row) {
        const uint32_t rows = Min(plan_.batchRows, share_.rows - row);
        AscendC::LocalTensor<float> mixes = mixQue_.template AllocTensor<float>();
        source_.CopyIn(mixes, Row(row), rows, row + rows == share_.rows);
        mixQue_.EnQue(mixes);
    }

    __aicore__ inline void CopyInX(const Tile& tile) {
        AscendC::LocalTensor<T> x = xQue_.template AllocTensor<T>();
        CopyRowsIn(x, x_[Row(tile.row) * n_ * plan_.hidden + share_.firstColumn + tile.column], tile.rows * n_, tile.columns,
                   plan_.hidden);
        xQue_.EnQue(x);
    }

    __aicore__ inline void CopyOutY(const Tile& tile) {
        AscendC::LocalTensor<T> y = yQue_.template DeQue<T>();
        CopyRowsOut(y_[Row(tile.row) * plan_.hidden + share_.firstColumn + tile.column], y, tile.rows, tile.columns, plan_.hidden);
        yQue_.FreeTensor(y);
    }

    static constexpr uint32_t kAhead = 2;  // x tiles in flight: both buffers
    AscendC::GlobalTensor<T> x_, y_;
    AscendC::GlobalTensor<float> scale_, base_;
    AscendC::TPipe* pipe_ = nullptr;
    AscendC::TEventID loaded_ = 0;
    bool hasConstants_ = false, awaited_ = false;  // hc_base and hc_scale were asked for; V has not waited for them
    Tile ahead_;         // the next x tile to load
    bool more_ = false;  // whether there is one
    bool prefetched_ = false;

protected:
    // Token of a row of the share.
    __aicore__ inline uint64_t Row(uint32_t row) const { return share_.firstRow + row; }

    // Before the first use of hc_base and hc_scale in V.
    __aicore__ inline void WaitForConstants() {
        if (!awaited_) return;
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(loaded_);
        pipe_->ReleaseEventID<AscendC::HardEvent::MTE2_V>(loaded_);
        awaited_ = false;
        Self().UseConstants();
    }

    SinkhornRowsPlan plan_;
    Source source_;
    CoreShare share_;
    bool writesWeights_ = false;  // of the cores that share rows, the first writes post and comb_frag
    uint32_t n_ = 0, mix_ = 0;
    AscendC::GlobalTensor<float> post_, comb_;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> mixQue_;
    AscendC::TQue<AscendC::TPosition::VECIN, kAhead> xQue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> yQue_, postQue_, combQue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> preBuf_, constantBuf_, planeBuf_;
};

}  // namespace hc
