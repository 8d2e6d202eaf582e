// Projection on the cube: a block of tokens times the terms of hc_fn (hc_pre_terms.h; or hc_fn itself) over a part of K, and 16 tokens at
// a time times themselves.
//
//   partial[part][t][m]                       = sum over terms and k of x[t, k] * term[m, k]        16-bit products exact; sums in float32
//   partial[part][t][squareColumn + t' % 16]  = sum over k of x[t, k] * x[t', k], t' in the 16 tokens of t
#pragma once

#include "hc_pre_shares.h"
#include "hc_pre_terms.h"

namespace hc {

template <typename T>
class ProjectCube {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR terms, GM_ADDR partials, const HcPreTilingData& plan, AscendC::TPipe* pipe) {
        x_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(x));
        terms_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(terms));
        partials_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(partials));
        plan_ = plan;
        columns_ = AlignUp(plan_.mix, kUnit);
        if constexpr (sizeof(T) == sizeof(float)) AscendC::SetHF32Mode(false);  // all 24 bits, whatever ran before
        pipe->InitBuffer(xL1_, 2, plan_.blockRows * plan_.xL1 * sizeof(T));
        pipe->InitBuffer(termsL1_, 2, kTerms * columns_ * plan_.kL1 * sizeof(T));
        pipe->InitBuffer(xL0_, 2, plan_.tileRows * plan_.kL0 * sizeof(T));
#if defined(__DAV_C310__)
        pipe->InitBuffer(groupL0_, 2, kUnit * plan_.kL0 * sizeof(T));
#endif
        pipe->InitBuffer(termsL0_, 2, kTerms * columns_ * plan_.kL0 * sizeof(T));
        pipe->InitBuffer(selfL0_, 2, kUnit * plan_.kL0 * sizeof(T));
        pipe->InitBuffer(sumL0_, 1, plan_.blockRows * (columns_ + kUnit) * sizeof(float));
    }

    // The first tile of x, or of the terms, while the other one is not there yet. Process of the same follows.
    __aicore__ inline void PrefetchX(const Span& rows, const Span& k) {
        if (rows.count == 0) return;
        rows_ = AlignUp(rows.count, kUnit);
        CopyInTile(rows, k);
        xIsThere_ = true;
    }
    __aicore__ inline void PrefetchTerms(const Span& rows, const Span& k) {
        if (rows.count == 0) return;
        CopyInTerms(k, 0);
        termsAreThere_ = true;
    }

    // Tokens [rows.first, + rows.count) over columns [k.first, + k.count).
    __aicore__ inline void Process(const Span& rows, const Span& k, uint32_t part) {
        if (rows.count == 0) return;
        rows_ = AlignUp(rows.count, kUnit);
        AscendC::LocalTensor<float> sums = sumL0_.template AllocTensor<float>();
        if (!xIsThere_) CopyInTile(rows, k);
        if (!termsAreThere_) CopyInTerms(k, 0);
        xIsThere_ = termsAreThere_ = false;
        for (uint32_t column = 0; column < k.count; column += plan_.xL1) MultiplyTile(sums, rows, k, column);
        sumL0_.EnQue(sums);
        CopyOut(rows, part);
    }

private:
    static constexpr uint32_t kTerms = kTermsOf<T>;
    static constexpr uint32_t kC0 = kBlockBytes / sizeof(T);  // columns of an operand's fractal, which has 16 rows
    static constexpr uint32_t kFractal = kUnit * kC0;         // elements
    static constexpr uint32_t kSumFractal = kUnit * kUnit;
    static constexpr uint32_t kOrderedFractals = 10;          // shorter Mmad into one matrix need a barrier between them

    __aicore__ inline void CopyInTile(const Span& rows, const Span& k) {
        AscendC::LocalTensor<T> x = xL1_.template AllocTensor<T>();
        CopyInX(x, rows, k, 0, 0, rows_);
        xL1_.EnQue(x);
    }
    // Rows [from, to) of the tile of x that begins at a column. Those that fill up the last 16 are the call's tokens from the first on,
    // again and again: their results are not used.
    __aicore__ inline void CopyInX(const AscendC::LocalTensor<T>& x, const Span& rows, const Span& k, uint32_t column, uint32_t from,
                                   uint32_t to) {
        const uint32_t columns = Min(plan_.xL1, k.count - column), first = k.first + column, others = from > rows.count ? from : rows.count;
        CopyTokensIn(x[from * kC0], rows.first + from, Min(to, rows.count), from, first, columns);
        for (uint32_t row = others; row < to;) {
            const uint32_t token = (row - rows.count) % plan_.rows.tokens, end = Min(to, row + plan_.rows.tokens - token);
            CopyTokensIn(x[row * kC0], token, end, row, first, columns);
            row = end;
        }
    }
    // Tokens from `token` on to rows [row, end).
    __aicore__ inline void CopyTokensIn(const AscendC::LocalTensor<T>& to, uint32_t token, uint32_t end, uint32_t row, uint32_t column,
                                        uint32_t columns) {
        if (row >= end) return;
        const uint64_t pitch = plan_.xPitch, from = token * pitch + column;
        if (pitch <= kWidestPitch) {
            DataCopy(to, x_[from], ToNz(end - row, columns, plan_.xPitch, rows_));
        } else {
            for (uint32_t i = 0; i < end - row; ++i) DataCopy(to[i * kC0], x_[from + i * pitch], ToNz(1, columns, columns, rows_));
        }
    }

    // In L1 [columns / C0][terms][columns_][C0].
    __aicore__ inline void CopyInTerms(const Span& k, uint32_t column) {
        if (column >= k.count) return;
        const uint32_t columns = Min(plan_.kL1, k.count - column), first = k.first + column;
        AscendC::LocalTensor<T> terms = termsL1_.template AllocTensor<T>();
        CopyMixesIn(terms, first, columns, plan_.mix);
        // Rows up to the next multiple of 8 get other rows: the sums of those columns are not used.
        for (uint32_t row = plan_.mix; row < plan_.squareColumn; row += plan_.mix)
            CopyMixesIn(terms[row * kC0], first, columns, Min(plan_.mix, plan_.squareColumn - row));
        termsL1_.EnQue(terms);
    }
    // The first rows of each term.
    __aicore__ inline void CopyMixesIn(const AscendC::LocalTensor<T>& to, uint32_t column, uint32_t columns, uint32_t rows) {
        if (plan_.termColumns == 0) {
            DataCopy(to, terms_[column], ToNz(rows, columns, plan_.rowElements, columns_));
        } else {
            AscendC::DataCopyParams params(static_cast<uint16_t>(CeilDiv(columns, kC0) * kTerms), static_cast<uint16_t>(rows),
                                           static_cast<uint16_t>(plan_.mix - rows), static_cast<uint16_t>(columns_ - rows));
            AscendC::DataCopy(to, terms_[static_cast<uint64_t>(column) * kTerms * plan_.mix], params);
        }
    }
    static __aicore__ inline AscendC::Nd2NzParams ToNz(uint32_t rows, uint32_t columns, uint32_t gmPitch, uint32_t nzRows) {
        return AscendC::Nd2NzParams(1, static_cast<uint16_t>(rows), static_cast<uint16_t>(columns), 0, static_cast<uint16_t>(gmPitch),
                                    static_cast<uint16_t>(nzRows), 1, 0);
    }

    // Adds the columns of the tile of x in L1 and brings in the next, a share of its rows before each tile of hc_fn.
    __aicore__ inline void MultiplyTile(const AscendC::LocalTensor<float>& sums, const Span& rows, const Span& k, uint32_t column) {
        const uint32_t next = column + plan_.xL1, columns = Min(plan_.xL1, k.count - column), steps = CeilDiv(columns, plan_.kL1);
        const bool more = next < k.count;
        const AscendC::LocalTensor<T> x = xL1_.template DeQue<T>();
        AscendC::LocalTensor<T> ahead;
        if (more) ahead = xL1_.template AllocTensor<T>();
        for (uint32_t step = 0; step < steps; ++step) {
            const uint32_t at = step * plan_.kL1;
            if (more) CopyInX(ahead, rows, k, next, rows_ * step / steps, rows_ * (step + 1) / steps);
            CopyInTerms(k, column + at + plan_.kL1);
            Multiply(sums, x[at * rows_], Min(plan_.kL1, columns - at), column + at == 0);
        }
        if (more) xL1_.EnQue(ahead);
        xL1_.FreeTensor(x);
    }

    // Adds `columns` columns of K, the tile of hc_fn in L1.
    __aicore__ inline void Multiply(const AscendC::LocalTensor<float>& sums, const AscendC::LocalTensor<T>& x, uint32_t columns,
                                    bool fromZero) {
        const AscendC::LocalTensor<T> terms = termsL1_.template DeQue<T>();
        for (uint32_t k = 0; k < columns; k += plan_.kL0) {
            const uint32_t depth = Min(plan_.kL0, columns - k);
            LoadTerms(terms, k, CeilDiv(depth, kC0));
            const AscendC::LocalTensor<T> filter = termsL0_.template DeQue<T>();
            for (uint32_t row = 0; row < rows_; row += plan_.tileRows) {
                const uint32_t rows = Min(plan_.tileRows, rows_ - row);
                LoadX(x, k, row, rows, CeilDiv(depth, kC0));
                const AscendC::LocalTensor<T> left = xL0_.template DeQue<T>();
                MultiplyTerms(sums[row * columns_], left, filter, rows, depth, fromZero && k == 0);
                MultiplySelf(sums[rows_ * columns_ + row * kUnit], x, left, k, row, rows, depth, fromZero && k == 0);
                xL0_.FreeTensor(left);
            }
            termsL0_.FreeTensor(filter);
        }
        termsL1_.FreeTensor(terms);
    }

    // NZ of [mix, k] is ZN of [k, mix]. In L1 the terms alternate; of a term, whichever are fewer are loaded at a time: the fractals of
    // the same columns, or those of the same rows.
    __aicore__ inline void LoadTerms(const AscendC::LocalTensor<T>& terms, uint32_t k, uint32_t fractals) {
        const uint32_t across = columns_ / kUnit;
        const AscendC::LocalTensor<T> filter = termsL0_.template AllocTensor<T>();
        for (uint32_t term = 0; term < kTerms; ++term) {
            const AscendC::LocalTensor<T> to = filter[term * columns_ * plan_.kL0], from = terms[(k * kTerms + term * kC0) * columns_];
            if (across < fractals) {
                for (uint32_t i = 0; i < across; ++i)
                    LoadFractals(to[i * kFractal], from[i * kFractal], fractals, kTerms * across, across - 1);
            } else {
                for (uint32_t i = 0; i < fractals; ++i)
                    LoadFractals(to[i * across * kFractal], from[i * kTerms * across * kFractal], across, 1);
            }
        }
        termsL0_.EnQue(filter);
    }
    __aicore__ inline void LoadX(const AscendC::LocalTensor<T>& x, uint32_t k, uint32_t row, uint32_t rows, uint32_t fractals) {
        const AscendC::LocalTensor<T> left = xL0_.template AllocTensor<T>();
#if defined(__DAV_C310__)
        for (uint32_t i = 0; i < fractals; ++i)  // NZ as in L1
            LoadFractals(left[i * rows * kC0], x[(k + i * kC0) * rows_ + row * kC0], rows / kUnit, 1);
#else
        for (uint32_t i = 0; i < rows; i += kUnit)  // NZ -> ZZ
            LoadFractals(left[i * fractals * kC0], x[k * rows_ + (row + i) * kC0], fractals, rows_ / kUnit);
#endif
        xL0_.EnQue(left);
    }
    static __aicore__ inline void LoadFractals(const AscendC::LocalTensor<T>& to, const AscendC::LocalTensor<T>& from, uint32_t count,
                                               uint32_t stride, uint32_t gap = 0) {
        AscendC::LoadData2DParams params;
        params.repeatTimes = static_cast<uint8_t>(count);
        params.srcStride = static_cast<uint16_t>(stride);
        params.dstGap = static_cast<uint16_t>(gap);
        AscendC::LoadData(to, from, params);
    }

    // The smallest terms first.
    __aicore__ inline void MultiplyTerms(const AscendC::LocalTensor<float>& sums, const AscendC::LocalTensor<T>& left,
                                         const AscendC::LocalTensor<T>& filter, uint32_t rows, uint32_t depth, bool fromZero) {
        for (uint32_t term = 0; term < kTerms; ++term) {
            AscendC::MmadParams params;
            params.m = static_cast<uint16_t>(rows);
            params.n = static_cast<uint16_t>(plan_.squareColumn);
            params.k = static_cast<uint16_t>(depth);
            params.cmatrixInitVal = fromZero && term == 0;
            AscendC::Mmad(sums, left, filter[term * columns_ * plan_.kL0], params);
            if (rows * columns_ < kOrderedFractals * kSumFractal) AscendC::PipeBarrier<PIPE_M>();
        }
    }

    // 16 tokens times themselves, group by group.
    __aicore__ inline void MultiplySelf(const AscendC::LocalTensor<float>& squares, const AscendC::LocalTensor<T>& x,
                                        const AscendC::LocalTensor<T>& left, uint32_t k, uint32_t row, uint32_t rows, uint32_t depth,
                                        bool fromZero) {
        const uint32_t fractals = CeilDiv(depth, kC0);
        (void)left;  // 910B only
        AscendC::MmadParams params;
        params.m = params.n = kUnit;
        params.k = static_cast<uint16_t>(depth);
        params.cmatrixInitVal = fromZero;
        if (!fromZero) AscendC::PipeBarrier<PIPE_M>();  // the same sums a step before
        for (uint32_t i = 0; i < rows; i += kUnit) {
            AscendC::LocalTensor<T> right = selfL0_.template AllocTensor<T>();
            LoadFractals(right, x[k * rows_ + (row + i) * kC0], fractals, rows_ / kUnit);
            selfL0_.EnQue(right);
            right = selfL0_.template DeQue<T>();
#if defined(__DAV_C310__)
            AscendC::LocalTensor<T> group = groupL0_.template AllocTensor<T>();  // in L0A the fractals of one group are `rows` apart
            LoadFractals(group, x[k * rows_ + (row + i) * kC0], fractals, rows_ / kUnit);
            groupL0_.EnQue(group);
            group = groupL0_.template DeQue<T>();
            AscendC::Mmad(squares[i * kUnit], group, right, params);
            groupL0_.FreeTensor(group);
#else
            AscendC::Mmad(squares[i * kUnit], left[i * fractals * kC0], right, params);
#endif
            selfL0_.FreeTensor(right);
        }
    }

    __aicore__ inline void CopyOut(const Span& rows, uint32_t part) {
        AscendC::LocalTensor<float> sums = sumL0_.template DeQue<float>();
        const uint64_t first = static_cast<uint64_t>(part) * plan_.rows.tokens + rows.first;
        for (uint32_t row = 0; row < rows.count; row += plan_.tileRows)
            Drain(partials_[(first + row) * plan_.partialPitch], sums[row * columns_], plan_.squareColumn,
                  Min(plan_.tileRows, rows.count - row), Min(plan_.tileRows, rows_ - row));
        Drain(partials_[first * plan_.partialPitch + plan_.squareColumn], sums[rows_ * columns_], kUnit, rows.count, rows_);
        sumL0_.FreeTensor(sums);
    }
    // [rows, columns] of a matrix of `nzRows` rows in L0C.
    __aicore__ inline void Drain(const AscendC::GlobalTensor<float>& to, const AscendC::LocalTensor<float>& from, uint32_t columns,
                                 uint32_t rows, uint32_t nzRows) {
#if defined(__DAV_C310__)
        AscendC::FixpipeParamsC310<AscendC::CO2Layout::ROW_MAJOR> params;
#else
        AscendC::FixpipeParamsV220 params;
#endif
        params.nSize = static_cast<uint16_t>(columns);
        params.mSize = static_cast<uint16_t>(rows);
        params.srcStride = static_cast<uint16_t>(nzRows);
        params.dstStride = plan_.partialPitch;
        AscendC::Fixpipe<float, float, AscendC::CFG_ROW_MAJOR>(to, from, params);
    }

    HcPreTilingData plan_;
    uint32_t columns_ = 0;  // mix rounded up to 16
    uint32_t rows_ = 0;     // of this block, rounded up to 16
    bool xIsThere_ = false, termsAreThere_ = false;  // the first tiles of what Process is called for next
    AscendC::GlobalTensor<T> x_, terms_;
    AscendC::GlobalTensor<float> partials_;
    AscendC::TQue<AscendC::TPosition::A1, 2> xL1_;
    AscendC::TQue<AscendC::TPosition::B1, 2> termsL1_;
    AscendC::TQue<AscendC::TPosition::A2, 1> xL0_;
#if defined(__DAV_C310__)
    AscendC::TQue<AscendC::TPosition::A2, 1> groupL0_;
#endif
    AscendC::TQue<AscendC::TPosition::B2, 1> termsL0_, selfL0_;
    AscendC::TQue<AscendC::TPosition::CO1, 1> sumL0_;
};

}  // namespace hc
