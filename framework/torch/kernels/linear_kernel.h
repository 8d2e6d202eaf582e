// y[t, r] = residual[t, r] + sum_k x[t, k] * weight[r, k] + bias[r] in float32 for few tokens: every weight is read once, and that is what
// it takes. A lane sums every kLanes-th k, pair by pair (simd.h), and the lanes are added pair by pair: the same for every row and token,
// whatever the others of its tile are.
#pragma once

#include "simd.h"

namespace custom_ops::native::KERNEL_ISA {

// Rows that are read side by side, as many as fill the registers with their sums. Measured on a Xeon with AVX-512: one row after the
// other reads at half the bandwidth of eight, four at nine tenths.
constexpr int kLinearRows = kVectorBytes == 64 ? 8 : 4;
constexpr int kLinearTokens = 2;
static_assert(kRowsPerBlock % kLinearRows == 0);

template <typename T, int kTokens, int kRows>
class LinearTile {
public:
    // Rows firstRow + i * pitch of tokens [token, token + kTokens). The next tile has the rows after these: every stream of addresses goes
    // on where it stops here, as hardware prefetchers like it.
    static void Run(const LinearMatrix& matrix, const LinearArgs& args, int64_t firstRow, int64_t pitch, int64_t token) {
        const int64_t columns = args.columns, whole = columns / kPairElements * kPairElements;
        const int64_t stride = (columns + kPairElements - 1) / kPairElements * kPairElements;
        const T* weight = static_cast<const T*>(matrix.weight) + firstRow * columns;
        const float* x = args.x + token * stride;
        Float sum[kTokens][kRows] = {};
        for (int64_t column = 0; column < whole; column += kPairElements)
            Step(sum, x + column, stride, [&](int r) {
                const T* from = weight + r * pitch * columns + column;
                constexpr int64_t kAhead = 512 / sizeof(T);  // hardware prefetchers stop at page ends
                Prefetch(from, kAhead);
                if (sizeof(T) > 2) Prefetch(from, kAhead + kLanes);
                return LoadPair(from);
            });
        if (whole < columns)
            Step(sum, x + whole, stride, [&](int r) { return LoadPart(weight + r * pitch * columns + whole, columns - whole); });
        for (int t = 0; t < kTokens; ++t)
            for (int r = 0; r < kRows; ++r) StoreTotal(matrix, firstRow + r * pitch, token + t, Sum(sum[t][r]));
    }

private:
    template <typename LoadWeight>
    static inline __attribute__((always_inline)) void Step(Float (&sum)[kTokens][kRows], const float* x, int64_t stride,
                                                           const LoadWeight& load) {
        Pair value[kTokens];
        for (int t = 0; t < kTokens; ++t) value[t] = LoadPair(x + t * stride);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
            const Pair weight = load(r);
#pragma GCC unroll 4
            for (int t = 0; t < kTokens; ++t) sum[t][r] = MulAdd(value[t].b, weight.b, MulAdd(value[t].a, weight.a, sum[t][r]));
        }
    }

    static inline void StoreTotal(const LinearMatrix& matrix, int64_t row, int64_t token, float total) {
        if (matrix.bias) total += ToFloat(static_cast<const T*>(matrix.bias)[row]);
        const int64_t place = token * matrix.rows + row;
        if (matrix.residual) total += ToFloat(static_cast<const T*>(matrix.residual)[place]);
        StoreFirst(static_cast<T*>(matrix.y) + place, Splat(total), 1);
    }
};

// Tokens after the first find the rows in the cache.
template <typename T, int kRows>
static void LinearRows(const LinearMatrix& matrix, const LinearArgs& args, int64_t firstRow, int64_t pitch) {
    int64_t token = 0;
    for (; token + kLinearTokens <= args.tokens; token += kLinearTokens)
        LinearTile<T, kLinearTokens, kRows>::Run(matrix, args, firstRow, pitch, token);
    for (; token < args.tokens; ++token) LinearTile<T, 1, kRows>::Run(matrix, args, firstRow, pitch, token);
}

template <typename T>
static void LinearOf(const LinearMatrix& matrix, const LinearArgs& args, int64_t firstRow, int64_t lastRow) {
    const int64_t tiles = (lastRow - firstRow) / kLinearRows;
    for (int64_t tile = 0; tile < tiles; ++tile) LinearRows<T, kLinearRows>(matrix, args, firstRow + tile, tiles);
    for (int64_t row = firstRow + tiles * kLinearRows; row < lastRow; ++row) LinearRows<T, 1>(matrix, args, row, 1);
}

void Linear(const LinearMatrix& matrix, const LinearArgs& args, int64_t firstRow, int64_t lastRow) {
    WithElement(args.element, [&](auto element) { LinearOf<decltype(element)>(matrix, args, firstRow, lastRow); });
}

template <typename T>
static void WidenOf(const T* x, int64_t tokens, int64_t columns, float* wide) {
    for (int64_t token = 0; token < tokens; ++token, x += columns)
        for (int64_t column = 0; column < columns; column += kPairElements, wide += kPairElements) {
            const int64_t rest = columns - column;
            const Pair pair = rest < kPairElements ? LoadPart(x + column, rest) : LoadPair(x + column);
            Store(wide, pair.a);
            Store(wide + kLanes, pair.b);
        }
}

void WidenTokens(Element element, const void* x, int64_t tokens, int64_t columns, float* wide) {
    WithElement(element, [&](auto type) { WidenOf(static_cast<const decltype(type)*>(x), tokens, columns, wide); });
}

}  // namespace custom_ops::native::KERNEL_ISA
