// Words for messages: dtypes as PyTorch calls them, whole shapes, printf-style sentences.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "exe_graph/runtime/shape.h"
#include "graph/types.h"

namespace sim::host {

std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string Join(const std::vector<std::string>& parts, const char* separator = ", ");

std::string DtypeName(ge::DataType dataType);     // "bfloat16"
std::string DtypeSymbol(ge::DataType dataType);   // "DT_BF16"
std::string FormatSymbol(ge::Format format);      // "FORMAT_ND"
std::string ShapeText(const gert::Shape& shape);  // "[128, 4, 7168]"

// aclnnStatus values, as in CANN.
inline constexpr int32_t kNullPointer = 161001;      // ACLNN_ERR_PARAM_NULLPTR
inline constexpr int32_t kInvalidParameter = 161002; // ACLNN_ERR_PARAM_INVALID
inline constexpr int32_t kRuntimeError = 361001;     // ACLNN_ERR_RUNTIME_ERROR
inline constexpr int32_t kTimedOut = 361002;
inline constexpr int32_t kInnerError = 561000;       // ACLNN_ERR_INNER
inline constexpr int32_t kInferShapeFailed = 561002; // ACLNN_ERR_INNER_INFERSHAPE_ERROR
inline constexpr int32_t kTilingFailed = 561003;     // ACLNN_ERR_INNER_TILING_ERROR
inline constexpr int32_t kNoKernel = 561107;         // ACLNN_ERR_INNER_FIND_KERNEL_ERROR

// A call that cannot go on. `status` is the aclnnStatus it ends with.
struct HostError : std::runtime_error {
    HostError(int32_t code, const std::string& message) : std::runtime_error(message), status(code) {}
    int32_t status;
};
[[noreturn]] void Refuse(int32_t status, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace sim::host
