// hc_pre with bfloat16 x on Intel AMX. Every element of fn is the sum of three bfloat16 numbers, whose products with x are exact: the mixes
// are as good as those of float32. K is cut into chunks of kSumChunk; the tiles make a chunk's sums, term by term. They are added up
// smallest term first, then chunk by chunk in ascending order: the same for every token, whatever the others of its tile are.
//
// A block of tokens goes through a chunk of fn, which stays in the second-level cache, before the next chunk's turn; y is made when the
// block has seen them all. x is read twice, but the terms, which are larger than that cache, once a block.
#pragma once

#include "hc_pre_sinkhorn_kernel.h"
#include "terms_amx.h"

namespace custom_ops::native::KERNEL_ISA {

// A token's squares: float32 sums of a chunk, of 64 additions each, and float64 sums of those; Total of it is their sum.
class alignas(64) Squares {
public:
    void Add(Float chunk) {
        low_ = _mm512_add_pd(low_, _mm512_cvtps_pd(_mm512_castps512_ps256(chunk)));
        high_ = _mm512_add_pd(high_, _mm512_cvtps_pd(_mm512_extractf32x8_ps(chunk, 1)));
    }
    double Total() const { return _mm512_reduce_add_pd(_mm512_add_pd(low_, high_)); }

private:
    __m512d low_ = _mm512_setzero_pd(), high_ = _mm512_setzero_pd();
};

// Inverse RMS and mixes of tokens, from what the tiles have made, and all that follows.
class PreBlock {
public:
    explicit PreBlock(const PreArgs& args)
        : args_(args), all_(args.mixing), elements_(all_.streams * all_.hidden), rows_((2 + all_.streams) * all_.streams) {}

    const Bfloat16* X(int64_t token) const { return static_cast<const Bfloat16*>(all_.x) + token * elements_; }

    // raw [count, rows]; rsqrt is written.
    void Finish(int64_t first, int64_t count, const Squares* squares, float* raw, float* rsqrt) const {
        for (int64_t token = 0; token < count; ++token) {
            const double sum = squares[token].Total();
            if (sum >= kLeastSquares && sum <= kMostSquares) rsqrt[token] = InverseRms(sum, elements_, args_.normEpsilon);
            else ByVectors(first + token, raw + token * rows_, rsqrt[token]);
        }
        SinkhornOfBlock<Bfloat16>(all_, first, count, raw, rsqrt);
    }

private:
    const PreArgs& args_;
    const SinkhornArgs& all_;
    const int64_t elements_, rows_;

    // A token that is not finite, or so large or small that the tiles would not do.
    __attribute__((noinline)) void ByVectors(int64_t token, float* raw, float& rsqrt) const {
        const ProjectionArgs projection{X(token), args_.fn, nullptr, Element::kBfloat16, elements_, static_cast<int32_t>(rows_)};
        Projection<Bfloat16>(projection, 1).Run(0, 1, 0, static_cast<int>(rows_), raw);
        rsqrt = InverseRms(X(token), elements_, args_.normEpsilon);
    }
};

// Many tokens, a block at a time.
class PreByTiles {
public:
    PreByTiles(const PreArgs& args, const void* weights, int64_t mostTokens)
        : block_(args), weights_(static_cast<const char*>(weights)),
          projection_{args.mixing.x, args.fn, nullptr, Element::kBfloat16, args.mixing.streams * args.mixing.hidden,
                      (2 + args.mixing.streams) * args.mixing.streams},
          tiles_(TermTiles(projection_)), sumPitch_(tiles_ * kTile), rawPitch_((projection_.rows + kLanes - 1) / kLanes) {
        const int64_t sums = kTile * sumPitch_ + kLanes, tight = mostTokens * (projection_.rows + 1);
        Workspace& workspace = ThreadWorkspace();
        workspace.Begin(Workspace::Bytes<Squares>(mostTokens) + Workspace::Bytes<Float>(mostTokens * rawPitch_) +
                        Workspace::Bytes<char>(kTile * kPackedPitch) + Workspace::Bytes<float>(sums) + Workspace::Bytes<float>(tight));
        squares_ = workspace.Take<Squares>(mostTokens);
        raw_ = workspace.Take<Float>(mostTokens * rawPitch_);
        packed_ = workspace.Take<char>(kTile * kPackedPitch);
        sums_ = workspace.Take<float>(sums);
        tight_ = workspace.Take<float>(tight);
    }

    void Run(int64_t first, int64_t count) {
        for (int64_t token = 0; token < count; ++token) squares_[token] = Squares();
        for (int64_t k = 0; k < count * rawPitch_; ++k) raw_[k] = Float{};
        const int64_t chunks = Chunks(projection_), rows = projection_.rows;
        for (int64_t chunk = 0; chunk < chunks; ++chunk)
            for (int64_t token = 0; token < count; token += kTile)
                Multiply(chunk, first, token, count - token < kTile ? count - token : kTile);
        for (int64_t token = 0; token < count; ++token) std::memcpy(tight_ + token * rows, raw_ + token * rawPitch_, rows * sizeof(float));
        block_.Finish(first, count, squares_, tight_, tight_ + count * rows);
    }

private:
    // Not a power of two: rows shall not compete for one set of the cache.
    static constexpr int64_t kPackedPitch = kSumChunk * 2 + 64;

    const PreBlock block_;
    const char* const weights_;
    const ProjectionArgs projection_;
    const int tiles_;
    const int64_t sumPitch_, rawPitch_;  // floats, vectors
    Squares* squares_;
    Float* raw_;    // [token][rawPitch_]
    char* packed_;  // [kTile][kPackedPitch]
    float* sums_;   // [kTile][sumPitch_]
    float* tight_;  // mixes and inverse RMS

    // Adds a chunk's share to raw and squares of tokens [token, token + tokens) of a block that begins with `first`.
    void Multiply(int64_t chunk, int64_t first, int64_t token, int64_t tokens) {
        const int64_t elements = ElementsOfChunk(projection_, chunk);
        const Bfloat16* const x = block_.X(first + token) + chunk * kSumChunk;
        const bool whole = tokens == kTile && elements % kStep == 0;
        if (!whole) Pack(x, tokens, elements);
        const char* const a = whole ? reinterpret_cast<const char*>(x) : packed_;
        const int64_t pitch = whole ? projection_.elementsPerToken * 2 : kPackedPitch;
        Float squares[kTile];
        for (int tile = 0; tile < tiles_; tile += kMostTiles)
            WithCount(tiles_ - tile < kMostTiles ? tiles_ - tile : kMostTiles, [&](auto count) {
                constexpr int kCount = decltype(count)::value;
                const auto multiply = tile == 0 ? MultiplyTiles<kCount, true> : MultiplyTiles<kCount, false>;
                const char* const fn = weights_ + chunk * ChunkBytes(projection_) + tile * kTileBytes;
                multiply(a, pitch, fn, tiles_ * kTileBytes, StepsOf(elements), sums_ + tile * kTile, sumPitch_, squares);
            });
        for (int64_t t = 0; t < tokens; ++t) squares_[token + t].Add(squares[t]);
        const int64_t rows = projection_.rows;
        for (int64_t t = 0; t < tokens; ++t)
            for (int64_t v = 0; v < rawPitch_; ++v) {
                const float* const term = sums_ + t * sumPitch_ + v * kLanes;
                const Float smaller = LoadVector<Float>(term + 2 * rows) + LoadVector<Float>(term + rows);
                raw_[(token + t) * rawPitch_ + v] += smaller + LoadVector<Float>(term);
            }
    }

    // With zeros behind the end of the rows and of the tokens.
    void Pack(const Bfloat16* x, int64_t tokens, int64_t elements) {
        for (int64_t t = 0; t < kTile; ++t)
            for (int64_t k = 0; k < elements; k += kStep) {
                const Uint bits = t < tokens ? LoadStep(x + t * projection_.elementsPerToken + k, elements - k) : Uint{};
                std::memcpy(packed_ + t * kPackedPitch + k * 2, &bits, sizeof(bits));
            }
    }
};

static void PreTiles(const PreArgs& args, const void* weights, int64_t firstToken, int64_t lastToken) {
    const TileSession session;
    const int64_t most = lastToken - firstToken < args.tokensPerBlock ? lastToken - firstToken : args.tokensPerBlock;
    PreByTiles pre(args, weights, most);
    for (int64_t first = firstToken; first < lastToken; first += most)
        pre.Run(first, lastToken - first < most ? lastToken - first : most);
}

}  // namespace custom_ops::native::KERNEL_ISA
