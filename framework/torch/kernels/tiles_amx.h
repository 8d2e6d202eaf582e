// Matrix products in the tile registers of Intel AMX, and the operands they take: 16 rows of 64 bytes. Assembly rather than intrinsics: a
// tile's number can be a template argument, and no compiler flag is needed.
#pragma once

#include <type_traits>

#include "projection.h"

namespace custom_ops::native::KERNEL_ISA {

constexpr int kTile = 16;  // rows of a tile; float32 columns
constexpr int64_t kRowBytes = 64;
constexpr int64_t kTileBytes = kTile * kRowBytes;
constexpr int64_t kStep = 32;  // bfloat16 elements of a tile's row: of K in one product

// While it lives, this thread's tiles are 16 rows of 64 bytes.
class TileSession {
public:
    TileSession() {
        struct alignas(64) {
            uint8_t palette = 1, startRow = 0, reserved[14] = {};
            uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
            uint8_t rows[16] = {kTile, kTile, kTile, kTile, kTile, kTile, kTile, kTile};
        } configuration;
        asm volatile("ldtilecfg %0" : : "m"(configuration));
    }
    ~TileSession() { asm volatile("tilerelease"); }
    TileSession(const TileSession&) = delete;
};

template <int kTo>
static inline void LoadTile(const void* from, int64_t pitchBytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(pitchBytes), "i"(kTo) : "memory");
}
template <int kFrom>
static inline void StoreTile(void* to, int64_t pitchBytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(pitchBytes), "i"(kFrom) : "memory");
}
template <int kTo>
static inline void ZeroTile() { asm volatile("tilezero %%tmm%c0" : : "i"(kTo)); }

// sum[m, c] += a[m, k] * b[k, c]; a row of b has two consecutive k of each column. The products are exact; the sums of even and of odd k
// are made one by one in float32 and added to `sum` together. Subnormal numbers count as zero.
template <int kSum, int kA, int kB>
static inline void AddTileProduct() {
    asm volatile("tdpbf16ps %%tmm%c0, %%tmm%c1, %%tmm%c2" : : "i"(kB), "i"(kA), "i"(kSum));
}

template <int kValue>
using Count = std::integral_constant<int, kValue>;

constexpr int kMostTiles = 6;  // of sums: tiles 6 and 7 have the operands

template <int kCount>
static inline void ZeroTiles() {
    ZeroTile<kCount - 1>();
    if constexpr (kCount > 1) ZeroTiles<kCount - 1>();
}

template <int kCount>
static inline void StoreTiles(float* to, int64_t pitch) {
    StoreTile<kCount - 1>(to + (kCount - 1) * kTile, pitch * sizeof(float));
    if constexpr (kCount > 1) StoreTiles<kCount - 1>(to, pitch);
}

// A step: every tile of b times a, which is in tile 6.
template <int kTiles, int kAt = 0>
static inline void AddProducts(const char* b) {
    LoadTile<7>(b + kAt * kTileBytes, kRowBytes);
    AddTileProduct<kAt, 6, 7>();
    if constexpr (kAt + 1 < kTiles) AddProducts<kTiles, kAt + 1>(b);
}

// The squares of a step of every row of a, 16 partial sums a row; subnormal elements count as zero.
static inline void AddRowSquares(const char* a, int64_t aPitch, Float* squares) {
#pragma GCC unroll 16
    for (int row = 0; row < kTile; ++row) {
        const __m512bh x = BitCast<__m512bh>(LoadVector<Uint>(a + row * aPitch));
        squares[row] = _mm512_dpbf16_ps(squares[row], x, x);
    }
}

// to[16, 16 kTiles] = a times b over `steps` steps. Rows of a are aPitch bytes apart, its steps follow each other; b: [step][tile], steps
// bStep bytes apart. With kSquares also squares[16], of the rows of a, which come from memory but once: the tiles wait for their
// operands, and vectors have time.
template <int kTiles, bool kSquares>
__attribute__((noinline)) static void MultiplyTiles(const char* a, int64_t aPitch, const char* b, int64_t bStep, int64_t steps, float* to,
                                                    int64_t pitch, Float* squares) {
    static_assert(kTiles <= kMostTiles);
    ZeroTiles<kTiles>();
    Float sums[kTile] = {};
    for (int64_t step = 0; step < steps; ++step) {
        LoadTile<6>(a + step * kRowBytes, aPitch);
        AddProducts<kTiles>(b + step * bStep);
        if constexpr (kSquares) AddRowSquares(a + step * kRowBytes, aPitch, sums);
    }
    StoreTiles<kTiles>(to, pitch);
    if constexpr (kSquares) std::memcpy(static_cast<void*>(squares), sums, sizeof(sums));
}

// run(Count<count>()), 1 <= count <= kMostTiles
template <typename Run>
static inline void WithCount(int count, const Run& run) {
    switch (count) {
        case 1: return run(Count<1>());
        case 2: return run(Count<2>());
        case 3: return run(Count<3>());
        case 4: return run(Count<4>());
        case 5: return run(Count<5>());
        case 6: return run(Count<6>());
    }
}

}  // namespace custom_ops::native::KERNEL_ISA
