#pragma once

#include <optional>
#include <string_view>

#include "../../op_host/fused_linear_attention/attn_types.h"
#include "checks.h"

namespace custom_ops {

using OptionalTensor = std::optional<Tensor>;

struct LinearAttentionInputs {
    const Tensor &qkv, &gate, &beta, &convWeight;
    const OptionalTensor &convBias, &convState, &recurrentState;
    const OptionalTensor &gateCoef, &gateBias, &cuSeqlens, &stateIndices, &hasInitialState;
};

struct LinearAttentionAttributes {
    std::string_view attnType;
    linear_attention::Heads heads;
    bool useQkL2norm, gateFold, tokenMajor;
};

struct LinearAttentionShape {
    const linear_attention::AttnType* type;
    int64_t batch, length;  // B, L
    int64_t convChannels;   // C
    int64_t taps;           // K
    int64_t sequences;      // N
    int64_t slots;          // of the states; -1 without any
};

// Refuses what no backend accepts, before anything runs; the same words on CPU, NPU and (in Python) Meta.
CUSTOM_OPS_API LinearAttentionShape CheckLinearAttention(const LinearAttentionInputs& inputs, const LinearAttentionAttributes& attributes);
// Part of it, of which a simulated call has need for itself: what is written must be memory of its own.
void CheckLinearAttentionMemory(const LinearAttentionInputs& inputs);

}  // namespace custom_ops
