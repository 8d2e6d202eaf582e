// raw[t, m] = sum_k x[t, k] * fn[m, k] in float32. Every lane sums every kLanes-th k, in chunks of kChunk whose sums are added up in
// ascending order: the same for every token, whatever the others of its tile are.
#pragma once

#include <new>

#include "hc_pre_inv_rms_kernel.h"

namespace custom_ops::native::KERNEL_ISA {

// A tile's sums, one vector of x per token and one of fn fill the vector registers: 24 + 4 + 1 of 32, or 12 + 2 + 1 of 16.
constexpr int kTileTokens = kVectorBytes == 64 ? 4 : 2;
constexpr int kTileRows = 6;
constexpr int64_t kChunk = 512;  // of a tile's rows of fn and x: 20 KiB, in the first-level cache

// Uninitialised vectors.
class Scratch {
public:
    explicit Scratch(int64_t vectors)
        : data_(static_cast<Float*>(::operator new(vectors * sizeof(Float), std::align_val_t(kVectorBytes)))) {}
    ~Scratch() { ::operator delete(data_, std::align_val_t(kVectorBytes)); }
    Scratch(const Scratch&) = delete;
    Float* Data() const { return data_; }

private:
    Float* const data_;
};

template <typename T>
class Projection {
public:
    Projection(const ProjectionArgs& args, int64_t mostTokens)
        : args_(args), scratch_(mostTokens * (kWideStride + RowsAndPadding(args.rows))), wide_(scratch_.Data()),
          sums_(wide_ + mostTokens * kWideStride) {}

    // Rows [firstRow, lastRow) of tokens [firstToken, lastToken), at most mostTokens; raw begins with the first of these.
    void Run(int64_t firstToken, int64_t lastToken, int firstRow, int lastRow, float* raw) {
        const int64_t elements = args_.elementsPerToken, whole = elements / kLanes * kLanes;
        x_ = static_cast<const T*>(args_.x) + firstToken * elements;
        tokens_ = lastToken - firstToken;
        firstRow_ = firstRow;
        rows_ = lastRow - firstRow;
        stride_ = RowsAndPadding(rows_);
        for (int64_t k = 0; k < tokens_ * stride_; ++k) sums_[k] = Float{};
        for (int64_t first = 0; first < whole; first += kChunk) Chunk(first, (whole - first < kChunk ? whole - first : kChunk) / kLanes);
        if (whole < elements) Rest(whole, elements - whole);
        for (int64_t token = 0; token < tokens_; ++token)
            for (int row = 0; row < rows_; ++row)
                raw[token * args_.rows + firstRow + row] = static_cast<float>(Total(sums_[token * stride_ + row]));
    }

private:
    // Not a power of two: the same column of several tokens shall not compete for one set of the cache.
    static constexpr int64_t kWideStride = kChunk / kLanes + 1;

    const ProjectionArgs& args_;
    const Scratch scratch_;
    Float* const wide_;  // a chunk of x as float32, [token][kWideStride]
    Float* const sums_;  // [token][stride_]
    const T* x_ = nullptr;
    int64_t tokens_ = 0, stride_ = 0;
    int firstRow_ = 0, rows_ = 0;

    static int64_t RowsAndPadding(int64_t rows) { return (rows + kTileRows - 1) / kTileRows * kTileRows; }

    const float* Fn(int row) const { return args_.fn + (firstRow_ + row) * args_.elementsPerToken; }

    // Columns first + [0, vectors * kLanes).
    void Chunk(int64_t first, int64_t vectors) {
        for (int64_t token = 0; token < tokens_; ++token) {
            const T* from = x_ + token * args_.elementsPerToken + first;
            for (int64_t k = 0; k < vectors; ++k) wide_[token * kWideStride + k] = Load(from + k * kLanes);
        }
        for (int row = 0; row < rows_; row += kTileRows) {
            const float* fn[kTileRows];  // past the last row: that one again, its sums are not used
            for (int r = 0; r < kTileRows; ++r) fn[r] = Fn(row + r < rows_ ? row + r : rows_ - 1) + first;
            int64_t token = 0;
            for (; token + kTileTokens <= tokens_; token += kTileTokens) Tile<kTileTokens>(fn, vectors, token, row);
            switch (tokens_ - token) {
                case 3: Tile<3>(fn, vectors, token, row); break;
                case 2: Tile<2>(fn, vectors, token, row); break;
                case 1: Tile<1>(fn, vectors, token, row); break;
            }
        }
    }

    template <int kTokens>
    __attribute__((noinline)) void Tile(const float* const* fn, int64_t vectors, int64_t token, int row) {
        const Float* x = wide_ + token * kWideStride;
        Float sum[kTokens][kTileRows] = {};
        for (int64_t k = 0; k < vectors; ++k) {
            Float value[kTokens];
            for (int t = 0; t < kTokens; ++t) value[t] = x[t * kWideStride + k];
            for (int r = 0; r < kTileRows; ++r) {
                const Float weight = LoadVector<Float>(fn[r] + k * kLanes);
                for (int t = 0; t < kTokens; ++t) sum[t][r] += value[t] * weight;
            }
        }
#pragma GCC unroll 4
        for (int t = 0; t < kTokens; ++t)
#pragma GCC unroll 6
            for (int r = 0; r < kTileRows; ++r) sums_[(token + t) * stride_ + row + r] += sum[t][r];
    }

    // The last `count` < kLanes columns.
    void Rest(int64_t first, int64_t count) {
        for (int64_t token = 0; token < tokens_; ++token) {
            const Float value = LoadFirst(x_ + token * args_.elementsPerToken + first, count);
            for (int row = 0; row < rows_; ++row) sums_[token * stride_ + row] += value * LoadFirst(Fn(row) + first, count);
        }
    }
};

static void Project(const ProjectionArgs& args, int64_t tokens, int64_t firstRow, int64_t lastRow) {
    WithElement(args.element, [&](auto element) {
        Projection<decltype(element)>(args, tokens).Run(0, tokens, static_cast<int>(firstRow), static_cast<int>(lastRow), args.raw);
    });
}

}  // namespace custom_ops::native::KERNEL_ISA
