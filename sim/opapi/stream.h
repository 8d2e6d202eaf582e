// Seam between the aclnn layer and the runtime that owns streams and device memory (sim/acl). Without a runtime, as under
// simulate(), work runs at once on the calling thread and addresses are the caller's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace sim {

struct WorkResult {
    int32_t status = 0;       // 0, or the aclError that synchronising the stream gives
    std::string message;      // for aclGetRecentErrMsg
    double microseconds = 0;  // modelled time on the device
};

// One entry of a stream. A captured model runs it as often as it is executed: `run` owns what it needs and changes none of it.
struct StreamWork {
    std::string name;  // "aclnnHcPreSinkhorn", "memcpy host to device"
    std::function<WorkResult()> run;
};

// Appends to the stream (null: the default stream of the thread's context) or, without a runtime, runs the work now.
// The status is that of the append; without a runtime that of the work, whose message is then the thread's error.
int32_t Submit(void* stream, StreamWork work);

// Text that aclGetRecentErrMsg() gives the calling thread next, for libraries that know nothing else of a session.
void SetThreadError(std::string text);

// Device memory is mapped twice at a constant distance: addresses given out are not accessible to host code, the simulator
// reaches the bytes through the second mapping. Addresses outside the arena come back unchanged.
void* HostAddress(const void* device);

// Why the device cannot reach [address, address + bytes): freed, beyond its allocation, host memory. Empty when it can, and
// without a runtime.
std::string ExtentError(const void* address, size_t bytes);
bool HasDeviceRuntime();
bool IsDeviceAddress(const void* address);
int DeviceNumber(const void* address);  // of the device whose memory it is; -1: of none
// Why this process cannot use the device (it was forked from one that does); empty when it can, and without a runtime.
std::string DeviceRefusal();

// For host code that needs values of device memory now (tiling by value): waits for the work of the device, then HostAddress. Fails
// like a synchronisation while a capture runs. Memory of the host comes back unchanged.
int32_t HostAddressNow(const void* device, const void** host);

// While host code reads device memory, what another thread frees meanwhile stays readable. It begins before the extent is checked.
class DeviceMemoryUse {
public:
    DeviceMemoryUse();
    ~DeviceMemoryUse();
    DeviceMemoryUse(const DeviceMemoryUse&) = delete;

private:
    void* use_;
};

// Waits for all work of the calling thread's device; errors of that work stay with its streams. Fails while a capture runs.
int32_t WaitForDevice();

// The chip with no more cores than the runtime grants the calling thread. Lives as long as the process.
struct SocSpec;
const SocSpec& WithCoreLimits(const SocSpec& soc);

// Set once by the runtime.
struct DeviceRuntime {
    int32_t (*submit)(void* stream, StreamWork work) = nullptr;
    uintptr_t arenaBegin = 0;
    size_t arenaBytes = 0;
    ptrdiff_t toHost = 0;  // host address - device address
    std::string (*extentError)(const void* address, size_t bytes) = nullptr;
    int32_t (*waitForDevice)() = nullptr;
    void (*coreLimits)(uint32_t* cube, uint32_t* vector) = nullptr;  // of the calling thread
    std::string (*refusal)() = nullptr;
    int (*deviceNumber)(const void* address) = nullptr;
    void* (*beginUse)() = nullptr;         // of device memory
    void (*endUse)(void* use) = nullptr;
};
void SetDeviceRuntime(const DeviceRuntime& runtime);

}  // namespace sim
