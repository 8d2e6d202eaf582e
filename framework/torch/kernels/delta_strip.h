// The recurrence of npu_fused_linear_attention on a strip of columns of the state. The columns are independent: a strip takes all tokens of a
// block before the next one begins, and stays in the first-level cache for as long. Per token, with S the state before it and a its decay:
//     u_k = S^T k, u_q = S^T q, delta = beta (v - a u_k), out = a u_q + (k . q) delta, S <- a S + k delta^T
// where a of the rows of S (one each, kda) goes into k and q of the first two instead. The last step of a token is left to the sweep that
// reads S for the next one. Every column is summed in the order of the rows, whatever the strips and blocks are.
#pragma once

#include "simd.h"

namespace custom_ops::native::KERNEL_ISA {

// Vectors of a strip: as many as leave u_k, u_q, delta and the factors of a row in registers.
// Vectors of a step of one token, which has no update among its sums: memory is read in longer pieces.
#if defined(__AVX512F__)
constexpr int kStripVectors = 4, kStepVectors = 8;
#else
constexpr int kStripVectors = 2, kStepVectors = 4;
#endif

// What one value head needs of a block of tokens.
struct HeadBlock {
    int64_t tokens, keyDim;
    const float* key;                        // row of the first token; rows are keyStride apart
    int64_t keyStride;
    const float *readKey, *readQuery;        // with the decay of the rows where there is one per row
    int64_t readStride;
    const float* rowDecay;                   // [tokens, readStride]; null: one decay for all rows
    const float *decay, *beta, *keyQuery;    // of a token; decay is 1 where rows have their own
    int64_t valueStride;
};

struct TokenFactors {
    const float *key, *readKey, *readQuery, *rowDecay;
    float decay;

    TokenFactors(const HeadBlock& head, int64_t token)
        : key(head.key + token * head.keyStride), readKey(head.readKey + token * head.readStride),
          readQuery(head.readQuery + token * head.readStride), rowDecay(head.rowDecay + (head.rowDecay ? token * head.readStride : 0)),
          decay(head.decay[token]) {}
};

template <int kVectors>
struct StripSums {
    Float key[kVectors] = {}, query[kVectors] = {};  // u_k, u_q

    inline void Add(int vector, Float state, Float key1, Float query1) {
        key[vector] = MulAdd(state, key1, key[vector]);
        query[vector] = MulAdd(state, query1, query[vector]);
    }
};

// u_k and u_q of the first token.
template <int kVectors>
static inline void ReadStrip(const float* strip, int64_t stride, const TokenFactors& now, int64_t rows, StripSums<kVectors>& sums) {
    for (int64_t i = 0; i < rows; ++i) {
        const Float key = Splat(now.readKey[i]), query = Splat(now.readQuery[i]);
        for (int v = 0; v < kVectors; ++v) sums.Add(v, Load(strip + i * stride + v * kLanes), key, query);
    }
}

// The update by the token `before` and the sums of the next one.
template <int kVectors, bool kRowDecay>
static inline void UpdateAndReadStrip(float* strip, const TokenFactors& before, const Float* delta, const TokenFactors& now, int64_t rows,
                                      StripSums<kVectors>& sums) {
    for (int64_t i = 0; i < rows; ++i) {
        const Float decay = Splat(kRowDecay ? before.rowDecay[i] : before.decay), written = Splat(before.key[i]);
        const Float key = Splat(now.readKey[i]), query = Splat(now.readQuery[i]);
        for (int v = 0; v < kVectors; ++v) {
            float* at = strip + (i * kVectors + v) * kLanes;
            const Float state = MulAdd(written, delta[v], decay * Load(at));
            Store(at, state);
            sums.Add(v, state, key, query);
        }
    }
}

// The update by the last token. Null `from`: zeros.
template <int kVectors, bool kRowDecay>
static inline void UpdateStrip(const float* from, float* to, int64_t stride, const TokenFactors& before, const Float* delta, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
        const Float decay = Splat(kRowDecay ? before.rowDecay[i] : before.decay), written = Splat(before.key[i]);
        for (int v = 0; v < kVectors; ++v) {
            const int64_t at = i * stride + v * kLanes;
            Store(to + at, MulAdd(written, delta[v], decay * (from ? Load(from + at) : Float{})));
        }
    }
}

// delta of a token, and its result in the place of its value.
template <int kVectors>
static inline void FinishToken(const HeadBlock& head, int64_t token, const StripSums<kVectors>& sums, Float* delta, float* value) {
    const Float decay = Splat(head.decay[token]), beta = Splat(head.beta[token]), keyQuery = Splat(head.keyQuery[token]);
    for (int v = 0; v < kVectors; ++v) {
        delta[v] = beta * MulAdd(-decay, sums.key[v], Load(value + v * kLanes));
        Store(value + v * kLanes, MulAdd(keyQuery, delta[v], decay * sums.query[v]));
    }
}

// All tokens of a block. strip [keyDim, kVectors * kLanes]; values: row of the first token, replaced by the results.
template <int kVectors, bool kRowDecay>
static void RunStrip(const HeadBlock& head, float* values, float* strip) {
    Float delta[kVectors];
    StripSums<kVectors> first;
    ReadStrip(strip, kVectors * kLanes, TokenFactors(head, 0), head.keyDim, first);
    FinishToken(head, 0, first, delta, values);
    for (int64_t token = 1; token < head.tokens; ++token) {
        StripSums<kVectors> sums;
        UpdateAndReadStrip<kVectors, kRowDecay>(strip, TokenFactors(head, token - 1), delta, TokenFactors(head, token), head.keyDim, sums);
        FinishToken(head, token, sums, delta, values + token * head.valueStride);
    }
    UpdateStrip<kVectors, kRowDecay>(strip, strip, kVectors * kLanes, TokenFactors(head, head.tokens - 1), delta, head.keyDim);
}

// One token, where the state lies: the second reading finds it in the second-level cache. Null `before`: zeros, null `after`: not kept.
template <int kVectors, bool kRowDecay>
static void StepColumns(const HeadBlock& head, float* values, const float* before, float* after, int64_t stride) {
    Float delta[kVectors];
    StripSums<kVectors> sums;
    const TokenFactors token(head, 0);
    if (before) ReadStrip(before, stride, token, head.keyDim, sums);
    FinishToken(head, 0, sums, delta, values);
    if (after) UpdateStrip<kVectors, kRowDecay>(before, after, stride, token, delta, head.keyDim);
}

}  // namespace custom_ops::native::KERNEL_ISA
