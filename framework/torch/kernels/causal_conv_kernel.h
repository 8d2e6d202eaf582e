// The causal convolution of npu_fused_linear_attention: y[t] = sum_j weight[j] * u[t - K + 1 + j] + bias for every channel. The K - 1
// inputs before the first token are the window. One channel per lane, the taps and the window of a vector of channels in registers.
#pragma once

#include "workspace.h"
#include "shuffles.h"

namespace custom_ops::native::KERNEL_ISA {

// Rows of consecutive tokens, row 0 is that of a block's first token. Up to K - 1 rows before it are there if the sequence has them.
template <typename T>
struct TokenRows {
    const T* data;
    int64_t stride;

    const T* operator[](int64_t token) const { return data + token * stride; }
};

// Channels [channel, channel + channels) of `count` tokens from `first` on: as they lie, or transposed into `copy`.
template <typename T>
static TokenRows<T> RowsOf(const ConvArgs& args, const Sequence& sequence, int64_t first, int64_t count, int64_t channel, int64_t channels,
                           T* copy) {
    const T* qkv = static_cast<const T*>(sequence.qkv) + channel * args.channelStride;
    if (args.channelStride == 1) return {qkv + first * args.tokenStride, args.tokenStride};
    const int64_t before = first < args.taps - 1 ? first : args.taps - 1;
    Transpose(qkv + first - before, args.channelStride, channels, count + before, copy, channels);
    return {copy + before * channels, channels};
}
// Elements of such a copy.
static inline int64_t CopyElements(const ConvArgs& args, int64_t count, int64_t channels) {
    return args.channelStride == 1 ? 0 : (count + args.taps - 1) * channels;
}

constexpr int kMostTaps = 8;

// Of up to kLanes channels; kTaps 0: K at run time.
template <typename T, int kTaps>
struct Convolution {
    static constexpr int kCapacity = kTaps ? kTaps : kMostTaps;
    int taps = kCapacity;
    Float weight[kCapacity], bias;
    Float window[kCapacity];  // of K - 1 inputs, oldest first

    int Taps() const { return kTaps ? kTaps : taps; }

    void LoadWeights(const ConvArgs& args, int64_t channel, int64_t count) {
        taps = args.taps;
        const T* from = static_cast<const T*>(args.weight) + channel * Taps();
        if constexpr (kTaps > 0) Deinterleave<kTaps>(from, count, weight);
        else DeinterleaveAny(taps, from, count, weight);
        bias = args.bias ? LoadFirst(static_cast<const T*>(args.bias) + channel, count) : Float{};
    }

    // The inputs before token `first`; input(i) is that of the token i further on, i < 0.
    template <typename Input>
    void LoadWindow(const Sequence& sequence, int64_t first, int64_t channel, int64_t count, const Input& input) {
        const int64_t size = Taps() - 1, known = first < size ? size - first : 0;  // those before the first token of all
        for (int64_t j = 0; j < size; ++j) window[j] = Float{};
        if (known > 0 && sequence.windowBefore) {
            Float before[kCapacity];
            const T* from = static_cast<const T*>(sequence.windowBefore) + channel * size;
            if constexpr (kTaps > 1) Deinterleave<kTaps - 1>(from, count, before);
            else DeinterleaveAny(size, from, count, before);
            for (int64_t j = 0; j < known; ++j) window[j] = before[first + j];
        }
        for (int64_t j = known; j < size; ++j) window[j] = input(j - size);
    }

    void StoreWindow(const Sequence& sequence, int64_t channel, int64_t count) const {
        T* to = static_cast<T*>(sequence.window) + channel * (Taps() - 1);
        if constexpr (kTaps > 1) Interleave<kTaps - 1>(window, count, to);
        else InterleaveAny(Taps() - 1, window, count, to);
    }

    Float operator()(Float input) {
        const int size = Taps() - 1;
        Float sum = bias;
        for (int j = 0; j < size; ++j) sum = MulAdd(weight[j], window[j], sum);
        for (int j = 0; j + 1 < size; ++j) window[j] = window[j + 1];
        if (size > 0) window[size - 1] = input;
        return MulAdd(weight[size], input, sum);
    }
};

// A range of channels of a block of tokens.
struct ConvBlock {
    int64_t firstToken, tokens;
    int64_t channel, channels;
    float* out;  // row of the first token
    int64_t outStride;
    bool storesWindow;  // that after the last token
};

// kColumns vectors of channels side by side: with 16-bit elements a cache line.
template <typename T, int kTaps, int kColumns>
static inline void ConvSiluColumns(const ConvArgs& args, const Sequence& sequence, const TokenRows<T>& rows, const ConvBlock& block,
                                   int64_t column, int64_t count) {
    Convolution<T, kTaps> convolutions[kColumns];
    for (int i = 0; i < kColumns; ++i) {
        const int64_t channel = column + i * kLanes;
        convolutions[i].LoadWeights(args, block.channel + channel, count);
        convolutions[i].LoadWindow(sequence, block.firstToken, block.channel + channel, count,
                                   [&](int64_t token) { return LoadFirst(rows[token] + channel, count); });
    }
    for (int64_t token = 0; token < block.tokens; ++token)
        for (int i = 0; i < kColumns; ++i) {
            const int64_t channel = column + i * kLanes;
            if (i == 0) PrefetchSecond(rows[token] + channel, kColumns * kLanes);  // rows lie in pages of their own
            const Float input = kColumns > 1 ? Load(rows[token] + channel) : LoadFirst(rows[token] + channel, count);
            Store(block.out + token * block.outStride + channel, Silu(convolutions[i](input)));
        }
    if (!block.storesWindow) return;
    for (int i = 0; i < kColumns; ++i) convolutions[i].StoreWindow(sequence, block.channel + column + i * kLanes, count);
}

// out = SiLU(conv(qkv)), followed by SiLU(0) = 0 up to a whole vector.
template <typename T, int kTaps>
static void ConvSiluTaps(const ConvArgs& args, const Sequence& sequence, const ConvBlock& block, T* copy) {
    const TokenRows<T> rows = RowsOf(args, sequence, block.firstToken, block.tokens, block.channel, block.channels, copy);
    int64_t column = 0;
    for (; column + 2 * kLanes <= block.channels; column += 2 * kLanes)
        ConvSiluColumns<T, kTaps, 2>(args, sequence, rows, block, column, kLanes);
    for (; column < block.channels; column += kLanes)
        ConvSiluColumns<T, kTaps, 1>(args, sequence, rows, block, column, block.channels - column < kLanes ? block.channels - column : kLanes);
}

// function(kTaps) of the K at run time: those of real models are worth code of their own.
template <typename Function>
static inline void WithTaps(int32_t taps, const Function& function) {
    switch (taps) {
        case 2: return function(std::integral_constant<int, 2>());
        case 3: return function(std::integral_constant<int, 3>());
        case 4: return function(std::integral_constant<int, 4>());
        default: return function(std::integral_constant<int, 0>());
    }
}

template <typename T>
static void ConvSilu(const ConvArgs& args, const Sequence& sequence, const ConvBlock& block, T* copy) {
    WithTaps(args.taps, [&](auto taps) { ConvSiluTaps<T, taps>(args, sequence, block, copy); });
}

}  // namespace custom_ops::native::KERNEL_ISA
