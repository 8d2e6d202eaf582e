// Tiling of fused_linear_attention: a pure function of shape and chip.
#pragma once

#include <cstdint>

#include "../../op_kernel/fused_linear_attention/fused_linear_attention_tiling_data.h"
#include "../common/result.h"
#include "../common/tiling_base.h"
#include "attn_types.h"

namespace custom_ops {

// Tiling keys.
enum class LinearAttentionKernel : uint64_t { kShortConv = 0, kRecurrent = 1, kChunked = 2 };

struct FusedLinearAttentionShape {
    const linear_attention::AttnType* type;
    linear_attention::Heads heads;
    uint64_t batch;          // B
    uint64_t length;         // L
    uint64_t sequences;      // N; B where there is no cu_seqlens
    bool packed;             // cu_seqlens is given
    uint64_t slots;          // of the states; 2^31 - 1 where there is none
    int64_t taps;            // K
    bool keepsConvState;     // conv_state is given
    bool useQkL2norm;
    bool gateFold;
    uint32_t elementBytes;   // of qkv: 2 or 4
    uint32_t gateBytes;      // of an element of gate and beta: 2 or 4
};

struct FusedLinearAttentionPlan {
    LinearAttentionKernel kernel;
    uint32_t blockDim;
    uint64_t workspaceBytes;
    FusedLinearAttentionTilingData data;
};

Result<FusedLinearAttentionPlan> TileFusedLinearAttention(const FusedLinearAttentionShape& shape, const ChipSpec& chip);

}  // namespace custom_ops
