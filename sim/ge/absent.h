// Functions that torch_npu and torchair link to or look up and that the simulator does not have. They stand in tables (*.inc),
// one line each, and a call fails by its own name: the library's status for "not supported" and a text for aclGetRecentErrMsg().
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "sim/opapi/stream.h"

namespace sim {

inline constexpr int32_t kFeatureNotSupported = 207000;  // ACL_ERROR_RT_FEATURE_NOT_SUPPORT

inline std::string AbsentText(const char* function, const char* why) {
    return std::string(function) + " is not modelled by the simulator: " + why;
}

template <typename Status>
Status Absent(Status status, const char* function, const char* why) {
    SetThreadError(AbsentText(function, why));
    return status;
}

[[noreturn]] inline void ThrowAbsent(const char* function, const char* why) { throw std::runtime_error(AbsentText(function, why)); }

}  // namespace sim
