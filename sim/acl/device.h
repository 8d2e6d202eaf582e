// Simulated chips, contexts, and what the environment says about them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/acl/device_memory.h"
#include "sim/acl/handles.h"
#include "sim/core/soc.h"

namespace sim::acl {

class Stream;

// Environment: CUSTOM_OPS_NPU_SOC, _DEVICES, _MEMORY, _CHECKS, _TRACE. `error` says what cannot be read; aclInit reports it.
struct Settings {
    const SocSpec* soc = nullptr;
    int devices = 1;
    size_t memoryBytes = 0;
    bool checks = true, trace = false;
    std::string error;
};
const Settings& TheSettings();

// Cores that kernels may use: of a device, or of one stream.
struct CoreLimits {
    uint32_t cube = 0, vector = 0;
};

struct Device {
    Device(int number, const AddressSpace& space, size_t span);
    const int id;
    DeviceMemory memory;

    void SetLimits(const CoreLimits& limits) { limits_.store(limits); }
    CoreLimits Limits() const { return limits_.load(); }

    // Modelled time up to which the host has waited for this device: what it submits later cannot start earlier.
    double HostMicroseconds() const { return hostMicroseconds_.load(); }
    void HostWaited(double untilMicroseconds);

    std::atomic<int> errorKind{0};   // aclrtErrorType of what failed last, until aclrtGetErrorVerbose asks

private:
    std::atomic<CoreLimits> limits_;
    std::atomic<double> hostMicroseconds_{0};
};

struct Context {
    Device* device = nullptr;
    void* handle = nullptr;
    bool primary = false;
    std::mutex mutex;
    std::shared_ptr<Stream> defaultStream;  // made at first use
};

const AddressSpace& TheAddressSpace();
Device& GetDevice(int64_t id);                    // refuses numbers that do not exist
Device* DeviceOf(const void* address);            // null for host memory
bool IsPrimaryActive(int id);
// Of this thread: what it set, or the default device of aclInit's configuration; refuses when there is neither.
std::shared_ptr<Context> CurrentContext();
Device& CurrentDevice();
Device* CurrentDeviceOrNull();
void SetDefaultDevice(const Device& device);

// Why [address, address + bytes) is not accessible device memory; empty when it is.
std::string DeviceMemoryError(const void* address, size_t bytes);

}  // namespace sim::acl
