// Turns the arguments of a call into what a kernel receives: GM buffers and pointers. Views that are not contiguous are
// staged: copied before the launch, and outputs copied back after it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/core/launch.h"
#include "sim/opapi/arguments.h"

namespace sim::opapi {

class LaunchArguments {
public:
    explicit LaunchArguments(LaunchRequest& request) : request_(request) {}

    void AddInput(const Argument& argument);
    void AddOutput(const Argument& argument);
    void AddBuffer(const char* name, void* data, uint64_t bytes, GmRole role);
    // Staged outputs into their views.
    void CopyBack() const;

private:
    struct Free {
        void operator()(uint8_t* memory) const;
    };
    using Memory = std::unique_ptr<uint8_t, Free>;
    uint8_t* Allocate(uint64_t bytes);
    void* Place(const Argument& argument, size_t instance, GmRole role);
    void Add(const Argument& argument, GmRole role);

    LaunchRequest& request_;
    std::vector<Memory> staged_;
    std::vector<void*> inputs_;  // what the inputs became, for outputs that are one of them
    std::vector<std::pair<const aclTensor*, const uint8_t*>> copyBack_;
};

}  // namespace sim::opapi
