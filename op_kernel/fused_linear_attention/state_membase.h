// A tile of the state on the 910B family: S [rows, lanes] in UB, rows `lanes` floats apart (a multiple of 8). A factor per row comes as a
// block of 8 copies.
#pragma once

#include "../common/rows_membase.h"

namespace hc {

constexpr uint32_t kGroupRows = 128;  // rows of the state whose factors are in UB as blocks

// sums[r] = state[r] * factor[r], or += with kAdd, for rows r < `rows` <= 255
template <bool kAdd>
__aicore__ inline void WeighRows(const AscendC::LocalTensor<float>& sums, const AscendC::LocalTensor<float>& state,
                                 const AscendC::LocalTensor<float>& factors, uint32_t rows, uint32_t lanes) {
    const uint32_t stride = lanes / kBlockFloats;
    for (uint32_t lane = 0; lane < lanes; lane += kLanes) {
        const uint64_t mask = Min(kLanes, lanes - lane);
        if constexpr (kAdd)
            AscendC::MulAddDst(sums[lane], state[lane], factors, mask, static_cast<uint8_t>(rows), BinaryStrides(0, stride, stride, 1));
        else
            AscendC::Mul(sums[lane], state[lane], factors, mask, static_cast<uint8_t>(rows), BinaryStrides(0, stride, stride, 1));
    }
}

// sumA[r % sumRows] += a[r] * state[r], sumB the same with b, for the rows r of a group whose first is a multiple of sumRows; the
// first group starts the sums. Ends fenced.
__aicore__ inline void WeighState(const AscendC::LocalTensor<float>& sumA, const AscendC::LocalTensor<float>& sumB,
                                  const AscendC::LocalTensor<float>& state, const AscendC::LocalTensor<float>& a,
                                  const AscendC::LocalTensor<float>& b, bool first, uint32_t rows, uint32_t lanes, uint32_t sumRows) {
    for (uint32_t row = 0; row < rows; row += sumRows) {
        const uint32_t count = Min(sumRows, rows - row);
        if (first && row == 0) {
            WeighRows<false>(sumA, state, a, count, lanes);
            WeighRows<false>(sumB, state, b, count, lanes);
        } else {
            WeighRows<true>(sumA, state[row * lanes], a[row * kBlockFloats], count, lanes);
            WeighRows<true>(sumB, state[row * lanes], b[row * kBlockFloats], count, lanes);
        }
        FenceVector();
    }
}

// Row 0 of both = the sum of their rows. Ends fenced.
__aicore__ inline void AddSums(const AscendC::LocalTensor<float>& sumA, const AscendC::LocalTensor<float>& sumB, uint32_t rows,
                               uint32_t lanes) {
    while (rows > 1) {
        const uint32_t half = rows / 2, rest = rows - half;  // an odd row stays
        AscendC::Add(sumA, sumA, sumA[rest * lanes], static_cast<int32_t>(half * lanes));
        AscendC::Add(sumB, sumB, sumB[rest * lanes], static_cast<int32_t>(half * lanes));
        FenceVector();
        rows = rest;
    }
}

// state[r] += k[r] * delta
__aicore__ inline void AddOuter(const AscendC::LocalTensor<float>& state, const AscendC::LocalTensor<float>& k,
                                const AscendC::LocalTensor<float>& delta, uint32_t rows, uint32_t lanes) {
    const uint32_t stride = lanes / kBlockFloats;
    for (uint32_t lane = 0; lane < lanes; lane += kLanes)
        for (uint32_t row = 0; row < rows; row += kMaxRepeats)
            AscendC::MulAddDst(state[row * lanes + lane], k[row * kBlockFloats], delta[lane],
                               static_cast<uint64_t>(Min(kLanes, lanes - lane)), static_cast<uint8_t>(Min(kMaxRepeats, rows - row)),
                               AscendC::BinaryRepeatParams(1, 0, 1, static_cast<uint8_t>(stride), 1, 0));
}

}  // namespace hc
