// For plain tiling structs with a TCubeTiling in a header that op_host/ and op_kernel/ share.
#pragma once

#include "../../../ascendc/include/kernel_tiling/cube_tiling.h"

using AscendC::tiling::TCubeTiling;
