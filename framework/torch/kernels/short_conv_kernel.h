// short_conv: out = C * conv(B * x) of B | C | x. A block of channels, whose taps and window stay in the first-level cache, goes through all
// tokens before the next one does.
#pragma once

#include "causal_conv_kernel.h"

namespace custom_ops::native::KERNEL_ISA {

static inline Float RoundTo(float, Float value) { return value; }
static inline Float RoundTo(Float16, Float value) { return FromFloat16(ToFloat16(value)); }
// The products and sums of bfloat16 numbers: see ShortNan.
static inline Float RoundTo(Bfloat16, Float value) { return BitCast<Float>(RoundNumber(value) & 0xffff0000u); }

// Pair by pair (simd.h) bfloat16 channels are even | odd, which the planes below follow; other elements lie in their order.
template <typename T>
static inline void PairUp(T, float*) {}
static inline void PairUp(Bfloat16, float* channels) {
    Float both[2] = {Load(channels), Load(channels + kLanes)}, pair[2];
    DeinterleaveAll<2>(both, pair, std::make_integer_sequence<int, 2>());
    Store(channels, pair[0]);
    Store(channels + kLanes, pair[1]);
}
template <typename T>
static inline void PutInOrder(T, float*) {}
static inline void PutInOrder(Bfloat16, float* channels) {
    Float pair[2] = {Load(channels), Load(channels + kLanes)}, both[2];
    InterleaveAll<2>(pair, both, std::make_integer_sequence<int, 2>());
    Store(channels, both[0]);
    Store(channels + kLanes, both[1]);
}

// B, C and x of consecutive tokens, from a block's first channel on; row 0 is that of the first token.
template <typename T>
struct GatedRows {
    const T* data;
    int64_t stride, partStride;

    const T* operator[](int64_t token) const { return data + token * stride; }
};

constexpr int64_t kShortChannels = 512;

template <typename T, int kTaps>
class ShortConvolution {
public:
    ShortConvolution(const ConvArgs& args, const Sequence& sequence, int64_t firstChannel)
        : args_(args), sequence_(sequence), firstChannel_(firstChannel),
          channels_(args.channels - firstChannel < kShortChannels ? args.channels - firstChannel : kShortChannels) {
        const int64_t padded = channels_ + kLanes;
        Workspace& workspace = ThreadWorkspace();
        workspace.Begin(2 * kCapacity * Workspace::Bytes<float>(padded) + Workspace::Bytes<T>(CopyElements(args, kCopiedTokens, 3 * channels_)));
        for (int j = 0; j < Taps(); ++j) weight_[j] = workspace.Take<float>(padded);
        for (int j = 0; j < Taps() - 1; ++j) window_[j] = workspace.Take<float>(padded);
        bias_ = workspace.Take<float>(padded);
        copy_ = workspace.Take<T>(CopyElements(args, kCopiedTokens, 3 * channels_));
    }

    template <bool kPastCache>
    void Run(int64_t firstToken, int64_t lastToken) {
        T* out = static_cast<T*>(args_.out) + sequence_.firstToken * args_.channels + firstChannel_;
        const int64_t perBlock = args_.channelStride == 1 ? lastToken - firstToken : kCopiedTokens;
        for (int64_t first = firstToken; first < lastToken; first += perBlock) {
            const int64_t count = lastToken - first < perBlock ? lastToken - first : perBlock;
            const GatedRows<T> rows = Rows(first, count);
            if (first == firstToken) Begin(first, rows);
            for (int64_t token = 0; token < count; ++token) Token<kPastCache>(rows, token, out + (first + token) * args_.channels);
        }
        if (sequence_.window && lastToken == sequence_.tokens) StoreWindow();
    }

private:
    static constexpr int kCapacity = kTaps ? kTaps : kMostTaps;
    static constexpr int64_t kCopiedTokens = 32;  // where rows have to be transposed

    int Taps() const { return kTaps ? kTaps : args_.taps; }
    int64_t CountFrom(int64_t channel) const { return channels_ - channel < kLanes ? channels_ - channel : kLanes; }

    // As they lie, or transposed part by part.
    GatedRows<T> Rows(int64_t first, int64_t count) const {
        if (args_.channelStride == 1) {
            const TokenRows<T> rows = RowsOf(args_, sequence_, first, count, firstChannel_, channels_, copy_);
            return {rows.data, rows.stride, args_.channels};
        }
        const int64_t before = first < Taps() - 1 ? first : Taps() - 1;
        for (int64_t i = 0; i < 3; ++i)
            Transpose(static_cast<const T*>(sequence_.qkv) + (i * args_.channels + firstChannel_) * args_.channelStride + first - before,
                      args_.channelStride, channels_, count + before, copy_ + i * channels_, 3 * channels_);
        return {copy_ + before * 3 * channels_, 3 * channels_, channels_};
    }

    void Begin(int64_t first, const GatedRows<T>& rows) {
        Convolution<T, kTaps> one;
        for (int64_t channel = 0; channel < channels_; channel += kLanes) {
            const int64_t count = CountFrom(channel);
            one.LoadWeights(args_, firstChannel_ + channel, count);
            one.LoadWindow(sequence_, first, firstChannel_ + channel, count, [&](int64_t token) {
                const T* row = rows[token] + channel;
                return RoundTo(T(), LoadFirst(row, count) * LoadFirst(row + 2 * rows.partStride, count));
            });
            for (int j = 0; j < Taps(); ++j) Store(weight_[j] + channel, one.weight[j]);
            for (int j = 0; j < Taps() - 1; ++j) Store(window_[j] + channel, one.window[j]);
            Store(bias_ + channel, one.bias);
        }
        for (int64_t channel = 0; channel + kPairElements <= channels_; channel += kPairElements) {
            for (int j = 0; j < Taps(); ++j) PairUp(T(), weight_[j] + channel);
            for (int j = 0; j < Taps() - 1; ++j) PairUp(T(), window_[j] + channel);
            PairUp(T(), bias_ + channel);
        }
    }

    // The oldest input of the window makes room for the new one.
    inline Float Step(int64_t channel, Float b, Float x) const {
        const Float input = RoundTo(T(), b * x);
        Float sum = Load(bias_ + channel);
        for (int j = 0; j < Taps() - 1; ++j) sum = MulAdd(Load(weight_[j] + channel), Load(window_[j] + channel), sum);
        const Float y = MulAdd(Load(weight_[Taps() - 1] + channel), input, sum);
        if (Taps() > 1) Store(window_[0] + channel, input);
        return y;
    }

    template <bool kPastCache>
    void Token(const GatedRows<T>& rows, int64_t token, T* out) {
        const T *b = rows[token], *c = b + rows.partStride, *x = c + rows.partStride;
        int64_t channel = 0;
        for (; channel + kPairElements <= channels_; channel += kPairElements) {
            for (const T* part : {b, c, x}) Prefetch(part + channel, Ahead<T>(channel, channels_, rows.stride));
            const Pair before = LoadPair(b + channel), after = LoadPair(c + channel), input = LoadPair(x + channel);
            const Pair y = {after.a * Step(channel, before.a, input.a), after.b * Step(channel + kLanes, before.b, input.b)};
            StoreSum<kPastCache>(out + channel, y);
        }
        for (; channel < channels_; channel += kLanes) {
            const int64_t count = CountFrom(channel);
            const Float y = Step(channel, LoadFirst(b + channel, count), LoadFirst(x + channel, count));
            StoreFirst(out + channel, LoadFirst(c + channel, count) * y, count);
        }
        if (Taps() == 1) return;
        float* newest = window_[0];
        for (int j = 0; j < Taps() - 2; ++j) window_[j] = window_[j + 1];
        window_[Taps() - 2] = newest;
    }

    void StoreWindow() const {
        Convolution<T, kTaps> one;
        one.taps = args_.taps;
        for (int64_t channel = 0; channel + kPairElements <= channels_; channel += kPairElements)
            for (int j = 0; j < Taps() - 1; ++j) PutInOrder(T(), window_[j] + channel);
        for (int64_t channel = 0; channel < channels_; channel += kLanes) {
            for (int j = 0; j < Taps() - 1; ++j) one.window[j] = Load(window_[j] + channel);
            one.StoreWindow(sequence_, firstChannel_ + channel, CountFrom(channel));
        }
    }

    const ConvArgs& args_;
    const Sequence& sequence_;
    const int64_t firstChannel_, channels_;
    float* weight_[kCapacity];
    float* bias_;
    float* window_[kCapacity];  // of K - 1 inputs, oldest first
    T* copy_;
};

// A sequence of one token: taps and window are used once, from registers.
template <typename T, int kTaps>
static void ShortConvToken(const ConvArgs& args, const Sequence& sequence) {
    const T *b = static_cast<const T*>(sequence.qkv), *c = b + args.channels, *x = c + args.channels;
    T* out = static_cast<T*>(args.out) + sequence.firstToken * args.channels;
    Convolution<T, kTaps> convolution;
    for (int64_t channel = 0; channel < args.channels; channel += kLanes) {
        const int64_t count = args.channels - channel < kLanes ? args.channels - channel : kLanes;
        convolution.LoadWeights(args, channel, count);
        convolution.LoadWindow(sequence, 0, channel, count, [](int64_t) { return Float{}; });
        const Float y = convolution(RoundTo(T(), LoadFirst(b + channel, count) * LoadFirst(x + channel, count)));
        StoreFirst(out + channel, LoadFirst(c + channel, count) * y, count);
        if (sequence.window) convolution.StoreWindow(sequence, channel, count);
    }
}

template <typename T, int kTaps>
static void ShortConvTaps(const ConvArgs& args, const Sequence& sequence, int64_t firstToken, int64_t lastToken) {
    if (sequence.tokens == 1 && args.channelStride == 1) return ShortConvToken<T, kTaps>(args, sequence);
    const bool pastCache = args.bypassCache && reinterpret_cast<uintptr_t>(args.out) % kVectorBytes == 0 &&
                           args.channels * sizeof(T) % kVectorBytes == 0;
    for (int64_t channel = 0; channel < args.channels; channel += kShortChannels) {
        ShortConvolution<T, kTaps> convolution(args, sequence, channel);
        if (pastCache) convolution.template Run<true>(firstToken, lastToken);
        else convolution.template Run<false>(firstToken, lastToken);
    }
    if (pastCache) StreamFence();
}

void ShortConv(const ConvArgs& args, const Sequence& sequence, int64_t firstToken, int64_t lastToken) {
    WithTaps(args.taps, [&](auto taps) {
        WithElement(args.element,
                    [&](auto element) { ShortConvTaps<decltype(element), decltype(taps)::value>(args, sequence, firstToken, lastToken); });
    });
}

}  // namespace custom_ops::native::KERNEL_ISA
