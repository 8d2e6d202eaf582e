// Tiling of hc_pre: a pure function of shape and chip.
#pragma once

#include <cstdint>

#include "../../op_kernel/hc_pre/hc_pre_tiling_data.h"
#include "../common/result.h"
#include "../common/tiling_base.h"

namespace custom_ops {

enum class HcPreType : uint32_t { BFloat16, Float16, Float32 };  // of x, in the order of the OpDef's columns

struct HcPreShape {
    uint64_t tokens;        // T
    int64_t hcMult;         // n
    uint64_t hidden;        // d
    int64_t sinkhornIters;
    HcPreType type;
    float normEps, hcEps;
};

struct HcPrePlan {
    uint64_t key;             // kHcPreDecode, kHcPreGrid, kHcPreStream, kHcPreWiden
    uint32_t blockDim;
    uint64_t workspaceBytes;  // of the user: terms of hc_fn or x as float32, partial sums; float16: maxima and scales of its rows
    HcPreTilingData data;
};

Result<HcPrePlan> TileHcPre(const HcPreShape& shape, const ChipSpec& chip);

}  // namespace custom_ops
