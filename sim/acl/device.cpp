#include "sim/acl/device.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "acl/acl_base.h"
#include "sim/acl/stream.h"
#include "sim/host/current_soc.h"
#include "sim/host/memory_size.h"
#include "sim/host/text.h"

namespace sim::acl {
namespace {

using Contexts = HandleTable<Context, HandleKind::Context>;

constexpr int kMaxDevices = 64;
constexpr size_t kMinMemory = size_t(16) << 20;
// Addresses per byte of memory: freed ones come back late, and reservations are larger than what is mapped in them.
constexpr size_t kAddressesPerByte = 16;

const char* Environment(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

bool ReadSwitch(const char* name, bool byDefault, std::string* error) {
    const char* value = Environment(name);
    if (value == nullptr) return byDefault;
    if (std::strcmp(value, "0") == 0 || std::strcmp(value, "1") == 0) return *value == '1';
    *error = host::Format("%s is '%s', it must be 0 or 1", name, value);
    return byDefault;
}

Settings ReadSettings() {
    Settings settings;
    const char* soc = Environment("CUSTOM_OPS_NPU_SOC");
    settings.soc = FindSoc(soc != nullptr ? soc : "ascend910b");
    if (settings.soc == nullptr) {
        settings.soc = FindSoc("ascend910b");
        settings.error = "CUSTOM_OPS_NPU_SOC: " + host::UnknownSoc(soc);
    }
    if (const char* devices = Environment("CUSTOM_OPS_NPU_DEVICES")) {
        char* end = nullptr;
        const long count = std::strtol(devices, &end, 10);
        if (*end != '\0' || count < 1 || count > kMaxDevices)
            settings.error = host::Format("CUSTOM_OPS_NPU_DEVICES is '%s', it must be 1 to %d", devices, kMaxDevices);
        else settings.devices = static_cast<int>(count);
    }
    settings.memoryBytes = settings.soc->hbmBytes != 0 ? settings.soc->hbmBytes : size_t(64) << 30;
    if (const char* memory = Environment("CUSTOM_OPS_NPU_MEMORY")) {
        size_t bytes = 0;
        if (!host::ParseMemorySize(memory, &bytes) || bytes < kMinMemory)
            settings.error = host::Format("CUSTOM_OPS_NPU_MEMORY is '%s', it must be a size of at least 16MB, such as 8GB or a "
                                          "number of bytes", memory);
        else settings.memoryBytes = bytes;
    }
    settings.checks = ReadSwitch("CUSTOM_OPS_NPU_CHECKS", true, &settings.error);
    settings.trace = ReadSwitch("CUSTOM_OPS_NPU_TRACE", false, &settings.error);
    return settings;
}

struct Chips {
    AddressSpace space;
    std::vector<std::unique_ptr<Device>> devices;
    std::vector<std::shared_ptr<Context>> primaries;
    std::vector<std::atomic<int>> users;  // calls of aclrtSetDevice less those of aclrtResetDevice
    Contexts contexts;

    Chips() : users(static_cast<size_t>(TheSettings().devices)) {
        const Settings& settings = TheSettings();
        const size_t count = static_cast<size_t>(settings.devices);
        const size_t memory = RoundUp(settings.memoryBytes, kHugePageBytes);
        space = ReserveAddressSpace(count * memory * kAddressesPerByte, count * memory * 2);
        const size_t span = space.bytes / count / kHugePageBytes * kHugePageBytes;
        for (int id = 0; id < settings.devices; ++id) {
            devices.push_back(std::make_unique<Device>(id, space, span));
            auto context = std::make_shared<Context>();
            context->device = devices.back().get();
            context->primary = true;
            context->handle = contexts.Add(context);
            primaries.push_back(std::move(context));
        }
    }
};
// Lives as long as the process: worker threads may outlast static objects.
Chips& TheChips() {
    static Chips* chips = new Chips;
    return *chips;
}

thread_local std::shared_ptr<Context> current;
std::atomic<int> defaultDevice{-1};  // none

void MakeCurrent(std::shared_ptr<Context> context) { current = std::move(context); }

}  // namespace

const char* HandleName(HandleKind kind) {
    static const char* const kNames[] = {"context", "stream", "event", "model", "task group"};
    return kNames[uint64_t(kind) - uint64_t(HandleKind::Context)];
}

const Settings& TheSettings() {
    static const Settings* settings = new Settings(ReadSettings());
    return *settings;
}

Device::Device(int number, const AddressSpace& space, size_t span)
    : id(number), memory(number, space, space.begin + span * static_cast<size_t>(number), span, TheSettings().memoryBytes) {
    limits_ = CoreLimits{TheSettings().soc->cubeCores, TheSettings().soc->vectorCores};
}

void Device::HostWaited(double untilMicroseconds) {
    double known = hostMicroseconds_.load();
    while (known < untilMicroseconds && !hostMicroseconds_.compare_exchange_weak(known, untilMicroseconds)) {}
}

const AddressSpace& TheAddressSpace() { return TheChips().space; }

Device& GetDevice(int64_t id) {
    const Chips& chips = TheChips();
    if (id < 0 || id >= int64_t(chips.devices.size()))
        Refuse(kInvalidDevice, "device %lld does not exist: there are %zu, from 0 (CUSTOM_OPS_NPU_DEVICES)", static_cast<long long>(id),
               chips.devices.size());
    return *chips.devices[static_cast<size_t>(id)];
}

Device* DeviceOf(const void* address) {
    const Chips& chips = TheChips();
    if (!chips.space.Contains(address)) return nullptr;
    for (const auto& device : chips.devices)
        if (device->memory.Owns(address)) return device.get();
    return nullptr;
}

bool IsPrimaryActive(int id) { return TheChips().users[static_cast<size_t>(id)].load() > 0; }

std::shared_ptr<Context> CurrentContext() {
    const int byDefault = defaultDevice;
    if (current == nullptr && byDefault >= 0) {
        ++TheChips().users[static_cast<size_t>(byDefault)];
        MakeCurrent(TheChips().primaries[static_cast<size_t>(byDefault)]);
    }
    if (current == nullptr) Refuse(kContextNull, "this thread has no context: aclrtSetDevice comes first");
    return current;
}

Device& CurrentDevice() { return *CurrentContext()->device; }

Device* CurrentDeviceOrNull() { return current != nullptr || defaultDevice >= 0 ? &CurrentDevice() : nullptr; }

void SetDefaultDevice(const Device& device) { defaultDevice = device.id; }

std::string DeviceMemoryError(const void* address, size_t bytes) {
    if (bytes == 0) return {};
    const Device* device = DeviceOf(address);
    if (device != nullptr) return device->memory.ExtentError(address, bytes);
    return host::Format("%p is host memory, which the device does not reach: copy it to the device first", address);
}

}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

ACL_FUNC_VISIBILITY int aclrtSetDevice(int32_t id) {
    return Call("aclrtSetDevice", [&] {
        Device& device = GetDevice(id);
        if (TheAddressSpace().bytes == 0)
            Refuse(kOutOfMemory, "the process may not reserve addresses for the device (ulimit -v, or a smaller CUSTOM_OPS_NPU_MEMORY)");
        Chips& chips = TheChips();
        ++chips.users[static_cast<size_t>(device.id)];
        MakeCurrent(chips.primaries[static_cast<size_t>(device.id)]);
    });
}
ACL_FUNC_VISIBILITY int aclrtResetDevice(int32_t id) {
    return Call("aclrtResetDevice", [&] {
        Device& device = GetDevice(id);
        std::atomic<int>& users = TheChips().users[static_cast<size_t>(device.id)];
        if (users.load() == 0) Refuse(kInvalidDevice, "device %d is not in use", id);
        if (--users > 0) return;  // each aclrtSetDevice counts
        DestroyStreamsOf(device);
        for (const auto& context : TheChips().contexts.All())
            if (context->device == &device) DestroyDefaultStream(*context);
        device.memory.FreeAll();
        if (current != nullptr && current->device == &device) MakeCurrent(nullptr);
    });
}
ACL_FUNC_VISIBILITY int aclrtGetDevice(int32_t* id) {
    return Call("aclrtGetDevice", [&] { NotNull(id, "deviceId") = CurrentDevice().id; });
}
ACL_FUNC_VISIBILITY int aclrtGetDeviceCount(uint32_t* count) {
    return Call("aclrtGetDeviceCount", [&] { NotNull(count, "count") = static_cast<uint32_t>(TheSettings().devices); });
}
ACL_FUNC_VISIBILITY int aclrtGetLogicDevIdByUserDevId(int32_t user, int32_t* logic) {
    return Call("aclrtGetLogicDevIdByUserDevId", [&] { NotNull(logic, "logicDevId") = GetDevice(user).id; });
}
ACL_FUNC_VISIBILITY int aclrtGetPrimaryCtxState(int32_t id, uint32_t* flags, int32_t* active) {
    return Call("aclrtGetPrimaryCtxState", [&] {
        NotNull(active, "active") = IsPrimaryActive(GetDevice(id).id) ? 1 : 0;
        if (flags != nullptr) *flags = 0;
    });
}

ACL_FUNC_VISIBILITY int aclrtCreateContext(void** context, int32_t id) {
    return Call("aclrtCreateContext", [&] {
        auto made = std::make_shared<Context>();
        made->device = &GetDevice(id);
        made->handle = TheChips().contexts.Add(made);
        NotNull(context, "context") = made->handle;
        MakeCurrent(made);
    });
}
ACL_FUNC_VISIBILITY int aclrtDestroyContext(void* handle) {
    return Call("aclrtDestroyContext", [&] {
        if (TheChips().contexts.Get(handle)->primary) Refuse(kInvalidHandle, "the context is a device's own: aclrtResetDevice ends it");
        const auto context = TheChips().contexts.Remove(handle);
        DestroyDefaultStream(*context);
        if (current == context) MakeCurrent(nullptr);
    });
}
ACL_FUNC_VISIBILITY int aclrtSetCurrentContext(void* handle) {
    return Call("aclrtSetCurrentContext", [&] { MakeCurrent(TheChips().contexts.Get(handle)); });
}
ACL_FUNC_VISIBILITY int aclrtGetCurrentContext(void** handle) {
    return Call("aclrtGetCurrentContext", [&] { NotNull(handle, "context") = CurrentContext()->handle; });
}

ACL_FUNC_VISIBILITY int aclrtDeviceCanAccessPeer(int32_t* can, int32_t id, int32_t peer) {
    return Call("aclrtDeviceCanAccessPeer", [&] {
        NotNull(can, "canAccessPeer") = GetDevice(id).id != GetDevice(peer).id ? 1 : 0;
    });
}
// All simulated chips share the process's memory, so there is nothing to switch.
ACL_FUNC_VISIBILITY int aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t) {
    return Call("aclrtDeviceEnablePeerAccess", [&] {
        if (GetDevice(peer).id == CurrentDevice().id) Refuse(kInvalidDevice, "device %d is the current one, not a peer", peer);
    });
}
ACL_FUNC_VISIBILITY int aclrtDeviceGetBareTgid(int32_t* pid) {
    return Call("aclrtDeviceGetBareTgid", [&] { NotNull(pid, "pid") = static_cast<int32_t>(getpid()); });
}

}  // extern "C"
