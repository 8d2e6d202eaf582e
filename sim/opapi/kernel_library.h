// Compiled kernels: shared libraries that export custom_ops_kernel_invoke.
#pragma once

#include <string>

#include "sim/core/launch.h"

namespace sim::opapi {

// Opened once; a file that changed since is opened anew. HostError when it is no kernel.
KernelInvoke LoadKernel(const std::string& path);

}  // namespace sim::opapi
