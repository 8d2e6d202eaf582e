// Operands of the tiles for a projection of bfloat16 x: the rows of fn as sums of three bfloat16 terms each, and transposes.
#pragma once

#include "tiles_amx.h"
#include "workspace.h"

namespace custom_ops::native::KERNEL_ISA {

constexpr int kTerms = 3;
// A page of x, whose lines the hardware fetches ahead. With n = 4 its terms are 320 KiB and stay in the second-level cache.
constexpr int64_t kSumChunk = 2048;
constexpr int64_t kChunkSteps = kSumChunk / kStep;

static inline int64_t Chunks(const ProjectionArgs& args) { return (args.elementsPerToken + kSumChunk - 1) / kSumChunk; }
static inline int64_t StepsOf(int64_t elements) { return (elements + kStep - 1) / kStep; }
static inline int64_t ElementsOfChunk(const ProjectionArgs& args, int64_t chunk) {
    const int64_t rest = args.elementsPerToken - chunk * kSumChunk;
    return rest < kSumChunk ? rest : kSumChunk;
}
static inline int TermTiles(const ProjectionArgs& args) { return (kTerms * args.rows + kTile - 1) / kTile; }
static inline int64_t ChunkBytes(const ProjectionArgs& args) { return kChunkSteps * TermTiles(args) * kTileBytes; }

// The first `count` <= kStep elements, followed by zeros.
static inline Uint LoadStep(const Bfloat16* from, int64_t count) {
    return BitCast<Uint>(_mm512_maskz_loadu_epi16(count < kStep ? (1u << count) - 1 : ~0u, from));
}

// The terms of kStep elements of fn, in pairs as x has them.
struct StepTerms { Uint term[kTerms]; };

// A float32 cut behind its upper 16 bits is a bfloat16; what is cut off is exact, and again.
static inline StepTerms Split(Float first, Float second) {
    const __m512i evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odds = _mm512_or_si512(evens, _mm512_set1_epi32(1));
    Float even = _mm512_permutex2var_ps(first, evens, second), odd = _mm512_permutex2var_ps(first, odds, second);
    StepTerms terms;
    for (Uint& term : terms.term) {
        const Uint evenTerm = BitCast<Uint>(even) & 0xffff0000u, oddTerm = BitCast<Uint>(odd) & 0xffff0000u;
        term = evenTerm >> 16 | oddTerm;
        even -= BitCast<Float>(evenTerm);
        odd -= BitCast<Float>(oddTerm);
    }
    return terms;
}

// What of fn the tiles can multiply: finite, and so small that subnormal elements of a token, which they take for zero, do not matter when
// the token's norm is at least 2^-50 (kLeastSquares): they would change a mix by 2^-126 2^40 2^50 each.
class Magnitude {
public:
    void See(Uint firstTerm) { most_ = _mm512_max_epu16(most_, BitCast<__m512i>(firstTerm & 0x7fff7fffu)); }
    bool Tame() const {
        constexpr uint16_t kMost = 0x5380;  // 2^40
        return !_mm512_cmpgt_epu16_mask(most_, _mm512_set1_epi16(kMost));
    }

private:
    __m512i most_ = _mm512_setzero_si512();
};
constexpr double kLeastSquares = 0x1p-100, kMostSquares = 0x1p127;

// Tiles of the terms of a step of fn: [term][row], kStep elements each, from `element` on.
static void SplitStep(const ProjectionArgs& args, int64_t element, Uint* to, Magnitude& magnitude) {
    const int64_t rest = args.elementsPerToken - element;
    const __mmask16 firstMask = rest < kLanes ? (1u << rest) - 1 : 0xffffu;
    const __mmask16 secondMask = rest <= kLanes ? 0 : rest < kStep ? (1u << (rest - kLanes)) - 1 : 0xffffu;
    for (int row = 0; row < args.rows; ++row) {
        const float* from = args.fn + row * args.elementsPerToken + element;
        const StepTerms terms = Split(_mm512_maskz_loadu_ps(firstMask, from), _mm512_maskz_loadu_ps(secondMask, from + kLanes));
        magnitude.See(terms.term[0]);
        for (int term = 0; term < kTerms; ++term) to[term * args.rows + row] = terms.term[term];
    }
    for (int row = kTerms * args.rows; row % kTile != 0; ++row) to[row] = Uint{};
}

// to[i] = element i of every row.
static inline void Transpose(const Uint* from, Uint* to) {
    __m512i a[kTile], b[kTile];
    for (int i = 0; i < kTile; i += 2) {
        const __m512i even = BitCast<__m512i>(from[i]), odd = BitCast<__m512i>(from[i + 1]);
        a[i] = _mm512_unpacklo_epi32(even, odd);
        a[i + 1] = _mm512_unpackhi_epi32(even, odd);
    }
    for (int i = 0; i < kTile; i += 4)
        for (int half = 0; half < 2; ++half) {
            b[i + 2 * half] = _mm512_unpacklo_epi64(a[i + half], a[i + half + 2]);
            b[i + 2 * half + 1] = _mm512_unpackhi_epi64(a[i + half], a[i + half + 2]);
        }
    for (int i = 0; i < 4; ++i)
        for (int half = 0; half < 2; ++half) {
            a[4 * i + 2 * half] = _mm512_shuffle_i32x4(b[8 * half + i], b[8 * half + i + 4], 0x88);
            a[4 * i + 2 * half + 1] = _mm512_shuffle_i32x4(b[8 * half + i], b[8 * half + i + 4], 0xdd);
        }
    for (int i = 0; i < 4; ++i)
        for (int quarter = 0; quarter < 2; ++quarter) {
            to[i + 4 * quarter] = BitCast<Uint>(_mm512_shuffle_i32x4(a[4 * i + quarter], a[4 * i + 2 + quarter], 0x88));
            to[i + 8 + 4 * quarter] = BitCast<Uint>(_mm512_shuffle_i32x4(a[4 * i + quarter], a[4 * i + 2 + quarter], 0xdd));
        }
}

// Chunks [firstChunk, lastChunk) of fn as second operand, [chunk][step][tile]. False: fn has an element that is not tame.
static bool SplitWeights(const ProjectionArgs& args, int64_t firstChunk, int64_t lastChunk, void* weights) {
    const int tiles = TermTiles(args);
    Workspace& workspace = ThreadWorkspace();
    workspace.Begin(tiles * kTileBytes);
    Uint* const rows = workspace.Take<Uint>(tiles * kTile);
    Magnitude magnitude;
    for (int64_t chunk = firstChunk; chunk < lastChunk; ++chunk) {
        Uint* to = reinterpret_cast<Uint*>(static_cast<char*>(weights) + chunk * ChunkBytes(args));
        const int64_t steps = StepsOf(ElementsOfChunk(args, chunk));
        for (int64_t step = 0; step < steps; ++step) {
            SplitStep(args, chunk * kSumChunk + step * kStep, rows, magnitude);
            for (int tile = 0; tile < tiles; ++tile, to += kTile) Transpose(rows + tile * kTile, to);
        }
    }
    return magnitude.Tame();
}

}  // namespace custom_ops::native::KERNEL_ISA
