// The second phase of an op's call as work of a stream: owns everything the launch needs, so that it can run later, and again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/core/launch.h"
#include "sim/opapi/executor.h"
#include "sim/opapi/stream.h"

namespace sim::opapi {

class KernelWork {
public:
    // HostError when the workspace is smaller than the first phase asked for.
    KernelWork(const aclOpExecutor& executor, void* workspace, uint64_t workspaceBytes);

    // Whether anything of it is device memory.
    bool OnDevice() const { return onDevice_; }
    // Runs the kernel now. On a device, failures have the codes that its streams report.
    WorkResult Run(bool asStreamWork) const;

private:
    struct Extent {
        std::string name;
        const void* address;
        uint64_t bytes;
    };
    void Translate(std::vector<Argument>& arguments);
    std::string UnreachableArgument() const;
    WorkResult Launch() const;

    aclOpExecutor call_;              // a copy, with tensors at host addresses
    uint8_t* workspace_ = nullptr;    // host address
    std::vector<Extent> extents_;     // as the caller gave them
    bool onDevice_ = false;
};

}  // namespace sim::opapi
