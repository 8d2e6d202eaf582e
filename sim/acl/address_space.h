// Device memory. Addresses given out lie in a reservation that nobody can access; the bytes are in a second one at a constant
// distance. Host code that follows a device pointer faults; the simulator goes through the second mapping.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sim::acl {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t(2) << 20;

constexpr size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

struct AddressSpace {
    uintptr_t begin = 0;    // device addresses
    size_t bytes = 0;       // 0: the reservation failed
    ptrdiff_t toHost = 0;

    bool Contains(const void* address) const { return reinterpret_cast<uintptr_t>(address) - begin < bytes; }
    uint8_t* Host(uintptr_t device) const { return reinterpret_cast<uint8_t*>(device + static_cast<uintptr_t>(toHost)); }

    // Readable and writable bytes behind [device, device + size), zero at first; whole pages.
    bool Commit(uintptr_t device, size_t size) const;
    // The same with bytes of a file, for physical memory that can be mapped in several places.
    bool CommitFile(uintptr_t device, size_t size, int file, uint64_t offset) const;
    // Gives the bytes back to the system, as soon as no MemoryUse is left that began before; from then on touching them faults.
    void Decommit(uintptr_t device, size_t size) const;
};

// What runs on the device holds one while it computes on memory whose extent it has checked since: freeing the memory meanwhile, from
// another thread, is an error of the program, and must not be a fault of the process.
class MemoryUse {
public:
    MemoryUse();
    ~MemoryUse();
    MemoryUse(const MemoryUse&) = delete;

private:
    uint64_t ticket_;
};

// Reserves up to `bytes`, less where the process may not have as much.
AddressSpace ReserveAddressSpace(size_t bytes, size_t atLeast);

}  // namespace sim::acl
