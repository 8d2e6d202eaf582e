// What every context of a node offers: its name, its attributes and its compile-time description.
#pragma once

#include <cstddef>

#include "exe_graph/runtime/compute_node_info.h"
#include "exe_graph/runtime/runtime_attrs.h"
#include "exe_graph/runtime/tensor.h"

namespace gert {

class KernelContext {
public:
    explicit KernelContext(sim::host::Node& node) : node_(&node) {}

protected:
    sim::host::Node* node_;
};

class ExtendedKernelContext : public KernelContext {
public:
    explicit ExtendedKernelContext(sim::host::Node& node) : KernelContext(node), info_(node) {}

    const char* GetNodeType() const { return info_.GetNodeType(); }
    const char* GetNodeName() const { return info_.GetNodeName(); }
    const char* GetKernelName() const { return info_.GetNodeName(); }
    const ComputeNodeInfo* GetComputeNodeInfo() const { return &info_; }
    size_t GetComputeNodeInputNum() const { return info_.GetInputsNum(); }
    size_t GetComputeNodeOutputNum() const { return info_.GetOutputsNum(); }
    const AnchorInstanceInfo* GetIrInputInstanceInfo(size_t irIndex) const { return info_.GetInputInstanceInfo(irIndex); }
    const AnchorInstanceInfo* GetIrOutputInstanceInfo(size_t irIndex) const { return info_.GetOutputInstanceInfo(irIndex); }
    const RuntimeAttrs* GetAttrs() const { return info_.GetAttrs(); }

    // Types of the tensors present, by position; by IR parameter for optional (null when absent) and dynamic ones.
    const CompileTimeTensorDesc* GetInputDesc(size_t index) const { return info_.GetInputTdInfo(index); }
    const CompileTimeTensorDesc* GetOutputDesc(size_t index) const { return info_.GetOutputTdInfo(index); }
    const CompileTimeTensorDesc* GetOptionalInputDesc(size_t irIndex) const { return GetDynamicInputDesc(irIndex, 0); }
    const CompileTimeTensorDesc* GetRequiredInputDesc(size_t irIndex) const { return GetDynamicInputDesc(irIndex, 0); }
    const CompileTimeTensorDesc* GetDynamicInputDesc(size_t irIndex, size_t relative) const;

protected:
    const Tensor* InputTensor(size_t index) const;                       // among the tensors present
    const Tensor* IrInputTensor(size_t irIndex, size_t relative) const;  // null when that parameter has no such tensor
    Tensor* OutputTensor(size_t index) const;

private:
    ComputeNodeInfo info_;
};

}  // namespace gert
