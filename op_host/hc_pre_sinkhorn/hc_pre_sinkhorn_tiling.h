// Tiling of hc_pre_sinkhorn: a pure function of shape and chip.
#pragma once

#include <cstdint>

#include "../../op_kernel/hc_pre_sinkhorn/hc_pre_sinkhorn_tiling_data.h"
#include "../common/result.h"
#include "../common/tiling_base.h"

namespace custom_ops {

struct HcPreSinkhornShape {
    uint64_t tokens;        // T
    int64_t hcMult;         // n
    uint64_t hidden;        // d
    int64_t sinkhornIters;
    uint32_t elementBytes;  // of x: 2 or 4
    float hcEps;
};

Result<HcPreSinkhornTilingData> TileHcPreSinkhorn(const HcPreSinkhornShape& shape, const ChipSpec& chip);

}  // namespace custom_ops
