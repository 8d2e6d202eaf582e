// short_conv: out = C * conv(B * x) of B | C | x, token after token, so that memory is read and written in order. The window of all channels
// is in the first-level cache.
#pragma once

#include "causal_conv_kernel.h"

namespace custom_ops::native::KERNEL_ISA {

static inline Float RoundTo(float, Float value) { return value; }
static inline Float RoundTo(Float16, Float value) { return FromFloat16(ToFloat16(value)); }
// The products and sums of bfloat16 numbers: see ShortNan.
static inline Float RoundTo(Bfloat16, Float value) { return BitCast<Float>(RoundNumber(value) & 0xffff0000u); }

template <int... lane>
static inline Uint Concatenate(Bits16 a, Bits16 b, std::integer_sequence<int, lane...>) {
    return BitCast<Uint>(__builtin_shufflevector(a, b, lane...));
}

template <bool kPastCache>
static inline void StoreTwo(float* to, Float a, Float b) {
    StoreVector<kPastCache>(to, BitCast<Uint>(a));
    StoreVector<kPastCache>(to + kLanes, BitCast<Uint>(b));
}
template <bool kPastCache>
static inline void StoreTwo(Float16* to, Float a, Float b) {
    StoreVector<kPastCache>(to, Concatenate(ToFloat16(a), ToFloat16(b), std::make_integer_sequence<int, 2 * kLanes>()));
}
template <bool kPastCache>
static inline void StoreTwo(Bfloat16* to, Float a, Float b) {
    const auto half = [](Float value) { return Narrow(RoundNumber(value) >> 16); };
    StoreVector<kPastCache>(to, Concatenate(half(a), half(b), std::make_integer_sequence<int, 2 * kLanes>()));
}

template <typename T, int kTaps>
struct ShortConvolution {
    const ConvArgs& args;
    const Sequence& sequence;
    const int64_t channels = args.channels, padded = (channels + kLanes - 1) / kLanes * kLanes;
    static constexpr int kCapacity = kTaps ? kTaps : kMostTaps;
    const int taps = kTaps ? kTaps : args.taps;
    float* weight[kCapacity];
    float* bias;
    float* window[kCapacity];  // of K - 1 inputs, oldest first

    ShortConvolution(const ConvArgs& conv, const Sequence& of, Workspace& workspace) : args(conv), sequence(of) {
        for (int j = 0; j < Taps(); ++j) weight[j] = workspace.Take<float>(padded);
        for (int j = 0; j < Taps() - 1; ++j) window[j] = workspace.Take<float>(padded);
        bias = workspace.Take<float>(padded);
    }
    int Taps() const { return kTaps ? kTaps : taps; }
    static int64_t WorkspaceBytes(int64_t channels) { return 2 * kCapacity * Workspace::Bytes<float>(channels + kLanes); }

    // rows[-1] is that of the token before `first`.
    void Begin(int64_t first, const TokenRows<T>& rows) {
        Convolution<T, kTaps> one;
        for (int64_t channel = 0; channel < channels; channel += kLanes) {
            const int64_t count = channels - channel < kLanes ? channels - channel : kLanes;
            one.LoadWeights(args, channel, count);
            one.LoadWindow(sequence, first, channel, count, [&](int64_t token) {
                const T* row = rows[token] + channel;
                return RoundTo(T(), LoadFirst(row, count) * LoadFirst(row + 2 * channels, count));
            });
            for (int j = 0; j < Taps(); ++j) Store(weight[j] + channel, one.weight[j]);
            for (int j = 0; j < Taps() - 1; ++j) Store(window[j] + channel, one.window[j]);
            Store(bias + channel, one.bias);
        }
    }

    // The oldest input of the window makes room for the new one.
    inline Float Step(int64_t channel, Float b, Float x) const {
        const Float input = RoundTo(T(), b * x);
        Float sum = Load(bias + channel);
        for (int j = 0; j < Taps() - 1; ++j) sum = MulAdd(Load(weight[j] + channel), Load(window[j] + channel), sum);
        if (Taps() > 1) Store(window[0] + channel, input);
        return MulAdd(Load(weight[Taps() - 1] + channel), input, sum);
    }

    template <bool kPastCache>
    void Token(const T* row, T* out) {
        const T *b = row, *c = row + channels, *x = c + channels;
        const int64_t pitch = args.channelStride == 1 ? args.tokenStride : 3 * channels;
        int64_t channel = 0;
        for (; channel + 2 * kLanes <= channels; channel += 2 * kLanes) {
            Float y[2];
            for (const T* part : {b, c, x}) Prefetch(part + channel, Ahead<T>(channel, channels, pitch));
            for (int i = 0; i < 2; ++i) {
                const int64_t at = channel + i * kLanes;
                y[i] = Load(c + at) * Step(at, Load(b + at), Load(x + at));
            }
            StoreTwo<kPastCache>(out + channel, y[0], y[1]);
        }
        for (; channel < channels; channel += kLanes) {
            const int64_t count = channels - channel < kLanes ? channels - channel : kLanes;
            const Float y = Step(channel, LoadFirst(b + channel, count), LoadFirst(x + channel, count));
            StoreFirst(out + channel, LoadFirst(c + channel, count) * y, count);
        }
        if (Taps() == 1) return;
        float* newest = window[0];
        for (int j = 0; j < Taps() - 2; ++j) window[j] = window[j + 1];
        window[Taps() - 2] = newest;
    }

    void StoreWindow() const {
        Convolution<T, kTaps> one;
        one.taps = taps;
        for (int64_t channel = 0; channel < channels; channel += kLanes) {
            for (int j = 0; j < Taps() - 1; ++j) one.window[j] = Load(window[j] + channel);
            one.StoreWindow(sequence, channel, channels - channel < kLanes ? channels - channel : kLanes);
        }
    }
};

template <typename T, int kTaps>
static void ShortConvTaps(const ConvArgs& args, const Sequence& sequence, int64_t firstToken, int64_t lastToken) {
    constexpr int64_t kCopiedTokens = 32;  // where rows have to be transposed
    Workspace& workspace = ThreadWorkspace();
    const int64_t copyElements = CopyElements(args, kCopiedTokens, 3 * args.channels);
    workspace.Begin(ShortConvolution<T, kTaps>::WorkspaceBytes(args.channels) + Workspace::Bytes<T>(copyElements));
    ShortConvolution<T, kTaps> convolution(args, sequence, workspace);
    T* copy = workspace.Take<T>(copyElements);
    T* out = static_cast<T*>(args.out) + sequence.firstToken * args.channels;
    const bool pastCache = args.bypassCache && reinterpret_cast<uintptr_t>(out) % kVectorBytes == 0 &&
                           args.channels * sizeof(T) % kVectorBytes == 0;
    const int64_t perBlock = args.channelStride == 1 ? lastToken - firstToken : kCopiedTokens;
    for (int64_t first = firstToken; first < lastToken; first += perBlock) {
        const int64_t count = lastToken - first < perBlock ? lastToken - first : perBlock;
        const TokenRows<T> rows = RowsOf(args, sequence, first, count, 0, 3 * args.channels, copy);
        if (first == firstToken) convolution.Begin(first, rows);
        for (int64_t token = 0; token < count; ++token) {
            T* to = out + (first + token) * args.channels;
            if (pastCache) convolution.template Token<true>(rows[token], to);
            else convolution.template Token<false>(rows[token], to);
        }
    }
    if (pastCache) StreamFence();
    if (sequence.window && lastToken == sequence.tokens) convolution.StoreWindow();
}

void ShortConv(const ConvArgs& args, const Sequence& sequence, int64_t firstToken, int64_t lastToken) {
    WithTaps(args.taps, [&](auto taps) {
        switch (args.element) {
            case Element::kFloat32: return ShortConvTaps<float, taps>(args, sequence, firstToken, lastToken);
            case Element::kFloat16: return ShortConvTaps<Float16, taps>(args, sequence, firstToken, lastToken);
            case Element::kBfloat16: return ShortConvTaps<Bfloat16, taps>(args, sequence, firstToken, lastToken);
        }
    });
}

}  // namespace custom_ops::native::KERNEL_ISA
