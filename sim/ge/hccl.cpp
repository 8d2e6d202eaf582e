// libhccl.so: no links between devices are modelled, so there are no communicators. Process-wide settings are kept.
#include <array>
#include <atomic>
#include <cstdint>

#include "sim/ge/absent.h"

namespace {

enum HcclStatus : int32_t { kSuccess = 0, kBadParameter = 1, kNullPointer = 2, kNotSupported = 5 };
constexpr const char* kWhy = "there is no communication between simulated devices. Use the gloo backend on CPU tensors";

constexpr int32_t kSettings = 2;  // HCCL_DETERMINISTIC, HCCL_ACCELERATOR
std::array<std::atomic<int32_t>, kSettings> settings{};

union HcclConfigValue {
    int32_t value;
};

}  // namespace

extern "C" {

int32_t HcclSetConfig(int32_t config, HcclConfigValue value) {
    if (config < 0 || config >= kSettings) return kBadParameter;
    settings[static_cast<size_t>(config)] = value.value;
    return kSuccess;
}

int32_t HcclGetConfig(int32_t config, HcclConfigValue* value) {
    if (config < 0 || config >= kSettings) return kBadParameter;
    if (value == nullptr) return kNullPointer;
    value->value = settings[static_cast<size_t>(config)];
    return kSuccess;
}

const char* HcclGetErrorString(int32_t status) {
    switch (status) {
        case kSuccess: return "no error";
        case kBadParameter: return "parameter error";
        case kNullPointer: return "null pointer";
        case kNotSupported: return "not supported by the simulator";
        default: return "unknown error";
    }
}

#define ABSENT(name) \
    int32_t name() { return sim::Absent<int32_t>(kNotSupported, #name, kWhy); }
#include "sim/ge/hccl_functions.inc"
#undef ABSENT

}  // extern "C"
