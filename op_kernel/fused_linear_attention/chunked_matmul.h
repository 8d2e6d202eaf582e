// Products on a cube core: GM -> L1 -> L0 -> sums. Operands lie in L1 as rows of fractals ("ZZ": 16 rows, then along the row). The left
// one is ZZ in L0 too on the 910B family, NZ on the 950, which is how the right one lies, transposed.
#pragma once

#include "../common/rows_copy.h"

namespace hc {

constexpr uint32_t kFractalRows = 16;

// A matrix in L1. `transposed`: what is stored is [columns, rows] of the operand.
template <typename Tc>
struct Operand {
    AscendC::LocalTensor<Tc> data;
    bool transposed;
};

// How Fixpipe brings float32 sums to a type.
template <typename Out>
struct QuantTo;
template <>
struct QuantTo<float> {
    static constexpr AscendC::QuantMode_t kMode = AscendC::NoQuant;
};
template <>
struct QuantTo<half> {
    static constexpr AscendC::QuantMode_t kMode = AscendC::F322F16;
};
template <>
struct QuantTo<bfloat16_t> {
    static constexpr AscendC::QuantMode_t kMode = AscendC::F322BF16;
};

#if defined(__DAV_C310__)
template <AscendC::CO2Layout layout>
using FixpipeParams = AscendC::FixpipeParamsC310<layout>;
#else
template <AscendC::CO2Layout>
using FixpipeParams = AscendC::FixpipeParamsV220;
#endif

template <typename Tc>
class ChunkedMatmul {
public:
    static constexpr uint32_t kC0 = kBlockBytes / sizeof(Tc);           // columns of a fractal
    static constexpr uint32_t kFractal = kFractalRows * kC0;            // elements
    static constexpr uint32_t kParts = kFractalRows / kC0;              // fractals of a square
    static constexpr uint32_t kL0Bytes = 32 * 1024;                     // of one operand, two buffers
    static constexpr uint32_t kSumBytes = 64 * 1024;                    // of one result, two buffers
    static constexpr uint32_t kOrderedFractals = 10;                    // shorter Mmad into one matrix need a barrier between them

    __aicore__ inline void Init(AscendC::TPipe* pipe) {
        if constexpr (sizeof(Tc) == sizeof(float)) AscendC::SetHF32Mode(false);  // all 24 bits, whatever ran before
        pipe->InitBuffer(leftL0_, 2, kL0Bytes);
        pipe->InitBuffer(rightL0_, 2, kL0Bytes);
        pipe->InitBuffer(sumL0_, 2, kSumBytes);
    }

    // [rows, columns], rows `pitch` elements apart in GM.
    static __aicore__ inline void CopyIn(const AscendC::LocalTensor<Tc>& to, const AscendC::GlobalTensor<Tc>& from, uint32_t rows,
                                         uint32_t columns, uint32_t pitch) {
        AscendC::Nd2NzParams params;
        params.ndNum = static_cast<uint16_t>(rows / kFractalRows);
        params.nValue = kFractalRows;
        params.dValue = static_cast<uint16_t>(columns);
        params.srcNdMatrixStride = static_cast<uint16_t>(kFractalRows * pitch);
        params.srcDValue = static_cast<uint16_t>(pitch);
        params.dstNzC0Stride = kFractalRows;
        params.dstNzNStride = 1;
        params.dstNzMatrixStride = static_cast<uint16_t>(kFractalRows * columns);
        AscendC::DataCopy(to, from, params);
    }

    __aicore__ inline AscendC::LocalTensor<float> Start() { return sumL0_.template AllocTensor<float>(); }
    // sums [m, n] (+)= left [m, k] right [k, n], all multiples of 16
    __aicore__ inline void Add(const AscendC::LocalTensor<float>& sums, const Operand<Tc>& left, const Operand<Tc>& right, uint32_t m,
                               uint32_t n, uint32_t k, bool fromZero) {
        const uint32_t most = kL0Bytes / sizeof(Tc) / (m > n ? m : n) / kFractalRows * kFractalRows;
        for (uint32_t at = 0; at < k; at += most) {
            const uint32_t depth = Min(most, k - at);
            LoadLeft(left, m, k, at, depth);
            LoadRight(right, n, k, at, depth);
            const AscendC::LocalTensor<Tc> a = leftL0_.template DeQue<Tc>(), b = rightL0_.template DeQue<Tc>();
            AscendC::MmadParams params;
            params.m = static_cast<uint16_t>(m);
            params.n = static_cast<uint16_t>(n);
            params.k = static_cast<uint16_t>(depth);
            params.cmatrixInitVal = fromZero && at == 0;
            AscendC::Mmad(sums, a, b, params);
            if (m * n < kOrderedFractals * kFractalRows * kFractalRows) AscendC::PipeBarrier<PIPE_M>();
            leftL0_.FreeTensor(a);
            rightL0_.FreeTensor(b);
        }
    }
    // Sums to rows of GM: the first `rows` of m.
    template <typename Out>
    __aicore__ inline void Finish(const AscendC::GlobalTensor<Out>& to, const AscendC::LocalTensor<float>& sums, uint32_t m, uint32_t n,
                                  uint32_t rows, uint32_t pitch) {
        FixpipeParams<AscendC::CO2Layout::ROW_MAJOR> params;
        params.nSize = static_cast<uint16_t>(n);
        params.mSize = static_cast<uint16_t>(rows);
        params.srcStride = static_cast<uint16_t>(m);
        params.dstStride = pitch;
        params.quantPre = QuantTo<Out>::kMode;
        sumL0_.EnQue(sums);
        const AscendC::LocalTensor<float> ready = sumL0_.template DeQue<float>();
        AscendC::Fixpipe<Out, float, AscendC::CFG_ROW_MAJOR>(to, ready, params);
        sumL0_.FreeTensor(ready);
    }
    // Sums as an operand in L1.
    __aicore__ inline void Keep(const AscendC::LocalTensor<Tc>& to, const AscendC::LocalTensor<float>& sums, uint32_t m, uint32_t n) {
        FixpipeParams<AscendC::CO2Layout::NZ> params;
        params.nSize = static_cast<uint16_t>(n);
        params.mSize = kFractalRows;
        params.srcStride = static_cast<uint16_t>(m);
        params.dstStride = kKeptFractal;
        params.quantPre = QuantTo<Tc>::kMode;
        params.isChannelSplit = kParts == 2;
        sumL0_.EnQue(sums);
        const AscendC::LocalTensor<float> ready = sumL0_.template DeQue<float>();
        for (uint32_t row = 0; row < m; row += kFractalRows)
            AscendC::Fixpipe<Tc, float, AscendC::CFG_NZ>(to[row * n], ready[row * kFractalRows], params);
        sumL0_.FreeTensor(ready);
    }

private:
#if defined(__DAV_C310__)
    static constexpr uint32_t kKeptFractal = kFractal;  // from one to the next in L1: elements
#else
    static constexpr uint32_t kKeptFractal = kFractalRows;  // blocks of 32 B
#endif

    // Columns [at, at + depth) of left.
    __aicore__ inline void LoadLeft(const Operand<Tc>& left, uint32_t m, uint32_t k, uint32_t at, uint32_t depth) {
        const AscendC::LocalTensor<Tc> to = leftL0_.template AllocTensor<Tc>();
#if defined(__DAV_C310__)
        LoadAcross(to, left.data, left.transposed, m, k, at, depth);
#else
        const uint32_t across = depth / kC0;
        if (left.transposed) {
            for (uint32_t row = 0; row < depth; row += kFractalRows)
                LoadSquares(to[row * kFractalRows], left.data, (at + row) * m, m / kFractalRows, across - 1, 0);
        } else if (depth == k) {
            LoadFractals(to, left.data, m / kFractalRows * across, 0);
        } else {
            for (uint32_t row = 0; row < m; row += kFractalRows)
                LoadFractals(to[row * depth], left.data[row * k + at * kFractalRows], across, 0);
        }
#endif
        leftL0_.EnQue(to);
    }
    // Rows [at, at + depth) of right.
    __aicore__ inline void LoadRight(const Operand<Tc>& right, uint32_t n, uint32_t k, uint32_t at, uint32_t depth) {
        const AscendC::LocalTensor<Tc> to = rightL0_.template AllocTensor<Tc>();
        LoadAcross(to, right.data, !right.transposed, n, k, at, depth);
        rightL0_.EnQue(to);
    }
    // [side, depth] as NZ, of a matrix stored as [side, k], or as [k, side] (`turned`).
    static __aicore__ inline void LoadAcross(const AscendC::LocalTensor<Tc>& to, const AscendC::LocalTensor<Tc>& from, bool turned,
                                             uint32_t side, uint32_t k, uint32_t at, uint32_t depth) {
        const uint32_t down = side / kFractalRows;
        if (turned) {
            for (uint32_t row = 0; row < depth; row += kFractalRows)
                LoadSquares(to[row * side], from, (at + row) * side, down, 0, down - 1);
        } else {
            for (uint32_t row = 0; row < side; row += kFractalRows)
                LoadFractals(to[row * kC0], from[row * k + at * kFractalRows], depth / kC0, down - 1);
        }
    }
    // `count` fractals that follow each other, `gap` fractals between them in L0.
    static __aicore__ inline void LoadFractals(const AscendC::LocalTensor<Tc>& to, const AscendC::LocalTensor<Tc>& from, uint32_t count,
                                               uint32_t gap) {
        AscendC::LoadData2DParams params;
        params.repeatTimes = static_cast<uint8_t>(count);
        params.srcStride = 1;
        params.dstGap = static_cast<uint16_t>(gap);
        AscendC::LoadData(to, from, params);
    }
    // `count` squares of 16 x 16 from element `first`, each transposed; `gap`, `fractalGap` fractals between squares and within one.
    static __aicore__ inline void LoadSquares(const AscendC::LocalTensor<Tc>& to, const AscendC::LocalTensor<Tc>& from, uint32_t first,
                                              uint32_t count, uint32_t gap, uint32_t fractalGap) {
        AscendC::LoadData2dTransposeParams params;
        params.startIndex = static_cast<uint16_t>(first / (kFractalRows * kFractalRows));
        params.repeatTimes = static_cast<uint8_t>(count);
        params.srcStride = 1;
        params.dstGap = static_cast<uint16_t>(gap);
        params.dstFracGap = static_cast<uint16_t>(fractalGap);
        AscendC::LoadDataWithTranspose(to, from, params);
    }

    AscendC::TQue<AscendC::TPosition::A2, 1> leftL0_;
    AscendC::TQue<AscendC::TPosition::B2, 1> rightL0_;
    AscendC::TQue<AscendC::TPosition::CO1, 1> sumL0_;
};

}  // namespace hc
