// One call of an op as the host functions see it. The gert contexts are views of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exe_graph/runtime/compute_node_info.h"
#include "exe_graph/runtime/runtime_attrs.h"
#include "exe_graph/runtime/tensor.h"
#include "exe_graph/runtime/tiling_data.h"
#include "platform/platform_infos_def.h"

namespace sim::host {

// The start of every workspace belongs to the system (RESERVED_WORKSPACE); GetUserWorkspace() is behind it.
inline constexpr uint32_t kSystemWorkspaceBytes = 16u << 20;

struct TilingResult {
    uint64_t key = 0;
    uint32_t blockDim = 0;         // 0: not set
    uint32_t scheduleMode = 0;
    int32_t condition = 0;
    bool needAtomic = false;
    uint32_t localMemoryBytes = 0;
    std::vector<uint64_t> buffer;  // 64-bit words: the struct inside is aligned
    gert::TilingData data{nullptr, 0};
    std::vector<size_t> workspaces;
};

struct Node {
    std::string type, name;
    // Tensors present, in order; `instances` tells by IR parameter which ones are its own.
    std::vector<gert::Tensor> inputs, outputs;
    std::vector<gert::CompileTimeTensorDesc> inputDescs, outputDescs;
    std::vector<gert::AnchorInstanceInfo> inputInstances, outputInstances;
    gert::RuntimeAttrs attrs;
    fe::PlatFormInfos* platform = nullptr;
    void* compileInfo = nullptr;
    TilingResult tiling;
};

}  // namespace sim::host
