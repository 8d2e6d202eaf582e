// Vector functions of the 950 that turn mixes into pre, post and comb_frag: a register holds one matrix element of 64 tokens,
// so sums along rows and columns are additions of registers. Gathers bring the tokens' elements into lanes, scatters put results
// back into rows.
#pragma once

#include "rows_regbase.h"

namespace hc {

using IndexReg = reg::RegTensor<uint32_t>;

// UB of a batch.
struct WeightBuffers {
    __ubuf__ float* mixes;     // [tokens, mix], rows mixPitch apart
    uint32_t mixPitch;
    __ubuf__ float* rsqrt;     // [tokens]
    __ubuf__ float* base;      // [mix]
    __ubuf__ float* scale;     // [3]
    __ubuf__ uint32_t* lane;   // 0, 1, ... 63
};

// v = mixes[token, column] * rsqrt * scale + base[column]; rowIndex = token * mixPitch.
__aicore__ inline void LoadLogit(FloatReg& v, IndexReg& rowIndex, uint32_t column, __ubuf__ float* mixes, __ubuf__ float* base,
                                 FloatReg& rsqrt, FloatReg& scale, reg::MaskReg& mask) {
    IndexReg index;
    FloatReg offset;
    reg::Adds(index, rowIndex, column, mask);
    reg::DataCopyGather(v, mixes, index, mask);
    LoadScalar(offset, base + column);
    reg::Mul(v, v, rsqrt, mask);
    reg::Mul(v, v, scale, mask);
    reg::Add(v, v, offset, mask);
}

// rowIndex = (first + lane) * pitch
__aicore__ inline void RowIndex(IndexReg& rowIndex, __ubuf__ uint32_t* lane, uint32_t first, uint32_t pitch, reg::MaskReg& mask) {
    reg::DataCopy(rowIndex, lane);
    reg::Adds(rowIndex, rowIndex, first, mask);
    reg::Muls(rowIndex, rowIndex, pitch, mask);
}

// v = 1 / (1 + exp(-v)); exp(-v) = inf gives 0
__aicore__ inline void Sigmoid(FloatReg& v, FloatReg& one, reg::MaskReg& mask) {
    reg::Muls(v, v, -1.0f, mask);
    reg::Exp(v, v, mask);
    reg::Adds(v, v, 1.0f, mask);
    reg::Div(v, one, v, mask);
}

// pre[i * prePitch + token] = sigmoid(v) + eps, post[token * n + i] = 2 * sigmoid(v), for the tokens of one chunk.
__aicore__ inline void ComputeHeads(const WeightBuffers& in, __ubuf__ float* pre, __ubuf__ float* post, uint32_t prePitch,
                                    uint32_t first, uint32_t tokens, uint32_t n, float eps) {
    __ubuf__ float *mixes = in.mixes, *rsqrtIn = in.rsqrt, *base = in.base, *scaleIn = in.scale;
    __ubuf__ uint32_t* lane = in.lane;
    const uint32_t mixPitch = in.mixPitch;
    const uint16_t streams = static_cast<uint16_t>(n);
    __VEC_SCOPE__ {
        FloatReg v, rsqrt, scale, one;
        IndexReg token, row, out;
        uint32_t lanes = tokens;
        reg::MaskReg mask = reg::UpdateMask<float>(lanes);
        RowIndex(token, lane, first, 1, mask);
        RowIndex(row, lane, first, mixPitch, mask);
        reg::DataCopyGather(rsqrt, rsqrtIn, token, mask);
        reg::Duplicate(one, 1.0f);
        LoadScalar(scale, scaleIn);
        for (uint16_t i = 0; i < streams; ++i) {
            LoadLogit(v, row, i, mixes, base, rsqrt, scale, mask);
            Sigmoid(v, one, mask);
            reg::Adds(v, v, eps, mask);
            reg::DataCopy(pre + i * prePitch + first, v, mask);
        }
        LoadScalar(scale, scaleIn + 1);
        RowIndex(out, lane, first, n, mask);
        for (uint16_t i = 0; i < streams; ++i) {
            LoadLogit(v, row, n + i, mixes, base, rsqrt, scale, mask);
            Sigmoid(v, one, mask);
            reg::Muls(v, v, 2.0f, mask);
            reg::DataCopyScatter(post, v, out, mask);
            reg::Adds(out, out, 1u, mask);
        }
    }
}

// --- n = 4: the sixteen elements stay in registers ----------------------------------------------------------------------------

// a, b, c, d /= (a + b) + (c + d) + eps, as products with the reciprocal
__aicore__ inline void Normalize4(FloatReg& a, FloatReg& b, FloatReg& c, FloatReg& d, FloatReg& one, float eps, reg::MaskReg& mask) {
    FloatReg sum, other;
    reg::Add(sum, a, b, mask);
    reg::Add(other, c, d, mask);
    reg::Add(sum, sum, other, mask);
    reg::Adds(sum, sum, eps, mask);
    reg::Div(sum, one, sum, mask);
    reg::Mul(a, a, sum, mask);
    reg::Mul(b, b, sum, mask);
    reg::Mul(c, c, sum, mask);
    reg::Mul(d, d, sum, mask);
}

// a, b, c, d = softmax + eps
__aicore__ inline void Softmax4(FloatReg& a, FloatReg& b, FloatReg& c, FloatReg& d, FloatReg& one, float eps, reg::MaskReg& mask) {
    FloatReg most, other;
    reg::Max(most, a, b, mask);
    reg::Max(other, c, d, mask);
    reg::Max(most, most, other, mask);
    reg::Sub(a, a, most, mask);
    reg::Sub(b, b, most, mask);
    reg::Sub(c, c, most, mask);
    reg::Sub(d, d, most, mask);
    reg::Exp(a, a, mask);
    reg::Exp(b, b, mask);
    reg::Exp(c, c, mask);
    reg::Exp(d, d, mask);
    Normalize4(a, b, c, d, one, 0.0f, mask);
    reg::Adds(a, a, eps, mask);
    reg::Adds(b, b, eps, mask);
    reg::Adds(c, c, eps, mask);
    reg::Adds(d, d, eps, mask);
}

// a, b, c, d = row i of the tokens' matrices; rowIndex = token * 16.
__aicore__ inline void Gather4(FloatReg& a, FloatReg& b, FloatReg& c, FloatReg& d, __ubuf__ float* comb, IndexReg& rowIndex, uint32_t i,
                               reg::MaskReg& mask) {
    IndexReg index;
    reg::Adds(index, rowIndex, 4 * i, mask);
    reg::DataCopyGather(a, comb, index, mask);
    reg::Adds(index, index, 1u, mask);
    reg::DataCopyGather(b, comb, index, mask);
    reg::Adds(index, index, 1u, mask);
    reg::DataCopyGather(c, comb, index, mask);
    reg::Adds(index, index, 1u, mask);
    reg::DataCopyGather(d, comb, index, mask);
}
__aicore__ inline void Scatter4(__ubuf__ float* comb, FloatReg& a, FloatReg& b, FloatReg& c, FloatReg& d, IndexReg& rowIndex, uint32_t i,
                                reg::MaskReg& mask) {
    IndexReg index;
    reg::Adds(index, rowIndex, 4 * i, mask);
    reg::DataCopyScatter(comb, a, index, mask);
    reg::Adds(index, index, 1u, mask);
    reg::DataCopyScatter(comb, b, index, mask);
    reg::Adds(index, index, 1u, mask);
    reg::DataCopyScatter(comb, c, index, mask);
    reg::Adds(index, index, 1u, mask);
    reg::DataCopyScatter(comb, d, index, mask);
}

// comb[token, 16] = softmax of the logits over j, + eps, for the tokens of one chunk.
__aicore__ inline void StartComb4(const WeightBuffers& in, __ubuf__ float* comb, uint32_t first, uint32_t tokens, float eps) {
    __ubuf__ float *mixes = in.mixes, *rsqrtIn = in.rsqrt, *base = in.base, *scaleIn = in.scale;
    __ubuf__ uint32_t* lane = in.lane;
    const uint32_t mixPitch = in.mixPitch;
    __VEC_SCOPE__ {
        FloatReg a, b, c, d, rsqrt, scale, one;
        IndexReg token, row, out;
        uint32_t lanes = tokens;
        reg::MaskReg mask = reg::UpdateMask<float>(lanes);
        RowIndex(token, lane, first, 1, mask);
        RowIndex(row, lane, first, mixPitch, mask);
        RowIndex(out, lane, first, 16, mask);
        reg::DataCopyGather(rsqrt, rsqrtIn, token, mask);
        reg::Duplicate(one, 1.0f);
        LoadScalar(scale, scaleIn + 2);
        for (uint16_t i = 0; i < 4; ++i) {
            const uint32_t column = 8 + 4 * i;
            LoadLogit(a, row, column, mixes, base, rsqrt, scale, mask);
            LoadLogit(b, row, column + 1, mixes, base, rsqrt, scale, mask);
            LoadLogit(c, row, column + 2, mixes, base, rsqrt, scale, mask);
            LoadLogit(d, row, column + 3, mixes, base, rsqrt, scale, mask);
            Softmax4(a, b, c, d, one, eps, mask);
            Scatter4(comb, a, b, c, d, out, i, mask);
        }
    }
}

// `rounds` times: rows, then columns, each divided by its sum + eps. columnsFirst: one column pass before.
template <bool columnsFirst>
__aicore__ inline void IterateComb4(__ubuf__ float* comb, __ubuf__ uint32_t* lane, uint32_t first, uint32_t tokens, uint16_t rounds,
                                    float eps) {
    __VEC_SCOPE__ {
        FloatReg c00, c01, c02, c03, c10, c11, c12, c13, c20, c21, c22, c23, c30, c31, c32, c33, one;
        IndexReg index;
        uint32_t lanes = tokens;
        reg::MaskReg mask = reg::UpdateMask<float>(lanes);
        RowIndex(index, lane, first, 16, mask);
        reg::Duplicate(one, 1.0f);
        Gather4(c00, c01, c02, c03, comb, index, 0, mask);
        Gather4(c10, c11, c12, c13, comb, index, 1, mask);
        Gather4(c20, c21, c22, c23, comb, index, 2, mask);
        Gather4(c30, c31, c32, c33, comb, index, 3, mask);
        if constexpr (columnsFirst) {
            Normalize4(c00, c10, c20, c30, one, eps, mask);
            Normalize4(c01, c11, c21, c31, one, eps, mask);
            Normalize4(c02, c12, c22, c32, one, eps, mask);
            Normalize4(c03, c13, c23, c33, one, eps, mask);
        }
        for (uint16_t round = 0; round < rounds; ++round) {
            Normalize4(c00, c01, c02, c03, one, eps, mask);
            Normalize4(c10, c11, c12, c13, one, eps, mask);
            Normalize4(c20, c21, c22, c23, one, eps, mask);
            Normalize4(c30, c31, c32, c33, one, eps, mask);
            Normalize4(c00, c10, c20, c30, one, eps, mask);
            Normalize4(c01, c11, c21, c31, one, eps, mask);
            Normalize4(c02, c12, c22, c32, one, eps, mask);
            Normalize4(c03, c13, c23, c33, one, eps, mask);
        }
        Scatter4(comb, c00, c01, c02, c03, index, 0, mask);
        Scatter4(comb, c10, c11, c12, c13, index, 1, mask);
        Scatter4(comb, c20, c21, c22, c23, index, 2, mask);
        Scatter4(comb, c30, c31, c32, c33, index, 3, mask);
    }
}

// --- any n: the n * n elements of 64 tokens lie in UB, a plane of 64 floats each -----------------------------------------------

__aicore__ inline void StoresBeforeLoads() { reg::LocalMemBar<reg::MemType::VEC_STORE, reg::MemType::VEC_LOAD>(); }

// planes[(i * n + j) * 64 + lane] = softmax of the logits over j, + eps, for the tokens of one chunk.
__aicore__ inline void StartComb(const WeightBuffers& in, __ubuf__ float* planes, uint32_t first, uint32_t tokens, uint32_t n,
                                 float eps) {
    __ubuf__ float *mixes = in.mixes, *rsqrtIn = in.rsqrt, *base = in.base, *scaleIn = in.scale;
    __ubuf__ uint32_t* lane = in.lane;
    const uint32_t mixPitch = in.mixPitch;
    const uint16_t size = static_cast<uint16_t>(n);
    __VEC_SCOPE__ {
        FloatReg v, most, sum, rsqrt, scale, one;
        IndexReg token, row;
        uint32_t lanes = tokens;
        reg::MaskReg mask = reg::UpdateMask<float>(lanes);
        RowIndex(token, lane, first, 1, mask);
        RowIndex(row, lane, first, mixPitch, mask);
        reg::DataCopyGather(rsqrt, rsqrtIn, token, mask);
        reg::Duplicate(one, 1.0f);
        LoadScalar(scale, scaleIn + 2);
        for (uint16_t i = 0; i < size; ++i) {
            __ubuf__ float* line = planes + i * n * kLanes;
            LoadLogit(most, row, 2 * n + i * n, mixes, base, rsqrt, scale, mask);
            for (uint16_t j = 0; j < size; ++j) {
                LoadLogit(v, row, 2 * n + i * n + j, mixes, base, rsqrt, scale, mask);
                reg::Max(most, most, v, mask);
                reg::DataCopy(line + j * kLanes, v, mask);
            }
            StoresBeforeLoads();
            reg::Duplicate(sum, 0.0f);
            for (uint16_t j = 0; j < size; ++j) {
                reg::DataCopy(v, line + j * kLanes);
                reg::Sub(v, v, most, mask);
                reg::Exp(v, v, mask);
                reg::Add(sum, sum, v, mask);
                reg::DataCopy(line + j * kLanes, v, mask);
            }
            StoresBeforeLoads();
            reg::Div(sum, one, sum, mask);
            for (uint16_t j = 0; j < size; ++j) {
                reg::DataCopy(v, line + j * kLanes);
                reg::Mul(v, v, sum, mask);
                reg::Adds(v, v, eps, mask);
                reg::DataCopy(line + j * kLanes, v, mask);
            }
        }
    }
}

// Each of `size` lines of `size` planes: divided by its sum + eps, as a product with the reciprocal. Sums in ascending order.
__aicore__ inline void NormalizeLines(__ubuf__ float* planes, uint16_t size, uint32_t lineStep, uint32_t step, FloatReg& one, float eps,
                                      reg::MaskReg& mask) {
    FloatReg v, sum;
    for (uint16_t line = 0; line < size; ++line) {
        __ubuf__ float* start = planes + line * lineStep;
        reg::Duplicate(sum, 0.0f);
        for (uint16_t i = 0; i < size; ++i) {
            reg::DataCopy(v, start + i * step);
            reg::Add(sum, sum, v, mask);
        }
        reg::Adds(sum, sum, eps, mask);
        reg::Div(sum, one, sum, mask);
        for (uint16_t i = 0; i < size; ++i) {
            reg::DataCopy(v, start + i * step);
            reg::Mul(v, v, sum, mask);
            reg::DataCopy(start + i * step, v, mask);
        }
    }
    StoresBeforeLoads();
}

template <bool columnsFirst>
__aicore__ inline void IterateComb(__ubuf__ float* planes, uint32_t tokens, uint32_t n, uint16_t rounds, float eps) {
    const uint16_t size = static_cast<uint16_t>(n);
    const uint32_t row = n * kLanes;
    __VEC_SCOPE__ {
        FloatReg one;
        uint32_t lanes = tokens;
        reg::MaskReg mask = reg::UpdateMask<float>(lanes);
        reg::Duplicate(one, 1.0f);
        if constexpr (columnsFirst) NormalizeLines(planes, size, kLanes, row, one, eps, mask);
        for (uint16_t round = 0; round < rounds; ++round) {
            NormalizeLines(planes, size, row, kLanes, one, eps, mask);
            NormalizeLines(planes, size, kLanes, row, one, eps, mask);
        }
    }
}

// comb[token * n * n + m] = planes[m]
__aicore__ inline void StoreComb(__ubuf__ float* comb, __ubuf__ float* planes, __ubuf__ uint32_t* lane, uint32_t first, uint32_t tokens,
                                 uint32_t n) {
    const uint16_t elements = static_cast<uint16_t>(n * n);
    __VEC_SCOPE__ {
        FloatReg v;
        IndexReg index;
        uint32_t lanes = tokens;
        reg::MaskReg mask = reg::UpdateMask<float>(lanes);
        RowIndex(index, lane, first, n * n, mask);
        for (uint16_t m = 0; m < elements; ++m) {
            reg::DataCopy(v, planes + m * kLanes);
            reg::DataCopyScatter(comb, v, index, mask);
            reg::Adds(index, index, 1u, mask);
        }
    }
}

}  // namespace hc
