// Host side of the AscendC API. Of the high-level APIs that need tiling of their own, Matmul is modelled.
#pragma once

#include "register/tilingdata_base.h"
#include "tiling/matrix/matmul_tiling.h"
#include "tiling/platform/platform_ascendc.h"
