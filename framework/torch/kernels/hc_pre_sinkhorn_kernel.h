// hc_pre_sinkhorn. The mixing weights of a block of tokens are computed with one token per SIMD lane, so that the Sinkhorn rounds are
// plain element-wise arithmetic; then every token's x is streamed once into its y. Streaming waits for memory: the weights of the next
// block are computed in its gaps, a step every few columns.
#pragma once

#include "simd.h"

namespace custom_ops::native::KERNEL_ISA {

// pre[i], post[j] and comb[i][j] of up to kLanes tokens, computed in steps that are shorter than what a streamed row has in flight.
template <int kStreams>  // 0: args.streams at run time
class Mixer {
public:
    explicit Mixer(const SinkhornArgs& sinkhorn) : args_(sinkhorn) {}

    // The first kLanes tokens of [first, last), or all.
    void Start(int64_t first, int64_t last) {
        firstToken_ = first;
        count_ = last - first < kLanes ? last - first : kLanes;
        step_ = -count_;
        rsqrt_ = Float{};
        if (count_ < kLanes) std::memset(static_cast<void*>(mix_), 0, (2 + n_) * n_ * sizeof(Float));
    }

    // One token's mixes, one stream's weights or half a Sinkhorn round; nothing when all are done.
    void Step() {
        if (step_ == Steps()) return;
        if (step_ < 0) LoadToken(step_ + count_);
        else if (step_ < n_) Gates(step_);
        else if (step_ < 2 * n_) Softmax(step_ - n_);
        else if ((step_ - 2 * n_) % 2) NormalizeRows(Comb());
        else NormalizeColumns(Comb());
        ++step_;
    }

    // The steps that are left, and the rounds beyond kUnwatched.
    void Complete() {
        while (step_ < 2 * n_ || (step_ < Steps() && step_ % 2)) Step();
        // A local copy with constant indices stays in registers.
        Float c[kCapacity * kCapacity];
        std::memcpy(static_cast<void*>(c), Comb(), n_ * n_ * sizeof(Float));
        for (; step_ < Steps() - 1; step_ += 2) {
            NormalizeColumns(c);
            NormalizeRows(c);
        }
        std::memcpy(static_cast<void*>(Comb()), c, n_ * n_ * sizeof(Float));
        Step();
        if (args_.iterations > kUnwatched) Finish(Comb(), args_.iterations - kUnwatched);
    }

    int64_t Count() const { return count_; }
    void Pre(int64_t lane, float* pre) const {
        for (int i = 0; i < n_; ++i) pre[i] = ShortNan(Lanes()[i * kLanes + lane]);
    }

    void StorePostAndComb(int64_t lane) const {
        float* post = args_.post + (firstToken_ + lane) * n_;
        float* comb = args_.comb + (firstToken_ + lane) * n_ * n_;
        for (int j = 0; j < n_; ++j) post[j] = Lanes()[(n_ + j) * kLanes + lane];
        for (int k = 0; k < n_ * n_; ++k) comb[k] = Lanes()[(2 * n_ + k) * kLanes + lane];
    }

private:
    static constexpr int kCapacity = kStreams ? kStreams : kMaxStreams;
    static constexpr int64_t kUnwatched = 64;  // rounds of any real model: not worth looking for the end

    // After loading: n streams of gates, n rows of softmax, columns once, then rows and columns for every further round.
    int64_t Steps() const { return 2 * n_ + 2 * (args_.iterations < kUnwatched ? args_.iterations : kUnwatched) - 1; }
    Float* Comb() { return mix_ + 2 * n_; }
    const float* Lanes() const { return reinterpret_cast<const float*>(mix_); }

    void LoadToken(int64_t lane) {
        const int width = (2 + n_) * n_;
        const float* row = args_.mixes + (firstToken_ + lane) * width;
        float* lanes = reinterpret_cast<float*>(mix_);
        for (int m = 0; m < width; ++m) lanes[m * kLanes + lane] = row[m];
        rsqrt_[lane] = args_.rsqrt[firstToken_ + lane];
    }

    // mixes * rsqrt * scale[group] + base
    Float Scaled(int64_t m, int group) const { return mix_[m] * rsqrt_ * args_.scale[group] + args_.base[m]; }

    // pre = sigmoid(.) + eps, post = 2 * sigmoid(.)
    void Gates(int64_t i) {
        mix_[i] = Sigmoid(Scaled(i, 0)) + args_.eps;
        mix_[n_ + i] = 2.0f * Sigmoid(Scaled(n_ + i, 1));
    }

    // The other `rounds` rounds. In float32 they end in a cycle, nearly always of one state: found as Brent does, and of what is
    // left only the part of a cycle is computed. 2^31 rounds, which nothing could interrupt, take no longer than thousands do.
    __attribute__((noinline)) void Finish(Float* c, int64_t rounds) const {
        Float seen[kCapacity * kCapacity];
        const size_t bytes = n_ * n_ * sizeof(Float);
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

    // C[i, :] = softmax over j + eps
    void Softmax(int64_t i) {
        Float* row = Comb() + i * n_;
        for (int j = 0; j < n_; ++j) row[j] = Scaled(2 * n_ + i * n_ + j, 2);
        Float top = row[0];
        // A NaN in row[0] stays (the comparison is false); one further on reaches the sum through its own exp.
        for (int j = 1; j < n_; ++j) top = row[j] > top ? row[j] : top;
        Float sum = {};
        for (int j = 0; j < n_; ++j) {
            row[j] = Exp(row[j] - top);
            sum += row[j];
        }
        const Float inverse = 1.0f / sum;
        for (int j = 0; j < n_; ++j) row[j] = row[j] * inverse + args_.eps;
    }

    // C[i, j] /= sum_j C[i, j] + eps: one division per sum, its rounding is within the 1 ulp the next step corrects anyway.
    void NormalizeRows(Float* c) const {
        for (int i = 0; i < n_; ++i) {
            Float sum = c[i * n_];
            for (int j = 1; j < n_; ++j) sum += c[i * n_ + j];
            const Float inverse = 1.0f / (sum + args_.eps);
            for (int j = 0; j < n_; ++j) c[i * n_ + j] *= inverse;
        }
    }

    // C[i, j] /= sum_i C[i, j] + eps
    void NormalizeColumns(Float* c) const {
        for (int j = 0; j < n_; ++j) {
            Float sum = c[j];
            for (int i = 1; i < n_; ++i) sum += c[i * n_ + j];
            const Float inverse = 1.0f / (sum + args_.eps);
            for (int i = 0; i < n_; ++i) c[i * n_ + j] *= inverse;
        }
    }

    const SinkhornArgs& args_;
    const int n_ = kStreams ? kStreams : args_.streams;
    Float mix_[(2 + kCapacity) * kCapacity];  // pre | post | comb, a token per lane
    Float rsqrt_;
    int64_t firstToken_, count_;
    int64_t step_;  // < 0: tokens still to load
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

    template <bool kPastCache, typename Between>
    void Row(const Between& between) const {
        int64_t column = 0;
        while (column + kColumnsBetween <= hidden) {
            Columns<kPastCache>(column, column + kColumnsBetween);
            between();
        }
        Columns<kPastCache>(column, hidden);
        if (column == hidden) return;
        const int64_t rest = hidden - column;
        StorePart(y + column, Sum([column, rest](const T* row) { return LoadPart(row + column, rest); }), rest);
    }

private:
    static constexpr int64_t kColumnsBetween = 16 * kPairElements;

    // The whole pairs of [column, end); column ends behind them.
    template <bool kPastCache>
    void Columns(int64_t& column, int64_t end) const {
        const int64_t tokenElements = (kStreams ? kStreams : n) * hidden;
        for (; column + kPairElements <= end; column += kPairElements) {
            const int64_t ahead = Ahead<T>(column, hidden, tokenElements);
            StoreSum<kPastCache>(y + column, Sum([column, ahead](const T* row) {
                Prefetch(row + column, ahead);
                return LoadPair(row + column);
            }));
        }
    }
};

template <typename T, int kStreams>
static void SinkhornRows(const SinkhornArgs& args, int64_t firstToken, int64_t lastToken) {
    const int n = kStreams ? kStreams : args.streams;
    Mixer<kStreams> mixers[2] = {Mixer<kStreams>(args), Mixer<kStreams>(args)};
    float pre[kMaxStreams];
    int current = 0;
    mixers[current].Start(firstToken, lastToken);
    for (int64_t token = firstToken; token < lastToken; token += kLanes, current ^= 1) {
        Mixer<kStreams>& mixer = mixers[current];
        Mixer<kStreams>& next = mixers[current ^ 1];
        mixer.Complete();
        const bool more = lastToken - token > kLanes;
        if (more) next.Start(token + kLanes, lastToken);
        const auto between = [&] { if (more) next.Step(); };
        for (int64_t lane = 0; lane < mixer.Count(); ++lane) {
            mixer.Pre(lane, pre);
            mixer.StorePostAndComb(lane);
            const int64_t row = token + lane;
            T* y = static_cast<T*>(args.y) + row * args.hidden;
            const WeightedSum<T, kStreams> sum{static_cast<const T*>(args.x) + row * n * args.hidden, y, pre, n, args.hidden};
            if (args.bypassCache && reinterpret_cast<uintptr_t>(y) % kVectorBytes == 0) sum.template Row<true>(between);
            else sum.template Row<false>(between);
        }
    }
    if (args.bypassCache) StreamFence();
}

template <typename T>
static void SinkhornOf(const SinkhornArgs& args, int64_t firstToken, int64_t lastToken) {
    if (args.streams == 4) SinkhornRows<T, 4>(args, firstToken, lastToken);
    else SinkhornRows<T, 0>(args, firstToken, lastToken);
}

// Tokens [first, first + count) of `all`, whose mixes and inverse RMS were made for them alone.
template <typename T>
static void SinkhornOfBlock(const SinkhornArgs& all, int64_t first, int64_t count, const float* mixes, const float* rsqrt) {
    const int64_t n = all.streams;
    SinkhornArgs block = all;
    block.mixes = mixes;
    block.rsqrt = rsqrt;
    block.x = static_cast<const T*>(all.x) + first * n * all.hidden;
    block.y = static_cast<T*>(all.y) + first * all.hidden;
    block.post = all.post + first * n;
    block.comb = all.comb + first * n * n;
    SinkhornOf<T>(block, 0, count);
}

static void Sinkhorn(const SinkhornArgs& args, int64_t firstToken, int64_t lastToken) {
    WithElement(args.element, [&](auto element) { SinkhornOf<decltype(element)>(args, firstToken, lastToken); });
}

}  // namespace custom_ops::native::KERNEL_ISA
