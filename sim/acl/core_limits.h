// How many cores operators that this thread calls may use: tiling counts with them.
#pragma once

#include "sim/acl/device.h"

namespace sim::acl {

CoreLimits LimitsOfThread();

}  // namespace sim::acl
