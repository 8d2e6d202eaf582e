#include "sim/acl/address_space.h"

#include <sys/mman.h>

namespace sim::acl {
namespace {

constexpr int kReservation = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

bool AddressSpace::Commit(uintptr_t device, size_t size) const {
    return mprotect(Host(device), RoundUp(size, kPageBytes), PROT_READ | PROT_WRITE) == 0;
}

bool AddressSpace::CommitFile(uintptr_t device, size_t size, int file, uint64_t offset) const {
    void* mapped = mmap(Host(device), RoundUp(size, kPageBytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                        static_cast<off_t>(offset));
    return mapped != MAP_FAILED;
}

void AddressSpace::Decommit(uintptr_t device, size_t size) const {
    // A fresh mapping also drops the pages, and joins its neighbours.
    void* mapped = mmap(Host(device), RoundUp(size, kPageBytes), PROT_NONE, kReservation | MAP_FIXED, -1, 0);
    if (mapped == MAP_FAILED) madvise(Host(device), RoundUp(size, kPageBytes), MADV_DONTNEED);
}

AddressSpace ReserveAddressSpace(size_t bytes, size_t atLeast) {
    AddressSpace space;
    for (; bytes >= atLeast; bytes /= 2) {
        // One reservation: the lower half is what callers see, the upper half holds the bytes.
        void* both = mmap(nullptr, 2 * bytes + kHugePageBytes, PROT_NONE, kReservation, -1, 0);
        if (both == MAP_FAILED) continue;
        madvise(both, 2 * bytes + kHugePageBytes, MADV_DONTDUMP);
        space.begin = RoundUp(reinterpret_cast<uintptr_t>(both), kHugePageBytes);
        space.bytes = bytes;
        space.toHost = static_cast<ptrdiff_t>(bytes);
        return space;
    }
    return space;
}

}  // namespace sim::acl
