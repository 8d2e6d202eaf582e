// The memory of one device: what is allocated, reserved and mapped, with exact extents.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <shared_mutex>
#include <string>

#include "sim/acl/address_space.h"

namespace sim::acl {

// Text of a size that is known before.
struct Sentence {
    char text[256] = "";
    void Set(const char* format, ...) __attribute__((format(printf, 2, 3)));
};

class DeviceMemory {
public:
    // Owns [begin, begin + span) of the device addresses; `capacity` bytes can be in use.
    DeviceMemory(int device, const AddressSpace& space, uintptr_t begin, size_t span, size_t capacity);

    void* Allocate(size_t bytes);
    void Free(void* address);

    void* Reserve(size_t bytes, void* wish);
    void Release(void* address);
    void* CreatePhysical(size_t bytes);  // a handle
    void DestroyPhysical(void* handle);
    void Map(void* address, size_t bytes, size_t offset, void* handle);
    void Unmap(void* address);

    // Empty when all of [address, address + bytes) is accessible, otherwise what is wrong with it.
    std::string ExtentError(const void* address, size_t bytes) const;
    // What the address belongs, or belonged, to.
    std::string Describe(uintptr_t address) const;
    // The same for a signal handler: allocates nothing. False when another thread holds the lock.
    bool DescribeNow(uintptr_t address, Sentence* sentence) const;
    // The allocation that holds the address; false when there is none.
    bool AllocationOf(const void* address, void** begin, size_t* bytes) const;

    void FreeAll();
    bool Owns(const void* address) const { return reinterpret_cast<uintptr_t>(address) - begin_ < span_; }
    size_t Capacity() const { return capacity_; }
    size_t FreeBytes() const;
    size_t PeakBytes() const;

private:
    enum class Kind { Allocation, Reservation, Mapping };
    struct Extent {
        Kind kind;
        size_t bytes;        // as asked for
        uint64_t serial;     // counts allocations, for messages
        uint64_t physical;   // Mapping: key of physical_
    };
    struct Physical {
        size_t bytes;
        uint64_t fileOffset;
        int mappings = 0;
        bool freed = false;  // goes when the last mapping does
    };
    struct Freed {
        uintptr_t begin;
        size_t bytes;
        uint64_t serial;
    };
    using Extents = std::map<uintptr_t, Extent>;

    uintptr_t FindRoom(size_t bytes, size_t alignment);
    bool IsFree(uintptr_t begin, size_t bytes) const;
    void Take(size_t bytes);                        // counts against the capacity, or refuses
    void DropPhysical(std::map<uint64_t, Physical>::iterator it);
    const Freed* LastFreed(uintptr_t address) const;
    std::string DescribeLocked(uintptr_t address) const;
    void DescribeLocked(uintptr_t address, Sentence* sentence) const;
    Extents::const_iterator Holding(const Extents& extents, uintptr_t address) const;

    const int device_;
    const AddressSpace& space_;
    const uintptr_t begin_;
    const size_t span_, capacity_;

    mutable std::shared_mutex mutex_;
    Extents occupied_;      // Allocation, Reservation: address ranges in use
    Extents accessible_;    // Allocation, Mapping: bytes that exist
    std::deque<Freed> freed_;
    std::map<uint64_t, Physical> physical_;
    uintptr_t next_;        // room is looked for from here: freed addresses come back late
    uint64_t serial_ = 0, nextHandle_ = 1;
    size_t used_ = 0, peak_ = 0;
    int file_ = -1;         // physical memory
    uint64_t fileBytes_ = 0;
};

}  // namespace sim::acl
