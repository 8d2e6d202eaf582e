// Tiling of the chunked kernel.
#pragma once

#include "fused_linear_attention_tiling.h"

namespace custom_ops {

// Fills the chunked part of a plan whose call part is set. The modelled cycles; UINT64_MAX: this kernel does not take the call.
uint64_t TileChunked(FusedLinearAttentionTilingData& data, const FusedLinearAttentionShape& shape, const ChipSpec& chip);

}  // namespace custom_ops
