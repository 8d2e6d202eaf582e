// The C interface of device memory.
#include <cstring>

#include "acl/acl_base.h"
#include "sim/acl/device.h"
#include "sim/acl/host_memory.h"

namespace sim::acl {
namespace {

Device& Owner(const void* address) {
    Device* device = DeviceOf(address);
    if (device == nullptr) Refuse(kInvalidParameter, "%p is no device memory", address);
    return *device;
}

// Handles of physical memory carry their device, as they are used without one.
constexpr int kDeviceShift = 40;
void* WithDevice(void* handle, int device) {
    return reinterpret_cast<void*>(reinterpret_cast<uint64_t>(handle) | uint64_t(device + 1) << kDeviceShift);
}
Device& DeviceOfPhysical(void** handle) {
    const uint64_t value = reinterpret_cast<uint64_t>(*handle);
    const int64_t device = int64_t(value >> kDeviceShift) - 1;
    if (device < 0 || device >= TheSettings().devices) Refuse(kInvalidHandle, "%p is no handle of physical memory", *handle);
    *handle = reinterpret_cast<void*>(value & ((uint64_t(1) << kDeviceShift) - 1));
    return GetDevice(device);
}

struct PhysicalProperties {  // aclrtPhysicalMemProp
    int handleType, allocationType, attribute;
    struct { uint32_t id; int type; } location;
    uint64_t reserved;
};
struct PointerAttributes {   // aclrtPtrAttributes
    struct { uint32_t id; int type; } location;
    uint32_t pageSize, reserved[4];
};
enum Location { kHost = 0, kOnDevice = 1, kUnregistered = 2 };

struct MemoryUsage {         // aclrtMemUsageInfo
    char name[32];
    uint64_t current, peak;
    size_t reserved[8];
};

int Allocate(const char* function, void** address, size_t bytes) {
    return Call(function, [&] { NotNull(address, "devPtr") = CurrentDevice().memory.Allocate(bytes); });
}

}  // namespace
}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

ACL_FUNC_VISIBILITY int aclrtMalloc(void** address, size_t bytes, int) { return Allocate("aclrtMalloc", address, bytes); }
ACL_FUNC_VISIBILITY int aclrtMallocAlign32(void** address, size_t bytes, int) {
    return Allocate("aclrtMallocAlign32", address, bytes);
}
ACL_FUNC_VISIBILITY int aclrtFree(void* address) {
    return Call("aclrtFree", [&] { Owner(address).memory.Free(address); });
}

ACL_FUNC_VISIBILITY int aclrtReserveMemAddress(void** address, size_t bytes, size_t alignment, void* wish, uint64_t) {
    return Call("aclrtReserveMemAddress", [&] {
        if (alignment != 0) Refuse(kInvalidParameter, "alignment %zu, it must be 0: the system's own", alignment);
        Device* device = CurrentDeviceOrNull();  // addresses can be reserved before there is one
        NotNull(address, "virPtr") = (device != nullptr ? *device : GetDevice(0)).memory.Reserve(bytes, wish);
    });
}
ACL_FUNC_VISIBILITY int aclrtReleaseMemAddress(void* address) {
    return Call("aclrtReleaseMemAddress", [&] { Owner(address).memory.Release(address); });
}
ACL_FUNC_VISIBILITY int aclrtMallocPhysical(void** handle, size_t bytes, const PhysicalProperties* properties, uint64_t) {
    return Call("aclrtMallocPhysical", [&] {
        const auto& location = NotNull(properties, "prop").location;
        if (location.type != kOnDevice)
            Refuse(kFeatureNotSupported, "physical memory of location type %d, only the device's (1) is modelled", location.type);
        Device& device = GetDevice(location.id);
        NotNull(handle, "handle") = WithDevice(device.memory.CreatePhysical(bytes), device.id);
    });
}
ACL_FUNC_VISIBILITY int aclrtFreePhysical(void* handle) {
    return Call("aclrtFreePhysical", [&] { DeviceOfPhysical(&handle).memory.DestroyPhysical(handle); });
}
ACL_FUNC_VISIBILITY int aclrtMapMem(void* address, size_t bytes, size_t offset, void* handle, uint64_t) {
    return Call("aclrtMapMem", [&] {
        Device& device = DeviceOfPhysical(&handle);
        if (&Owner(address) != &device) Refuse(kInvalidParameter, "%p belongs to device %d, the physical memory to device %d", address,
                                               Owner(address).id, device.id);
        device.memory.Map(address, bytes, offset, handle);
    });
}
ACL_FUNC_VISIBILITY int aclrtUnmapMem(void* address) {
    return Call("aclrtUnmapMem", [&] { Owner(address).memory.Unmap(address); });
}

ACL_FUNC_VISIBILITY int aclrtGetMemInfo(int, size_t* free, size_t* total) {
    return Call("aclrtGetMemInfo", [&] {
        const DeviceMemory& memory = CurrentDevice().memory;
        NotNull(free, "free") = memory.FreeBytes();
        NotNull(total, "total") = memory.Capacity();
    });
}
ACL_FUNC_VISIBILITY int aclrtGetMemUsageInfo(int32_t id, MemoryUsage* usage, size_t room, size_t* count) {
    return Call("aclrtGetMemUsageInfo", [&] {
        const DeviceMemory& memory = GetDevice(id).memory;
        NotNull(count, "outputNum") = room < 1 ? 0 : 1;
        if (room < 1) return;
        NotNull(usage, "memUsageInfo") = {};
        std::strcpy(usage->name, "APP");
        usage->current = memory.Capacity() - memory.FreeBytes();
        usage->peak = memory.PeakBytes();
    });
}
ACL_FUNC_VISIBILITY int aclrtPointerGetAttributes(const void* address, PointerAttributes* attributes) {
    return Call("aclrtPointerGetAttributes", [&] {
        NotNull(attributes, "attributes") = {};
        const Device* device = DeviceOf(address);
        attributes->location.id = device != nullptr ? static_cast<uint32_t>(device->id) : 0;
        attributes->location.type = device != nullptr ? kOnDevice : IsPinned(address, 1) ? kHost : kUnregistered;
        attributes->pageSize = kPageBytes;
    });
}
ACL_FUNC_VISIBILITY int aclrtMemGetAddressRange(void* address, void** begin, size_t* bytes) {
    return Call("aclrtMemGetAddressRange", [&] {
        if (!Owner(address).memory.AllocationOf(address, &NotNull(begin, "pbase"), &NotNull(bytes, "psize")))
            Refuse(kInvalidParameter, "%s", Owner(address).memory.Describe(reinterpret_cast<uintptr_t>(address)).c_str());
    });
}

}  // extern "C"
