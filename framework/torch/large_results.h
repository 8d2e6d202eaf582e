// Memory of large results, on huge pages: fewer address translations while results are stored past the caches. malloc returns blocks of
// 32 MiB and more to the system, and the system clears every page again at its first write: for hc_pre_sinkhorn at T = 8192, d = 4096
// that takes two thirds of the time of the operator. Here they are kept for the next result of that size: the newest 128 MiB as they are,
// of older ones, 256 MiB in all, the system may take the pages back at any time (MADV_FREE).
#pragma once

#include "checks.h"

namespace custom_ops {

// A result of so many bytes cannot stay in a private cache anyway, and storing past it saves reading its lines first.
constexpr int64_t kLargeResultBytes = 4 << 20;

// Uninitialised CPU tensor on such a block, or an undefined handle (null) where that is not possible: torch 2.10, not Linux, no memory.
CUSTOM_OPS_API AtenTensorHandle NewLargeResult(const Shape& shape, const int64_t* strides, int32_t dtype, int64_t bytes);

}  // namespace custom_ops
