// SinkhornRows for the 950: weights of a batch of tokens (sinkhorn_weights_regbase.h), then their x tile by tile: i ascending,
// fused multiply-add.
#pragma once

#include "sinkhorn_rows.h"
#include "sinkhorn_weights_regbase.h"

namespace hc {

template <typename T, typename Source>
class SinkhornRowsRegbase : public SinkhornRows<SinkhornRowsRegbase<T, Source>, T, Source> {
    using Rows = SinkhornRows<SinkhornRowsRegbase<T, Source>, T, Source>;
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
    using Rows::source_;
    using Rows::WaitForConstants;
    using Rows::writesWeights_;
    using Rows::xQue_;
    using Rows::yQue_;

    static constexpr uint32_t kMaxRounds = 60000;  // loop counters of a vector function have 16 bits

    __aicore__ inline void InitWork(AscendC::TPipe*) {
        prePitch_ = AlignUp(plan_.batchRows, 8);
        const AscendC::LocalTensor<float> base = constantBuf_.template Get<float>(), scale = base[AlignUp(mix_, 8)];
        const AscendC::LocalTensor<int32_t> lane = scale[8].template ReinterpretCast<int32_t>();
        AscendC::CreateVecIndex(lane, 0, kLanes);
        in_.base = Pointer(base);
        in_.scale = Pointer(scale);
        in_.lane = reinterpret_cast<__ubuf__ uint32_t*>(lane.GetPhyAddr());
    }

    __aicore__ inline void UseConstants() {}  // as they are

    // All of pre, post and comb_frag, before the x tiles.
    __aicore__ inline void StartWeights(uint32_t batch, uint32_t rows) {
        AscendC::LocalTensor<float> mixes = mixQue_.template DeQue<float>();
        AscendC::LocalTensor<float> post = postQue_.template AllocTensor<float>();
        source_.Prepare(mixes, rows, in_.lane);
        WaitForConstants();
        in_.mixes = Pointer(mixes);
        in_.mixPitch = plan_.mixPitch;
        in_.rsqrt = in_.mixes + plan_.rsqrtOffset / sizeof(float);
        for (uint32_t first = 0; first < rows; first += kLanes)
            ComputeHeads(in_, Pointer(preBuf_.template Get<float>()), Pointer(post), prePitch_, first, Min(kLanes, rows - first),
                         n_, plan_.hcEps);
        if (!writesWeights_) {
            postQue_.FreeTensor(post);
            mixQue_.FreeTensor(mixes);
            return;
        }
        postQue_.EnQue(post);
        AscendC::LocalTensor<float> comb = combQue_.template AllocTensor<float>();
        for (uint32_t first = 0; first < rows; first += kLanes) {
            const uint32_t tokens = Min(kLanes, rows - first);
            if (n_ == 4) {
                Comb4(Pointer(comb), first, tokens);
            } else {
                CombOfAnySize(Pointer(comb), first, tokens);
            }
        }
        combQue_.EnQue(comb);
        mixQue_.FreeTensor(mixes);
        CopyOutWeights(batch, rows);
    }

    __aicore__ inline void AdvanceWeights(uint32_t) {}  // a vector function is too short to be worth spreading
    __aicore__ inline void FinishWeights(uint32_t, uint32_t) {}

    __aicore__ inline void Comb4(__ubuf__ float* comb, uint32_t first, uint32_t tokens) {
        StartComb4(in_, comb, first, tokens, plan_.hcEps);
        uint32_t rounds = Min(kMaxRounds, plan_.sinkhornIters - 1);
        IterateComb4<true>(comb, in_.lane, first, tokens, static_cast<uint16_t>(rounds), plan_.hcEps);
        for (uint32_t done = rounds; done < plan_.sinkhornIters - 1; done += rounds) {
            rounds = Min(kMaxRounds, plan_.sinkhornIters - 1 - done);
            IterateComb4<false>(comb, in_.lane, first, tokens, static_cast<uint16_t>(rounds), plan_.hcEps);
        }
    }

    __aicore__ inline void CombOfAnySize(__ubuf__ float* comb, uint32_t first, uint32_t tokens) {
        __ubuf__ float* planes = Pointer(planeBuf_.template Get<float>());
        StartComb(in_, planes, first, tokens, n_, plan_.hcEps);
        uint32_t rounds = Min(kMaxRounds, plan_.sinkhornIters - 1);
        IterateComb<true>(planes, tokens, n_, static_cast<uint16_t>(rounds), plan_.hcEps);
        for (uint32_t done = rounds; done < plan_.sinkhornIters - 1; done += rounds) {
            rounds = Min(kMaxRounds, plan_.sinkhornIters - 1 - done);
            IterateComb<false>(planes, tokens, n_, static_cast<uint16_t>(rounds), plan_.hcEps);
        }
        StoreComb(comb, planes, in_.lane, first, tokens, n_);
    }

    __aicore__ inline void CopyOutWeights(uint32_t batch, uint32_t rows) {
        AscendC::LocalTensor<float> post = postQue_.template DeQue<float>();
        CopyFlatOut(post_[Row(batch) * n_], post, rows * n_);
        postQue_.FreeTensor(post);
        AscendC::LocalTensor<float> comb = combQue_.template DeQue<float>();
        CopyFlatOut(comb_[Row(batch) * n_ * n_], comb, rows * n_ * n_);
        combQue_.FreeTensor(comb);
    }

    __aicore__ inline void ComputeY(const Tile& tile, uint32_t batch) {
        AscendC::LocalTensor<T> x = xQue_.template DeQue<T>();
        AscendC::LocalTensor<T> y = yQue_.template AllocTensor<T>();
        WeightedSum(Pointer(y), Pointer(x), Pointer(preBuf_.template Get<float>()) + (tile.row - batch),
                    static_cast<uint16_t>(tile.rows), tile.columns, RowPitch<T>(tile.columns), static_cast<uint16_t>(n_), prePitch_);
        xQue_.FreeTensor(x);
        yQue_.EnQue(y);
    }

    static __aicore__ inline void WeightedSum(__ubuf__ T* y, __ubuf__ T* x, __ubuf__ float* pre, uint16_t rows, uint32_t columns,
                                              uint32_t pitch, uint16_t streams, uint32_t prePitch) {
        const uint16_t vectors = static_cast<uint16_t>(CeilDiv(columns, kLanes)), others = streams - 1;
        __VEC_SCOPE__ {
            FloatReg sum, value, weight;
            for (uint16_t row = 0; row < rows; ++row) {
                __ubuf__ T* line = x + row * streams * pitch;
                uint32_t lanes = columns;
                for (uint16_t vector = 0; vector < vectors; ++vector) {
                    reg::MaskReg mask = reg::UpdateMask<float>(lanes);
                    LoadFloats<T>(value, line + vector * kLanes, mask);
                    LoadScalar(weight, pre + row);
                    reg::Mul(sum, value, weight, mask);
                    for (uint16_t i = 0; i < others; ++i) {
                        LoadFloats<T>(value, line + (i + 1) * pitch + vector * kLanes, mask);
                        LoadScalar(weight, pre + (i + 1) * prePitch + row);
                        reg::MulAddDst(sum, value, weight, mask);
                    }
                    StoreFloats<T>(y + row * pitch + vector * kLanes, sum, mask);
                }
            }
        }
    }

    uint32_t prePitch_ = 0;
    WeightBuffers in_{};
};

}  // namespace hc
