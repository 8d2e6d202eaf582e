#pragma once

#include <string>

#include "sim/opapi/stream.h"

namespace sim::acl {

constexpr int kCoreError = 3;  // aclrtErrorType of a kernel's failure

// The result, or that the operator took longer than aclrtSetOpExecuteTimeOut allows.
WorkResult WithinLimit(WorkResult result, const std::string& name);

}  // namespace sim::acl
