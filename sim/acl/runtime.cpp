// Start and end of the runtime, and its side of the seam to the aclnn layer.
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "acl/acl_base.h"
#include "sim/acl/capture.h"
#include "sim/acl/core_limits.h"
#include "sim/acl/fault_report.h"
#include "sim/acl/options.h"
#include "sim/acl/stream.h"
#include "sim/host/current_soc.h"
#include "sim/opapi/session.h"

namespace sim::acl {
namespace {

std::atomic<bool> initialised{false};

// Of aclInit's configuration file, {"defaultDevice": {"default_device": "0"}} is what the simulator has: the device of threads that
// set none. Dumps are of the device.
void ReadConfiguration(const char* path) {
    std::ifstream file(path);
    if (!file) Refuse(kInvalidFile, "cannot read the configuration %s", path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::string key = "\"default_device\"";
    size_t at = text.find(key);
    if (at == std::string::npos) return;
    at = text.find_first_of("0123456789", at + key.size());
    if (at == std::string::npos) Refuse(kInvalidFile, "%s: default_device is not a number", path);
    SetDefaultDevice(GetDevice(std::strtol(text.c_str() + at, nullptr, 10)));
}

int32_t SubmitWork(void* handle, StreamWork work) {
    return Call("launch", [&] {
        const auto stream = GetStream(handle);
        Task task;
        task.name = work.name;
        task.run = [work = std::move(work), device = &stream->device](double* clock) {
            const MemoryUse use;
            WorkResult result = WithinLimit(work.run(), work.name);
            *clock += result.microseconds;
            if (result.status != 0) device->errorKind = kCoreError;
            return result;
        };
        Submit(stream, std::move(task));
    });
}

int32_t WaitForDevice() {
    return Call("tiling by value", [] {
        RefuseUnsafeCall("reading a value of device memory for tiling");
        const Device& device = CurrentDevice();
        for (const auto& stream : TheStreams().All())
            if (&stream->device == &device) stream->Drain(-1);
    });
}

void CoresOfThread(uint32_t* cube, uint32_t* vector) {
    const CoreLimits limits = LimitsOfThread();
    *cube = limits.cube;
    *vector = limits.vector;
}

// From here on aclnn calls go to streams.
__attribute__((constructor)) void Connect() {
    const AddressSpace& space = TheAddressSpace();
    DeviceRuntime runtime;
    runtime.submit = SubmitWork;
    runtime.arenaBegin = space.begin;
    runtime.arenaBytes = space.bytes;
    runtime.toHost = space.toHost;
    runtime.extentError = DeviceMemoryError;
    runtime.waitForDevice = WaitForDevice;
    runtime.coreLimits = CoresOfThread;
    runtime.refusal = ForkRefusal;
    runtime.deviceNumber = [](const void* address) {
        const Device* device = DeviceOf(address);
        return device != nullptr ? device->id : -1;
    };
    runtime.beginUse = []() -> void* { return new MemoryUse; };
    runtime.endUse = [](void* use) { delete static_cast<MemoryUse*>(use); };
    SetDeviceRuntime(runtime);
    host::SetDefaultSoc(*TheSettings().soc);
}

}  // namespace
}  // namespace sim::acl

using namespace sim::acl;

extern "C" {

ACL_FUNC_VISIBILITY int aclInit(const char* configuration) {
    return Call("aclInit", [&] {
        if (!TheSettings().error.empty()) Refuse(kBadParameter, "%s", TheSettings().error.c_str());
        if (initialised) Refuse(kRepeatedInit, "the process has called it already");
        if (configuration != nullptr && *configuration != '\0') ReadConfiguration(configuration);
        if (initialised.exchange(true)) Refuse(kRepeatedInit, "another thread has called it meanwhile");
        ReportFaultsOnDeviceMemory();
    });
}
ACL_FUNC_VISIBILITY int aclFinalize() {
    return Call("aclFinalize", [&] {
        if (!initialised.exchange(false)) Refuse(kNotInitialised, "aclInit was not called");
    });
}

}  // extern "C"
