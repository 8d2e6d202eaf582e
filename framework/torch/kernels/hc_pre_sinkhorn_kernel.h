// hc_pre_sinkhorn. The mixing weights of a block of tokens are computed with one token per SIMD lane, so that the Sinkhorn rounds are
// plain element-wise arithmetic; then every token's x is streamed once into its y.
#pragma once

#include "simd.h"

namespace custom_ops::native::KERNEL_ISA {

// pre[i], post[j] and comb[i][j] of kLanes tokens.
template <int kStreams>  // 0: args.streams at run time
struct Mixer {
    static constexpr int kCapacity = kStreams ? kStreams : kMaxStreams;
    static constexpr int kMixes = (2 + kCapacity) * kCapacity;
    static constexpr int64_t kUnwatched = 64;  // rounds of any real model: not worth looking for the end

    const SinkhornArgs& args;
    const int n = kStreams ? kStreams : args.streams;
    Float mix[kMixes];  // in: mixes as loaded; out: pre | post | comb

    explicit Mixer(const SinkhornArgs& sinkhorn) : args(sinkhorn) {}

    void Load(int64_t token, int64_t count) {
        const int width = (2 + n) * n;
        if (count < kLanes) std::memset(static_cast<void*>(mix), 0, width * sizeof(Float));
        Float rsqrt = {};
        float* lanes = reinterpret_cast<float*>(mix);
        for (int64_t lane = 0; lane < count; ++lane) {
            const float* row = args.mixes + (token + lane) * width;
            for (int m = 0; m < width; ++m) lanes[m * kLanes + lane] = row[m];
            rsqrt[lane] = args.rsqrt[token + lane];
        }
        // mixes * rsqrt * scale[group] + base
        for (int m = 0; m < width; ++m)
            mix[m] = mix[m] * rsqrt * args.scale[m < n ? 0 : m < 2 * n ? 1 : 2] + args.base[m];
    }

    void Compute() {
        const float eps = args.eps;
        for (int i = 0; i < n; ++i) mix[i] = Sigmoid(mix[i]) + eps;            // pre  = sigmoid(.) + eps
        for (int j = n; j < 2 * n; ++j) mix[j] = 2.0f * Sigmoid(mix[j]);       // post = 2 * sigmoid(.)
        // A local copy with constant indices stays in registers.
        Float c[kCapacity * kCapacity];
        for (int k = 0; k < n * n; ++k) c[k] = mix[2 * n + k];
        Softmax(c);
        NormalizeColumns(c);
        const int64_t rounds = args.iterations < kUnwatched ? args.iterations : kUnwatched;
        for (int64_t round = 1; round < rounds; ++round) {
            NormalizeRows(c);
            NormalizeColumns(c);
        }
        for (int k = 0; k < n * n; ++k) mix[2 * n + k] = c[k];
        if (args.iterations > rounds) Finish(mix + 2 * n, args.iterations - rounds);
    }

    // The other `rounds` rounds. In float32 they end in a cycle, nearly always of one state: found as Brent does, and of what is
    // left only the part of a cycle is computed. 2^31 rounds, which nothing could interrupt, take no longer than thousands do.
    __attribute__((noinline)) void Finish(Float* c, int64_t rounds) const {
        Float seen[kCapacity * kCapacity];
        const size_t bytes = n * n * sizeof(Float);
        std::memcpy(static_cast<void*>(seen), c, bytes);
        int64_t since = 0, span = 1;  // rounds from `seen` to c, and to the next state to remember
        while (rounds > 0) {
            NormalizeRows(c);
            NormalizeColumns(c);
            --rounds;
            ++since;
            if (std::memcmp(seen, c, bytes) == 0) {
                rounds %= since;
            } else if (since == span) {
                std::memcpy(static_cast<void*>(seen), c, bytes);
                since = 0;
                span *= 2;
            }
        }
    }

    // C = softmax over j + eps
    void Softmax(Float* c) const {
        for (int i = 0; i < n; ++i) {
            Float* row = c + i * n;
            Float top = row[0];
            // A NaN in row[0] stays (the comparison is false); one further on reaches the sum through its own exp.
            for (int j = 1; j < n; ++j) top = row[j] > top ? row[j] : top;
            Float sum = {};
            for (int j = 0; j < n; ++j) {
                row[j] = Exp(row[j] - top);
                sum += row[j];
            }
            const Float inverse = 1.0f / sum;
            for (int j = 0; j < n; ++j) row[j] = row[j] * inverse + args.eps;
        }
    }

    // C[i, j] /= sum_j C[i, j] + eps: one division per sum, its rounding is within the 1 ulp the next step corrects anyway.
    void NormalizeRows(Float* c) const {
        for (int i = 0; i < n; ++i) {
            Float sum = c[i * n];
            for (int j = 1; j < n; ++j) sum += c[i * n + j];
            const Float inverse = 1.0f / (sum + args.eps);
            for (int j = 0; j < n; ++j) c[i * n + j] *= inverse;
        }
    }

    // C[i, j] /= sum_i C[i, j] + eps
    void NormalizeColumns(Float* c) const {
        for (int j = 0; j < n; ++j) {
            Float sum = c[j];
            for (int i = 1; i < n; ++i) sum += c[i * n + j];
            const Float inverse = 1.0f / (sum + args.eps);
            for (int i = 0; i < n; ++i) c[i * n + j] *= inverse;
        }
    }

    void StorePostAndComb(int64_t token, int64_t count) const {
        const float* lanes = reinterpret_cast<const float*>(mix);
        for (int64_t lane = 0; lane < count; ++lane) {
            float* post = args.post + (token + lane) * n;
            float* comb = args.comb + (token + lane) * n * n;
            for (int j = 0; j < n; ++j) post[j] = lanes[(n + j) * kLanes + lane];
            for (int k = 0; k < n * n; ++k) comb[k] = lanes[(2 * n + k) * kLanes + lane];
        }
    }

    void Pre(int64_t lane, float* pre) const {
        for (int i = 0; i < n; ++i) pre[i] = ShortNan(reinterpret_cast<const float*>(mix)[i * kLanes + lane]);
    }
};

// y[c] = sum_i pre[i] * x[i, c], float32, ascending i, rounded once.
template <typename T, int kStreams>
struct WeightedSum {
    const T* x;
    T* y;
    const float* pre;
    int n;
    int64_t hidden;

    // sum_i pre[i] * load(x[i]), float32 with ascending i
    template <typename LoadStream>
    Pair Sum(const LoadStream& load) const {
        const int streams = kStreams ? kStreams : n;
        const Pair first = load(x);
        Pair sum = {pre[0] * first.a, pre[0] * first.b};
        for (int i = 1; i < streams; ++i) {
            const Pair value = load(x + i * hidden);
            sum.a += pre[i] * value.a;
            sum.b += pre[i] * value.b;
        }
        return sum;
    }

    template <bool kPastCache>
    void Row() const {
        const int64_t tokenElements = (kStreams ? kStreams : n) * hidden;
        int64_t column = 0;
        for (; column + kPairElements <= hidden; column += kPairElements) {
            const int64_t ahead = Ahead<T>(column, hidden, tokenElements);
            StoreSum<kPastCache>(y + column, Sum([column, ahead](const T* row) {
                Prefetch(row + column, ahead);
                return LoadPair(row + column);
            }));
        }
        if (column == hidden) return;
        const int64_t rest = hidden - column;
        StorePart(y + column, Sum([column, rest](const T* row) { return LoadPart(row + column, rest); }), rest);
    }
};

template <typename T, int kStreams>
static void SinkhornRows(const SinkhornArgs& args, int64_t firstToken, int64_t lastToken) {
    const int n = kStreams ? kStreams : args.streams;
    Mixer<kStreams> mixer(args);
    float pre[kMaxStreams];
    for (int64_t token = firstToken; token < lastToken; token += kLanes) {
        const int64_t count = lastToken - token < kLanes ? lastToken - token : kLanes;
        mixer.Load(token, count);
        mixer.Compute();
        mixer.StorePostAndComb(token, count);
        for (int64_t lane = 0; lane < count; ++lane) {
            mixer.Pre(lane, pre);
            const int64_t row = token + lane;
            T* y = static_cast<T*>(args.y) + row * args.hidden;
            const WeightedSum<T, kStreams> sum{static_cast<const T*>(args.x) + row * n * args.hidden, y, pre, n, args.hidden};
            if (args.bypassCache && reinterpret_cast<uintptr_t>(y) % kVectorBytes == 0) sum.template Row<true>();
            else sum.template Row<false>();
        }
    }
    if (args.bypassCache) StreamFence();
}

template <typename T>
static void SinkhornOf(const SinkhornArgs& args, int64_t firstToken, int64_t lastToken) {
    if (args.streams == 4) SinkhornRows<T, 4>(args, firstToken, lastToken);
    else SinkhornRows<T, 0>(args, firstToken, lastToken);
}

static void Sinkhorn(const SinkhornArgs& args, int64_t firstToken, int64_t lastToken) {
    switch (args.element) {
        case Element::kFloat32: return SinkhornOf<float>(args, firstToken, lastToken);
        case Element::kFloat16: return SinkhornOf<Float16>(args, firstToken, lastToken);
        case Element::kBfloat16: return SinkhornOf<Bfloat16>(args, firstToken, lastToken);
    }
}

}  // namespace custom_ops::native::KERNEL_ISA
