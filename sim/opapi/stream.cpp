#include "sim/opapi/stream.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "sim/core/soc.h"
#include "sim/opapi/session.h"

namespace sim {
namespace {

DeviceRuntime runtime;

}  // namespace

int32_t Submit(void* stream, StreamWork work) {
    if (runtime.submit != nullptr) return runtime.submit(stream, std::move(work));
    const WorkResult result = work.run();
    if (result.status != 0) opapi::ThisSession().error = result.message;
    return result.status;
}

void SetThreadError(std::string text) { opapi::ThisSession().error = std::move(text); }

bool IsDeviceAddress(const void* address) { return reinterpret_cast<uintptr_t>(address) - runtime.arenaBegin < runtime.arenaBytes; }

void* HostAddress(const void* device) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(device);
    return reinterpret_cast<void*>(IsDeviceAddress(device) ? address + static_cast<uintptr_t>(runtime.toHost) : address);
}

int32_t HostAddressNow(const void* device, const void** host) {
    *host = HostAddress(device);
    return IsDeviceAddress(device) ? runtime.waitForDevice() : 0;
}

DeviceMemoryUse::DeviceMemoryUse() : use_(runtime.beginUse != nullptr ? runtime.beginUse() : nullptr) {}
DeviceMemoryUse::~DeviceMemoryUse() {
    if (use_ != nullptr) runtime.endUse(use_);
}

int32_t WaitForDevice() { return runtime.waitForDevice != nullptr ? runtime.waitForDevice() : 0; }

std::string ExtentError(const void* address, size_t bytes) {
    if (std::string refusal = DeviceRefusal(); !refusal.empty() && IsDeviceAddress(address)) return refusal;
    return runtime.extentError != nullptr ? runtime.extentError(address, bytes) : std::string();
}

int DeviceNumber(const void* address) { return IsDeviceAddress(address) ? runtime.deviceNumber(address) : -1; }

std::string DeviceRefusal() { return runtime.refusal != nullptr ? runtime.refusal() : std::string(); }

bool HasDeviceRuntime() { return runtime.submit != nullptr; }

const SocSpec& WithCoreLimits(const SocSpec& soc) {
    uint32_t cube = soc.cubeCores, vector = soc.vectorCores;
    if (runtime.coreLimits != nullptr) runtime.coreLimits(&cube, &vector);
    if (cube >= soc.cubeCores && vector >= soc.vectorCores) return soc;
    static auto* mutex = new std::mutex;
    static auto* known = new std::map<std::tuple<const SocSpec*, uint32_t, uint32_t>, SocSpec>;
    std::lock_guard<std::mutex> lock(*mutex);
    const auto [it, isNew] = known->try_emplace({&soc, cube, vector}, soc);
    if (isNew) {
        it->second.cubeCores = std::min(cube, soc.cubeCores);
        it->second.vectorCores = std::min(vector, soc.vectorCores);
    }
    return it->second;
}

void SetDeviceRuntime(const DeviceRuntime& given) { runtime = given; }

}  // namespace sim
