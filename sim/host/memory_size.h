// Sizes of memory as people write them.
#pragma once

#include <cstddef>

namespace sim::host {

// "4294967296", "512MB", "2GB" or "1.5 GiB"; units are powers of 1024, as device memory is stated. False: no size above 0 and up to 16 TiB.
bool ParseMemorySize(const char* text, size_t* bytes);

}  // namespace sim::host
