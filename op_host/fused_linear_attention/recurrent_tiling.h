// Tiling of the recurrent kernel.
#pragma once

#include "fused_linear_attention_tiling.h"

namespace custom_ops {

// Fills the recurrent part of a plan whose call part is set, and its modelled cycles; false: no tile fits, data.buffers.ubBytes is what
// the smallest needs.
bool TileRecurrent(FusedLinearAttentionTilingData& data, const FusedLinearAttentionShape& shape, const ChipSpec& chip, uint64_t* cycles);

// Floats that RecurrentPrepare::InitWork takes for data.buffers and pieces of `tile` columns; keyPitch 0: without q | k.
uint64_t PreparationFloats(const FusedLinearAttentionTilingData& data, const FusedLinearAttentionShape& shape, uint64_t tile);

}  // namespace custom_ops
