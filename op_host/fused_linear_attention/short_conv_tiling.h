// Tiling of short_conv.
#pragma once

#include "fused_linear_attention_tiling.h"

namespace custom_ops {

// Fills the short_conv part of a plan whose call part is set; false: no tile fits, data.conv.ubBytes is what the smallest needs.
bool TileShortConv(FusedLinearAttentionTilingData& data, const FusedLinearAttentionShape& shape, const ChipSpec& chip);

}  // namespace custom_ops
