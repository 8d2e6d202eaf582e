// y[j] = post[j] * x + sum_i comb[i, j] * residual[i] for every token: x and residual are read once, y is written once.
#pragma once

#include "simd.h"

namespace custom_ops::native::KERNEL_ISA {

// post[n], then comb[n, n] of one token.
template <typename W>
static void LoadWeights(const PostArgs& args, int64_t token, float* weights) {
    const int64_t n = args.streams;
    const W *post = static_cast<const W*>(args.post) + token * n, *comb = static_cast<const W*>(args.comb) + token * n * n;
    for (int64_t k = 0; k < n; ++k) weights[k] = ShortNan(ToFloat(post[k]));
    for (int64_t k = 0; k < n * n; ++k) weights[n + k] = ShortNan(ToFloat(comb[k]));
}

// One token; float32 with ascending i, rounded once.
template <typename T, int kStreams>  // 0: n at run time
struct StreamMix {
    const T* x;
    const T* residual;
    T* y;
    const float* weights;
    int n;
    int64_t hidden;

    template <typename LoadColumns, typename StoreColumns>
    void Columns(const LoadColumns& load, const StoreColumns& store) const {
        const int streams = kStreams ? kStreams : n;
        const float *post = weights, *comb = weights + streams;
        Pair sum[kStreams ? kStreams : kMaxStreams];
        const Pair block = load(x);
        for (int j = 0; j < streams; ++j) sum[j] = {post[j] * block.a, post[j] * block.b};
        for (int i = 0; i < streams; ++i) {
            const Pair stream = load(residual + i * hidden);
            for (int j = 0; j < streams; ++j) {
                sum[j].a += comb[i * streams + j] * stream.a;
                sum[j].b += comb[i * streams + j] * stream.b;
            }
        }
        for (int j = 0; j < streams; ++j) store(y + j * hidden, sum[j]);
    }

    template <bool kPastCache>
    void Row() const {
        const int64_t streams = kStreams ? kStreams : n;
        int64_t column = 0;
        for (; column + kPairElements <= hidden; column += kPairElements)
            Columns(
                [&](const T* row) {
                    Prefetch(row + column, Ahead<T>(column, hidden, row == x ? hidden : streams * hidden));
                    return LoadPair(row + column);
                },
                [&](T* row, Pair sum) { StoreSum<kPastCache>(row + column, sum); });
        if (column == hidden) return;
        const int64_t rest = hidden - column;
        Columns([&](const T* row) { return LoadPart(row + column, rest); },
                [&](T* row, Pair sum) { StorePart(row + column, sum, rest); });
    }
};

template <typename T, typename W, int kStreams>
static void PostRows(const PostArgs& args, int64_t firstToken, int64_t lastToken) {
    const int n = kStreams ? kStreams : args.streams;
    const int64_t hidden = args.hidden, tokenElements = n * hidden;
    float weights[(1 + kMaxStreams) * kMaxStreams];
    T* y = static_cast<T*>(args.y);
    const bool aligned = reinterpret_cast<uintptr_t>(y) % kVectorBytes == 0 && hidden * sizeof(T) % kVectorBytes == 0;
    for (int64_t token = firstToken; token < lastToken; ++token) {
        LoadWeights<W>(args, token, weights);
        const StreamMix<T, kStreams> mix{static_cast<const T*>(args.x) + token * hidden,
                                         static_cast<const T*>(args.residual) + token * tokenElements, y + token * tokenElements,
                                         weights, n, hidden};
        if (args.bypassCache && aligned) mix.template Row<true>();
        else mix.template Row<false>();
    }
    if (args.bypassCache) StreamFence();
}

template <typename T, typename W>
static void PostOf(const PostArgs& args, int64_t firstToken, int64_t lastToken) {
    if (args.streams == 4) PostRows<T, W, 4>(args, firstToken, lastToken);
    else PostRows<T, W, 0>(args, firstToken, lastToken);
}

static void Post(const PostArgs& args, int64_t firstToken, int64_t lastToken) {
    WithElement(args.element, [&](auto element) {
        WithElement(args.weightElement, [&](auto weight) { PostOf<decltype(element), decltype(weight)>(args, firstToken, lastToken); });
    });
}

}  // namespace custom_ops::native::KERNEL_ISA
