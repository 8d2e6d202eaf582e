// y[j] = post[j] * x + sum over i of comb[i, j] * residual[i], for the 950.
//
// One pass in registers: 64 columns of up to four results at a time, i ascending, fused multiply-add in float32, rounded once to nearest
// even. post and comb are broadcast by their loads.
#pragma once

#include "../common/rows_regbase.h"
#include "hc_post_rows.h"

namespace hc {

template <typename T, typename W>
class HcPostRegbase : public HcPostRows<HcPostRegbase<T, W>, T, W> {
    using Rows = HcPostRows<HcPostRegbase<T, W>, T, W>;
    friend Rows;
    using Rows::comb32_;
    using Rows::inQue_;
    using Rows::n_;
    using Rows::outQue_;
    using Rows::post32_;
    using Rows::tiling_;

    struct Operands {  // of one tile
        __ubuf__ T *x, *residual, *y;
        __ubuf__ float *post, *comb;
        uint32_t rows, columns, pitch, n;
    };

    __aicore__ inline void InitWork(AscendC::TPipe*) {}
    __aicore__ inline void WeightsReady() {}  // only V reads them

    // `first`: the tile's first token in the batch.
    __aicore__ inline void Compute(const Tile& tile, uint32_t first) {
        AscendC::LocalTensor<T> in = inQue_.template DeQue<T>();
        AscendC::LocalTensor<T> y = outQue_.template AllocTensor<T>();
        const Operands tensors{Pointer(in),  Pointer(in) + tiling_.residualOffset, Pointer(y), Pointer(post32_) + first * n_,
                               Pointer(comb32_) + first * n_ * n_, tile.rows, tile.columns, RowPitch<T>(tile.columns), n_};
        uint32_t j = 0;
        for (; j + 4 <= n_; j += 4) Mix<4>(tensors, j);
        if (n_ - j == 3) Mix<3>(tensors, j);
        else if (n_ - j == 2) Mix<2>(tensors, j);
        else if (n_ - j == 1) Mix<1>(tensors, j);
        inQue_.FreeTensor(in);
        outQue_.EnQue(y);
    }

    // sum = weight * value, or sum += weight * value
    template <bool kFirst>
    static __aicore__ inline void Add(FloatReg& sum, FloatReg& value, __ubuf__ float* weight, reg::MaskReg& mask) {
        FloatReg factor;
        LoadScalar(factor, weight);
        if constexpr (kFirst) reg::Mul(sum, value, factor, mask);
        else reg::MulAddDst(sum, value, factor, mask);
    }

    // y[j : j + kStreams] of a tile
    template <uint32_t kStreams>
    static __aicore__ inline void Mix(const Operands& tensors, uint32_t j) {
        const uint16_t rows = static_cast<uint16_t>(tensors.rows), streams = static_cast<uint16_t>(tensors.n);
        const uint16_t vectors = static_cast<uint16_t>(CeilDiv(tensors.columns, kLanes));
        const uint32_t columns = tensors.columns, pitch = tensors.pitch, n = tensors.n;
        __ubuf__ T *x = tensors.x, *residual = tensors.residual, *y = tensors.y + j * pitch;
        __ubuf__ float *post = tensors.post + j, *comb = tensors.comb + j;
        __VEC_SCOPE__ {
            FloatReg value, sum0, sum1, sum2, sum3;
            for (uint16_t row = 0; row < rows; ++row) {
                uint32_t lanes = columns;
                for (uint16_t vector = 0; vector < vectors; ++vector) {
                    reg::MaskReg mask = reg::UpdateMask<float>(lanes);
                    LoadFloats<T>(value, x + row * pitch + vector * kLanes, mask);
                    Add<true>(sum0, value, post + row * n, mask);
                    if constexpr (kStreams > 1) Add<true>(sum1, value, post + row * n + 1, mask);
                    if constexpr (kStreams > 2) Add<true>(sum2, value, post + row * n + 2, mask);
                    if constexpr (kStreams > 3) Add<true>(sum3, value, post + row * n + 3, mask);
                    for (uint16_t i = 0; i < streams; ++i) {
                        LoadFloats<T>(value, residual + (row * n + i) * pitch + vector * kLanes, mask);
                        Add<false>(sum0, value, comb + (row * n + i) * n, mask);
                        if constexpr (kStreams > 1) Add<false>(sum1, value, comb + (row * n + i) * n + 1, mask);
                        if constexpr (kStreams > 2) Add<false>(sum2, value, comb + (row * n + i) * n + 2, mask);
                        if constexpr (kStreams > 3) Add<false>(sum3, value, comb + (row * n + i) * n + 3, mask);
                    }
                    __ubuf__ T* target = y + row * n * pitch + vector * kLanes;
                    StoreFloats<T>(target, sum0, mask);
                    if constexpr (kStreams > 1) StoreFloats<T>(target + pitch, sum1, mask);
                    if constexpr (kStreams > 2) StoreFloats<T>(target + 2 * pitch, sum2, mask);
                    if constexpr (kStreams > 3) StoreFloats<T>(target + 3 * pitch, sum3, mask);
                }
            }
        }
    }
};

}  // namespace hc
