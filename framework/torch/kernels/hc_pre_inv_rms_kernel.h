// y[t] = 1 / sqrt(sum_k x[t, k]^2 / K + epsilon), K = hc_mult * d; x is read once.
#pragma once

#include <cmath>

#include "simd.h"

namespace custom_ops::native::KERNEL_ISA {

constexpr int kUnroll = 4;  // independent accumulators, hides the latency of the addition
// float32 partial sums are this short (per lane: 64 additions), their total is float64: the relative error of the mean stays
// below 64 * 2^-24 = 4e-6 in the worst case, whatever K is.
constexpr int64_t kSumBlock = 64 * kUnroll * kLanes;

static inline double Total(Float value) {
    double total = 0;
    for (int lane = 0; lane < kLanes; ++lane) total += value[lane];
    return total;
}

// The last `count` < kLanes elements, followed by zeros.
template <typename T>
static inline Float LoadPart(const T* from, int64_t count) {
    T padded[kLanes] = {};
    std::memcpy(padded, from, count * sizeof(T));
    return Load(padded);
}

template <typename T>
static double SquareSum(const T* x, int64_t count) {
    double total = 0;
    for (int64_t block = 0; block < count; block += kSumBlock) {
        const int64_t end = block + kSumBlock < count ? block + kSumBlock : count;
        Float sum[kUnroll] = {};
        int64_t k = block;
        for (; k + kUnroll * kLanes <= end; k += kUnroll * kLanes) {
            for (int u = 0; u < kUnroll; ++u) {
                const Float value = Load(x + k + u * kLanes);
                sum[u] += value * value;
            }
        }
        for (; k + kLanes <= end; k += kLanes) {
            const Float value = Load(x + k);
            sum[0] += value * value;
        }
        if (k < end) {
            const Float value = LoadPart(x + k, end - k);
            sum[1] += value * value;
        }
        total += Total((sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
    return total;
}

// The same in float64, for rows whose squares leave the range of float32.
template <typename T>
static double SquareSumWide(const T* x, int64_t count) {
    Double sum = {};
    for (int64_t k = 0; k < count; k += kLanes) {
        const Float value = count - k < kLanes ? LoadPart(x + k, count - k) : Load(x + k);
        const Double wide = __builtin_convertvector(value, Double);
        sum += wide * wide;
    }
    double total = 0;
    for (int lane = 0; lane < kLanes; ++lane) total += sum[lane];
    return total;
}

template <typename T>
static void InvRmsRows(const InvRmsArgs& args, int64_t firstToken, int64_t lastToken) {
    const int64_t count = args.elementsPerToken;
    const T* x = static_cast<const T*>(args.x) + firstToken * count;
    for (int64_t token = firstToken; token < lastToken; ++token, x += count) {
        double sum = SquareSum(x, count);
        // Squares above 2^127 are inf in float32, those below 2^-126 lose bits: 2^-100 for the sum is well clear of both. Not >: NaN too.
        if (!(sum >= 0x1p-100 && sum <= 0x1p127)) sum = SquareSumWide(x, count);
        args.y[token] = static_cast<float>(1.0 / std::sqrt(sum / static_cast<double>(count) + args.epsilon));
    }
}

static void InvRms(const InvRmsArgs& args, int64_t firstToken, int64_t lastToken) {
    switch (args.element) {
        case Element::kFloat32: return InvRmsRows<float>(args, firstToken, lastToken);
        case Element::kFloat16: return InvRmsRows<Float16>(args, firstToken, lastToken);
        case Element::kBfloat16: return InvRmsRows<Bfloat16>(args, firstToken, lastToken);
    }
}

}  // namespace custom_ops::native::KERNEL_ISA
