// What CANN's libge_runner.so brings along and torch_npu uses without linking to it: libruntime (rt*) and libprofapi (Msprof*).
#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "sim/ge/absent.h"

namespace {

constexpr const char* kWhy =
    "device binaries and the device's profiler do not exist here. Reports of the simulator: custom-ops run --report";

}  // namespace

extern "C" {

// The callback starts and stops a module's records. There is no device profiler that would ever call it.
int32_t MsprofRegisterCallback(uint32_t, void*) { return 0; }

uint64_t MsprofGetHashId(const char* text, size_t length) { return std::hash<std::string_view>{}({text, length}); }

uint64_t MsprofSysCycleTime() { return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()); }

#define ABSENT(name) \
    int32_t name() { return sim::Absent<int32_t>(sim::kFeatureNotSupported, #name, kWhy); }
#include "sim/ge/runtime_functions.inc"
#undef ABSENT

}  // extern "C"
