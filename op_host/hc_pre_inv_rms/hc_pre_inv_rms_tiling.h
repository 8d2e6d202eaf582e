// Tiling of hc_pre_inv_rms: a pure function of shape and chip.
#pragma once

#include <cstdint>

#include "../../op_kernel/hc_pre_inv_rms/hc_pre_inv_rms_tiling_data.h"
#include "../common/result.h"
#include "../common/tiling_base.h"

namespace custom_ops {

struct HcPreInvRmsShape {
    uint64_t tokens;        // T: product of the leading dimensions of x
    uint64_t rowElements;   // R = hc_mult * d: product of its last two
    uint32_t elementBytes;  // of x: 2 or 4
    float epsilon;
};

Result<HcPreInvRmsTilingData> TileHcPreInvRms(const HcPreInvRmsShape& shape, const ChipSpec& chip);

}  // namespace custom_ops
