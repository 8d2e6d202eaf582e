// A token on a tile of the state on the 950, see recurrent_membase.h for the formulas: 64 or 128 columns at a time, their sums in registers
// over all rows, then the update.
#pragma once

#include "../common/rows_regbase.h"

namespace hc {

struct TokenOperands {
    __ubuf__ float* state;  // [rows, pitch]
    __ubuf__ float* k;              // of the update
    __ubuf__ float *readQ, *readK;  // what the state is read with: q and k, kda: exp(g) q and exp(g) k
    __ubuf__ float* v;
    __ubuf__ float* decay;    // one number, kda: one per row
    __ubuf__ float *beta, *product;
    uint32_t rows;
    uint32_t pitch;
    uint32_t columns;
};

// delta = beta (v - uk), out = uq + product * delta; uk becomes delta
template <typename T>
__aicore__ inline void FinishToken(FloatReg& uk, FloatReg& uq, __ubuf__ float* v, __ubuf__ T* out, FloatReg& beta, FloatReg& product,
                                   reg::MaskReg& mask) {
    FloatReg value;
    reg::DataCopy(value, v);
    reg::Sub(uk, value, uk, mask);
    reg::Mul(uk, uk, beta, mask);
    reg::MulAddDst(uq, uk, product, mask);
    StoreFloats<T>(out, uq, mask);
}

// kChannels: a decay per row. kTwo: 128 columns from `column` on, else at most 64.
template <typename T, bool kChannels, bool kTwo>
__aicore__ inline void TokenColumns(const TokenOperands& token, __ubuf__ T* to, uint32_t column) {
    const uint16_t rows = static_cast<uint16_t>(token.rows);
    const uint32_t pitch = token.pitch, columns = token.columns - column;
    __ubuf__ float *state = token.state + column, *v = token.v + column;
    __ubuf__ float *k = token.k, *readQ = token.readQ, *readK = token.readK;
    __ubuf__ float *decayIn = token.decay, *betaIn = token.beta, *productIn = token.product;
    __ubuf__ T* out = to + column;
    __VEC_SCOPE__ {
        FloatReg uk0, uk1, uq0, uq1, row0, row1, kRow, qRow, decay, beta, product;
        uint32_t lanes = columns;
        reg::MaskReg mask = reg::UpdateMask<float>(lanes);
        reg::MaskReg mask1 = reg::UpdateMask<float>(lanes);
        reg::Duplicate(uk0, 0.0f);
        reg::Duplicate(uq0, 0.0f);
        if constexpr (kTwo) {
            reg::Duplicate(uk1, 0.0f);
            reg::Duplicate(uq1, 0.0f);
        }
        for (uint16_t row = 0; row < rows; ++row) {
            LoadScalar(kRow, readK + row);
            LoadScalar(qRow, readQ + row);
            reg::DataCopy(row0, state + row * pitch);
            reg::MulAddDst(uk0, row0, kRow, mask);
            reg::MulAddDst(uq0, row0, qRow, mask);
            if constexpr (kTwo) {
                reg::DataCopy(row1, state + row * pitch + kLanes);
                reg::MulAddDst(uk1, row1, kRow, mask1);
                reg::MulAddDst(uq1, row1, qRow, mask1);
            }
        }
        LoadScalar(beta, betaIn);
        LoadScalar(product, productIn);
        if constexpr (!kChannels) {
            LoadScalar(decay, decayIn);
            reg::Mul(uk0, uk0, decay, mask);
            reg::Mul(uq0, uq0, decay, mask);
            if constexpr (kTwo) {
                reg::Mul(uk1, uk1, decay, mask1);
                reg::Mul(uq1, uq1, decay, mask1);
            }
        }
        FinishToken<T>(uk0, uq0, v, out, beta, product, mask);
        if constexpr (kTwo) FinishToken<T>(uk1, uq1, v + kLanes, out + kLanes, beta, product, mask1);
        for (uint16_t row = 0; row < rows; ++row) {
            LoadScalar(kRow, k + row);
            if constexpr (kChannels) LoadScalar(decay, decayIn + row);
            reg::DataCopy(row0, state + row * pitch);
            reg::Mul(row0, row0, decay, mask);
            reg::MulAddDst(row0, uk0, kRow, mask);
            reg::DataCopy(state + row * pitch, row0, mask);
            if constexpr (kTwo) {
                reg::DataCopy(row1, state + row * pitch + kLanes);
                reg::Mul(row1, row1, decay, mask1);
                reg::MulAddDst(row1, uk1, kRow, mask1);
                reg::DataCopy(state + row * pitch + kLanes, row1, mask1);
            }
        }
    }
}

template <typename T, bool kChannels>
__aicore__ inline void TokenOnState(const TokenOperands& token, __ubuf__ T* out) {
    uint32_t column = 0;
    for (; column + kLanes < token.columns; column += 2 * kLanes) TokenColumns<T, kChannels, true>(token, out, column);
    if (column < token.columns) TokenColumns<T, kChannels, false>(token, out, column);
}

}  // namespace hc
