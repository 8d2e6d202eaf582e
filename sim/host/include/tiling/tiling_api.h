// Host side of the AscendC API. The high-level APIs that need tiling of their own (Matmul, SoftMax, ...) are not modelled.
#pragma once

#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"
