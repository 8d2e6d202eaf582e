// Tiling structs of the high-level API. Those of APIs without a model (SoftMaxTiling ...) do not exist: using one is a compile
// error that names it.
#pragma once

#include "kernel_tiling/cube_tiling.h"

// In op_host/, inside namespace optiling, the name means the macro-declared class.
using AscendC::tiling::TCubeTiling;
