// 1 / sqrt(sum_k x[k]^2 / K + epsilon) of a row of K elements, which is read once.
#pragma once

#include <cmath>

#include "simd.h"

namespace custom_ops::native::KERNEL_ISA {

// A row is read as this many parallel streams: more hardware prefetchers at work than on one.
constexpr int kReadStreams = 4;
// float32 partial sums are this short (64 additions per lane), their total is float64: the relative error of the mean stays below
// 70 * 2^-24 = 4e-6 in the worst case, whatever K is.
constexpr int64_t kSumBlock = 64 * kPairElements;

static inline double Total(Float value) {
    double total = 0;
    for (int lane = 0; lane < kLanes; ++lane) total += value[lane];
    return total;
}

static inline void AddSquares(Pair& sum, Pair value) {
    sum.a += value.a * value.a;
    sum.b += value.b * value.b;
}

template <typename T>
static double SquareSum(const T* x, int64_t count) {
    double total = 0;
    const int64_t quarter = count / (kReadStreams * kPairElements) * kPairElements;
    for (int64_t block = 0; block < quarter; block += kSumBlock) {
        const int64_t end = block + kSumBlock < quarter ? block + kSumBlock : quarter;
        Pair sum[kReadStreams] = {};
        for (int64_t k = block; k < end; k += kPairElements)
            for (int stream = 0; stream < kReadStreams; ++stream) {
                const T* from = x + stream * quarter + k;
                Prefetch(from, Ahead<T>(k, quarter, count));
                AddSquares(sum[stream], LoadPair(from));
            }
        total += Total(((sum[0].a + sum[0].b) + (sum[1].a + sum[1].b)) + ((sum[2].a + sum[2].b) + (sum[3].a + sum[3].b)));
    }
    Pair rest = {};
    int64_t k = kReadStreams * quarter;
    for (; k + kPairElements <= count; k += kPairElements) AddSquares(rest, LoadPair(x + k));
    if (k < count) AddSquares(rest, LoadPart(x + k, count - k));
    return total + Total(rest.a + rest.b);
}

// The same in float64, for rows whose squares leave the range of float32.
template <typename T>
static double SquareSumWide(const T* x, int64_t count) {
    Double sum = {};
    for (int64_t k = 0; k < count; k += kPairElements) {
        const Pair value = count - k < kPairElements ? LoadPart(x + k, count - k) : LoadPair(x + k);
        const Double a = __builtin_convertvector(value.a, Double), b = __builtin_convertvector(value.b, Double);
        sum += a * a + b * b;
    }
    double total = 0;
    for (int lane = 0; lane < kLanes; ++lane) total += sum[lane];
    return total;
}

static inline float InverseRms(double squares, int64_t count, double epsilon) {
    return static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(count) + epsilon));
}

template <typename T>
static float InverseRms(const T* x, int64_t count, double epsilon) {
    double sum = SquareSum(x, count);
    // Squares above 2^127 are inf in float32, those below 2^-126 lose bits: 2^-100 for the sum is well clear of both. Not >: NaN too.
    if (!(sum >= 0x1p-100 && sum <= 0x1p127)) sum = SquareSumWide(x, count);
    return InverseRms(sum, count, epsilon);
}

}  // namespace custom_ops::native::KERNEL_ISA
