// y[j] = post[j] * x + sum over i of comb[i, j] * residual[i], for the 910B family.
//
// Every product and every sum is rounded to float32, i ascending; y is rounded once more, to nearest even. post and comb are scalars of
// the instruction: a scalar times a row costs half of a row times a row. Streams that wait for each other take turns: while residual[i]
// is added to all n sums, residual[i + 1] is widened.
#pragma once

#include "../common/rows_membase.h"
#include "hc_post_rows.h"

namespace hc {

template <typename T, typename W>
class HcPostMembase : public HcPostRows<HcPostMembase<T, W>, T, W> {
    using Rows = HcPostRows<HcPostMembase<T, W>, T, W>;
    friend Rows;
    using Rows::comb32_;
    using Rows::inQue_;
    using Rows::n_;
    using Rows::outQue_;
    using Rows::post32_;
    using Rows::tiling_;

    static constexpr bool kNarrow = sizeof(T) == 2;  // x, residual and y have float32 copies

    __aicore__ inline void InitWork(AscendC::TPipe* pipe) {
        weightsInUb_ = pipe->FetchEventID(AscendC::HardEvent::V_S);
        if constexpr (kNarrow) {
            pipe->InitBuffer(sumBuf_, tiling_.sumBytes);
            pipe->InitBuffer(wideBuf_, 2 * tiling_.wideBytes);
            sums_ = sumBuf_.template Get<float>();
            wide_[0] = wideBuf_.template Get<float>();
            wide_[1] = wide_[0][tiling_.wideBytes / sizeof(float)];
        }
    }

    // The scalar unit reads post and comb. Its reads are over before V overwrites them: each was the operand of an earlier Muls or Axpy.
    __aicore__ inline void WeightsReady() {
        AscendC::SetFlag<AscendC::HardEvent::V_S>(weightsInUb_);
        AscendC::WaitFlag<AscendC::HardEvent::V_S>(weightsInUb_);
    }

    // `first`: the tile's first token in the batch. The padding of a row, zeros in UB, is computed like the row.
    __aicore__ inline void Compute(const Tile& tile, uint32_t first) {
        AscendC::LocalTensor<T> in = inQue_.template DeQue<T>();
        AscendC::LocalTensor<T> y = outQue_.template AllocTensor<T>();
        const uint32_t pitch = RowPitch<T>(tile.columns);
        const AscendC::LocalTensor<T> residual = in[tiling_.residualOffset];
        const AscendC::LocalTensor<float> sums = Sums(y);
        const AscendC::LocalTensor<float> x = Widen(0, in, pitch, tile.rows, pitch);
        AscendC::LocalTensor<float> stream = Widen(1, residual, n_ * pitch, tile.rows, pitch);
        const uint32_t streamPitch = kNarrow ? pitch : n_ * pitch;
        FenceVector();
        for (uint32_t row = 0; row < tile.rows; ++row)
            for (uint32_t j = 0; j < n_; ++j)
                AscendC::Muls(sums[(row * n_ + j) * pitch], x[row * pitch], post32_.GetValue((first + row) * n_ + j),
                              static_cast<int32_t>(pitch));
        FenceVector();
        for (uint32_t i = 0; i < n_; ++i) {
            AscendC::LocalTensor<float> next;
            if (i + 1 < n_) next = Widen(i % 2, residual[(i + 1) * pitch], n_ * pitch, tile.rows, pitch);
            for (uint32_t row = 0; row < tile.rows; ++row)
                for (uint32_t j = 0; j < n_; ++j)
                    AscendC::Axpy(sums[(row * n_ + j) * pitch], stream[row * streamPitch],
                                  comb32_.GetValue(((first + row) * n_ + i) * n_ + j), static_cast<int32_t>(pitch));
            FenceVector();
            stream = next;
        }
        if constexpr (kNarrow) AscendC::Cast(y, sums, AscendC::RoundMode::CAST_RINT, tile.rows * n_ * pitch);
        inQue_.FreeTensor(in);
        outQue_.EnQue(y);
    }

    // The float32 result of a tile: y itself for float32.
    __aicore__ inline AscendC::LocalTensor<float> Sums(const AscendC::LocalTensor<T>& y) const {
        if constexpr (kNarrow) return sums_;
        else return y;
    }

    // Rows `gap` apart as float32: rows `pitch` apart in wide_[slot], or where they are.
    __aicore__ inline AscendC::LocalTensor<float> Widen(uint32_t slot, const AscendC::LocalTensor<T>& source, uint32_t gap, uint32_t rows,
                                                        uint32_t pitch) const {
        if constexpr (kNarrow) {
            for (uint32_t row = 0; row < rows; ++row)
                AscendC::Cast(wide_[slot][row * pitch], source[row * gap], AscendC::RoundMode::CAST_NONE, pitch);
            return wide_[slot];
        } else {
            return source;
        }
    }

    AscendC::TBuf<AscendC::TPosition::VECCALC> sumBuf_, wideBuf_;
    AscendC::LocalTensor<float> sums_, wide_[2];
    AscendC::TEventID weightsInUb_;
};

}  // namespace hc
