#include "sim/acl/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <vector>

#include "sim/acl/forked.h"

namespace sim::acl {
namespace {

constexpr int kReservation = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

struct Leaving {
    uint8_t* begin;
    size_t bytes;
    uint64_t before;   // uses that may still reach it
};
struct Uses {
    std::mutex mutex;
    uint64_t next = 0;
    std::set<uint64_t> running;
    std::vector<Leaving> leaving;
};
Uses& TheUses() {
    static Uses* uses = new Uses;
    return *uses;
}

void GiveBack(uint8_t* begin, size_t bytes) {
    // A fresh mapping also drops the pages, and joins its neighbours.
    if (mmap(begin, bytes, PROT_NONE, kReservation | MAP_FIXED, -1, 0) == MAP_FAILED) madvise(begin, bytes, MADV_DONTNEED);
}

void GiveBackWhatNobodyUses(Uses& uses) {
    const uint64_t oldest = uses.running.empty() ? uses.next : *uses.running.begin();
    const auto unused = std::partition(uses.leaving.begin(), uses.leaving.end(), [&](const Leaving& of) { return of.before > oldest; });
    for (auto it = unused; it != uses.leaving.end(); ++it) GiveBack(it->begin, it->bytes);
    uses.leaving.erase(unused, uses.leaving.end());
}

// Puts the new mapping where addresses are given out again. What lay there may still be leaving: then a use that began before sees the
// new bytes, and at no moment none, so the mapping must replace the old one in one step. Its argument: nothing was there.
template <typename Mapping>
bool MapAt(uint8_t* begin, size_t bytes, Mapping&& mapping) {
    Uses& uses = TheUses();
    const std::lock_guard<std::mutex> lock(uses.mutex);
    uint8_t* const end = begin + bytes;
    const auto there = std::partition(uses.leaving.begin(), uses.leaving.end(),
                                      [&](const Leaving& of) { return of.begin + of.bytes <= begin || end <= of.begin; });
    const std::vector<Leaving> overlapping(there, uses.leaving.end());
    uses.leaving.erase(there, uses.leaving.end());
    for (const Leaving& of : overlapping) {
        if (of.begin < begin) uses.leaving.push_back({of.begin, size_t(begin - of.begin), of.before});
        if (of.begin + of.bytes > end) uses.leaving.push_back({end, size_t(of.begin + of.bytes - end), of.before});
    }
    return mapping(overlapping.empty());
}

}  // namespace

MemoryUse::MemoryUse() {
    Uses& uses = TheUses();
    const std::lock_guard<std::mutex> lock(uses.mutex);
    ticket_ = uses.next++;
    uses.running.insert(uses.running.end(), ticket_);
}

MemoryUse::~MemoryUse() {
    Uses& uses = TheUses();
    const std::lock_guard<std::mutex> lock(uses.mutex);
    uses.running.erase(ticket_);
    if (!uses.leaving.empty()) GiveBackWhatNobodyUses(uses);
}

bool AddressSpace::Commit(uintptr_t device, size_t size) const {
    DeviceIsUsed();
    const size_t bytes = RoundUp(size, kPageBytes);
    return MapAt(Host(device), bytes, [&](bool isFree) {
        if (isFree) return mprotect(Host(device), bytes, PROT_READ | PROT_WRITE) == 0;
        return mmap(Host(device), bytes, PROT_READ | PROT_WRITE, kReservation | MAP_FIXED, -1, 0) != MAP_FAILED;
    });
}

bool AddressSpace::CommitFile(uintptr_t device, size_t size, int file, uint64_t offset) const {
    DeviceIsUsed();
    const size_t bytes = RoundUp(size, kPageBytes);
    return MapAt(Host(device), bytes, [&](bool) {
        return mmap(Host(device), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(offset)) != MAP_FAILED;
    });
}

void AddressSpace::Decommit(uintptr_t device, size_t size) const {
    Uses& uses = TheUses();
    const std::lock_guard<std::mutex> lock(uses.mutex);
    uses.leaving.push_back({Host(device), RoundUp(size, kPageBytes), uses.next});
    GiveBackWhatNobodyUses(uses);
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
