#include "op_support.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace custom_ops {

void PreferHugePages([[maybe_unused]] void* data, [[maybe_unused]] int64_t bytes) {
#if defined(__linux__)
    constexpr uintptr_t kHugePage = 2 << 20;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(data);
    const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage, last = (begin + bytes) / kHugePage * kHugePage;
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);  // advice: failing is fine
#endif
}

}  // namespace custom_ops
