// First phase of a call: inference and tiling by the op's own host code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/core/soc.h"
#include "sim/host/host_library.h"
#include "sim/host/node.h"
#include "sim/opapi/arguments.h"

namespace sim::opapi {

// An op of a package, on the SoC of this thread.
struct OpOfPackage {
    OpOfPackage(const char* package, const char* opType);
    std::shared_ptr<const host::HostLibrary> library;
    std::string root;                // directory of the package
    const host::Op* op = nullptr;
    const SocSpec* soc = nullptr;
    const host::SocConfig* config = nullptr;
    // Compiled kernel of a dtype column; HostError when the package does not have it.
    std::string Kernel(int column) const;
};

struct OpCall {
    OpCall(const OpOfPackage& target, std::vector<Argument> inputs, gert::RuntimeAttrs attributes);
    OpCall(const OpCall&) = delete;  // the node points into it
    OpCall& operator=(const OpCall&) = delete;

    // Fill node.outputs. Without an inference function: false.
    bool InferShapes();
    bool InferDataTypes();
    // Compares what inference gives with the outputs, then puts the outputs themselves into the node.
    void CheckOutputs(const std::vector<Argument>& outputs);
    // Fills node.tiling.
    void Tile();

    const host::Op& op;
    std::vector<Argument> inputs;
    host::Node node;

private:
    fe::PlatFormInfos platform_;
    std::vector<std::vector<uint8_t>> values_;  // contiguous copies that the host functions may read
    void AddInputs();
};

}  // namespace sim::opapi
