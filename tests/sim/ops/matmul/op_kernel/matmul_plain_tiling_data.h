#pragma once
#include <cstdint>

#include "kernel_tiling/kernel_tiling.h"

struct MatmulPlainTilingData {
    uint32_t mCores;
    TCubeTiling cube;
};
