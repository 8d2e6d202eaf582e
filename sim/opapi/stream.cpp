#include "sim/opapi/stream.h"

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

void* HostAddress(const void* device) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(device);
    const bool inArena = address - runtime.arenaBegin < runtime.arenaBytes;
    return reinterpret_cast<void*>(inArena ? address + static_cast<uintptr_t>(runtime.toHost) : address);
}

std::string ExtentError(const void* address, size_t bytes) {
    return runtime.extentError != nullptr ? runtime.extentError(address, bytes) : std::string();
}

bool HasDeviceRuntime() { return runtime.submit != nullptr; }

void SetDeviceRuntime(const DeviceRuntime& given) { runtime = given; }

}  // namespace sim
