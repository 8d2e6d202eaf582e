// Host memory that the device reaches: allocated by aclrtMallocHost or registered. Copies to and from other host memory wait.
#pragma once

#include <cstddef>

namespace sim::acl {

bool IsPinned(const void* address, size_t bytes);

}  // namespace sim::acl
