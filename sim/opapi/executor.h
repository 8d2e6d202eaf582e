// Between the two phases of an aclnn call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/core/launch.h"
#include "sim/host/host_library.h"
#include "sim/opapi/arguments.h"
#include "sim/opapi/stream.h"

struct aclOpExecutor {
    std::shared_ptr<const sim::host::HostLibrary> library;  // the arguments point to its parameters
    std::string op;
    const sim::SocSpec* soc = nullptr;
    std::vector<sim::opapi::Argument> inputs, outputs;
    bool launches = true;        // false: every output is empty
    sim::KernelInvoke invoke = nullptr;
    uint32_t blockDim = 0, scheduleMode = 0;
    uint64_t tilingKey = 0, workspaceBytes = 0;
    std::vector<uint8_t> tilingData;
    bool repeatable = false;
    sim::StreamWork builtin;     // an operator of sim/aclnn: all of its second phase, and of the above only `op`
};
