// The gert contexts over a Node.
#include <cstring>

#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "sim/host/node.h"

namespace gert {
namespace {

template <typename T>
T* At(std::vector<T>& values, size_t index) {
    return index < values.size() ? &values[index] : nullptr;
}

}  // namespace

const char* ComputeNodeInfo::GetNodeType() const { return node_->type.c_str(); }
const char* ComputeNodeInfo::GetNodeName() const { return node_->name.c_str(); }
size_t ComputeNodeInfo::GetIrInputsNum() const { return node_->inputInstances.size(); }
size_t ComputeNodeInfo::GetInputsNum() const { return node_->inputs.size(); }
size_t ComputeNodeInfo::GetOutputsNum() const { return node_->outputs.size(); }
const AnchorInstanceInfo* ComputeNodeInfo::GetInputInstanceInfo(size_t irIndex) const {
    return At(node_->inputInstances, irIndex);
}
const AnchorInstanceInfo* ComputeNodeInfo::GetOutputInstanceInfo(size_t irIndex) const {
    return At(node_->outputInstances, irIndex);
}
const CompileTimeTensorDesc* ComputeNodeInfo::GetInputTdInfo(size_t index) const { return At(node_->inputDescs, index); }
const CompileTimeTensorDesc* ComputeNodeInfo::GetOutputTdInfo(size_t index) const { return At(node_->outputDescs, index); }
const RuntimeAttrs* ComputeNodeInfo::GetAttrs() const { return &node_->attrs; }

const CompileTimeTensorDesc* ExtendedKernelContext::GetDynamicInputDesc(size_t irIndex, size_t relative) const {
    const AnchorInstanceInfo* instances = At(node_->inputInstances, irIndex);
    if (instances == nullptr || relative >= instances->GetInstanceNum()) return nullptr;
    return At(node_->inputDescs, instances->GetInstanceStart() + relative);
}
const Tensor* ExtendedKernelContext::InputTensor(size_t index) const { return At(node_->inputs, index); }
const Tensor* ExtendedKernelContext::IrInputTensor(size_t irIndex, size_t relative) const {
    const AnchorInstanceInfo* instances = At(node_->inputInstances, irIndex);
    if (instances == nullptr || relative >= instances->GetInstanceNum()) return nullptr;
    return At(node_->inputs, instances->GetInstanceStart() + relative);
}
Tensor* ExtendedKernelContext::OutputTensor(size_t index) const { return At(node_->outputs, index); }

fe::PlatFormInfos* TilingContext::GetPlatformInfo() const { return node_->platform; }
const void* TilingContext::GetCompileInfo() const { return node_->compileInfo; }

ge::graphStatus TilingContext::SetTilingKey(uint64_t key) {
    node_->tiling.key = key;
    return ge::GRAPH_SUCCESS;
}
uint64_t TilingContext::GetTilingKey() const { return node_->tiling.key; }
ge::graphStatus TilingContext::SetBlockDim(uint32_t blockDim) {
    node_->tiling.blockDim = blockDim;
    return ge::GRAPH_SUCCESS;
}
uint32_t TilingContext::GetBlockDim() const { return node_->tiling.blockDim; }
ge::graphStatus TilingContext::SetScheduleMode(uint32_t mode) {
    node_->tiling.scheduleMode = mode;
    return ge::GRAPH_SUCCESS;
}
uint32_t TilingContext::GetScheduleMode() const { return node_->tiling.scheduleMode; }
ge::graphStatus TilingContext::SetTilingCond(int32_t condition) {
    node_->tiling.condition = condition;
    return ge::GRAPH_SUCCESS;
}
int32_t TilingContext::GetTilingCond() const { return node_->tiling.condition; }
ge::graphStatus TilingContext::SetNeedAtomic(bool atomic) {
    node_->tiling.needAtomic = atomic;
    return ge::GRAPH_SUCCESS;
}
bool TilingContext::NeedAtomic() const { return node_->tiling.needAtomic; }
ge::graphStatus TilingContext::SetLocalMemorySize(uint32_t bytes) {
    node_->tiling.localMemoryBytes = bytes;
    return ge::GRAPH_SUCCESS;
}
uint32_t TilingContext::GetLocalMemorySize() const { return node_->tiling.localMemoryBytes; }
TilingData* TilingContext::GetRawTilingData() { return &node_->tiling.data; }
size_t* TilingContext::GetWorkspaceSizes(size_t count) {
    node_->tiling.workspaces.resize(count, 0);
    return node_->tiling.workspaces.data();
}
size_t TilingContext::GetWorkspaceNum() const { return node_->tiling.workspaces.size(); }

void* TilingParseContext::GetCompiledInfo() const { return node_->compileInfo; }
fe::PlatFormInfos* TilingParseContext::GetPlatformInfo() const { return node_->platform; }

void RuntimeAttrs::Append(const void* value, size_t bytes) {
    values_.emplace_back((bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    if (bytes != 0) std::memcpy(values_.back().data(), value, bytes);
}
void RuntimeAttrs::AppendVector(const void* values, size_t count, size_t elementBytes) {
    const ContinuousVector header(count);
    std::vector<uint8_t> bytes(sizeof header + count * elementBytes);
    std::memcpy(bytes.data(), &header, sizeof header);
    if (count != 0) std::memcpy(bytes.data() + sizeof header, values, count * elementBytes);
    Append(bytes.data(), bytes.size());
}

}  // namespace gert
