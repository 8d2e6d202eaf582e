// Compiled kernels: shared libraries made with sim/ascendc/include/ascendc/kernel_entry.h.
#pragma once

#include <string>

#include "sim/core/launch.h"

namespace sim::opapi {

// The entry called `entry` in a library of several, else the library's only one. Opened once; a file that changed since is
// opened anew. HostError when it is no kernel.
KernelInvoke LoadKernel(const std::string& path, const std::string& entry = "");

}  // namespace sim::opapi
