// The high-level matrix product: what `#include "lib/matmul_intf.h"` gives a kernel.
#pragma once

#include "ascendc/matmul/matmul.h"
#include "kernel_operator.h"
#include "kernel_tiling/kernel_tiling.h"
