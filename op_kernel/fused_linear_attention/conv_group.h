// Channels of the convolution that are worked on together: what a step's input brings of them as [channels, K] and [channels, K - 1]
// becomes rows, lanes are channels.
#pragma once

#include "../common/rows_membase.h"
#include "conv_copy.h"

namespace hc {

// q | k, v, or those of a tile of short_conv.
struct ConvGroup {
    uint32_t parts;     // 2: q and k
    uint32_t channels;  // of a part
    uint32_t partPitch;
    uint32_t rowPitch;  // parts * partPitch
    // in one step's input
    uint32_t rows, states, stateStride, weights, weightStride, bias;
};

template <typename T>
__aicore__ inline void ClearRows(const AscendC::LocalTensor<T>& rows, const ConvGroup& group, uint32_t count) {
    AscendC::Duplicate(AsBits(rows), Bits<T>(0), static_cast<int32_t>(count * group.rowPitch));
    FenceVector();
}

// rows[r] = element first + r of every channel, zeros beside the channels. A channel's elements lie together, `offsets` bytes from the
// beginning of its part, and parts are `stride` apart. Ends fenced.
template <typename T>
__aicore__ inline void GatherRows(const AscendC::LocalTensor<T>& rows, const AscendC::LocalTensor<T>& from, uint32_t stride,
                                  const AscendC::LocalTensor<uint32_t>& offsets, const ConvGroup& group, uint32_t first, uint32_t count) {
    ClearRows(rows, group, count);
    for (uint32_t part = 0; part < group.parts; ++part)
        for (uint32_t row = 0; row < count; ++row)
            AscendC::Gather(AsBits(rows[row * group.rowPitch + part * group.partPitch]), AsBits(from[part * stride]), offsets,
                            (first + row) * static_cast<uint32_t>(sizeof(T)), group.channels);
    FenceVector();
}

// weights[j] = tap j of all channels, weights[taps] = bias; 16-bit ones by way of `taps` rows of scratch. Ends fenced.
template <typename T>
__aicore__ inline void UnpackWeights(const AscendC::LocalTensor<float>& weights, const AscendC::LocalTensor<float>& scratch,
                                     const AscendC::LocalTensor<T>& in, const AscendC::LocalTensor<uint32_t>& offsets,
                                     const ConvGroup& group, uint32_t taps, bool hasBias) {
    const uint32_t count = taps * group.rowPitch;
    if constexpr (sizeof(T) == 2) {
        const AscendC::LocalTensor<T> rows = scratch.template ReinterpretCast<T>();
        GatherRows(rows, in[group.weights], group.weightStride, offsets, group, 0, taps);
        AscendC::Cast(weights, rows, AscendC::RoundMode::CAST_NONE, count);
        if (hasBias) AscendC::Cast(weights[count], in[group.bias], AscendC::RoundMode::CAST_NONE, group.rowPitch);
    } else {
        GatherRows(weights, in[group.weights], group.weightStride, offsets, group, 0, taps);
        if (hasBias) AscendC::DataCopy(weights[count], in[group.bias], group.rowPitch);
    }
    FenceVector();
}

}  // namespace hc
