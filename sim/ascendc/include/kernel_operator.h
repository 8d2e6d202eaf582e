// The kernel-side API: what `#include "kernel_operator.h"` gives a kernel.
#pragma once

#include "ascendc/block.h"
#include "ascendc/data_copy.h"
#include "ascendc/global_tensor.h"
#include "ascendc/local_tensor.h"
#include "ascendc/not_modelled.h"
#include "ascendc/params.h"
#include "ascendc/sync.h"
#include "ascendc/tiling_access.h"
#include "ascendc/tpipe.h"
#include "ascendc/tque.h"
#include "ascendc/types.h"
#if __has_include("ascendc/vec_binary.h")
#include "ascendc/vec_binary.h"
#endif
#if __has_include("ascendc/vec_cast.h")
#include "ascendc/vec_cast.h"
#endif
#if __has_include("ascendc/vec_compare.h")
#include "ascendc/vec_compare.h"
#endif
#if __has_include("ascendc/vec_copy.h")
#include "ascendc/vec_copy.h"
#endif
#if __has_include("ascendc/vec_fill.h")
#include "ascendc/vec_fill.h"
#endif
#if __has_include("ascendc/vec_gather.h")
#include "ascendc/vec_gather.h"
#endif
#if __has_include("ascendc/vec_mask.h")
#include "ascendc/vec_mask.h"
#endif
#if __has_include("ascendc/vec_reduce.h")
#include "ascendc/vec_reduce.h"
#endif
#if __has_include("ascendc/vec_scalar.h")
#include "ascendc/vec_scalar.h"
#endif
#if __has_include("ascendc/vec_select.h")
#include "ascendc/vec_select.h"
#endif
#if __has_include("ascendc/vec_unary.h")
#include "ascendc/vec_unary.h"
#endif
#if __NPU_ARCH__ == 3510 && __has_include("ascendc/micro_api/micro_api.h")
#include "ascendc/micro_api/micro_api.h"
#endif
