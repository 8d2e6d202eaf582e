// The source line of a kernel that a fault came from, by the debug lines of its library.
#pragma once

#include "sim/core/faults.h"
#include "sim/core/types.h"

namespace sim {

// `kernelCode` is any address in the kernel's library. Line 0 when the library has no debug lines or addr2line is missing.
Location SourceOfFault(const Fault& fault, const void* kernelCode);

}  // namespace sim
