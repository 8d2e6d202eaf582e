// Tiling of hc_post: a pure function of shape and chip.
#pragma once

#include <cstdint>

#include "../../op_kernel/hc_post/hc_post_tiling_data.h"
#include "../common/result.h"
#include "../common/tiling_base.h"

namespace custom_ops {

struct HcPostShape {
    uint64_t tokens;        // T
    int64_t hcMult;         // n
    uint64_t hidden;        // d
    uint32_t elementBytes;  // of x and residual: 2 or 4
    uint32_t weightBytes;   // of an element of post and comb: 2 or 4
};

Result<HcPostTilingData> TileHcPost(const HcPostShape& shape, const ChipSpec& chip);

}  // namespace custom_ops
