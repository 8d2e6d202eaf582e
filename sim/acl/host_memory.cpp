#include "sim/acl/host_memory.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <shared_mutex>
#include <mutex>

#include "acl/acl_base.h"
#include "sim/acl/address_space.h"
#include "sim/acl/device.h"
#include "sim/acl/status.h"

namespace sim::acl {
namespace {

struct Range {
    size_t bytes;
    bool allocated;  // otherwise registered
};
struct Pinned {
    std::shared_mutex mutex;
    std::map<uintptr_t, Range> ranges;
};
Pinned& ThePinned() {
    static Pinned* pinned = new Pinned;
    return *pinned;
}

uintptr_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

bool Overlaps(const std::map<uintptr_t, Range>& ranges, uintptr_t begin, size_t bytes) {
    auto it = ranges.lower_bound(begin + bytes);
    if (it == ranges.begin()) return false;
    --it;
    return it->first + it->second.bytes > begin;
}

void* Allocate(size_t bytes) {
    if (bytes == 0) Refuse(kInvalidParameter, "size is 0, it must be at least 1");
    void* memory = std::aligned_alloc(kPageBytes, RoundUp(bytes, kPageBytes));
    if (memory == nullptr) Refuse(kOutOfMemory, "the host has no %zu bytes", bytes);
    std::unique_lock<std::shared_mutex> lock(ThePinned().mutex);
    ThePinned().ranges[Address(memory)] = {bytes, true};
    return memory;
}

void Free(void* memory) {
    {
        std::unique_lock<std::shared_mutex> lock(ThePinned().mutex);
        auto& ranges = ThePinned().ranges;
        const auto it = ranges.find(Address(memory));
        if (it == ranges.end() || !it->second.allocated) Refuse(kInvalidParameter, "%p was not allocated by aclrtMallocHost", memory);
        ranges.erase(it);
    }
    std::free(memory);
}

void Register(void* memory, size_t bytes) {
    NotNull(static_cast<char*>(memory), "ptr");
    if (bytes == 0) Refuse(kInvalidParameter, "size is 0, it must be at least 1");
    if (DeviceOf(memory) != nullptr) Refuse(kInvalidParameter, "%p is device memory", memory);
    std::unique_lock<std::shared_mutex> lock(ThePinned().mutex);
    if (Overlaps(ThePinned().ranges, Address(memory), bytes))
        Refuse(kHostMemoryRegistered, "part of [%p, +%zu) is registered already", memory, bytes);
    ThePinned().ranges[Address(memory)] = {bytes, false};
}

}  // namespace

bool IsPinned(const void* address, size_t bytes) {
    std::shared_lock<std::shared_mutex> lock(ThePinned().mutex);
    const auto& ranges = ThePinned().ranges;
    auto it = ranges.upper_bound(Address(address));
    if (it == ranges.begin()) return false;
    --it;
    return Address(address) + bytes <= it->first + it->second.bytes;
}

}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

ACL_FUNC_VISIBILITY int aclrtMallocHost(void** memory, size_t bytes) {
    return Call("aclrtMallocHost", [&] { NotNull(memory, "hostPtr") = Allocate(bytes); });
}
ACL_FUNC_VISIBILITY int aclrtMallocHostWithCfg(void** memory, uint64_t bytes, const void*) {
    return Call("aclrtMallocHostWithCfg", [&] { NotNull(memory, "ptr") = Allocate(bytes); });
}
ACL_FUNC_VISIBILITY int aclrtFreeHost(void* memory) {
    return Call("aclrtFreeHost", [&] { Free(memory); });
}
// Device code cannot follow host addresses here, so there is no device address to give for mapped memory.
ACL_FUNC_VISIBILITY int aclrtHostRegister(void* memory, uint64_t, int, void**) {
    return Call("aclrtHostRegister", [&] {
        Refuse(kFeatureNotSupported, "a device address for host memory %p is not modelled; aclrtHostRegisterV2 with ACL_HOST_REG_PINNED "
               "registers it for copies", memory);
    });
}
ACL_FUNC_VISIBILITY int aclrtHostRegisterV2(void* memory, uint64_t bytes, uint32_t flags) {
    return Call("aclrtHostRegisterV2", [&] {
        constexpr uint32_t kMapped = 0x2, kIoMemory = 0x4;
        if (flags & (kMapped | kIoMemory))
            Refuse(kFeatureNotSupported, "flag 0x%x: a device address for host memory is not modelled, ACL_HOST_REG_PINNED is", flags);
        Register(memory, bytes);
    });
}
ACL_FUNC_VISIBILITY int aclrtHostUnregister(void* memory) {
    return Call("aclrtHostUnregister", [&] {
        std::unique_lock<std::shared_mutex> lock(ThePinned().mutex);
        const auto it = ThePinned().ranges.find(Address(memory));
        if (it == ThePinned().ranges.end() || it->second.allocated)
            Refuse(kHostMemoryNotRegistered, "%p was not registered", memory);
        ThePinned().ranges.erase(it);
    });
}

}  // extern "C"
